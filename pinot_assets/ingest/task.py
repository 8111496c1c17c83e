"""What one task does with one file: read one version of it, stage its segments, write its receipt last.

A task writes under names that only this attempt of this session uses, and only if the object is absent. So
a task that runs twice (a lost executor, speculation) does no harm. The receipt comes after all tars: a file
is done when, and only when, its receipt exists (docs/design/session.md#receipt).
"""

from __future__ import annotations

import os
import pickle
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from pinot_assets.core.files import temporary_folder
from pinot_assets.core.this_machine import (
    keep_freed_memory,
    take_memory_from_arrow,
    take_memory_from_system,
)
from pinot_assets.core.untrusted import RECEIPT
from pinot_assets.errors import BuildError, PinotAssetsError, SourceChanged, SourceError, StoreConflict
from pinot_assets.ingest.contract.accepted_rows import (
    BadRowAllowance,
    BadRowPolicy,
    EmptyColumns,
    Quarantine,
    TargetSchema,
    cut,
)
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, segment_name
from pinot_assets.ingest.contract.failures import BecameFolder, Vanished, failure_of
from pinot_assets.ingest.contract.task_outputs import (
    CutValues,
    Heartbeat,
    bad_rows_key,
    cut_key,
    receipt_key,
    version_text,
)
from pinot_assets.ingest.formats.content import check_not_torn
from pinot_assets.ingest.formats.read import FIRST_ROWS, read_batches
from pinot_assets.ingest.provenance import path_below_source, with_provenance
from pinot_assets.ingest.stores import stores_of
from pinot_assets.segment import SegmentSpec, metadata_tar, write_tar
from pinot_assets.segment.write.metadata import read_facts
from pinot_assets.segment.write.segment import ColumnStats, build_and_release
from pinot_assets.snapshot.receipt import Failure, Fingerprint, Output, Receipt, SegmentFacts
from pinot_assets.source.allowed_places import require_data
from pinot_assets.source.object_store import ObjectStore

Rows = Callable[[Path, Fingerprint, TargetSchema, BadRowPolicy], Iterator[pa.Table]]
"""Reads a file's rows: takes the local copy, its version, the target schema and the policy that collects bad
rows; yields tables of exactly the target schema."""

_BAD_ROWS = "bad-rows.parquet"


