"""Which values of a time column lie within Pinot's valid interval (`TimeValidationTransformer`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pinot_assets.errors import BuildError
from pinot_assets.segment.column.decimals import Values
from pinot_assets.segment.functions.time_format import VALID_FROM_MS, VALID_TO_MS, TimeFormat


def valid_times(name: str, time_format: TimeFormat, values: Values) -> npt.NDArray[np.bool_]:
    """Return a mask of the values that lie within 1971-01-01 and 2071-01-01, both included.

    :param name: the column, for errors.
    :param values: in stored form; none is null.
    :raises BuildError: a text is no time of the format. Pinot reads some texts that do not fit their pattern
        exactly, so it is not certain that it would call the value invalid.
    """
    if isinstance(values, np.ndarray) and not time_format.pattern:
        step = time_format.size * time_format.unit_ms
        first, last = -(-VALID_FROM_MS // step), VALID_TO_MS // step
        return np.less_equal(first, values) & np.less_equal(values, last)
    try:
        times = [time_format.to_ms(text) for text in _texts(values)]
    except ValueError as error:
        raise BuildError(f"Time column {name} holds a value that is no time", why=str(error)) from None
    return np.array([VALID_FROM_MS <= ms <= VALID_TO_MS for ms in times], dtype=bool)


def require_valid_times(name: str, time_format: TimeFormat, values: Values) -> npt.NDArray[np.bool_]:
    """Return `valid_times`, which are then all values.

    :raises BuildError: a value lies outside.
    """
    valid = valid_times(name, time_format, values)
    if not valid.all():
        first = next(text for text, is_valid in zip(_texts(values), valid, strict=True) if not is_valid)
        raise BuildError(
            f"Time column {name} holds {first}, which does not lie within 1971-01-01 and 2071-01-01",
            why="ingestionConfig.rowTimeValueCheck is true",
            hint="Correct the value or the format, or set continueOnError to true as well: such a time then "
            "becomes the column's default, or the time of the build.",
        )
    return valid


def _texts(values: Values) -> Iterator[str]:
    if isinstance(values, pa.Array):
        return (value.as_py().decode("utf-8", "surrogatepass") for value in values)
    return map(str, values.tolist())
