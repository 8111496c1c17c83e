from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.core.file_errors import Unreadable
from pinot_assets.ingest.formats import json_documents
from pinot_assets.ingest.formats.json_documents import document_blocks

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.text('a"\\,{}[]\n') | st.integers(0, 9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('k"\\]', max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)
documents = st.lists(st.dictionaries(st.text(max_size=2), values, max_size=3), min_size=1, max_size=6)


def blocks(text: str, size: int) -> list[bytes]:
    data = text.encode()
    return list(document_blocks(iter([data[n : n + size] for n in range(0, len(data), size)])))


@settings(deadline=None)
@given(documents, st.integers(1, 40), st.sampled_from([None, 1]), st.sampled_from([",", " ,", "\n ,\t"]))
def test_an_array_is_taken_off_wherever_blocks_end(
    found: list[Any], size: int, indent: int | None, comma: str
) -> None:
    parts = blocks(f"[{comma.join(json.dumps(one, indent=indent) for one in found)} ]\n", size)
    decoder, read = json.JSONDecoder(), []
    for part in parts:
        text, position = part.decode(), 0
        while text[position:].strip():
            position += len(text[position:]) - len(text[position:].lstrip())
            document, position = decoder.raw_decode(text, position)
            read.append(document)
    assert read == found


@settings(deadline=None)
@given(documents, st.integers(1, 40))
def test_blocks_of_lines_end_with_a_line(found: list[Any], size: int) -> None:
    text = "\n".join(map(json.dumps, found)) + "\n"
    parts = blocks(text, size)
    assert b"".join(parts).decode() == text
    assert all(part.endswith(b"\n") for part in parts)


def test_documents_of_several_lines_stay_whole() -> None:
    text = "\n".join(json.dumps({"a": n, "b": [n]}, indent=1) for n in range(50))
    for part in blocks(text, 100):
        assert part.startswith(b"{")
        assert part.rstrip().endswith(b"}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"a":1},', "never closed"),
        ('[{"a":"]"', "never closed"),
        ('[{"a":1} {"b":2}]', 'no comma is before .*{"b":2}'),
        ('[{"a":1}{"b":2}]', "no comma is before"),
        ('[{"a":1},{"a":2}\n\n"x"]', "no comma is before"),
        ('[{"a":1},]', "the array of rows ends with a comma"),
        ('[{"a":"' + "x" * 30 + '"} , \n ]', "the array of rows ends with a comma"),
        ('[{"a":1}] {}', "something follows the array of rows"),
        ('[{"a":1}]' + " " * 50 + "x", "something follows the array of rows"),
    ],
)
def test_a_broken_array(text: str, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        blocks(text, 20)


@pytest.mark.parametrize("start", ["", "["])
def test_a_document_without_end_is_refused_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    monkeypatch.setattr(json_documents, "DOCUMENT_BYTES", 1000)
    read = []

    def source():
        yield start.encode() + b'{"a":"'
        for n in range(1000):
            read.append(n)
            yield b"x" * 100

    with pytest.raises(Unreadable, match="a document is longer than"):
        list(document_blocks(source()))
    assert len(read) < 12