def build_file(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    """Build one file, with its rows read through Arrow; see `build_from`.

    A build spec with a query becomes a failure: Arrow cannot apply the query.
    """

    def rows(local: Path, _: Fingerprint, target: TargetSchema, verdicts: BadRowPolicy) -> Iterator[pa.Table]:
        if build_spec.query is not None:
            raise BuildError("a file with SQL was about to be read without it")
        return read_batches(
            local,
            target,
            build_spec.input_format,
            reader=build_spec.reader,
            verdicts=verdicts,
            limits=build_spec.limits,
        )

    return build_from(build_spec, task, rows)


def build_or_keep(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    """Build one file as `build_file` does, unless an earlier run of this task has done it.

    It asks the staging area first, so it is for tasks that are repeated because their worker died.
    """
    return built_before(build_spec, task) or build_file(build_spec, task)


def built_before(build_spec: BuildSpec, task: FileTask) -> Receipt | None:
    """Return the receipt that an earlier run of this task wrote for the planned version, if there is one."""
    key = receipt_key(task.file.uri, task.file.fingerprint, build_spec.attempt)
    with suppress(PinotAssetsError, ValueError):  # whatever is wrong with it: the file is built
        staging = stores_of(build_spec).staging
        if staging.stat(key) is not None:
            return Receipt.from_bytes(staging.read(key, RECEIPT), staging.uri_of(key))
    return None


def build_from(build_spec: BuildSpec, task: FileTask, rows: Rows) -> Receipt | Failure:
    """Build one file. Any error becomes a `Failure` of the file.

    :returns: the receipt in the staging area. If another run of this task wrote a receipt for the same
        version first, that receipt (rule R13).
    """
    # A worker of Spark builds files of several tables, one after the other.
    if build_spec.input_format in FIRST_ROWS:
        take_memory_from_system()
    else:
        take_memory_from_arrow()
    keep_freed_memory()
    try:
        with temporary_folder("build") as folder, closing(heartbeat(build_spec, task)) as signs:
            return _build(build_spec, task, rows, folder, signs)
    except Exception as error:
        # A bug, or a disk that is full, must fail this file only, and not the job with all other files.
        return failure_of(build_spec, task, error)


def inspected(build_spec: BuildSpec, task: FileTask, look: Callable[[Path], None]) -> Fingerprint | Failure:
    """Copy one version of a file and inspect it; build nothing.

    :param look: called with the path of the copy; an exception that it raises becomes the file's failure.
    :returns: the version that was copied, or the failure.
    """
    try:
        with temporary_folder("build") as folder, closing(heartbeat(build_spec, task)):
            read, _ = fetch(build_spec, task.file.uri, folder / "source")
            check_not_torn(task.file.uri, read.size, build_spec.input_format)
            look(folder / "source")
            return read
    except Exception as error:
        return failure_of(build_spec, task, error)


def heartbeat(build_spec: BuildSpec, task: FileTask) -> Heartbeat:
    """Return what leaves signs of life of a task that begins with this file."""
    return Heartbeat(stores_of(build_spec).staging, build_spec.attempt, task.ordinal)


def _build(build_spec: BuildSpec, task: FileTask, rows_of: Rows, folder: Path, signs: Heartbeat) -> Receipt:
    started = time.monotonic()
    spec, target = _table(pickle.dumps((build_spec.schema, build_spec.table_config, build_spec.write_for)))
    local = folder / "source"
    read, sha256 = fetch(build_spec, task.file.uri, local)
    signs.worked()
    check_not_torn(task.file.uri, read.size, build_spec.input_format)
    verdicts = _verdicts(build_spec, task, folder)
    values = EmptyColumns(target.schema.names)
    tables = rows_of(local, read, target, verdicts)
    if name := build_spec.provenance_column:
        column = next(column for column in spec.columns if column.name == name)
        tables = with_provenance(tables, column, path_below_source(build_spec, task))
    tables = values.watched(tables)
    segments = stores_of(build_spec).segments
    cuts = cut(signs.counted(tables), build_spec.max_rows_per_segment, build_spec.desired_segment_bytes)
    staged = [
        _stage(build_spec, task, spec, segments, columns, k, read, folder, signs)
        for k, columns in enumerate(map(_columns, cuts))
    ]
    outputs = tuple(output for output, _, _ in staged)
    rows = sum(output.rows for output in outputs)
    verdicts.finish(rows)
    receipt = Receipt(
        uri=task.file.uri,
        ordinal=task.ordinal,
        attempt=build_spec.attempt,
        read=read,
        sha256=sha256,
        rows=rows,
        bad_rows=verdicts.bad_rows,
        outputs=outputs,
        seconds=round(time.monotonic() - started, 3),
        worker=f"{socket.gethostname()}/{os.getpid()}",
        tars=tuple(_token(segments, output) for output in outputs),
        bad_rows_uri=_put_bad_rows(build_spec, task, read, folder) if verdicts.bad_rows else "",
        missing=values.missing(verdicts.missing),
        rows_read=verdicts.rows,
        rows_filtered=_filtered(build_spec, verdicts, rows),
        facts=tuple(facts for _, facts, _ in staged),
        format=build_spec.format,
    )
    cut_values = CutValues.of((columns for _, _, columns in staged), build_spec.format)
    if cut_values.columns:  # its own object: an older release refuses a receipt with more keys
        key = cut_key(task.file.uri, read, build_spec.attempt)
        stores_of(build_spec).staging.put_if_absent(key, cut_values.to_bytes())
    return _record(build_spec, receipt)


@lru_cache(maxsize=1)
def _table(pickled: bytes) -> tuple[SegmentSpec, TargetSchema]:
    """Return a table's columns. A worker builds many files of one table, and gets a new build spec with each.

    :param pickled: schema, table config, and the oldest server to write for.
    """
    schema, table_config, write_for = pickle.loads(pickled)
    spec = SegmentSpec.from_pinot(schema, table_config, write_for=write_for)
    return spec, TargetSchema.of(spec)


def _filtered(build_spec: BuildSpec, verdicts: BadRowPolicy, rows: int) -> int:
    """Return how many rows the query dropped: rows read, less bad and written ones. Spark counts none."""
    if verdicts.rows is None or build_spec.query is None or not build_spec.query.drops_rows:
        return 0
    return max(0, verdicts.rows - verdicts.bad_rows - rows)


def fetch(build_spec: BuildSpec, uri: str, local: Path) -> tuple[Fingerprint, str]:
    """Copy one version of the file; return that version and the sha256 of the copy (edge case E1).

    :raises SettingError: the policy says that the file is no data, as this machine sees it.
    :raises SourceChanged: the file changed during both attempts to copy it.
    """
    require_data(uri, build_spec.policy)
    source = stores_of(build_spec).source
    key = source.key_of(uri)
    for attempt in range(2):
        before = version_of(source, uri)
        try:
            sha256 = source.download(key, local, before.size)
        except SourceError as error:
            version_of(source, uri)  # raises if the file is gone, which says more than "unreadable"
            if attempt or not isinstance(error, SourceChanged):
                raise
            continue
        if version_of(source, uri) == before:
            return before, sha256
    raise SourceChanged(
        f"{uri} changed while it was read, twice",
        hint="wait for its writer; the next trigger reads it again",
    )


def version_of(source: ObjectStore, uri: str) -> Fingerprint:
    """Return the version of the file that is in the store now.

    :raises SourceError: the file is gone or became a folder, or the store does not answer.
    """
    key = source.key_of(uri)
    if (version := source.stat(key)) is None:
        if source.ask_if_folder(key):
            raise BecameFolder(
                f"{uri} was a file and became a folder",
                why="a writer made a folder of that name, or somebody made it by mistake",
                hint="move the folder, or deliver the file again; the file's published rows stay "
                "until the folder is gone",
            )
        raise Vanished(f"{uri} does not exist any more", hint="the next trigger lists again")
    return version


def _verdicts(build_spec: BuildSpec, task: FileTask, folder: Path) -> BadRowPolicy:
    if build_spec.max_bad_rows is None:
        return BadRowPolicy(build_spec.missing_column, build_spec.provenance_column)
    limit = BadRowAllowance.parse(build_spec.max_bad_rows)
    how = build_spec.missing_column, build_spec.provenance_column
    return Quarantine(folder / _BAD_ROWS, task.file.uri, limit, *how)


def _put_bad_rows(build_spec: BuildSpec, task: FileTask, read: Fingerprint, folder: Path) -> str:
    staging = stores_of(build_spec).staging
    key = bad_rows_key(task.file.uri, read, build_spec.attempt)
    staging.put_file_if_absent(key, folder / _BAD_ROWS)
    return staging.uri_of(key)


def _columns(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns by name, for `build_and_release`: it empties them for all who hold them."""
    return dict(zip(rows.column_names, rows.columns, strict=True))


def _stage(
    build_spec: BuildSpec,
    task: FileTask,
    spec: SegmentSpec,
    segments: ObjectStore,
    columns: dict[str, pa.ChunkedArray],
    k: int,
    read: Fingerprint,
    folder: Path,
    signs: Heartbeat,
) -> tuple[Output, SegmentFacts, tuple[ColumnStats, ...]]:
    """Build one segment, put its two tars; return the output, the facts of its metadata and its columns.

    :param columns: the rows; emptied as they are built.
    """
    name = segment_name(build_spec.table, build_spec.session, build_spec.attempt, task.ordinal, k)
    segment = build_and_release(
        columns,
        len(next(iter(columns.values()))),
        spec,
        name=name,
        table_name=build_spec.table,
        creation_time_ms=build_spec.creation_time_ms,
        now_ms=build_spec.creation_time_ms,  # so that a second run of the task makes the same bytes
        custom={
            "input.data.file.uri": task.file.uri,  # the key that Pinot's own batch jobs write
            "pinotAssets.file": task.file.uri,
            "pinotAssets.session": build_spec.session,
            "pinotAssets.version": version_text(read),
            "pinotAssets.writtenFor": spec.target.release,
        },
    )
    signs.worked()
    path = folder / "segment.tar.gz"
    tar = write_tar(segment, path)
    signs.worked()
    tar_key, metadata_key = f"{name}.tar.gz", f"{name}.metadata.tar.gz"
    segments.put_file_if_absent(tar_key, path)
    segments.put_if_absent(metadata_key, metadata_tar(segment))
    signs.worked()
    output = Output(
        segment=name,
        crc=segment.crc,
        rows=segment.rows,
        tar_uri=segments.uri_of(tar_key),
        tar_bytes=tar.bytes,
        tar_sha256=tar.sha256,
        metadata_uri=segments.uri_of(metadata_key),
        start_ms=segment.start_ms,
        end_ms=segment.end_ms,
        unpacked_bytes=sum(len(content) for content in segment.files.values()),
    )
    return output, read_facts(segment.files["metadata.properties"]), segment.columns


def _token(segments: ObjectStore, output: Output) -> str:
    """Return the store's version token of the tar; a later check for changes compares it (rule R12)."""
    version = segments.stat(segments.key_of(output.tar_uri))
    return version.token if version is not None else ""


def _record(build_spec: BuildSpec, receipt: Receipt) -> Receipt:
    """Write the receipt; if another run of this task wrote one first, return that one (rule R13)."""
    staging = stores_of(build_spec).staging
    key = receipt_key(receipt.uri, receipt.read, receipt.attempt)
    try:
        staging.put_if_absent(key, receipt.to_bytes())
    except StoreConflict as conflict:
        try:
            winner = Receipt.from_bytes(staging.read(key, RECEIPT), staging.uri_of(key))
        except ValueError:
            raise conflict from None  # not a receipt; the next attempt writes under another name
        if winner.outputs != receipt.outputs or winner.uri != receipt.uri:
            raise
        return winner
    return receipt
