from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.segment import json_shape
from pinot_assets.segment.json_shape import is_canonical
from pinot_assets.segment.json_text import JsonRefused, canonical_json

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


@settings(max_examples=400, deadline=None)
@given(st.lists(documents | anything, min_size=1, max_size=6))
def test_what_is_found_is_what_pinot_would_store(found: list[str]) -> None:
    values = [text.encode() for text in found] * 3  # so that they have some shapes in common
    mask = is_canonical(pa.array(values, pa.large_binary()))
    for text, is_found in zip(found * 3, mask, strict=True):
        if is_found:
            assert canonical_json(text) == text


def _canonical(text: str) -> bool:
    try:
        return canonical_json(text) == text
    except JsonRefused:
        return False


@settings(max_examples=100, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=20))
def test_numbers_of_all_kinds(found: list[str]) -> None:
    texts = [f'{{"a":[{number}],"b":{number}}}' for number in found]
    mask = is_canonical(pa.array([text.encode() for text in texts * 3], pa.large_binary()))
    assert [
        text for text, is_found in zip(texts, mask, strict=False) if is_found and not _canonical(text)
    ] == []


@pytest.mark.parametrize(
    "make",
    [
        lambda n: {"id": n, "name": f"é{n}, \u2028", "tags": [n, {"x": None, "y": -n}], "ok": n % 2 == 0},
        lambda n: {"price": n + 0.25, "low": -0.5, "small": 0.000001, "zero": 0},
        lambda n: [n, n * n, f"a:{n}", ":,", ""],
    ],
)
def test_the_usual_text_is_found(make: Any) -> None:
    texts = [json.dumps(make(n), ensure_ascii=False, separators=(",", ":")) for n in range(1000)]
    texts = [text.replace("1e-06", "0.000001") for text in texts]
    assert is_canonical(pa.array([text.encode() for text in texts], pa.large_binary())).mean() > 0.9


def test_slices_and_many_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_shape, "_AT_A_TIME", 15)
    texts = [b'{"a":1}', b'{"a": 1}', b'{"a":1,"a":2}', b"", b"null", b"nope"] * 5
    mask = is_canonical(pa.array([b"x", *texts], pa.large_binary())[1:])
    assert mask.tolist() == [True, False, False, True, True, False] * 5
    assert is_canonical(pa.array([], pa.large_binary())).tolist() == []
