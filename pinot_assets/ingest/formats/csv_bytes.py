"""Bytes that are not UTF-8, on their way through Arrow's CSV parser.

The parser does not mind them, but it tells of a row with too many cells only what is UTF-8, and gives the
file up otherwise. So they go through it as characters of a private plane, one for each byte, and come out as
what they were; a file that uses those characters itself, beside bytes that are not UTF-8, loses rows to the
verdict "is not UTF-8", and no value.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_PRIVATE: Final = 0x10F700
_ESCAPED: Final = re.compile("[\udc80-\udcff]")  # what `surrogateescape` makes of a byte
_PRIVATE_TEXT: Final = re.compile(f"[{chr(_PRIVATE + 0x80)}-{chr(_PRIVATE + 0xFF)}]")
_PRIVATE_BYTES: Final = re.compile(rb"\xf4\x8f[\x9e\x9f][\x80-\xbf]")


class ForeignBytes:
    """Those of one file; the parser may be ahead of the rows that are looked at."""

    def __init__(self) -> None:
        self._found = False

    def hidden(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The same blocks, every byte of them UTF-8."""
        rest = b""
        for block in blocks:
            data = rest + block if rest else block
            end = len(data)
            if not data.isascii():
                try:
                    _, end = codecs.utf_8_decode(data, "strict", False)
                except UnicodeDecodeError:
                    text, end = codecs.utf_8_decode(data, "surrogateescape", False)
                    yield self._hidden(text)
                    rest = data[end:]
                    continue
            rest = data[end:]
            yield data[:end]
        if rest:
            yield self._hidden(rest.decode(errors="surrogateescape"))

    def shown(self, text: str) -> str:
        """A text of the parser, with the bytes as Python escapes them."""
        if not self._found:
            return text
        return _PRIVATE_TEXT.sub(lambda match: chr(ord(match[0]) - _PRIVATE + 0xDC00), text)

    def restored(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Texts of the parser with the bytes as they stand in the file."""
        if not self._found:
            return column
        mask = pc.fill_null(pc.match_substring_regex(column, _PRIVATE_TEXT.pattern), False)
        values = column.filter(mask).cast(pa.binary()).to_pylist()
        if not values:
            return column
        before = pa.array([_PRIVATE_BYTES.sub(_byte, value) for value in values], pa.binary())
        array = pc.replace_with_mask(column.cast(pa.binary()).combine_chunks(), mask.combine_chunks(), before)
        return pa.chunked_array([array.view(pa.string())])

    def _hidden(self, text: str) -> bytes:
        self._found = True
        return _ESCAPED.sub(lambda match: chr(ord(match[0]) - 0xDC00 + _PRIVATE), text).encode()


def _byte(match: re.Match[bytes]) -> bytes:
    return bytes([ord(match[0].decode()) - _PRIVATE])
