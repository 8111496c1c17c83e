"""Keep the rows of files that were read together in one rows object, cell by cell, and say where each file's
rows are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pinot_assets.ingest.packs.rows_object import CellRows, put_cells, put_rows
from pinot_assets.segment.values.cells import Cells, counted_codes
from pinot_assets.segment.write.final_rows import FinalRows
from pinot_assets.snapshot.batch_receipt import StoredRows
from pinot_assets.snapshot.receipt import FilePiece, RowsChunk
from pinot_assets.source.object_store import ObjectStore

Pieces = tuple[FilePiece, ...]


def keep(
    store: ObjectStore, rows: FinalRows, counts: Sequence[int], part: int = 0
) -> tuple[StoredRows, list[Pieces]]:
    """Write the rows of files, which lie one after the other.

    :param store: the table's folder in the staging area.
    :param counts: how many rows each file has.
    :param part: number of the object, if one file needs several: two of them may have equal rows.
    :returns: the rows object, and the pieces of each file; none for a file without rows.
    """
    if rows.cells is None:
        stored = put_rows(store, rows)
        chunk, ends = RowsChunk("", stored.digest), accumulate(counts)
        places = [FilePiece(chunk, end - count, count) for end, count in zip(ends, counts, strict=True)]
        return stored, [(place,) if place.rows else () for place in places]
    runs = [*_runs(rows.cells, counts)]
    # Rows of one cell keep their order, and so lie file by file.
    codes = rows.cells.codes
    order = np.argsort(codes.astype(np.uint16) if len(rows.cells.names) < 1 << 16 else codes, kind="stable")
    stored, chunks = put_cells(store, _by_cell(rows.at(order), rows.cells, runs), part)
    of_cell = {chunk.cell: chunk for chunk in chunks}
    pieces: list[list[FilePiece]] = [[] for _ in counts]
    ends_of = dict.fromkeys(of_cell, 0)
    for run in runs:
        cell = rows.cells.names[run.code]
        pieces[run.file].append(FilePiece(of_cell[cell], ends_of[cell], run.rows))
        ends_of[cell] += run.rows
    return stored, [tuple(one) for one in pieces]


def count_pieces(rows: FinalRows, counts: Sequence[int]) -> int:
    """Return how many pieces `keep` would make of these rows at most."""
    if rows.cells is None:
        return len(counts)
    return min(int(rows.table.num_rows), len(rows.cells.names) * len(counts))


class _Run(NamedTuple):
    """The rows of one file in one cell."""

    code: int
    file: int
    rows: int


def _runs(cells: Cells, counts: Sequence[int]) -> Iterator[_Run]:
    """Yield how many rows each file has in each cell, by cell, then by file."""
    files: npt.NDArray[np.int64] = np.repeat(np.arange(len(counts)), counts)
    keys, codes = counted_codes(cells.codes * len(counts) + files)
    for key, count in zip(keys.tolist(), np.bincount(codes).tolist(), strict=True):
        yield _Run(key // len(counts), key % len(counts), count)


def _by_cell(rows: FinalRows, cells: Cells, runs: Sequence[_Run]) -> Iterator[CellRows]:
    """Yield the rows of each cell.

    :param rows: in the order of their cells.
    """
    first = 0
    for code, of_cell in groupby(runs, attrgetter("code")):
        count = sum(run.rows for run in of_cell)
        yield CellRows(cells.names[code], rows.slice(first, count))
        first += count
