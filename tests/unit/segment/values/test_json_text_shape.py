from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.segment.values import json_text
from pinot_assets.segment.values.json_text import JsonRefused, canonical_texts, pinot_json

numbers = st.from_regex(r"\A-?[0-9]{1,20}(\.[0-9]{1,8})?([eE][+-]?[0-9]{1,2})?\Z")
scalars = numbers | st.sampled_from(["null", "true", "false", "NaN", "nul", ""])
texts = st.text(st.sampled_from(':,[]{}"\\ 0a.-é😀\n\x7f'), max_size=5).map(
    lambda text: f'"{text}"'
) | st.text(max_size=3).map(lambda text: json.dumps(text, ensure_ascii=False))
blank = st.sampled_from(["", "", "", " ", "\t"])


def _joined(parts: list[str], brackets: str, gap: str) -> str:
    return brackets[0] + f",{gap}".join(parts) + brackets[1]


documents = st.recursive(
    scalars | texts,
    lambda inner: (
        st.builds(_joined, st.lists(inner, max_size=3), st.just("[]"), blank)
        | st.builds(
            _joined,
            st.lists(
                st.tuples(texts, blank, inner).map(lambda one: f"{one[0]}:{one[1]}{one[2]}"), max_size=3
            ),
            st.just("{}"),
            blank,
        )
    ),
    max_leaves=6,
)
anything = st.text(st.sampled_from(':,[]{}"0123.-eE tru'), max_size=12)


def found_of(texts: list[str]) -> list[tuple[str, str | None]]:
    """Texts, and what they become where that was found."""
    values, found = canonical_texts(pa.array([text.encode() for text in texts], pa.large_binary()))
    assert len(values) == len(texts)
    return [
        (text, value.decode() if is_found else None)
        for text, value, is_found in zip(texts, values.to_pylist(), found, strict=True)
    ]


@settings(max_examples=400, deadline=None)
@given(st.lists(documents | anything, min_size=1, max_size=6))
def test_what_is_found_is_what_pinot_would_store(texts: list[str]) -> None:
    for text, stored in found_of(texts * 3):  # so that they have some shapes in common
        if stored is not None:
            assert stored == pinot_json(text)


def _expected(text: str) -> str | None:
    try:
        return pinot_json(text)
    except JsonRefused:
        return None


@settings(max_examples=100, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=20))
def test_numbers_of_all_kinds(found: list[str]) -> None:
    for text, stored in found_of([f'{{"a":[{number}], "b": {number}}}' for number in found] * 3):
        assert stored in (None, _expected(text))


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: {"id": n, "name": f"é{n}, : \u2028", "tags": [n, {"x": None, "y": -n}], "ok": n % 2 == 0},
        lambda n: {"price": n + 0.25, "low": -0.5, "small": 0.000001, "zero": 0},
        lambda n: [n, n * n, f"a:{n}", ":,", ""],
    ],
)
def test_the_usual_text_is_found(make: Any, separators: tuple[str, str]) -> None:
    texts = [json.dumps(make(n), ensure_ascii=False, separators=separators) for n in range(1000)]
    found = found_of([text.replace("1e-06", "0.000001") for text in texts])
    assert sum(stored is not None for _, stored in found) > 900
    assert all(stored in (None, pinot_json(text)) for text, stored in found)


def test_slices_and_many_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "_AT_A_TIME", 15)
    texts = [b'{"a":1}', b'{"a": 1}', b'{"a":1,"a":2}', b"", b"null", b"nope"] * 5
    values, mask = canonical_texts(pa.array([b"x", *texts], pa.large_binary())[1:])
    assert mask.tolist() == [True, True, False, True, True, False] * 5
    assert values[:3].to_pylist() == [b'{"a":1}', b'{"a":1}', b'{"a":1,"a":2}']
    nothing, mask = canonical_texts(pa.array([], pa.large_binary()))
    assert (len(nothing), len(mask)) == (0, 0)
