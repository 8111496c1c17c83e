from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.build import csv_comments
from pinot_assets.build.csv_comments import without_comments
from pinot_assets.build.rejected import Unreadable


def kept(*blocks: bytes) -> bytes:
    return b"".join(without_comments(iter(blocks), "#", '"'))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (b"a\n#b\nc\n", b"a\nc\n"),
        (b"#a\r\nb#c\n #d\n#e", b"b#c\n #d\n"),
        (b'a,"x\n#not one\n"\n#one\n', b'a,"x\n#not one\n"\n'),
        (b'#it\'s "open\n"x\n#y"\n#z\n', b'"x\n#y"\n'),
        (b"#", b""),
    ],
)
def test_comments_go(text: bytes, left: bytes) -> None:
    assert kept(text) == left


lines = st.sampled_from([b"a,b", b"#c", b'"q', b'#"', b'r"', b"", b"#"])


@given(st.lists(lines, max_size=8), st.integers(1, 9))
def test_where_blocks_end_does_not_matter(found: list[bytes], size: int) -> None:
    text = b"\n".join(found)
    assert kept(*[text[n : n + size] for n in range(0, len(text), size)]) == kept(text)


def test_a_line_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_comments, "BLOCK_BYTES", 10)
    with pytest.raises(Unreadable, match="longer than"):
        kept(b"#" * 8, b"#" * 8)
