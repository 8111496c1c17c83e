"""Lines of JSON with something behind their first value, which Spark's reader leaves out without a word.

A look at the bytes finds the lines that may be such; Python's parser says which ones are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from pinot_assets.core.file_errors import Unreadable, shown
from pinot_assets.ingest.formats.json_documents import BLANKS
from pinot_assets.ingest.formats.json_values import parsed

_STEP: Final = np.zeros(256, dtype=np.int8)
_STEP[[ord("{"), ord("[")]] = 1
_STEP[[ord("}"), ord("]")]] = -1
_MARKS: Final = bytes(byte in b'{}[]"\r\n' for byte in range(256))
_QUOTE: Final = ord('"')
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
        behind = _behind(line)
        if behind:
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
    plain = lines
    if b"\\" in lines:  # an escaped quote opens and closes nothing
        plain = lines.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    places = np.flatnonzero(np.frombuffer(plain.translate(_MARKS), np.bool_))
    marks = np.frombuffer(plain, np.uint8)[places]
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
    for n in closing[_goes_on(plain, places[closing] + 1)].tolist():
        if line[n] != last and _REST.match(plain, int(places[n]) + 1):
            last = line[n]
            yield int(starts[last])


def _goes_on(plain: bytes, behind: np.ndarray) -> np.ndarray:
    data = np.frombuffer(plain, np.uint8)
    found: np.ndarray = np.zeros(len(behind), dtype=bool)
    inner = behind < len(data)
    found[inner] = ~np.isin(data[behind[inner]], (ord("\n"), ord("\r")))
    return found


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
