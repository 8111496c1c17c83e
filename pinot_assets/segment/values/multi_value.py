"""Rows of values: an Arrow list column as its elements and the length of each row.

Null elements are dropped, and a row that has no others is null. A list in a single-value column may have one
element, and a value in a multi-value column is a row of one, as in Pinot (`DataTypeTransformerUtils`).

Source: docs/design/segment-format.md#s5-1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.errors import BuildError
from pinot_assets.segment.values.distinct import NULL, Codes

Lengths = npt.NDArray[np.int64]


def is_list(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds a row of values."""
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def elements(data: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Lengths]:
    """All elements of a column, null ones too, and how many each row has."""
    if not is_list(data.type):
        return data, np.ones(len(data), dtype=np.int64)
    lengths = pc.fill_null(pc.list_value_length(data), 0).to_numpy()
    return pc.list_flatten(data), lengths.astype(np.int64, copy=False)


def only_elements(name: str, data: pa.ChunkedArray) -> pa.ChunkedArray:
    """A list column as single values.

    :raises BuildError: a row has more than one element that is not null.
    """
    values, lengths = elements(data)
    valid = np.flatnonzero(pc.is_valid(values).to_numpy())
    rows = np.repeat(np.arange(len(lengths)), lengths)[valid]
    if (rows[1:] == rows[:-1]).any():
        raise BuildError(
            f"Column {name} is single-value, but a row holds several values",
            hint="Make it multi-value in the schema, or keep one value.",
        )
    place = np.zeros(len(lengths), dtype=np.int64)
    place[rows] = valid
    empty = np.ones(len(lengths), dtype=bool)
    empty[rows] = False
    return values.take(pa.array(place, mask=empty))


def filled_rows(codes: Codes, lengths: Lengths, fill: int) -> tuple[Codes, Lengths, npt.NDArray[np.bool_]]:
    """Rows without null elements: the codes, each row's length, and which rows were null.

    :param codes: one code per element, `NULL` for a null one.
    :param fill: the code of the only element of a null row.
    """
    kept = codes != NULL
    ends = np.cumsum(lengths)
    upto = np.concatenate(([0], np.cumsum(kept)))
    lengths = upto[ends] - upto[ends - lengths]
    is_null = lengths == 0
    lengths = np.maximum(lengths, 1)
    filled = np.full(int(lengths.sum()), fill, dtype=np.int32)
    given = np.ones(len(filled), dtype=bool)
    given[(np.cumsum(lengths) - lengths)[is_null]] = False
    filled[given] = codes[kept]
    return filled, lengths, is_null
