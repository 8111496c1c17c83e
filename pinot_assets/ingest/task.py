"""What one task does with one file: read it once, unchanged; stage its segments; say so last.

Everything is written under names that only this attempt of this session uses, and put-if-absent, so a task
that runs twice (a lost executor, speculation) does no harm. The receipt comes after all tars: a file is done
when, and only when, its receipt exists (docs/design/session.md#receipt).

A file that ended its worker is built in a process of its own, so that how that process ends can be told: the
worker's end tells Spark nothing but that it ended.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, cast

import pyarrow as pa

from pinot_assets.core.file_errors import one_line
from pinot_assets.core.files import temporary_folder
from pinot_assets.core.this_machine import keep_freed_memory, limit_memory, take_memory_from_system
from pinot_assets.core.untrusted import RECEIPT
from pinot_assets.errors import BuildError, SourceChanged, SourceError, StoreConflict
from pinot_assets.ingest.contract.accepted_rows import (
    BadRowAllowance,
    BadRowPolicy,
    EmptyColumns,
    Quarantine,
    TargetSchema,
    cut,
)
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, segment_name
from pinot_assets.ingest.contract.failures import BecameFolder, Death, Vanished, failure_of, tells_of_memory
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
from pinot_assets.snapshot.receipt import WORKER_DIED, Failure, Fingerprint, Output, Receipt, SegmentFacts
from pinot_assets.source.allowed_places import require_data
from pinot_assets.source.factory import open_store
from pinot_assets.source.object_store import ObjectStore

Rows = Callable[[Path, Fingerprint, TargetSchema, BadRowPolicy], Iterator[pa.Table]]
"""Where a file's rows come from: its local copy, the copy's version, what is wanted, who is told what is
wrong. Gives tables of exactly what is wanted."""

_BAD_ROWS = "bad-rows.parquet"


def build_file(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    """Build one file, read through Arrow; see `build_from`.

    A build spec with a query fails: here nobody could do what it says.
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
    target = TargetSchema.of(spec)
    values = EmptyColumns(target.schema.names)
    tables = values.watched(rows_of(local, read, target, verdicts))
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
    if (version := source.stat(key)) is None:
        if source.ask_if_folder(key):
            raise BecameFolder(
                f"{uri} was a file and became a folder",
                why="a writer that makes folders of that name, or a slip of the hand",
                hint="move the folder, or deliver the file again; its published rows stay until it is gone",
            )
        raise Vanished(f"{uri} is not there any more", hint="the next trigger lists again")
    return version


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
    version = segments.stat(segments.key_of(output.tar_uri))
    return version.token if version is not None else ""


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


_STDERR: Final = 1 << 16


def build_alone(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    """As `build_file`, in a process of its own; one that dies, or cannot be started, is a `Failure` of the
    file."""
    try:
        return _built(build_spec, task)
    except Exception as error:
        # A machine without memory or disk for one more process must not take the other files' job with it.
        return failure_of(build_spec, task, error)


def _built(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    with temporary_folder("alone") as folder:
        result, said = folder / "result", folder / "stderr"
        with said.open("wb") as stderr:
            child = subprocess.Popen(
                [sys.executable, "-m", "pinot_assets.ingest.task", str(result)],
                stdin=subprocess.PIPE,
                stdout=stderr,
                stderr=stderr,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        assert child.stdin is not None
        # Its end of the pipe stays open: the child ends when this process does.
        with child.stdin as pipe:
            try:
                pipe.write(pickle.dumps((build_spec, task)))
                pipe.flush()
            except BrokenPipeError:
                pass  # it is dead; how it died says more
            code = child.wait()
        if code == 0:
            return cast(Receipt | Failure, pickle.loads(result.read_bytes()))
        return death(build_spec, task, code, _end_of(said))


def death(build_spec: BuildSpec, task: FileTask, code: int, said: str) -> Failure:
    """The failure of a file whose process died.

    :param code: what it returned, negative for the signal that ended it.
    :param said: what it wrote on standard error.
    """
    how = f"ended with {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
    how += f" ({one_line(RuntimeError(last))})" if last else ""
    if code == -signal.SIGKILL or tells_of_memory(said):
        return Death(None, True).failure(build_spec, task, f"the process that built it alone {how}")
    hint = "look at the file, and report it if it is a valid one"
    reason = f"the process that built the file, alone as well, {how} → {hint}"
    return Failure(task.file.uri, task.ordinal, build_spec.attempt, WORKER_DIED, reason)


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _STDERR))
        text = file.read().decode(errors="replace")
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _end_with_parent() -> None:
    """Wait until the process that started this one has ended, and end this one."""
    sys.stdin.buffer.read(1)
    os._exit(1)


def main(result: Path) -> None:
    """Build what standard input says and leave the outcome in a file."""
    order, task = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    limit_memory(order.limits.worker_bytes)
    result.write_bytes(pickle.dumps(build_file(order, task)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    os._exit(0)  # the thread that waits for the parent holds standard input
