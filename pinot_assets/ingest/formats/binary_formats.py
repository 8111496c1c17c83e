"""Read Parquet, ORC and Avro: the table's columns by name. Rows are counted from 1.

Arrow reads Parquet and ORC. DataFusion reads Avro: its decoder makes Arrow columns without a Python object
per value. DataFusion is an extra (`pip install "pinot-assets[avro]"`), because it is large and few tables
need it. It accepts a file that is cut short, so `count_rows` first walks the file's frame block by block (the
Avro specification, object container files).
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
from pinot_assets.ingest.contract.failures import trouble_code
from pinot_assets.ingest.formats.avro_unions import type_without_union, without_unions
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits

if TYPE_CHECKING:
    from datafusion import DataFrame

BATCH_ROWS: Final = 1 << 16


def columns_in_file(
    names: list[str], target: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits
) -> list[str]:
    """Return the table's columns that the file has, in the table's order.

    :param names: the file's columns.
    :raises FileRejected: the file has none of the table's columns, has one twice, lacks one that must not be
        missing, or has too many columns.
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
    """Refuse a table with a value that is larger than the limits allow.

    :raises TooLarge: it has one.
    """
    if table.nbytes <= limits.value_bytes:
        return
    for name, column in zip(table.column_names, table.columns, strict=True):
        limits.check_value(name, _largest(column))


def _largest(column: pa.ChunkedArray) -> int:
    """Return the bytes of the largest text or bytes value, 0 if there is none. Reads only offsets.

    Structures are not measured: they are few, and become text that is at least as large.
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
    """Turn errors of the library into ours.

    :param what: name of the format.
    :raises Unreadable: the file is damaged. Trouble of the machine keeps its own error.
    """
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: for names of columns
        if trouble_code(error) is not None:
            raise
        raise Unreadable(f"the {what} file is damaged or incomplete", why=one_line(error)) from error


def first_parquet(path: Path, count: int, limits: FileLimits = DEFAULTS) -> pa.Table:
    """Return up to `count` rows, in the file's own types; an empty table if the file has none.

    :raises FileRejected: the file is damaged, or larger than the limits allow.
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
    """Yield rows with the columns of `target` that the file has, in the file's types, in several tables.

    :raises FileRejected: the file is damaged, or has none of the columns.
    """
    with (
        damaged("Parquet"),
        pq.ParquetFile(
            path,
            memory_map=True,
            page_checksum_verification=True,
            pre_buffer=False,
            coerce_int96_timestamp_unit="us",  # nanoseconds would silently overflow after 2262
        ) as file,
    ):
        names = file.schema_arrow.names
        verdicts.rows = file.metadata.num_rows
        if file.metadata.num_rows == 0:
            return  # without rows, a file may also lack columns (edge case E5)
        columns = columns_in_file(names, target, verdicts, limits)
        check_pages(file.metadata, frozenset(columns), limits)
        for batch in file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
            yield pa.Table.from_batches([batch])


def check_pages(metadata: pq.FileMetaData, columns: frozenset[str], limits: FileLimits) -> None:
    """Refuse column chunks whose metadata declare that they unpack to far too much.

    :raises TooLarge: a chunk does.
    """
    for n in range(metadata.num_row_groups):
        group = metadata.row_group(n)
        for m in range(group.num_columns):
            chunk = group.column(m)
            if chunk.path_in_schema.partition(".")[0] in columns:
                limits.check_unpacked(chunk.total_compressed_size, chunk.total_uncompressed_size)


_MOST_AT_ONCE: Final = 64 << 20
"""Bytes. The most that a file may declare for a compression block; default 256 KB, ORC's limit 8 MB."""


