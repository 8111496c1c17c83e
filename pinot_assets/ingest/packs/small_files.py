"""Read files one after the other, and keep their rows for packs.

A small file is buffered, and stays if it is good. Now and then the task writes what it has as one rows
object, then one receipt that lists its files: what is in a receipt need not be read again, whatever happens
to the task. In a table with cells a large file comes as well. It is written while it is read, in several
objects.
No segment is built here (docs/design/layout.md#session).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final, NamedTuple

import pyarrow as pa

from pinot_assets.core.files import temporary_folder
from pinot_assets.errors import BuildError, TooLarge
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.failures import failure_of
from pinot_assets.ingest.contract.task_outputs import CutValues
from pinot_assets.ingest.open_file import OpenFile, Rows, columns_of_table, heartbeat, prepare_memory
from pinot_assets.ingest.packs.kept_rows import Pieces, count_pieces, keep
from pinot_assets.ingest.staged_segment import put_cut_values, unpacked_bytes
from pinot_assets.ingest.stores import stores_of
from pinot_assets.segment import SegmentSpec, build_segment
from pinot_assets.segment.values.normalize import NOTHING, Cut
from pinot_assets.segment.write.final_rows import FinalRows, final_rows
from pinot_assets.snapshot.batch_receipt import BatchReceipt, StoredRows
from pinot_assets.snapshot.receipt import FilePiece, FileResult, Receipt

FLUSH_BYTES: Final = 32 << 20
"""Bytes of rows in memory from which on they are written."""
CELL_FLUSH_BYTES: Final = 128 << 20
"""The same for a table with cells: a chunk of a cell costs a millisecond, however few rows it has."""
MOST_PIECES: Final = 250_000
"""Pieces of files that one receipt lists: it stays below 8 MiB, of the 32 that are read."""
FLUSH_S: Final = 30.0
"""Seconds after which they are written at the next end of a file, however few they are."""
_TINY_BYTES: Final = 64 << 10
_TIMES: Final = 4
"""The rows of so small a file are not weighed, but taken to have so many times its bytes in memory."""
SAMPLE_ROWS: Final = 100_000
"""Rows of which a segment is built to see how many bytes a row needs there."""


def read_small_files(
    build_spec: BuildSpec,
    tasks: Sequence[FileTask],
    rows_of: Rows,
) -> list[FileResult]:
    """Read the files of one batch; return the receipt or the failure of each.

    :param rows_of: reads the rows of one file.
    """
    prepare_memory(build_spec)
    results: dict[int, FileResult] = {}
    try:
        with temporary_folder("read") as folder, closing(heartbeat(build_spec, tasks[0])) as signs:
            buffer = _Buffer(build_spec)
            for task in tasks:
                try:
                    file = OpenFile(build_spec, task, rows_of, folder, signs)
                    if buffer.is_large(task):
                        results[task.ordinal] = buffer.large(file)
                    else:
                        buffer.add(_read(task, file))
                except Exception as error:  # only this file fails, and none of the others of its batch
                    results[task.ordinal] = failure_of(build_spec, task, error)
                if buffer.is_due or task is tasks[-1]:
                    results |= {result.ordinal: result for result in buffer.write()}
    except Exception as error:
        # No staging area, or a full disk: the files of this batch fail, and not the job with all others.
        lacking = (task for task in tasks if task.ordinal not in results)
        results |= {task.ordinal: failure_of(build_spec, task, error) for task in lacking}
    return [*results.values()]


def _read(task: FileTask, file: OpenFile) -> _Read:
    tables = [*file.tables]
    return _Read(task, file.receipt(sum(table.num_rows for table in tables)), tables)


class _Read(NamedTuple):
    """A file whose rows are in memory."""

    task: FileTask
    receipt: Receipt
    tables: list[pa.Table]


class _Buffer:
    """Files that were read and are not written yet."""

    def __init__(self, build_spec: BuildSpec) -> None:
        assert build_spec.packs is not None
        self._build_spec, self._cells = build_spec, build_spec.packs.cells
        self._bytes_per_row = build_spec.packs.bytes_per_row
        self._flush_bytes = FLUSH_BYTES if self._cells is None else CELL_FLUSH_BYTES
        self._files: list[_Read] = []
        self._bytes, self._since = 0, time.monotonic()

    def is_large(self, task: FileTask) -> bool:
        """Whether the rows of a file may be too many for one rows object; never without cells."""
        return self._cells is not None and task.file.fingerprint.size >= self._flush_bytes // (2 * _TIMES)

    def add(self, file: _Read) -> None:
        self._files.append(file)
        # To add up the buffers of eighty columns takes half a millisecond, too much for a small file.
        size = file.receipt.read.size
        is_tiny = size < _TINY_BYTES
        self._bytes += _TIMES * size if is_tiny else sum(table.nbytes for table in file.tables)

    @property
    def is_due(self) -> bool:
        return self._bytes >= self._flush_bytes or time.monotonic() - self._since >= FLUSH_S

    def large(self, file: OpenFile) -> Receipt:
        """Write the rows of one file, in as many rows objects as they need, then its receipt."""
        objects: list[StoredRows] = []
        pieces: list[FilePiece] = []
        cut: dict[str, Cut] = {}
        count = 0
        for tables in _by_bytes(file.tables, self._flush_bytes):
            if (rows := self._final(tables)) is not None:
                stored, (of_file,) = self._keep(rows, [rows.table.num_rows], len(objects))
                objects.append(stored)
                pieces += of_file
                count += rows.table.num_rows
                cut |= {name: cut.get(name, NOTHING) + more for name, more in rows.cut.items()}
        receipt = file.receipt(count)
        put_cut_values(self._build_spec, receipt, CutValues(cut, format=self._build_spec.format))
        return self._record([self._with_pieces(receipt, tuple(pieces))], objects)[0]

    def write(self) -> list[FileResult]:
        """Write the rows of all files, then their receipt; return the results of the files."""
        files, self._files = self._files, []
        self._bytes, self._since = 0, time.monotonic()
        if not files:
            return []
        try:
            return self._written(files)
        except Exception as error:
            if len(files) == 1:
                return [failure_of(self._build_spec, files[0].task, error)]
        # One of them has a value that no segment can have; or the staging area does not answer.
        good: list[_Read] = []
        failed: list[FileResult] = []
        for file in files:
            try:
                self._final(file.tables)
                good.append(file)
            except Exception as error:
                failed.append(failure_of(self._build_spec, file.task, error))
        try:
            return failed + (self._written(good) if good else [])
        except Exception as error:
            return failed + [failure_of(self._build_spec, file.task, error) for file in good]

    def _written(self, files: Sequence[_Read]) -> list[FileResult]:
        rows = self._final([table for file in files for table in file.tables])
        if rows is None:
            return [*self._record([file.receipt for file in files], [])]
        counts = [file.receipt.rows for file in files]
        if count_pieces(rows, counts) > MOST_PIECES:
            half = len(files) // 2
            if not half:
                return [failure_of(self._build_spec, files[0].task, _too_many_pieces(files[0].receipt.uri))]
            return [*self._written(files[:half]), *self._written(files[half:])]
        stored, pieces = self._keep(rows, counts)
        self._put_cut(files, rows.cut)
        receipts = [
            self._with_pieces(file.receipt, of_file) for file, of_file in zip(files, pieces, strict=True)
        ]
        return [*self._record(receipts, [stored])]

    def _keep(self, rows: FinalRows, counts: Sequence[int], part: int = 0) -> tuple[StoredRows, list[Pieces]]:
        self._bytes_per_row = self._bytes_per_row or _bytes_per_row(rows, self._build_spec)
        return keep(stores_of(self._build_spec).of_packs, rows, counts, part)

    def _with_pieces(self, receipt: Receipt, pieces: Pieces) -> Receipt:
        receipt = replace(receipt, segment_bytes=round(receipt.rows * self._bytes_per_row))
        if self._cells is not None or not pieces:
            return replace(receipt, pieces=pieces)
        (piece,) = pieces
        return replace(receipt, rows_object=piece.chunk.rows_object, first=piece.first)

    def _record(self, receipts: Sequence[Receipt], objects: Sequence[StoredRows]) -> list[Receipt]:
        """Write the receipt of files whose rows are in these objects.

        :raises TooLarge: a file has so many pieces that no receipt can list them.
        """
        if sum(len(receipt.pieces) for receipt in receipts) > MOST_PIECES:
            raise _too_many_pieces(receipts[0].uri)
        number = self._build_spec.format
        if self._cells is not None:
            batch = BatchReceipt("", 0, "", tuple(receipts), tuple(objects), format=number)
        else:
            batch = BatchReceipt(*(objects[0] if objects else ("", 0, "")), tuple(receipts), format=number)
        stores_of(self._build_spec).staging.put_if_absent(*batch.stored())
        return [*receipts]

    def _final(self, tables: Iterable[pa.Table]) -> FinalRows | None:
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return None
        spec, _ = columns_of_table(self._build_spec)
        table = pa.concat_tables([_undictionaried(one) for one in tables]) if len(tables) > 1 else tables[0]
        return final_rows(table, spec, self._build_spec.creation_time_ms, self._cells)

    def _put_cut(self, files: Sequence[_Read], cut: Mapping[str, Cut]) -> None:
        """Store the counts of cut values of each file; they are known together only."""
        if not cut:
            return
        for file in files:
            rows = self._final(file.tables)
            if rows is not None:
                lost = CutValues(rows.cut, format=self._build_spec.format)
                put_cut_values(self._build_spec, file.receipt, lost)


def _too_many_pieces(uri: str) -> TooLarge:
    return TooLarge(
        f"{uri} has rows of too many partitions and time slices",
        why=f"it has more than {MOST_PIECES:,} parts, the most that a receipt lists",
        hint="write a longer timeSlice or fewer numPartitions, or deliver smaller files",
    )


def _by_bytes(tables: Iterable[pa.Table], limit: int) -> Iterator[list[pa.Table]]:
    """Yield tables of a file in groups that reach the limit."""
    group: list[pa.Table] = []
    size = 0
    for table in tables:
        group.append(table)
        size += table.nbytes
        if size >= limit:
            yield group
            group, size = [], 0
    if group:
        yield group


def _undictionaried(table: pa.Table) -> pa.Table:
    """Return the rows without dictionaries, which differ from file to file."""
    if not any(pa.types.is_dictionary(kind) for kind in table.schema.types):
        return table
    fields = [
        column.with_type(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.schema
    ]
    return table.cast(pa.schema(fields))


def _bytes_per_row(rows: FinalRows, build_spec: BuildSpec) -> float:
    """Return how many bytes a row needs in a segment, as a segment of some of them has it."""
    sample = rows.table.slice(0, SAMPLE_ROWS)
    spec: SegmentSpec = columns_of_table(build_spec)[0]
    try:
        segment = build_segment(
            sample,
            spec,
            name="sample",
            table_name=build_spec.table,
            creation_time_ms=build_spec.creation_time_ms,
            now_ms=build_spec.creation_time_ms,
        )
    except BuildError:  # of this sample only
        return float(sample.nbytes / sample.num_rows)
    return float(unpacked_bytes(segment) / sample.num_rows)
