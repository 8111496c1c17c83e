"""A builder without Spark: real receipts and real segments, in this process."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
from fakes.builder import BuildsInMemory
from fakes.stores.memory import open_memory
from fakes.tables import PARTITIONS
from model.world.process import Died, Process

from pinot_assets.errors import BuildError, PinotAssetsError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, TaskKind, segment_name
from pinot_assets.ingest.contract.builder import ignore_rows
from pinot_assets.ingest.contract.failures import failure_of
from pinot_assets.ingest.contract.task_outputs import CutValues, cut_key, receipt_key, version_text
from pinot_assets.ingest.packs.kept_rows import keep
from pinot_assets.ingest.packs.rows_object import read_rows
from pinot_assets.segment import SegmentSpec, build_segment, metadata_tar, write_tar
from pinot_assets.segment.write.final_rows import final_rows
from pinot_assets.segment.write.segment import ColumnStats
from pinot_assets.snapshot.batch_receipt import BatchReceipt
from pinot_assets.snapshot.packs import members_from_parquet, members_sha256
from pinot_assets.snapshot.receipt import ColumnFacts, Failure, Fingerprint, Output, Receipt, SegmentFacts
from pinot_assets.source import ObjectStore

ROWS = "test.rows"
"""Key of a segment's custom map that holds its rows: they go wherever the segment goes."""

Built = Callable[[BuildSpec, FileTask, bytes], None]


class ModelBuilder(BuildsInMemory):
    """Reads files of the form `one two`: two rows, each a segment. `!…` cannot be read. Knows one filter:
    `v = 'one'`.

    :param built: told of each receipt that was written, and what was read.
    :param orphaned: told of the tasks that executors go on with after their driver has died.
    """

    def __init__(
        self,
        process: Process,
        source: ObjectStore,
        built: Built,
        orphaned: Callable[[BuildSpec, Sequence[FileTask]], None],
        ordered: Callable[[BuildSpec, FileTask], None],
    ) -> None:
        self._process = process
        self._source = source
        self._built = built
        self._orphaned = orphaned
        self._ordered = ordered

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[Receipt | Failure], None],
        on_rows: Callable[[int], None] = ignore_rows,
    ) -> None:
        for task in tasks:
            if task.kind is not TaskKind.PACK:
                self._ordered(build_spec, task)
        for n, task in enumerate(tasks):
            is_pack = task.kind is TaskKind.PACK
            what = f"build {f'pack {task.ordinal}' if is_pack else self._source.key_of(task.file.uri)}"
            try:
                with self._process.effect(what, lambda: BuildError("the Spark application died")):
                    outcome = build(build_spec, task, self._source, self._built)
            except Died:
                self._orphaned(build_spec, tasks[n + 1 :])
                raise
            on_done(outcome)


def build(build_spec: BuildSpec, task: FileTask, source: ObjectStore, built: Built) -> Receipt | Failure:
    """As `pinot_assets.ingest.task.build_file` does it."""
    if task.kind is TaskKind.PACK:
        try:
            return _build_pack(build_spec, task)
        except PinotAssetsError as error:
            return failure_of(build_spec, task, error)
    key = source.key_of(task.file.uri)
    read = source.stat(key)
    if read is None:
        return Failure(
            task.file.uri, task.ordinal, build_spec.attempt, "VANISHED", "it does not exist any more"
        )
    content = source.read(key)
    if content.startswith(b"!"):
        return Failure(task.file.uri, task.ordinal, build_spec.attempt, "UNREADABLE", "as the test wants it")
    where = build_spec.query.where if build_spec.query is not None else ""
    rows = [row for row in content.decode().split() if where in ("", f"v = '{row}'")]
    if task.kind is TaskKind.SMALL_FILE:
        receipt = _put_rows(build_spec, task, read, source.sha256(key), rows)
        built(build_spec, task, content)
        return receipt
    custom = {
        "pinotAssets.file": task.file.uri,
        "pinotAssets.session": build_spec.session,
        "pinotAssets.version": version_text(read),
    }
    staged = [_stage(build_spec, task, k, row, custom) for k, row in enumerate(rows)]
    outputs = tuple(output for output, _ in staged)
    receipt = Receipt(
        uri=task.file.uri,
        ordinal=task.ordinal,
        attempt=build_spec.attempt,
        read=read,
        sha256=source.sha256(key),
        rows=len(rows),
        bad_rows=0,
        outputs=outputs,
        seconds=0.0,
        worker="",
        tars=tuple(_token(build_spec, output) for output in outputs),
        format=build_spec.format,
    )
    store = open_memory(build_spec.staging_uri)
    if (cut := CutValues.of((columns for _, columns in staged), build_spec.format)).columns:
        store.put_if_absent(cut_key(receipt.uri, read, build_spec.attempt), cut.to_bytes())
    store.put_if_absent(receipt_key(receipt.uri, read, build_spec.attempt), receipt.to_bytes())
    built(build_spec, task, content)
    return receipt


