"""Comment lines of a CSV file, which Arrow does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pinot_assets.core.file_errors import Unreadable
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.formats.content import BLOCK_BYTES
from pinot_assets.ingest.formats.csv_quotes import cell_pattern

_LINE_END: Final = rb"(?:\n|\r\n|\r(?=[^\n]))"  # whether a last \r is all of it, the next block knows


def without_comments(blocks: Iterator[bytes], settings: CsvSettings) -> Iterator[bytes]:
    """The blocks without lines that start with `settings.comment`, but for those inside of a quoted cell.

    Rows end where Arrow ends them: a quote opens a cell at its start alone, elsewhere it is a character.

    :raises Unreadable: a row is longer than a block.
    """
    assert settings.comment is not None
    rows, comments = _patterns(settings)
    rest = b""
    for block in blocks:
        data = rest + block
        parts, position = [], 0
        while True:
            start = _end(comments, data, position)
            position = _end(rows, data, start)
            if position == start:
                break
            parts.append(data[start:position])
        rest = data[position:]
        if len(rest) > BLOCK_BYTES:
            raise Unreadable(f"a row is longer than {BLOCK_BYTES >> 20} MB", why="or a quote is never closed")
        if kept := b"".join(parts):
            yield kept
    if rest and not rest.startswith(settings.comment.encode()):
        yield rest


def _patterns(settings: CsvSettings) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Whole rows, and whole comments, as many as follow each other; both may be none."""
    assert settings.comment is not None
    comment, delimiter = (re.escape(text.encode()) for text in (settings.comment, settings.delimiter))
    cell = cell_pattern(settings)
    row = rb"(?!%b)%b(?:%b%b)*+%b" % (comment, cell, delimiter, cell, _LINE_END)
    return re.compile(rb"(?:%b)*+" % row), re.compile(rb"(?:%b[^\r\n]*+%b)*+" % (comment, _LINE_END))


def _end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    found = pattern.match(data, position)
    assert found is not None  # both patterns match nothing, too
    return found.end()
