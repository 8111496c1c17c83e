"""Find the documents of a JSON file: in its bytes before a parser reads them, and with Python's parser.

`document_blocks` cuts blocks between documents and removes an array around all of them. `check_lines` finds
lines that continue after their first value, which Spark's reader drops silently. It first finds suspicious
lines in the bytes; Python's parser then decides.
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
from pinot_assets.ingest.formats.json_values import parse_json

DOCUMENT_BYTES: Final = 64 << 20
"""The most bytes of a document; a longer one is refused."""

_STEP: Final = np.zeros(256, dtype=np.int8)
_STEP[[ord("{"), ord("[")]] = 1
_STEP[[ord("}"), ord("]")]] = -1
_MARKS: Final = bytes(byte in b'{}[]"' for byte in range(256))
_COMMA, _QUOTE, _NEWLINE = b',"\n'
_BLANKS: Final = np.frombuffer(b" \t\r\n", np.uint8)


def document_blocks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the file in blocks that end between two documents, where a line break shows the place.

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
    """Return how many bytes to collect before an incomplete document is parsed again.

    Each parse starts at the document's first byte, so the text has to double: then a long document is parsed
    a few times, and not once per block.

    :param rest: the part of the document that is there.
    :raises Unreadable: the document is too long.
    """
    _check_length(rest)
    return min(2 * len(rest), DOCUMENT_BYTES + 1)


def _of_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        data = rest + block
        # A JSON text holds no line break, so this one is between two documents, or between members.
        end = data.rfind(b"}\n{") + 2
        end = end if end > 1 else data.rfind(b"\n") + 1
        rest = data[end:]
        _check_length(rest)
        if end:
            yield data[:end]
    if rest:
        yield rest


def _of_array(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield an array's elements, with line breaks between them; its opening bracket is already removed."""
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
    raise Unreadable("the array of rows is never closed", hint="the file is incomplete")


def _outer(text: bytearray) -> tuple[np.ndarray, int | None]:
    """Return the positions of the commas after the array's elements, and of the bracket that closes it.

    Elements are objects; the parser checks whether there is anything else.

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
    for place in behind[~is_comma]:  # only the closing bracket may remain
        if not len(closing) or place != places[upto]:
            raise Unreadable(
                "the array of rows is broken",
                why=f"no comma is before {bytes(text[place : place + 60])!r}",
            )
    return behind[is_comma], int(places[upto]) if len(closing) else None


def _marked(text: bytes | bytearray, marks: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return a text without its escapes, and the positions of the bytes to which `marks` gives a 1."""
    plain = text
    if b"\\" in text:  # an escaped quote opens and closes nothing
        plain = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    return np.frombuffer(plain, np.uint8), np.flatnonzero(np.frombuffer(plain.translate(marks), np.bool_))


def _not_blank(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return for each position the first non-blank one from there on; drop positions that have none."""
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
    """Yield the documents of a text, up to the first thing that is no document."""
    position = 0
    while (position := BLANKS.match(text, position).end()) < len(text):  # type: ignore[union-attr]
        try:
            value, position = parse_json(text, position)
        except (ValueError, RecursionError):
            return
        if not isinstance(value, dict):
            return
        yield value


def is_document(line: bytes) -> bool:
    """Whether a file's first line is a whole document, or is broken rather than unfinished."""
    try:
        value, _ = parse_json(line.decode(errors="surrogateescape").strip(), 0)
    except (ValueError, RecursionError):
        return not line.rstrip().endswith((b"{", b"[", b","))
    return isinstance(value, dict)


def key_pattern(name: str) -> re.Pattern[bytes]:
    """Return a pattern for a member's name, or what looks like it, with and without JSON escapes."""
    texts = {json.dumps(name), json.dumps(name, ensure_ascii=False)}
    return re.compile("|".join(re.escape(text) for text in sorted(texts)).encode())


_LINE_MARKS: Final = bytes(byte in b'{}[]"\r\n' for byte in range(256))
_END: Final = re.compile(rb"[\r\n]")
_REST: Final = re.compile(rb"[ \t]*+(?=[^ \t\r\n])")  # matches where a line has more text
_SPARKS_OWN: Final = re.compile(
    r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[+-]?\bINF\b|\+Infinity\b""", re.DOTALL
)
"""Quoted texts that Spark accepts, and number names that Spark knows and JSON does not."""


def check_lines(lines: bytes, first: int) -> int:
    """Check that no line has more than one value.

    :param lines: whole lines; only the last line of a file may lack its end.
    :param first: number of the first line, for errors.
    :returns: how many line ends there are.
    :raises Unreadable: a line has more than one value, or text after its value.
    """
    for start in _suspects(lines):
        end = _END.search(lines, start)
        line = lines[start : end.start() if end else len(lines)].decode()
        if behind := _behind(line):
            raise Unreadable(
                f"line {first + _ends(lines[:start])}: {shown(behind)} follows the value of the line",
                why="Spark reads the first value of a line and leaves out the rest without an error",
                hint="write one object a line, or remove transforms, filter and engine: spark",
            )
    return _ends(lines)


def _ends(lines: bytes) -> int:
    return lines.count(b"\n") + lines.count(b"\r") - lines.count(b"\r\n")


def _suspects(lines: bytes) -> Iterator[int]:
    """Yield the start of each line that has text after a bracket which closes all that the line opened.

    Each line is checked on its own: an odd number of quotes in one must not invert the next one.
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
    """Return the text after the first value of a line; "" if Spark itself will find the line broken."""
    for text in (line, _SPARKS_OWN.sub('""', line)):
        start = BLANKS.match(text)
        assert start is not None  # the pattern also matches an empty text
        try:
            _, stop = parse_json(text, start.end())
        except (ValueError, RecursionError):
            continue
        return text[stop:].strip()
    return ""