def _put_rows(
    build_spec: BuildSpec, task: FileTask, read: Fingerprint, sha256: str, rows: Sequence[str]
) -> Receipt:
    """As `pinot_assets.ingest.packs.small_files` does it, for a batch of one file."""
    assert build_spec.packs is not None
    receipt = Receipt(
        uri=task.file.uri,
        ordinal=task.ordinal,
        attempt=build_spec.attempt,
        read=read,
        sha256=sha256,
        rows=len(rows),
        bad_rows=0,
        outputs=(),
        seconds=0.0,
        worker="",
        segment_bytes=len(rows),
        format=build_spec.format,
    )
    batch = BatchReceipt("", 0, "", (receipt,), format=build_spec.format)
    if rows:
        spec = _spec(build_spec.table, build_spec.packs.cells is not None)
        table = pa.table({"v": pa.array(rows, pa.string())})
        final = final_rows(table, spec, build_spec.creation_time_ms, build_spec.packs.cells)
        stored, (pieces,) = keep(open_memory(build_spec.packs.staging_uri), final, [len(rows)])
        if final.cells is not None:
            receipt = replace(receipt, pieces=pieces)
            batch = replace(batch, files=(receipt,), objects=(stored,))
        else:
            receipt = replace(receipt, rows_object=stored.digest)
            batch = BatchReceipt(*stored, (receipt,), format=build_spec.format)
    open_memory(build_spec.staging_uri).put_if_absent(*batch.stored())
    return receipt


def _build_pack(build_spec: BuildSpec, task: FileTask) -> Receipt:
    """As `pinot_assets.ingest.packs.build_pack` does it."""
    assert build_spec.packs is not None
    store = open_memory(build_spec.packs.staging_uri)
    members = members_from_parquet(store.read(task.file.uri))
    rows: list[str] = []
    for member in members.members:
        table, _ = read_rows(store, member.chunk)
        rows += table.column("v").to_pylist()[member.first : member.first + member.rows]
    custom = {
        "pinotAssets.session": build_spec.session,
        "pinotAssets.pack": f"{build_spec.session}_{task.ordinal}",
        "pinotAssets.members": members_sha256(task.file.uri),
    }
    output, _ = _stage(build_spec, task, 0, " ".join(rows), custom)
    receipt = Receipt(
        uri=task.file.uri,
        ordinal=task.ordinal,
        attempt=build_spec.attempt,
        read=task.file.fingerprint,
        sha256=members_sha256(task.file.uri),
        rows=len(rows),
        bad_rows=0,
        outputs=(output,),
        seconds=0.0,
        worker="",
        tars=(_token(build_spec, output),),
        rows_read=members.rows,
        facts=(SegmentFacts(len(rows), (ColumnFacts("v", "STRING", None, None),)),),
        format=build_spec.format,
    )
    key = receipt_key(receipt.uri, receipt.read, build_spec.attempt)
    open_memory(build_spec.staging_uri).put_if_absent(key, receipt.to_bytes())
    return receipt


def _stage(
    build_spec: BuildSpec, task: FileTask, k: int, row: str, custom: dict[str, str]
) -> tuple[Output, tuple[ColumnStats, ...]]:
    name = segment_name(build_spec.table, build_spec.session, build_spec.attempt, task.ordinal, k)
    segment = build_segment(
        pa.table({"v": row.split()}),
        _spec(build_spec.table, build_spec.packs is not None and build_spec.packs.cells is not None),
        name=name,
        table_name=build_spec.table,
        creation_time_ms=build_spec.creation_time_ms,
        now_ms=build_spec.creation_time_ms,
        custom={**custom, ROWS: row},
    )
    store = open_memory(build_spec.segments_uri)
    with tempfile.TemporaryDirectory(prefix="pinot-assets-model-") as folder:
        path = Path(folder) / "tar"
        tar = write_tar(segment, path)
        store.put_file_if_absent(f"{name}.tar.gz", path)
    store.put_if_absent(f"{name}.metadata.tar.gz", metadata_tar(segment))
    output = Output(
        segment=name,
        crc=segment.crc,
        rows=segment.rows,
        tar_uri=store.uri_of(f"{name}.tar.gz"),
        tar_bytes=tar.bytes,
        tar_sha256=tar.sha256,
        metadata_uri=store.uri_of(f"{name}.metadata.tar.gz"),
    )
    return output, segment.columns


def _token(build_spec: BuildSpec, output: Output) -> str:
    store = open_memory(build_spec.segments_uri)
    found = store.stat(store.key_of(output.tar_uri))
    return found.token if found is not None else ""


@cache
def _spec(table: str, has_cells: bool) -> SegmentSpec:
    schema = {"schemaName": table, "dimensionFieldSpecs": [{"name": "v", "dataType": "STRING"}]}
    indexing = {"segmentPartitionConfig": PARTITIONS} if has_cells else {}
    config = {"tableName": f"{table}_OFFLINE", "tableType": "OFFLINE", "tableIndexConfig": indexing}
    return SegmentSpec.from_pinot(schema, config, write_for="0.11")
