"""The order of a segment's rows: that of the file, or sorted by `sortedColumn`.

Pinot's batch builder leaves rows as they come; its consuming segments sort by the first `sortedColumn`, its
merge tasks by all of them. Here it is all of them, and rows that are equal stay in the file's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pinot_assets.segment.values.distinct import Codes
from pinot_assets.segment.values.normalize import Normalized

Order = npt.NDArray[np.int64]


def row_order(keys: Sequence[Codes]) -> Order | None:
    """The rows in the order of their keys, None when they are in it already.

    :param keys: each row's dictionary id in each column sorted by, the most important one first.
    """
    if not keys:
        return None
    order = np.lexsort(keys[::-1])
    return None if (order[1:] > order[:-1]).all() else order


def reordered(cleaned: Normalized, order: Order) -> Normalized:
    """A column with its rows in another order."""
    is_null = cleaned.is_null[order]
    if cleaned.lengths is None:
        return replace(cleaned, codes=cleaned.codes[order], is_null=is_null)
    starts = np.cumsum(cleaned.lengths) - cleaned.lengths
    lengths = cleaned.lengths[order]
    before = np.cumsum(lengths) - lengths
    places = np.arange(int(lengths.sum())) + np.repeat(starts[order] - before, lengths)
    return replace(cleaned, codes=cleaned.codes[places], lengths=lengths, is_null=is_null)
