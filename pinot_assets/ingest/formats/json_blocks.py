"""Blocks of a JSON file cut between documents, and an array around all of them taken off."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

import numpy as np

from pinot_assets.core.file_errors import Unreadable

DOCUMENT_BYTES: Final = 64 << 20
"""A longer document is refused."""

_STEP: Final = np.zeros(256, dtype=np.int8)
_STEP[[ord("{"), ord("[")]] = 1
_STEP[[ord("}"), ord("]")]] = -1
_MARKS: Final = bytes(byte in b'{}[]"' for byte in range(256))
_COMMA, _QUOTE, _NEWLINE = b',"\n'
_BLANKS: Final = np.frombuffer(b" \t\r\n", np.uint8)


def document_blocks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The file, each block ending between two documents where a line break tells where that is.

    :param blocks: the file, not blank at its start.
    :raises Unreadable: an array around the documents is broken, or a document is too long.
    """
    first = next(blocks, None)
    if first is None:
        return
    start = first.lstrip()
    if start.startswith(b"["):
        yield from _of_array(chain([start[1:]], blocks))
    else:
        yield from _of_lines(chain([first], blocks))


def enough_for(rest: bytes) -> int:
    """How many bytes to have before it is worth while to parse what was no whole document once more.

    That starts from its first byte each time, so the text is to double: a long one is parsed a few times, not
    once for each block.

    :param rest: what there is of the document.
    :raises Unreadable: it is too long.
    """
    _check_length(rest)
    return min(2 * len(rest), DOCUMENT_BYTES + 1)


def _of_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        data = rest + block
        # No text value holds a line break, so this one stands between two documents, or between members.
        end = data.rfind(b"}\n{") + 2
        end = end if end > 1 else data.rfind(b"\n") + 1
        rest = data[end:]
        _check_length(rest)
        if end:
            yield data[:end]
    if rest:
        yield rest


def _of_array(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The elements of an array, its opening bracket taken off, with line breaks between them."""
    rest, closed, first = b"", False, True
    for block in blocks:
        if closed:
            _check_end(block)
            continue
        data = bytearray(rest + block)
        commas, end = _outer(data)
        np.frombuffer(data, np.uint8)[commas] = _NEWLINE
        if end is not None:
            closed = True
            _check_end(bytes(data[end + 1 :]))
            last = data[int(commas[-1]) + 1 if len(commas) else 0 : end]
            if not last.strip() and (len(commas) or not first):
                raise Unreadable(
                    "the array of rows ends with a comma", hint="the file may lack its last rows"
                )
            yield bytes(data[:end])
            continue
        cut = int(commas[-1]) + 1 if len(commas) else 0
        rest = bytes(data[cut:])
        _check_length(rest)
        if cut:
            first = False
            yield bytes(data[:cut])
    if not closed:
        raise Unreadable("the array of rows is never closed", hint="the file is cut short")


def _outer(text: bytearray) -> tuple[np.ndarray, int | None]:
    """Where commas stand behind the elements of an array, and the bracket that closes it.

    Elements are objects; what else may stand there is left to whoever parses it.

    :raises Unreadable: there is no comma between two of them.
    """
    plain = text
    if b"\\" in text:  # an escaped quote opens and closes nothing
        plain = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    data = np.frombuffer(plain, np.uint8)
    places = np.flatnonzero(np.frombuffer(plain.translate(_MARKS), np.bool_))
    marks = data[places]
    outside = np.cumsum(marks == _QUOTE, dtype=np.int32) & 1 == 0
    depth = np.cumsum(_STEP[marks] * outside, dtype=np.int32)
    closing = np.flatnonzero(depth < 0)
    upto = int(closing[0]) if len(closing) else len(marks)
    ends = (_STEP[marks[:upto]] < 0) & outside[:upto] & (depth[:upto] == 0)
    behind = places[:upto][ends] + 1
    behind = _not_blank(data, behind)
    is_comma = data[behind] == _COMMA
    for place in behind[~is_comma]:  # one at most: the bracket
        if not len(closing) or place != places[upto]:
            raise Unreadable(
                "the array of rows is broken", why=f"no comma stands before {_start(text, place)}"
            )
    return behind[is_comma], int(places[upto]) if len(closing) else None


def _not_blank(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    """For each place the first that is not blank, from there on; those are left out that have none."""
    places = places[places < len(data)]
    if not np.isin(data[places], _BLANKS).any():
        return places
    others = np.flatnonzero(~np.isin(data, _BLANKS))
    found = np.searchsorted(others, places)
    return others[found[found < len(others)]]


def _start(text: bytearray, place: int) -> str:
    return repr(bytes(text[place : place + 60]))


def _check_length(rest: bytes) -> None:
    if len(rest) > DOCUMENT_BYTES:
        raise Unreadable(
            f"a document is longer than {DOCUMENT_BYTES >> 20} MB",
            why=f"it starts with {rest[:60]!r}",
            hint="write one object per line",
        )


def _check_end(data: bytes) -> None:
    if data.strip():
        raise Unreadable("something follows the array of rows", why=f"it is {data.strip()[:60]!r}")
