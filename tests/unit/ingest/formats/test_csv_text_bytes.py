from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.ingest.formats.csv_text import ForeignBytes

pieces = st.lists(
    st.sampled_from([b"a", b"\n", "é".encode(), "😀".encode(), b"\xe9", b"\xf0\x9f", b"\x80"]), max_size=12
)


@settings(deadline=None)
@given(pieces, st.integers(1, 9))
def test_every_byte_comes_back(found: list[bytes], size: int) -> None:
    data = b"".join(found)
    foreign = ForeignBytes()
    hidden = b"".join(foreign.hidden(iter([data[n : n + size] for n in range(0, len(data), size)])))
    text = hidden.decode()
    assert foreign.shown(text) == data.decode(errors="surrogateescape")
    column = foreign.restored(pa.chunked_array([[None], ["x", text]], pa.string()))
    assert column.cast(pa.binary()).to_pylist() == [None, b"x", data]


def test_utf_8_is_left_alone() -> None:
    foreign = ForeignBytes()
    own = "a\U0010f7e9é".encode()
    assert b"".join(foreign.hidden(iter([own[:3], own[3:]]))) == own
    assert foreign.shown(own.decode()) == own.decode()
    column = pa.chunked_array([[own.decode()]], pa.string())
    assert foreign.restored(column) is column
