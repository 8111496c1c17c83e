"""The inverted index: the rows of each dictionary id.

Source: docs/design/segment-format.md#s10, `BitmapInvertedIndexWriter`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pinot_assets.errors import BuildError
from pinot_assets.segment.indexes.roaring import roarings

_MAX_BYTES = 2**32 - 1  # offsets are unsigned 32-bit


def inverted_index(
    name: str, ids: npt.NDArray[np.int32], lengths: npt.NDArray[np.int64] | None, cardinality: int
) -> bytes:
    """Where each id's bitmap begins and the last one ends, then the bitmaps.

    :param name: column name, for errors.
    :param ids: dictionary ids, one per row, or one per element of a multi-value column.
    :param lengths: each row's number of elements; None for a single-value column.
    :raises BuildError: the index would be larger than 4 GiB.
    """
    order = np.argsort(ids, kind="stable")
    rows = order if lengths is None else np.repeat(np.arange(len(lengths)), lengths)[order]
    grouped = ids[order]
    if lengths is not None:  # a row that holds a value twice counts once
        first = np.ones(len(rows), dtype=bool)
        first[1:] = (rows[1:] != rows[:-1]) | (grouped[1:] != grouped[:-1])
        rows, grouped = rows[first], grouped[first]
    starts = np.searchsorted(grouped, np.arange(cardinality))
    bitmaps, sizes = roarings(rows.astype(np.uint32), starts)
    offsets = 4 * (cardinality + 1) + np.concatenate(([0], np.cumsum(sizes)))
    if offsets[-1] > _MAX_BYTES:
        raise BuildError(
            f"The inverted index of column {name} is too large",
            why=f"its {cardinality} bitmaps take more than 4 GiB",
            hint="Leave the index to the server, or put fewer rows into a segment.",
        )
    return offsets.astype(">u4").tobytes() + bitmaps.tobytes()
