from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.core.file_errors import Unreadable
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.formats import csv_text
from pinot_assets.ingest.formats.csv_text import without_comment_lines


def kept(*blocks: bytes, reader: Mapping[str, str] | None = None) -> bytes:
    csv_settings = CsvSettings.from_reader({"commentMarker": "#"} | dict(reader or {}))
    return b"".join(without_comment_lines(iter(blocks), csv_settings))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (b"a\n#b\nc\n", b"a\nc\n"),
        (b"#a\r\nb#c\n #d\n#e", b"b#c\n #d\n"),
        (b'a,"x\n#not one\n"\n#one\n', b'a,"x\n#not one\n"\n'),
        (b'#it\'s "open\n"x\n#y"\n#z\n', b'"x\n#y"\n'),
        (b"#", b""),
        (b'1,5" x\n2,"y\n#z\nw"\n#c\n', b'1,5" x\n2,"y\n#z\nw"\n'),
        (b'5" x\n#c\n7" y\n#d\nz\n', b'5" x\n7" y\nz\n'),
        (b'"a""\n#b"\n#c\n"",""""\n#d\n', b'"a""\n#b"\n"",""""\n'),
        (b'"a"b"c,"\n#d"\n#e\n', b'"a"b"c,"\n#d"\n'),
        (b"#c\ra,b\r1,x\r#d\r", b"a,b\r1,x\r"),
        (b'a\r#c\r\n"x\r#y"\r\n#z\n', b'a\r"x\r#y"\r\n'),
    ],
)
def test_comments_go(text: bytes, left: bytes) -> None:
    assert kept(text) == left


@pytest.mark.parametrize(
    ("reader", "text", "left"),
    [
        ({"escapeCharacter": "\\"}, b'"x\\"y"\n#c\nz', b'"x\\"y"\nz'),
        ({"escapeCharacter": "\\"}, b'"x\\\\"\n#c\n\\"\n#d\n', b'"x\\\\"\n\\"\n'),
        ({"escapeCharacter": "\\"}, b"a\\\n#no comment\n#c\n", b"a\\\n#no comment\n"),
        ({"quoteCharacter": "'", "delimiter": "|"}, b"a|'\n#b'|\"\n#c\n", b"a|'\n#b'|\"\n"),
        ({"quoteCharacter": "'", "delimiter": "|"}, b"a,'\n#b'\n", b"a,'\n"),
    ],
)
def test_settings_count(reader: Mapping[str, str], text: bytes, left: bytes) -> None:
    assert kept(text, reader=reader) == left


pieces = st.lists(
    st.sampled_from([b"a", b",", b'"', b"\n", b"\r", b"\r\n", b"\\", b"#", b"#c", b'"q', b'",']), max_size=16
)


@settings(max_examples=300, deadline=None)
@given(pieces, st.sampled_from([None, "\\"]))
def test_rows_end_where_arrow_ends_them(found: list[bytes], escape: str | None) -> None:
    text = b"".join(found)
    reader = {} if escape is None else {"escapeCharacter": escape}
    rows = rows_of(text.decode(), escape)
    assert kept(text, reader=reader).decode() == "".join(row for row in rows if not row.startswith("#"))


def rows_of(text: str, escape: str | None) -> list[str]:
    """As Arrow's parser goes through a file, one character after the other; comments end with their line."""
    rows, row, state, is_escaped = [], "", "row", False
    for character, following in pairwise([*text, ""]):
        row += character
        is_end = character == "\n" or (character == "\r" and following != "\n")
        if is_escaped:
            is_escaped = False
        elif state == "row" and character == "#":
            state = "comment"
        elif state == "comment" or (state != "quoted" and character in "\r\n"):
            if is_end:
                rows, row, state = [*rows, row], "", "row"
        elif character == escape:
            is_escaped, state = True, "quoted" if state == "quoted" else "cell"
        elif character == '"' and state in ("row", "start", "closed"):
            state = "quoted"
        elif character == '"' and state == "quoted":
            state = "closed"
        elif state != "quoted":
            state = "start" if character == "," else "cell"
    return [*rows, row]


lines = st.sampled_from([b"a,b", b"#c", b'"q', b'#"', b'r"', b"", b"#"])
ends = st.sampled_from([b"\n", b"\r", b"\r\n"])


@settings(deadline=None)
@given(st.lists(st.tuples(lines, ends), max_size=8), st.integers(1, 9))
def test_where_blocks_end_does_not_matter(found: list[tuple[bytes, bytes]], size: int) -> None:
    text = b"".join(map(b"".join, found))
    assert kept(*[text[n : n + size] for n in range(0, len(text), size)]) == kept(text)


def test_a_line_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 10)
    with pytest.raises(Unreadable, match="longer than"):
        kept(b"#" * 8, b"#" * 8)
