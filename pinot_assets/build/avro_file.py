"""Avro through DataFusion, whose decoder makes Arrow columns without a Python object per value.

DataFusion is an extra (`pip install "pinot-assets[avro]"`), since it is large and few tables need it.
Rows are counted from 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from pinot_assets.build.avro_blocks import count_rows
from pinot_assets.build.limits import DEFAULTS, Limits
from pinot_assets.build.rejected import ReaderSettings, Unreadable, one_line
from pinot_assets.build.typed import BATCH_ROWS, columns_of, conform_all
from pinot_assets.build.verdicts import Verdicts
from pinot_assets.build.wanted import Wanted


def check_avro() -> None:
    """Whether Avro can be read here.

    :raises ReaderSettings: the library is not installed.
    """
    _datafusion()


def read_avro(
    path: Path, wanted: Wanted, verdicts: Verdicts, limits: Limits = DEFAULTS
) -> Iterator[pa.Table]:
    """Rows as the columns of `wanted`, some at a time.

    :raises FileRejected: the file is damaged, has none of the columns, or a value does not fit.
    """
    yield from conform_all(_batches(path, wanted, verdicts, limits), wanted, verdicts, limits)


def first_avro(path: Path, count: int) -> pa.Table:
    """Up to so many rows, in the file's own types.

    :raises FileRejected: the file is damaged, or DataFusion is not installed.
    """
    datafusion = _datafusion()
    try:
        frame = datafusion.SessionContext().read_avro(str(path), file_extension=path.suffix).limit(count)
        schema = frame.schema()
    except Exception as error:  # DataFusion's errors have no class of their own
        raise _damaged(error) from error
    return pa.Table.from_batches(list(_decoded(frame)), schema)


def _datafusion() -> Any:
    try:
        import datafusion  # here, since it takes half a second and memory
    except ImportError as error:
        raise ReaderSettings(
            "inputFormat avro needs DataFusion, which is not installed here",
            hint='pip install "pinot-assets[avro]", on Spark\'s executors, too',
        ) from error
    return datafusion


def _batches(path: Path, wanted: Wanted, verdicts: Verdicts, limits: Limits) -> Iterator[pa.Table]:
    datafusion = _datafusion()
    expected = count_rows(path, limits)
    verdicts.holds(expected)
    settings = datafusion.SessionConfig().with_target_partitions(1).with_batch_size(BATCH_ROWS)
    try:
        frame = datafusion.SessionContext(settings).read_avro(str(path), file_extension=path.suffix)
        names = frame.schema().names
    except Exception as error:  # DataFusion's errors have no class of their own
        raise _damaged(error) from error
    columns = columns_of(names, wanted, verdicts, limits)
    frame = frame.select(*[datafusion.col(f'"{name}"') for name in columns])
    for batch in _decoded(frame):
        expected -= batch.num_rows
        yield pa.Table.from_batches([batch])
    if expected:
        raise Unreadable("the Avro file is damaged", why=f"its blocks promise {expected} rows more")


def _decoded(frame: Any) -> Iterator[pa.RecordBatch]:
    try:
        for batch in frame.execute_stream():
            yield batch.to_pyarrow()
    except Exception as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> Unreadable:
    return Unreadable(
        "the Avro file is damaged or cut short, or of a kind that is not known", why=one_line(error)
    )
