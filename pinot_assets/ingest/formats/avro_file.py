"""Avro through DataFusion, whose decoder makes Arrow columns without a Python object per value.

DataFusion is an extra (`pip install "pinot-assets[avro]"`), since it is large and few tables need it. It
takes a file cut short for a whole one, so the file's frame is walked block by block first (the Avro
specification, object container files). Rows are counted from 1.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pinot_assets.core.file_errors import ReaderSettings, Unreadable, one_line
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.contract.machine_trouble import trouble_of
from pinot_assets.ingest.formats.columnar import BATCH_ROWS, columns_of
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits

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


def check_avro() -> None:
    """Whether Avro can be read here.

    :raises ReaderSettings: the library is not installed, or cannot be loaded.
    """
    _datafusion()


def first_avro(path: Path, count: int, limits: FileLimits = DEFAULTS) -> pa.Table:
    """Up to so many rows, in the file's own types.

    :raises FileRejected: the file is damaged, has more than it may, or DataFusion is not installed.
    """
    datafusion = _datafusion()
    count_rows(path, limits)
    with _damaged():
        frame = datafusion.SessionContext().read_avro(str(path), file_extension=path.suffix).limit(count)
        schema = frame.schema()
    limits.check_columns(len(schema))
    return pa.Table.from_batches(list(_decoded(frame)), schema)


def _datafusion() -> Any:
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
    with _damaged():
        datafusion.SessionContext().sql("SELECT 1")


def _memory(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def avro_batches(
    path: Path, wanted: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits
) -> Iterator[pa.Table]:
    """Rows with the columns of `wanted` that the file has, in its own types, some at a time.

    :raises FileRejected: the file is damaged, or has none of the columns.
    """
    datafusion = _datafusion()
    expected = count_rows(path, limits)
    verdicts.holds(expected)
    settings = datafusion.SessionConfig().with_target_partitions(1).with_batch_size(BATCH_ROWS)
    with _damaged():
        frame = datafusion.SessionContext(settings).read_avro(str(path), file_extension=path.suffix)
        names = frame.schema().names
    columns = columns_of(names, wanted, verdicts, limits)
    frame = frame.select(*[datafusion.col(f'"{name}"') for name in columns])
    for batch in _decoded(frame):
        expected -= batch.num_rows
        yield pa.Table.from_batches([batch])
    if expected:
        raise Unreadable("the Avro file is damaged", why=f"its blocks promise {expected} rows more")


def _decoded(frame: Any) -> Iterator[pa.RecordBatch]:
    with _damaged():
        for batch in frame.execute_stream():
            yield batch.to_pyarrow()


@contextmanager
def _damaged() -> Iterator[None]:
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
