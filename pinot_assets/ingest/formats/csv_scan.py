"""A look at the bytes of a CSV file for what Spark's reader would take in another way than it is meant.

It takes a quote that is never closed for a long cell, and a cell with text behind its closing quote for one
without quotes, which ends at the first delimiter in it. And it takes the first line end of the file, quoted
or not, for that of all lines: with another one a carriage return would stay in the last cell of each row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt

from pinot_assets.core.file_errors import Unreadable, shown
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.formats.csv_comments import without_comments
from pinot_assets.ingest.formats.csv_quotes import Quotes

_CR, _LF, _CRLF = b"\r", b"\n", b"\r\n"
_SHOWN: Final = {_CR: r"\r", _LF: r"\n", _CRLF: r"\r\n"}


def scan_csv(blocks: Iterable[bytes], settings: CsvSettings) -> None:
    """Look through a whole file.

    :param blocks: of its text.
    :raises Unreadable: a quote is left open, text stands behind one that closes a cell, or line ends differ.
    """
    scan = _Scan(settings)
    text = scan.noting_first(blocks)
    if settings.comment is not None:
        text = without_comments(text, settings)
    for block in Quotes(settings).checked(iter(text), _refuse):
        scan.take(block)
    scan.finish()


def _refuse(row: bytes) -> NoReturn:
    raise Unreadable(
        f"text stands behind a closing quote: {shown(row.decode(errors='replace'))}",
        why="Spark would take the cell for one without quotes",
        hint="quotes inside of a cell are doubled; or check quoteCharacter and escapeCharacter",
    )


class _Scan:
    """What was seen so far, block by block."""

    def __init__(self, settings: CsvSettings) -> None:
        self._quote = settings.quote.encode()
        escape = (settings.escape or "").encode()
        is_escaping = escape not in (b"", self._quote)
        self._escaped = re.compile(re.escape(escape) + rb".", re.DOTALL) if is_escaping else None
        self._pairs = (escape, _CR) if is_escaping else (_CR,)
        self._end = b""
        self._held = b""
        self._is_open = False

    def noting_first(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The same blocks, whose first line end counts for all."""
        held = b""
        for block in blocks:
            if not self._end:
                found = re.search(rb"\r\n|\n|\r(?=.)", held + block, re.DOTALL)
                self._end = found[0] if found is not None else b""
                held = _CR if block.endswith(_CR) else b""
            yield block
        self._end = self._end or held

    def take(self, block: bytes) -> None:
        """The next block.

        :raises Unreadable: it has line ends that differ.
        """
        block = self._held + block
        if self._escaped is not None:
            block = self._escaped.sub(b"  ", block)
        # What is cut in two by the end of the block is looked at with the next one.
        self._held = next((mark for mark in self._pairs if block.endswith(mark)), b"")
        self._look(block[: len(block) - len(self._held)])

    def finish(self) -> None:
        """The file ends.

        :raises Unreadable: a quote is left open.
        """
        self._look(self._held if self._held == _CR else b"")
        if self._is_open:
            raise Unreadable(
                "the number of quotes is odd: one is opened and never closed",
                hint="the file is cut short, or quoteCharacter and escapeCharacter are not what wrote it",
            )

    def _look(self, block: bytes) -> None:
        if _ends_of(block) not in (b"", self._end):
            self._compare(np.frombuffer(block, np.uint8))
        self._is_open ^= bool(block.count(self._quote) & 1)

    def _compare(self, data: npt.NDArray[np.uint8]) -> None:
        closed = (np.cumsum(data == ord(self._quote)) + self._is_open) % 2 == 0
        is_cr, is_lf = data == ord(_CR), data == ord(_LF)
        both = np.append(is_cr[:-1] & is_lf[1:], False)
        masks = {_CRLF: both, _CR: is_cr & ~both, _LF: is_lf & ~np.append(False, both[:-1])}
        for end, mask in masks.items():
            if end != self._end and np.any(mask & closed):
                raise Unreadable(
                    f"lines end in {_SHOWN[end]}, but the first one in {_SHOWN[self._end]}",
                    why="Spark takes the first line end of a file for that of all lines",
                    hint="write the file with one kind, or leave out transforms, filter and engine: spark",
                )


def _ends_of(block: bytes) -> bytes | None:
    """The one kind of line end in a block, nothing if there is none, None if there are several."""
    lf, cr = block.count(_LF), block.count(_CR)
    if not cr:
        return _LF if lf else b""
    if not lf:
        return _CR
    return _CRLF if lf == cr == block.count(_CRLF) else None
