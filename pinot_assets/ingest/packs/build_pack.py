"""Build the segments of one pack from the rows of files that were read before: no source file is read.

Two builds of one member list give equal rows in equal order. A `sortedColumn` sorts each segment's rows.
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from pinot_assets.core.files import temporary_folder
from pinot_assets.core.this_machine import keep_freed_memory, take_memory_from_arrow
from pinot_assets.errors import SnapshotCorrupt
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.failures import failure_of
from pinot_assets.ingest.contract.task_outputs import Heartbeat
from pinot_assets.ingest.open_file import heartbeat
from pinot_assets.ingest.packs.rows_object import read_rows
from pinot_assets.ingest.staged_segment import (
    built_segment,
    columns_by_name,
    put_segment,
    record,
    unpacked_bytes,
)
from pinot_assets.ingest.stores import stores_of
from pinot_assets.segment import Segment
from pinot_assets.segment.values.normalize import Mask
from pinot_assets.snapshot.packs import MemberList, members_from_parquet, members_sha256
from pinot_assets.snapshot.receipt import Failure, Receipt, RowsChunk
from pinot_assets.source.object_store import ObjectStore

_TOO_LARGE: Final = 1.5
"""From this part of the target on, a pack gets several segments of equal size."""


def build_pack(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    """Build one pack. Any error becomes a `Failure`; then no file is to blame, whose rows were good.

    :param task: its file is the member list.
    """
    take_memory_from_arrow()
    keep_freed_memory()
    try:
        with temporary_folder("pack") as folder, closing(heartbeat(build_spec, task)) as signs:
            return _build(build_spec, task, folder, signs)
    except Exception as error:
        return failure_of(build_spec, task, error)


def _build(build_spec: BuildSpec, task: FileTask, folder: Path, signs: Heartbeat) -> Receipt:
    started, store = time.monotonic(), stores_of(build_spec).of_packs
    key = task.file.uri
    members = members_from_parquet(store.read(key), store.uri_of(key))
    rows = _PackRows(store, members, signs)
    custom = {
        "pinotAssets.session": build_spec.session,
        "pinotAssets.pack": f"{build_spec.session}_{task.ordinal}",
        "pinotAssets.members": members_sha256(key),
    }
    staged = [
        put_segment(build_spec, one, folder, signs) for one in _segments(build_spec, task, rows, custom)
    ]
    receipt = Receipt(
        uri=key,
        ordinal=task.ordinal,
        attempt=build_spec.attempt,
        read=task.file.fingerprint,
        sha256=members_sha256(key),
        rows=sum(one.output.rows for one in staged),
        bad_rows=0,
        outputs=tuple(one.output for one in staged),
        seconds=round(time.monotonic() - started, 3),
        worker=f"{socket.gethostname()}/{os.getpid()}",
        tars=tuple(one.token for one in staged),
        rows_read=members.rows,
        facts=tuple(one.facts for one in staged),
        format=build_spec.format,
    )
    return record(build_spec, receipt)


class _PackRows:
    """The rows of a pack's members, in their order."""

    def __init__(self, store: ObjectStore, members: MemberList, signs: Heartbeat) -> None:
        tables: list[pa.Table] = []
        masks: list[Mask] = []
        # The members of a chunk need not be neighbours, so each chunk is remembered.
        read: dict[RowsChunk, tuple[pa.Table, Mask | None]] = {}
        for chunk, of_chunk in groupby(members.members, attrgetter("chunk")):
            if chunk not in read:
                read[chunk] = read_rows(store, chunk)
                signs.worked()
            table, null_times = read[chunk]
            for member in of_chunk:
                if member.first + member.rows > table.num_rows:
                    raise SnapshotCorrupt(
                        f"rows object {chunk.rows_object} lacks rows of {member.uri}",
                        why=f"it has {table.num_rows:,} rows, and the member list names rows up to "
                        f"{member.first + member.rows:,}",
                        hint="if the open session read it, `pinot-assets session clear` lets the next run "
                        "read it again; otherwise a swap (consistentPushSwapEnabled) builds every file again",
                    )
                tables.append(table.slice(member.first, member.rows))
                none = np.zeros(member.rows, bool)
                masks.append(
                    none if null_times is None else null_times[member.first : member.first + member.rows]
                )
        self.table = pa.concat_tables(tables)
        self.null_times = np.concatenate(masks)

    def parts(self, count: int) -> Iterator[tuple[dict[str, pa.ChunkedArray], Mask | None]]:
        """Yield the rows in so many parts of about equal size."""
        edges = [round(n * self.table.num_rows / count) for n in range(count + 1)]
        for begin, end in pairwise(edges):
            mask = self.null_times[begin:end]
            yield columns_by_name(self.table.slice(begin, end - begin)), mask if mask.any() else None


def _segments(
    build_spec: BuildSpec, task: FileTask, rows: _PackRows, custom: dict[str, str]
) -> Iterator[Segment]:
    """Yield the pack's segments; more than one where one would be too large for memory or for the target."""
    assert build_spec.packs is not None
    count = max(
        1,
        math.ceil(rows.table.num_rows / build_spec.max_rows_per_segment),
        math.ceil(rows.table.nbytes / (build_spec.desired_segment_bytes or math.inf)),
    )
    parts = enumerate(rows.parts(count))
    k, (columns, mask) = next(parts)
    segment = built_segment(build_spec, task, columns, k, custom, mask)
    size, target = unpacked_bytes(segment), build_spec.packs.target_bytes
    if size > _TOO_LARGE * target and segment.rows > 1:
        count = min(rows.table.num_rows, count * math.ceil(size / target))
        parts = enumerate(rows.parts(count))
    else:
        yield segment
    del segment
    for k, (columns, mask) in parts:
        yield built_segment(build_spec, task, columns, k, custom, mask)
