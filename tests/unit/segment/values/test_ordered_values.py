"""Orders by packed keys are those of plain sorting."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pinot_assets.segment.values import ordered_values
from pinot_assets.segment.values.ordered_values import Places, order_of_numbers, order_of_texts

_KINDS = ["i4", "i8", "f4", "f8"]


@given(
    st.sampled_from(_KINDS).flatmap(
        lambda kind: hnp.arrays(
            kind,
            st.integers(1, 60),
            elements={"allow_nan": False} if kind[0] == "f" else None,
        )
    )
)
def test_numbers_ascend_and_equal_ones_keep_their_order(values: Any) -> None:
    plain = [value + 0 for value in values.tolist()]  # no negative zero
    found = order_of_numbers(values + np.zeros(1, values.dtype))
    assert found.tolist() == sorted(range(len(plain)), key=lambda place: plain[place])


def test_a_negative_zero_comes_before_zero() -> None:
    assert order_of_numbers(np.array([0.0, -0.0, -1e-300])).tolist() == [2, 1, 0]


@pytest.mark.parametrize("kind", ["i8", "f8"])
def test_numbers_that_share_what_fits_beside_their_place(kind: str) -> None:
    """A place of 70,000 takes 17 bits, so the lowest 17 of a number of 64 bits are not in its key."""
    random = np.random.default_rng(5)
    low = random.integers(0, 1 << 12, 70_000)
    bits = (random.integers(0, 4, 70_000) << 60) + low
    values = bits.view(kind) if kind == "f8" else bits - (1 << 62)
    assert order_of_numbers(values).tolist() == np.argsort(values, kind="stable").tolist()


def test_the_least_and_the_greatest_integer() -> None:
    limits = np.iinfo(np.int64)
    assert order_of_numbers(np.array([limits.max, 0, limits.min, -1])).tolist() == [2, 3, 1, 0]


def assert_in_order(found: tuple[Places, npt.NDArray[np.bool_]], texts: list[bytes]) -> None:
    order, first = found
    ordered = sorted(texts)
    assert [texts[place] for place in order] == ordered
    assert sorted(order.tolist()) == [*range(len(texts))]
    differs = [a != b for a, b in pairwise(ordered)]
    assert first.tolist() == [True, *differs]


@pytest.mark.parametrize("few", [2, 2000], ids=["by keys", "compared"])
@given(
    st.binary(max_size=12),
    st.lists(
        st.one_of(st.binary(max_size=20), st.text("ab\0", max_size=12).map(str.encode)),
        min_size=1,
        max_size=60,
    ),
)
def test_texts_ascend(few: int, prefix: bytes, ends: list[bytes]) -> None:
    texts = [prefix + end for end in ends]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered_values, "_FEW_TEXTS", few)
        found = order_of_texts(pa.array(texts, pa.large_binary()))
    assert_in_order(found, texts)


@given(st.lists(st.text("a\0", max_size=3).map(str.encode), min_size=2, max_size=60))
def test_short_texts_that_differ_in_zeros_at_their_end_are_not_equal(texts: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered_values, "_FEW_TEXTS", 2)
        assert_in_order(order_of_texts(pa.array(texts, pa.large_binary())), texts)


@pytest.mark.parametrize("few", [2, 2000], ids=["by keys", "compared"])
def test_texts_of_a_slice(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordered_values, "_FEW_TEXTS", few)
    texts = pa.array([b"zz", b"b", b"a", b"ab", b"aa", b"x"], pa.large_binary()).slice(1, 4)
    assert order_of_texts(texts)[0].tolist() == [1, 3, 2, 0]


def test_texts_that_differ_behind_their_first_bytes_only() -> None:
    random = np.random.default_rng(6)
    texts = [b"%04d same for all of them %06d" % (n % 50, n) for n in random.permutation(5000).tolist()]
    assert_in_order(order_of_texts(pa.array(texts, pa.large_binary())), texts)
