"""What one task does with one file: read it once, unchanged; stage its segments; say so last.

Everything is written under names that only this attempt of this session uses, and put-if-absent, so a task
that runs twice (a lost executor, speculation) does no harm. The receipt comes after all tars: a file is done
when, and only when, its receipt exists (docs/design/session.md#receipt).
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from pinot_assets.core.files import temporary_folder
from pinot_assets.core.machine import keep_freed_memory, take_memory_from_system
from pinot_assets.core.untrusted import RECEIPT
from pinot_assets.errors import BuildError, SourceChanged, SourceError, StoreConflict
from pinot_assets.ingest.contract.accepted_rows import BadRowAllowance, BadRowPolicy, Quarantine, TargetSchema
from pinot_assets.ingest.contract.build_spec import (
    BecameFolder,
    BuildSpec,
    FileTask,
    Vanished,
    failure_of,
    segment_name,
)
from pinot_assets.ingest.contract.task_outputs import (
    CutValues,
    Heartbeat,
    bad_rows_key,
    cut_key,
    receipt_key,
    version_text,
)
from pinot_assets.ingest.formats.content import check_not_torn
from pinot_assets.ingest.formats.read import read_batches
from pinot_assets.segment import SegmentSpec, build_segment, metadata_tar, write_tar
from pinot_assets.segment.write.metadata import read_facts
from pinot_assets.segment.write.segment import ColumnStats
from pinot_assets.snapshot.receipt import Failure, Fingerprint, Output, Receipt, SegmentFacts
from pinot_assets.source.factory import open_store
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.policy import require_data


class EmptyColumns:
    """Looks at the rows of one file as they pass.

    :param columns: names of the table's.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self._without = list(columns)
        self._rows = 0

    def watched(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The same tables; a column is looked at until it shows a value."""
        for table in tables:
            self._rows += table.num_rows
            self._without = [
                name for name in self._without if table.column(name).null_count == table.num_rows
            ]
            yield table

    def missing(self, lacking: tuple[str, ...]) -> tuple[str, ...]:
        """Columns without a value, once all rows have passed; of a file without rows those that it lacks.

        :param lacking: what the file has no column for, which may be more than the table's.
        """
        without = [name for name in self._without if name not in lacking] if self._rows else []
        return (*lacking, *without)


def cut(tables: Iterator[pa.Table], max_rows: int, desired_bytes: int | None) -> Iterator[pa.Table]:
    """Tables of as many rows as a segment may have, the last one fewer.

    :param desired_bytes: size of a segment, measured by what its rows take in memory. Rows that come together
        count as equally large, so that nothing but the file and its reader say where it is cut: a task run
        twice cuts in the same places.
    """
    pending: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        while table.num_rows:
            room = max_rows - rows
            if desired_bytes is not None:
                room = min(room, (desired_bytes - size) * table.num_rows // max(1, table.nbytes))
            if table.num_rows < room:
                pending.append(table)
                rows, size = rows + table.num_rows, size + table.nbytes
                break
            part = table.slice(0, room if pending else max(1, room))
            yield pa.concat_tables([*pending, part])
            pending, rows, size = [], 0, 0
            table = table.slice(part.num_rows)
    if pending:
        yield pa.concat_tables(pending)


Rows = Callable[[Path, Fingerprint, TargetSchema, BadRowPolicy], Iterator[pa.Table]]
"""Where a file's rows come from: its local copy, the copy's version, what is wanted, who is told what is
wrong. Gives tables of exactly what is wanted."""

_BAD_ROWS = "bad-rows.parquet"


def build_file(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    """Build one file, read through Arrow; see `build_from`.

    An order with a query fails: here nobody could do what it says.
    """

    def rows(local: Path, _: Fingerprint, wanted: TargetSchema, verdicts: BadRowPolicy) -> Iterator[pa.Table]:
        if build_spec.query is not None:
            raise BuildError("a file with SQL was about to be read without it")
        return read_batches(
            local,
            wanted,
            build_spec.input_format,
            reader=build_spec.reader,
            verdicts=verdicts,
            limits=build_spec.limits,
        )

    return build_from(build_spec, task, rows)


def build_from(build_spec: BuildSpec, task: FileTask, rows: Rows) -> Receipt | Failure:
    """Build one file; whatever goes wrong with it is a `Failure`.

    :returns: the receipt that stands in the staging area. Where another run of this task wrote one for the
        same version first, that one (rule R13).
    """
    take_memory_from_system()
    keep_freed_memory()
    try:
        with temporary_folder("build") as folder, closing(_heartbeat(build_spec, task)) as signs:
            return _build(build_spec, task, rows, folder, signs)
    except Exception as error:
        # A bug or a full disk under one file must not take the other files' job with it.
        return failure_of(build_spec, task, error)


def look_at(build_spec: BuildSpec, task: FileTask, look: Callable[[Path], None]) -> Fingerprint | Failure:
    """Copy one file in one version and look at it; nothing is built.

    :param look: is given the copy; what it raises is the file's failure.
    :returns: the version that was looked at.
    """
    try:
        with temporary_folder("build") as folder, closing(_heartbeat(build_spec, task)):
            read, _ = _fetch(build_spec, task.file.uri, folder / "source")
            check_not_torn(task.file.uri, read.size, build_spec.input_format)
            look(folder / "source")
            return read
    except Exception as error:
        return failure_of(build_spec, task, error)


def _staging(build_spec: BuildSpec) -> ObjectStore:
    return open_store(build_spec.staging_uri, build_spec.staging_props, build_spec.policy)


def _heartbeat(build_spec: BuildSpec, task: FileTask) -> Heartbeat:
    return Heartbeat(_staging(build_spec), build_spec.attempt, task.ordinal)


def _build(build_spec: BuildSpec, task: FileTask, rows_of: Rows, folder: Path, signs: Heartbeat) -> Receipt:
    started = time.monotonic()
    spec = SegmentSpec.from_pinot(
        build_spec.schema, build_spec.table_config, min_server=build_spec.min_server
    )
    local = folder / "source"
    read, sha256 = _fetch(build_spec, task.file.uri, local)
    signs.worked()
    check_not_torn(task.file.uri, read.size, build_spec.input_format)
    verdicts = _verdicts(build_spec, task, folder)
    wanted = TargetSchema.of(spec)
    values = EmptyColumns(wanted.schema.names)
    tables = values.watched(rows_of(local, read, wanted, verdicts))
    segments = open_store(build_spec.segments_uri, build_spec.staging_props, build_spec.policy)
    staged = [
        _stage(build_spec, task, spec, segments, rows, k, read, folder, signs)
        for k, rows in enumerate(
            cut(signs.counted(tables), build_spec.max_rows_per_segment, build_spec.desired_segment_bytes)
        )
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
    if cut_values.columns:  # beside the receipt: a release before this one refuses one with more keys
        key = cut_key(task.file.uri, read, build_spec.attempt)
        _staging(build_spec).put_if_absent(key, cut_values.to_bytes())
    return _record(build_spec, receipt)


def _filtered(build_spec: BuildSpec, verdicts: BadRowPolicy, rows: int) -> int:
    """Nobody counts rows that Spark's filter leaves out: what the file has more, if there is a filter."""
    if verdicts.rows is None or build_spec.query is None or not build_spec.query.drops_rows:
        return 0
    return max(0, verdicts.rows - verdicts.bad_rows - rows)


def _fetch(build_spec: BuildSpec, uri: str, local: Path) -> tuple[Fingerprint, str]:
    """Copy the file in one version: version and sha256 of what was copied (edge case E1).

    :raises SettingError: the policy says that it is no data, seen from this machine.
    :raises SourceChanged: it changed while it was copied, twice.
    """
    require_data(uri, build_spec.policy)
    source = open_store(build_spec.source_uri, build_spec.source_props, build_spec.policy)
    key = source.key_of(uri)
    for attempt in range(2):
        before = version_of(source, uri)
        try:
            sha256 = source.download(key, local, before.size)
        except SourceError as error:
            version_of(source, uri)  # gone says more than unreadable
            if attempt or not isinstance(error, SourceChanged):
                raise
            continue
        if version_of(source, uri) == before:
            return before, sha256
    raise SourceChanged(
        f"{uri} changed while it was read, twice",
        hint="let its writer finish; the next trigger reads it again",
    )


def version_of(source: ObjectStore, uri: str) -> Fingerprint:
    """The version in which a file is there now.

    :raises SourceError: it is not, or the store cannot say.
    """
    key = source.key_of(uri)
    found = source.stat(key)
    if found is None:
        if source.is_folder(key):
            raise BecameFolder(
                f"{uri} was a file and became a folder",
                why="a writer that makes folders of that name, or a slip of the hand",
                hint="move the folder, or deliver the file again; its published rows stay until it is gone",
            )
        raise Vanished(f"{uri} is not there any more", hint="the next trigger lists again")
    return found


def _verdicts(build_spec: BuildSpec, task: FileTask, folder: Path) -> BadRowPolicy:
    if build_spec.max_bad_rows is None:
        return BadRowPolicy(build_spec.missing_column)
    limit = BadRowAllowance.parse(build_spec.max_bad_rows)
    return Quarantine(folder / _BAD_ROWS, task.file.uri, limit, build_spec.missing_column)


def _put_bad_rows(build_spec: BuildSpec, task: FileTask, read: Fingerprint, folder: Path) -> str:
    staging = _staging(build_spec)
    key = bad_rows_key(task.file.uri, read, build_spec.attempt)
    staging.put_file_if_absent(key, folder / _BAD_ROWS)
    return staging.uri_of(key)


def _stage(
    build_spec: BuildSpec,
    task: FileTask,
    spec: SegmentSpec,
    segments: ObjectStore,
    rows: pa.Table,
    k: int,
    read: Fingerprint,
    folder: Path,
    signs: Heartbeat,
) -> tuple[Output, SegmentFacts, tuple[ColumnStats, ...]]:
    """Build one segment and put its two tars; with what its metadata say, and what its columns lost."""
    name = segment_name(build_spec.table, build_spec.session, build_spec.attempt, task.ordinal, k)
    segment = build_segment(
        rows,
        spec,
        name=name,
        table_name=build_spec.table,
        creation_time_ms=build_spec.creation_time_ms,
        now_ms=build_spec.creation_time_ms,  # a task run twice makes the same bytes
        custom={
            "input.data.file.uri": task.file.uri,  # the key that Pinot's own batch jobs write
            "pinotAssets.file": task.file.uri,
            "pinotAssets.session": build_spec.session,
            "pinotAssets.version": version_text(read),
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
    """The tar's version as the store shows it, from which it is known unchanged later on (rule R12)."""
    found = segments.stat(segments.key_of(output.tar_uri))
    return found.token if found is not None else ""


def _record(build_spec: BuildSpec, receipt: Receipt) -> Receipt:
    """Write the receipt, or obey the one that another run of this task wrote first (rule R13)."""
    staging = _staging(build_spec)
    key = receipt_key(receipt.uri, receipt.read, receipt.attempt)
    try:
        staging.put_if_absent(key, receipt.to_bytes())
    except StoreConflict as conflict:
        try:
            winner = Receipt.from_bytes(staging.read(key, RECEIPT), staging.uri_of(key))
        except ValueError:
            raise conflict from None  # no receipt: the next attempt has a name of its own
        if winner.outputs != receipt.outputs or winner.uri != receipt.uri:
            raise
        return winner
    return receipt
