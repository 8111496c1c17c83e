"""Parquet, ORC and Avro: the table's columns by name. Rows are counted from 1.

Parquet and ORC go through Arrow, Avro through DataFusion, whose decoder makes Arrow columns without a Python
object per value. DataFusion is an extra (`pip install "pinot-assets[avro]"`), since it is large and few
tables need it. It takes a file cut short for a whole one, so the file's frame is walked block by block first
(the Avro specification, object container files).
"""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pyarrow.types as pt

from pinot_assets.core.file_errors import FileTooLarge, ReaderSettings, Unreadable, one_line
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.contract.failures import trouble_of
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits

if TYPE_CHECKING:
    from datafusion import DataFrame

BATCH_ROWS: Final = 1 << 16


def columns_of(
    names: list[str], target: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits
) -> list[str]:
    """The columns to read.

    :param names: those of the file.
    :raises FileRejected: it has none of the table's, has one twice, or lacks one that it may not lack; or has
        too many.
    """
    limits.check_columns(len(names))
    present = target.present(names)
    if not present:
        raise Unreadable(
            "the file has none of the table's columns", why=f"its columns are {', '.join(names)[:200]}"
        )
    counted = Counter(names)
    if twice := [name for name in present if counted[name] > 1]:
        raise Unreadable(f"the file has two columns {', '.join(twice)}")
    verdicts.lacks(target.missing(names))
    return present


