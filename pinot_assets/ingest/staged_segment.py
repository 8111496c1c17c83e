"""Put a built segment into the staging area, and the receipt that makes it count."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from pinot_assets.core.untrusted import RECEIPT
from pinot_assets.errors import StoreConflict
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, segment_name
from pinot_assets.ingest.contract.task_outputs import CutValues, Heartbeat, cut_key, receipt_key
from pinot_assets.ingest.open_file import columns_of_table
from pinot_assets.ingest.stores import stores_of
from pinot_assets.segment import Segment, metadata_tar, write_tar
from pinot_assets.segment.values.normalize import Mask
from pinot_assets.segment.write.metadata import read_facts
from pinot_assets.segment.write.segment import ColumnStats, build_and_release
from pinot_assets.snapshot.receipt import Output, Receipt, SegmentFacts


class StagedSegment(NamedTuple):
    """A segment in the staging area.

    :ivar token: version of its tar, as the store showed it; a later check for changes compares it (R12).
    """

    output: Output
    facts: SegmentFacts
    columns: tuple[ColumnStats, ...]
    token: str


def columns_by_name(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns by name, for `built_segment`: it empties them for all who hold them."""
    return dict(zip(rows.column_names, rows.columns, strict=True))


def built_segment(
    build_spec: BuildSpec,
    task: FileTask,
    columns: dict[str, pa.ChunkedArray],
    k: int,
    custom: dict[str, str],
    null_times: Mask | None = None,
) -> Segment:
    """Build the k-th segment of a task.

    :param columns: the rows; emptied as they are built.
    :param custom: what its custom map has beside the release that it was written for.
    :param null_times: see `build_and_release`.
    """
    spec, _ = columns_of_table(build_spec)
    return build_and_release(
        columns,
        len(next(iter(columns.values()))),
        spec,
        name=segment_name(build_spec.table, build_spec.session, build_spec.attempt, task.ordinal, k),
        table_name=build_spec.table,
        creation_time_ms=build_spec.creation_time_ms,
        now_ms=build_spec.creation_time_ms,  # so that a second run of the task makes the same bytes
        custom={**custom, "pinotAssets.writtenFor": spec.target.release},
        null_times=null_times,
    )


def put_segment(build_spec: BuildSpec, segment: Segment, folder: Path, signs: Heartbeat) -> StagedSegment:
    """Put the two tars of a segment into the staging area."""
    segments, name = stores_of(build_spec).segments, segment.name
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
        unpacked_bytes=unpacked_bytes(segment),
    )
    version = segments.stat(tar_key)
    token = version.token if version is not None else ""
    return StagedSegment(output, read_facts(segment.files["metadata.properties"]), segment.columns, token)


def unpacked_bytes(segment: Segment) -> int:
    """Return the bytes of a segment's files."""
    return sum(len(content) for content in segment.files.values())


def put_cut_values(build_spec: BuildSpec, receipt: Receipt, lost: CutValues) -> None:
    """Store how many values of a file were cut, if any was: an older release refuses a receipt of more
    keys."""
    if lost.columns:
        key = cut_key(receipt.uri, receipt.read, build_spec.attempt)
        stores_of(build_spec).staging.put_if_absent(key, lost.to_bytes())


def record(build_spec: BuildSpec, receipt: Receipt) -> Receipt:
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
