from __future__ import annotations

import itertools
import struct

import numpy as np
import pytest

from pinot_assets.errors import BuildError
from pinot_assets.segment.indexes.bitmaps import inverted_index, roaring


def bitmaps(payload: bytes, cardinality: int) -> list[bytes]:
    """The bitmap of each dictionary id, and that nothing else is there."""
    ends = struct.unpack_from(f">{cardinality + 1}I", payload)
    assert (ends[0], ends[-1]) == (4 * (cardinality + 1), len(payload))
    return [payload[start:end] for start, end in itertools.pairwise(ends)]


@pytest.mark.parametrize("cardinality", [2, 7, 1000])
def test_every_id_has_the_bitmap_of_its_rows(cardinality: int) -> None:
    rng = np.random.default_rng(cardinality)
    runs = np.repeat(rng.integers(0, cardinality, 400), 300).astype(np.int32)
    ids = np.concatenate([np.arange(cardinality, dtype=np.int32), runs, rng.permutation(runs)])
    payload = inverted_index("c", ids, None, cardinality)
    assert bitmaps(payload, cardinality) == [
        roaring(np.flatnonzero(ids == i).astype(np.uint32)) for i in range(cardinality)
    ]


def test_a_row_that_holds_a_value_twice_counts_once() -> None:
    ids = np.array([1, 0, 1, 1, 1, 0, 0], dtype=np.int32)
    payload = inverted_index("c", ids, np.array([3, 1, 3]), 2)
    rows = [np.array(found, dtype=np.uint32) for found in ([0, 2], [0, 1, 2])]
    assert bitmaps(payload, 2) == [*map(roaring, rows)]


def test_an_index_beyond_4_gib_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinot_assets.segment.indexes.bitmaps._MAX_BYTES", 30)
    with pytest.raises(BuildError, match="inverted index of column c is too large"):
        inverted_index("c", np.array([0, 1, 2], dtype=np.int32), None, 3)
