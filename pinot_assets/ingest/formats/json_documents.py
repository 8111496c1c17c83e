"""The documents of a JSON file, as bytes before a parser has them and as Python's parser finds them.

Blocks are cut between documents, and an array around all of them is taken off (`document_blocks`). What
follows the first value of a line, which Spark's reader leaves out without a word, is found by a look at the
bytes (`check_lines`); Python's parser says which of the lines that look like it are such.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

import numpy as np

from pinot_assets.core.file_errors import Unreadable, shown
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.formats.json_values import parsed

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
    if (first := next(blocks, None)) is None:
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
    rest, first = b"", True
    for block in blocks:
        data = bytearray(rest + block)
        commas, end = _outer(data)
        np.frombuffer(data, np.uint8)[commas] = _NEWLINE
        cut = int(commas[-1]) + 1 if len(commas) else 0
        if end is not None:
            _check_end(bytes(data[end + 1 :]))
            if not data[cut:end].strip() and (cut or not first):
                raise Unreadable(
                    "the array of rows ends with a comma", hint="the file may lack its last rows"
                )
            yield bytes(data[:end])
            for block_behind in blocks:
                _check_end(block_behind)
            return
        rest = bytes(data[cut:])
        _check_length(rest)
        if cut:
            first = False
            yield bytes(data[:cut])
    raise Unreadable("the array of rows is never closed", hint="the file is cut short")


def _outer(text: bytearray) -> tuple[np.ndarray, int | None]:
    """Where commas stand behind the elements of an array, and the bracket that closes it.

    Elements are objects; what else may stand there is left to whoever parses it.

    :raises Unreadable: there is no comma between two of them.
    """
    data, places = _marked(text, _MARKS)
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
                "the array of rows is broken",
                why=f"no comma stands before {bytes(text[place : place + 60])!r}",
            )
    return behind[is_comma], int(places[upto]) if len(closing) else None


def _marked(text: bytes | bytearray, marks: bytes) -> tuple[np.ndarray, np.ndarray]:
    """A text without its escapes, and the places in it of bytes to which `marks` gives a 1."""
    plain = text
    if b"\\" in text:  # an escaped quote opens and closes nothing
        plain = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    return np.frombuffer(plain, np.uint8), np.flatnonzero(np.frombuffer(plain.translate(marks), np.bool_))


def _not_blank(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    """For each place the first that is not blank, from there on; those are left out that have none."""
    places = places[places < len(data)]
    if not np.isin(data[places], _BLANKS).any():
        return places
    others = np.flatnonzero(~np.isin(data, _BLANKS))
    indices = np.searchsorted(others, places)
    return others[indices[indices < len(others)]]


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


BLANKS: Final = re.compile(r"[ \t\r\n]*")


def members_of(text: str) -> Iterator[JsonObject]:
    """The documents of a text up to the first that is none."""
    position = 0
    while (position := BLANKS.match(text, position).end()) < len(text):  # type: ignore[union-attr]
        try:
            value, position = parsed(text, position)
        except (ValueError, RecursionError):
            return
        if not isinstance(value, dict):
            return
        yield value


def is_document(line: bytes) -> bool:
    """Whether a file's first line is a whole document, or broken rather than unfinished."""
    try:
        value, _ = parsed(line.decode(errors="surrogateescape").strip(), 0)
    except (ValueError, RecursionError):
        return not line.rstrip().endswith((b"{", b"[", b","))
    return isinstance(value, dict)


def key_pattern(name: str) -> re.Pattern[bytes]:
    """Finds a member's name, or what looks like it, as people write it: with and without escapes."""
    texts = {json.dumps(name), json.dumps(name, ensure_ascii=False)}
    return re.compile("|".join(re.escape(text) for text in sorted(texts)).encode())


_LINE_MARKS: Final = bytes(byte in b'{}[]"\r\n' for byte in range(256))
_END: Final = re.compile(rb"[\r\n]")
_REST: Final = re.compile(rb"[ \t]*+(?=[^ \t\r\n])")  # found where a line goes on
_SPARKS_OWN: Final = re.compile(
    r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[+-]?\bINF\b|\+Infinity\b""", re.DOTALL
)
"""Texts as Spark takes them, and numbers that it knows and JSON does not."""


def check_lines(lines: bytes, first: int) -> int:
    """Whether no line has more than one value.

    :param lines: whole ones, but for the last of a file.
    :param first: what people call the first of them.
    :returns: how many they are, but for the last if nothing ends it.
    :raises Unreadable: one has more, or something behind its value that is none.
    """
    for start in _suspects(lines):
        end = _END.search(lines, start)
        line = lines[start : end.start() if end else len(lines)].decode()
        if behind := _behind(line):
            raise Unreadable(
                f"line {first + _ends(lines[:start])}: {shown(behind)} follows the value of the line",
                why="Spark reads the first value of a line and leaves out the rest without a word",
                hint="write one object a line, or leave out transforms, filter and engine: spark",
            )
    return _ends(lines)


def _ends(lines: bytes) -> int:
    return lines.count(b"\n") + lines.count(b"\r") - lines.count(b"\r\n")


def _suspects(lines: bytes) -> Iterator[int]:
    """Where lines start that go on behind a bracket which closes all that the line has opened.

    A line is judged by itself: one with an odd number of quotes must not turn the next one inside out.
    """
    data, places = _marked(lines, _LINE_MARKS)
    marks = data[places]
    is_end = (marks == ord("\n")) | (marks == ord("\r"))
    ends = np.flatnonzero(is_end)
    line = np.cumsum(is_end) - is_end  # of which line each mark is
    quotes = np.cumsum(marks == _QUOTE, dtype=np.int32)
    outside = (quotes - np.append(0, quotes[ends])[line].astype(np.int32)) & 1 == 0
    steps = _STEP[marks] * outside
    depth = np.cumsum(steps, dtype=np.int32)
    closing = np.flatnonzero((steps < 0) & (depth <= np.append(0, depth[ends])[line]))
    starts = np.append(0, places[ends] + 1)
    last = -1
    for n in closing[_goes_on(data, places[closing] + 1)].tolist():
        if line[n] != last and _REST.match(lines, int(places[n]) + 1):
            last = line[n]
            yield int(starts[last])


def _goes_on(data: np.ndarray, behind: np.ndarray) -> np.ndarray:
    goes_on: np.ndarray = np.zeros(len(behind), dtype=bool)
    inner = behind < len(data)
    goes_on[inner] = ~np.isin(data[behind[inner]], (ord("\n"), ord("\r")))
    return goes_on


def _behind(line: str) -> str:
    """What follows the first value of a line; nothing if Spark will find the line broken itself."""
    for text in (line, _SPARKS_OWN.sub('""', line)):
        start = BLANKS.match(text)
        assert start is not None  # it matches nothing, too
        try:
            _, stop = parsed(text, start.end())
        except (ValueError, RecursionError):
            continue
        return text[stop:].strip()
    return ""
