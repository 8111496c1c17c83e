"""Avro through DataFusion, whose decoder makes Arrow columns without a Python object per value.

DataFusion is an extra (`pip install "pinot-assets[avro]"`), since it is large and few tables need it.
Rows are counted from 1.
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
from pinot_assets.ingest.contract.bad_rows import BadRowPolicy
from pinot_assets.ingest.contract.machine_trouble import trouble_of
from pinot_assets.ingest.contract.target_schema import TargetSchema
from pinot_assets.ingest.formats.avro_blocks import count_rows
from pinot_assets.ingest.formats.typed import BATCH_ROWS, columns_of, conform_all
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits

_LOADED: Final = 64 << 20
"""Bytes that DataFusion takes at the least once it is loaded."""
_THREADS: Final = (8 << 20) + (os.cpu_count() or 1) * (4 << 20)
"""Bytes that its threads take, one a core."""


def check_avro() -> None:
    """Whether Avro can be read here.

    :raises ReaderSettings: the library is not installed, or cannot be loaded.
    """
    _datafusion()


def read_avro(
    path: Path, wanted: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits = DEFAULTS
) -> Iterator[pa.Table]:
    """Rows as the columns of `wanted`, some at a time.

    :raises FileRejected: the file is damaged, has none of the columns, or a value does not fit.
    """
    yield from conform_all(_batches(path, wanted, verdicts, limits), wanted, verdicts, limits)


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


def _batches(
    path: Path, wanted: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits
) -> Iterator[pa.Table]:
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