def check_values(table: pa.Table, limits: FileLimits) -> None:
    """Refuse a table with a value that is larger than one may be.

    :raises TooLarge: it has one.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        limits.check_value(name, _largest(column))


def _largest(column: pa.ChunkedArray) -> int:
    """Bytes of the largest text or bytes value, 0 where there is none. Looks at offsets alone.

    Nested columns are few; what becomes of them is text of the same size at the least.
    """
    most = 0
    for array in column.chunks:
        while pt.is_list(array.type) or pt.is_large_list(array.type):
            array = array.flatten()
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pt.is_dictionary(array.type):
            array = array.dictionary
        kind = array.type
        is_text = (
            pt.is_string(kind) or pt.is_large_string(kind) or pt.is_binary(kind) or pt.is_large_binary(kind)
        )
        if is_text and len(array):
            most = max(most, pc.max(pc.binary_length(array)).as_py() or 0)
    return most


@contextmanager
def damaged(what: str) -> Iterator[None]:
    """Errors of the library as ours.

    :param what: name of the format.
    :raises Unreadable: the file is damaged. Trouble of the machine stays what it is.
    """
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: names of columns
        if trouble_of(error) is not None:
            raise
        raise Unreadable(f"the {what} file is damaged or cut short", why=one_line(error)) from error


def first_parquet(path: Path, count: int, limits: FileLimits = DEFAULTS) -> pa.Table:
    """Up to so many rows, in the file's own types; none of a file without any.

    :raises FileRejected: the file is damaged, or has more than it may.
    """
    with (
        damaged("Parquet"),
        pq.ParquetFile(path, memory_map=True, pre_buffer=False, coerce_int96_timestamp_unit="us") as file,
    ):
        schema = file.schema_arrow
        limits.check_columns(len(schema))
        check_pages(file.metadata, frozenset(schema.names), limits)
        batch = next(file.iter_batches(count, use_threads=False), None)
        return schema.empty_table() if batch is None else pa.Table.from_batches([batch])


def parquet_batches(
    path: Path, target: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits
) -> Iterator[pa.Table]:
    """Rows with the columns of `target` that the file has, in its own types, some at a time.

    :raises FileRejected: the file is damaged, or has none of the columns.
    """
    with (
        damaged("Parquet"),
        pq.ParquetFile(
            path,
            memory_map=True,
            page_checksum_verification=True,
            pre_buffer=False,
            coerce_int96_timestamp_unit="us",  # nanoseconds would end in 2262, without a word
        ) as file,
    ):
        names = file.schema_arrow.names
        verdicts.rows = file.metadata.num_rows
        if file.metadata.num_rows == 0:
            return  # one without columns is still an empty one (edge case E5)
        columns = columns_of(names, target, verdicts, limits)
        check_pages(file.metadata, frozenset(columns), limits)
        for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
            yield pa.Table.from_batches([batch])


def check_pages(metadata: pq.FileMetaData, columns: frozenset[str], limits: FileLimits) -> None:
    """Refuse column chunks that say of themselves that they unpack to far too much.

    :raises TooLarge: one does.
    """
    for n in range(metadata.num_row_groups):
        group = metadata.row_group(n)
        for m in range(group.num_columns):
            chunk = group.column(m)
            if chunk.path_in_schema.partition(".")[0] in columns:
                limits.check_unpacked(chunk.total_compressed_size, chunk.total_uncompressed_size)


_MOST_AT_ONCE: Final = 64 << 20
"""Bytes of a compression block as the file declares them; the default is 256 KB, the format ends at 8 MB."""


def first_orc(path: Path, count: int, limits: FileLimits = DEFAULTS) -> pa.Table:
    """Up to so many rows of the first stripe, in the file's own types; none of a file without any.

    :raises FileRejected: the file is damaged, or has more than it may.
    """
    with damaged("ORC"), pa.memory_map(str(path)) as data:
        file = paorc.ORCFile(data)
        limits.check_columns(len(file.schema))
        if file.nrows == 0:
            return file.schema.empty_table()
        _check_blocks(file)
        return pa.Table.from_batches([_stripe(file, 0, file.schema.names).slice(0, count)])


def orc_stripes(
    path: Path, target: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits
) -> Iterator[pa.Table]:
    """As `parquet_batches`, a stripe at a time."""
    with damaged("ORC"), pa.memory_map(str(path)) as data:
        file = paorc.ORCFile(data)
        verdicts.rows = file.nrows
        if file.nrows == 0:
            return
        columns = columns_of(file.schema.names, target, verdicts, limits)
        _check_blocks(file)
        for n in range(file.nstripes):
            yield pa.Table.from_batches([_stripe(file, n, columns)])


def _check_blocks(file: paorc.ORCFile) -> None:
    if file.compression_size > _MOST_AT_ONCE:
        raise FileTooLarge(
            f"the file is packed in blocks of up to {file.compression_size >> 20:,} MB, "
            f"more than {_MOST_AT_ONCE >> 20} MB",
            why="a reader takes the memory for a whole one at once",
            hint="write it with orc.compress.size of some hundred KB",
        )


def _stripe(file: paorc.ORCFile, n: int, columns: list[str]) -> pa.RecordBatch:
    try:
        batch = file.read_stripe(n, columns=columns)
        if not set(columns).issubset(batch.schema.names):
            # ORC's reader takes a.b for the member of a struct that follows, even if it is asked by number.
            batch = file.read_stripe(n)
        return batch.select(columns)
    except pa.ArrowInvalid as error:
        if "out of range for nanosecond" not in str(error):
            raise
        raise Unreadable(
            "a timestamp lies before 1677 or after 2262",
            why="Arrow's ORC reader counts in nanoseconds",
            hint="read the table with engine: spark, or write Parquet",
        ) from error


_SYNC_BYTES = 16


def count_rows(path: Path, limits: FileLimits = DEFAULTS) -> int:
    """How many rows the blocks of a file promise, nothing of which is decoded.

    :raises Unreadable: a block is cut short, or does not end with the file's mark.
    :raises TooLarge: a block promises far more rows than its bytes can hold, one byte each.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        position = rows = 0
        try:
            position = _behind_header(data)
            mark = data[position - _SYNC_BYTES : position]
            while position < len(data):
                count, position = _long(data, position)
                size, position = _long(data, position)
                position += size + _SYNC_BYTES
                if count < 0 or size < 0 or data[position - _SYNC_BYTES : position] != mark:
                    raise IndexError
                limits.check_unpacked(size, count)
                rows += count
        except IndexError as error:
            raise Unreadable(
                "the Avro file is damaged or cut short",
                why=f"a block that ends at byte {position} of {len(data)} does not end with the file's mark",
                hint="write the file again; nothing that was read of it is used",
            ) from error
        return rows