def first_orc(path: Path, count: int, limits: FileLimits = DEFAULTS) -> pa.Table:
    """Return up to `count` rows of the first stripe, in the file's types; an empty table if there are none.

    :raises FileRejected: the file is damaged, or larger than the limits allow.
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
    """Yield rows as `parquet_batches` does, a stripe at a time."""
    with damaged("ORC"), pa.memory_map(str(path)) as data:
        file = paorc.ORCFile(data)
        verdicts.rows = file.nrows
        if file.nrows == 0:
            return
        columns = columns_in_file(file.schema.names, target, verdicts, limits)
        _check_blocks(file)
        for n in range(file.nstripes):
            yield pa.Table.from_batches([_stripe(file, n, columns)])


def _check_blocks(file: paorc.ORCFile) -> None:
    if file.compression_size > _MOST_AT_ONCE:
        raise FileTooLarge(
            f"the file is compressed in blocks of up to {file.compression_size >> 20:,} MB, more "
            f"than {_MOST_AT_ONCE >> 20} MB",
            why="a reader needs the memory for a whole block at once",
            hint="write it with orc.compress.size of some hundred KB",
        )


def _stripe(file: paorc.ORCFile, n: int, columns: list[str]) -> pa.RecordBatch:
    try:
        batch = file.read_stripe(n, columns=columns)
        if not set(columns).issubset(batch.schema.names):
            # ORC's reader takes the name a.b for a member of a struct, even if asked for it by number.
            batch = file.read_stripe(n)
        return batch.select(columns)
    except pa.ArrowInvalid as error:
        if "out of range for nanosecond" not in str(error):
            raise
        raise Unreadable(
            "a timestamp is before 1677 or after 2262",
            why="Arrow's ORC reader counts in nanoseconds",
            hint="read the table with engine: spark, or write Parquet",
        ) from error


_SYNC_BYTES = 16


def count_rows(path: Path, limits: FileLimits = DEFAULTS) -> int:
    """Return how many rows the file's blocks declare; decode nothing.

    :raises Unreadable: a block is cut short, or does not end with the file's mark.
    :raises TooLarge: a block declares far more rows than its bytes can hold, one byte each.
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
                "the Avro file is damaged or incomplete",
                why=f"a block that ends at byte {position:,} of {len(data):,} does not end with the "
                "file's mark",
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
    """Return a zigzag number of variable length, and the position after it."""
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
"""Bytes that DataFusion takes at least when it is loaded."""
_THREADS: Final = (8 << 20) + (os.cpu_count() or 1) * (4 << 20)
"""Bytes that its threads take, one thread per core."""


def first_avro(path: Path, count: int, limits: FileLimits = DEFAULTS) -> pa.Table:
    """Return up to `count` rows, in the file's own types.

    :raises FileRejected: the file is damaged, exceeds the limits, or DataFusion is not installed.
    """
    datafusion = load_datafusion()
    count_rows(path, limits)
    with _damaged_avro():
        frame = datafusion.SessionContext().read_avro(str(path), file_extension=path.suffix).limit(count)
        schema = frame.schema()
    limits.check_columns(len(schema))
    schema = pa.schema([(field.name, type_without_union(field.type)) for field in schema])
    return pa.Table.from_batches(list(_decoded(frame)), schema)


def load_datafusion() -> ModuleType:
    """Return the module of DataFusion, which reads Avro.

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
    """Load DataFusion and start its threads; only here, because that takes half a second and memory.

    If memory ends while the threads start, DataFusion waits forever for those that did not start. So this
    function first reserves their memory, and keeps it from the import, which takes all memory that it finds.

    :raises OSError: there is too little memory.
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
    """Yield rows with the columns of `target` that the file has, in the file's types, in several tables.

    :raises FileRejected: the file is damaged, or has none of the columns.
    """
    datafusion = load_datafusion()
    expected = count_rows(path, limits)
    verdicts.rows = expected
    settings = datafusion.SessionConfig().with_target_partitions(1).with_batch_size(BATCH_ROWS)
    with _damaged_avro():
        frame = datafusion.SessionContext(settings).read_avro(str(path), file_extension=path.suffix)
        names = frame.schema().names
    columns = columns_in_file(names, target, verdicts, limits)
    frame = frame.select(*[datafusion.col(f'"{name}"') for name in columns])
    for batch in _decoded(frame):
        expected -= batch.num_rows
        yield pa.Table.from_batches([batch])
    if expected:
        raise Unreadable(
            "the Avro file is damaged", why=f"by its blocks, {expected:,} more rows should follow"
        )


def _decoded(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    with _damaged_avro():
        for batch in frame.execute_stream():
            yield without_unions(batch.to_pyarrow())


@contextmanager
def _damaged_avro() -> Iterator[None]:
    """Turn DataFusion's errors into ours, its panics included.

    :raises Unreadable: the file is damaged. Trouble of the machine keeps its own error.
    """
    try:
        yield
    except BaseException as error:  # a Rust panic is no Exception, and DataFusion has no error class
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if isinstance(error, Exception) and trouble_code(error) is not None:
            raise
        raise Unreadable(
            "the Avro file is damaged or incomplete, or of a kind that pinot-assets does not know",
            why=one_line(error),
        ) from error