def _behind_header(data: mmap.mmap) -> int:
    position = 4
    while True:
        count, position = _long(data, position)
        if count == 0:
            break
        if count < 0:
            _, position = _long(data, position)
        for _ in range(2 * abs(count)):  # keys and values
            size, position = _long(data, position)
            position += size
            if size < 0 or position > len(data):
                raise IndexError
    if position + _SYNC_BYTES > len(data):
        raise IndexError
    return position + _SYNC_BYTES


def _long(data: mmap.mmap, position: int) -> tuple[int, int]:
    """A zigzag number of variable length, and where it ends."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise IndexError


_LOADED: Final = 64 << 20
"""Bytes that DataFusion takes at the least once it is loaded."""
_THREADS: Final = (8 << 20) + (os.cpu_count() or 1) * (4 << 20)
"""Bytes that its threads take, one a core."""


def first_avro(path: Path, count: int, limits: FileLimits = DEFAULTS) -> pa.Table:
    """Up to so many rows, in the file's own types.

    :raises FileRejected: the file is damaged, has more than it may, or DataFusion is not installed.
    """
    datafusion = load_datafusion()
    count_rows(path, limits)
    with _damaged_avro():
        frame = datafusion.SessionContext().read_avro(str(path), file_extension=path.suffix).limit(count)
        schema = frame.schema()
    limits.check_columns(len(schema))
    return pa.Table.from_batches(list(_decoded(frame)), schema)


def load_datafusion() -> ModuleType:
    """The library that reads Avro.

    :raises ReaderSettings: it is not installed, or cannot be loaded.
    """
    try:
        _load()
        import datafusion
    except ModuleNotFoundError as error:
        raise ReaderSettings(
            "inputFormat avro needs DataFusion, which is not installed here",
            hint='pip install "pinot-assets[avro]", on Spark\'s executors, too',
        ) from error
    except ImportError as error:
        raise ReaderSettings(
            "inputFormat avro needs DataFusion, which cannot be loaded here", why=one_line(error)
        ) from error
    return datafusion


@cache
def _load() -> None:
    """Load the library, here since it takes half a second and memory, and have its threads run.

    Where memory ends while they start, it waits for ever for those that did not. So their memory is asked for
    beforehand, and kept from what loads, which takes all that it finds.

    :raises OSError: there is too little.
    """
    _memory(_LOADED + _THREADS).close()
    with _memory(_THREADS):
        import datafusion
    with _damaged_avro():
        datafusion.SessionContext().sql("SELECT 1")


def _memory(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def avro_batches(
    path: Path, target: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits
) -> Iterator[pa.Table]:
    """Rows with the columns of `target` that the file has, in its own types, some at a time.

    :raises FileRejected: the file is damaged, or has none of the columns.
    """
    datafusion = load_datafusion()
    expected = count_rows(path, limits)
    verdicts.rows = expected
    settings = datafusion.SessionConfig().with_target_partitions(1).with_batch_size(BATCH_ROWS)
    with _damaged_avro():
        frame = datafusion.SessionContext(settings).read_avro(str(path), file_extension=path.suffix)
        names = frame.schema().names
    columns = columns_of(names, target, verdicts, limits)
    frame = frame.select(*[datafusion.col(f'"{name}"') for name in columns])
    for batch in _decoded(frame):
        expected -= batch.num_rows
        yield pa.Table.from_batches([batch])
    if expected:
        raise Unreadable("the Avro file is damaged", why=f"its blocks promise {expected} rows more")


def _decoded(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    with _damaged_avro():
        for batch in frame.execute_stream():
            yield batch.to_pyarrow()


@contextmanager
def _damaged_avro() -> Iterator[None]:
    """Errors of the library as ours, its panics among them.

    :raises Unreadable: the file is damaged. Trouble of the machine stays what it is.
    """
    try:
        yield
    except BaseException as error:  # a panic of Rust is no Exception, and its errors have no class
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if isinstance(error, Exception) and trouble_of(error) is not None:
            raise
        raise Unreadable(
            "the Avro file is damaged or cut short, or of a kind that is not known", why=one_line(error)
        ) from error
