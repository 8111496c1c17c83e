"""Text behind a closing quote of a CSV cell: `"x"y`.

Arrow makes `xy` of that, and something else of most texts whose quotes are escaped in a way that is not set.
Such a row is bad (commons-csv refuses it, too). A look at the quotes tells the blocks where none can be; only
where a quote neither opens a cell nor closes one nor is doubled, rows are walked through one by one.

A quote opens a cell at its first character alone, elsewhere it is a character like others. Blanks may follow
the quote that closes a cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.formats.content import BLOCK_BYTES

_LINE_ENDS: Final = (ord("\n"), ord("\r"))
_END: Final = rb"(?:\r\n|\n|\r)"


def cell_pattern(settings: CsvSettings, behind: bytes | None = None) -> bytes:
    """A cell as Arrow takes it.

    :param behind: what may follow a closing quote; None for whatever Arrow takes.
    """
    quote, delimiter = re.escape(settings.quote.encode()), re.escape(settings.delimiter.encode())
    plain, quoted = rb"[^%b\r\n]++" % delimiter, rb"[^%b]++|%b%b" % (quote, quote, quote)
    if settings.escape is not None:
        escape = re.escape(settings.escape.encode())
        plain = rb"[^%b\r\n%b]++|%b[\s\S]" % (delimiter, escape, escape)
        quoted = rb"[^%b%b]++|%b%b|%b[\s\S]" % (quote, escape, quote, quote, escape)
    if behind is None:
        return rb"(?:%b(?:%b)*+%b|(?!%b))(?:%b)*+" % (quote, quoted, quote, quote, plain)
    return rb"(?:%b(?:%b)*+%b%b|(?!%b)(?:%b)*+)" % (quote, quoted, quote, behind, quote, plain)


class Quotes:
    """The rows of one file, looked at before a parser has them.

    :param block_bytes: what the parser takes at a time; no row may be longer than two of that.
    """

    def __init__(self, settings: CsvSettings, block_bytes: int = BLOCK_BYTES) -> None:
        self._longest = 2 * block_bytes
        quote, delimiter, escape = settings.quote, settings.delimiter, settings.escape or ""
        self._quote, self._delimiter, self._escape = quote.encode(), delimiter.encode(), escape.encode()
        self._escaped = re.compile(re.escape(self._escape) + rb"[\s\S]") if escape else None
        blanks = "".join(blank for blank in " \t" if blank not in (quote, delimiter, escape)).encode()
        kinds = (cell_pattern(settings, rb"[%b]*+" % blanks), cell_pattern(settings))
        good, any_row = (rb"%b(?:%b%b)*+" % (cell, re.escape(self._delimiter), cell) for cell in kinds)
        self._good = re.compile(rb"(?:%b%b)*+" % (good, _END))
        self._row = re.compile(rb"(?:%b)(?=%b)" % (any_row, _END))

    def first_bad(self, rows: bytes) -> bytes | None:
        """The first row with text behind a closing quote, if there is one.

        :param rows: whole ones.
        """
        found: list[bytes] = []

        def note(row: bytes) -> bytes:
            found.append(row)
            return b""

        for _ in self.checked(iter([rows]), note):
            pass
        return found[0] if found else None

    def checked(self, blocks: Iterator[bytes], instead: Callable[[bytes], bytes]) -> Iterator[bytes]:
        """The same rows.

        :param blocks: of rows, from the start of one on.
        :param instead: gives what stands for a row that has text behind a closing quote.
        """
        rest = b""
        for block in blocks:
            data = rest + block if rest else block
            if len(rest) > self._longest:
                yield data  # which the parser refuses
                yield from blocks
                return
            end = self._regular_end(data)
            if end is None:
                done, end = self._walked(data, instead)
                yield from done
            elif end:
                yield data[:end]
            rest = data[end:]
        if rest:
            # What the last row lacks is its end; a quote that is left open is Arrow's to tell.
            done, end = self._walked(rest + b"\n", instead)
            last = b"".join(done) + rest[end:]
            yield last.removesuffix(b"\n") if end > len(rest) else last

    def _regular_end(self, data: bytes) -> int | None:
        """Where the last whole row ends, 0 if none does; None if a quote is not where it should be."""
        if self._escaped is not None and self._escape in data:
            data = self._escaped.sub(b"__", data)
        if self._quote not in data:
            return 1 + max(data.rfind(b"\n"), data.rfind(b"\r"))
        found = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(found == self._quote[0])
        opening, closing = places[0::2], places[1::2]
        opening, closing = opening[opening > 0], closing[closing < len(data) - 1]
        if not self._stands(found[opening - 1]) or not self._stands(found[closing + 1]):
            return None
        return _outer_end(data, found, places)

    def _stands(self, beside: npt.NDArray[np.uint8]) -> bool:
        """Whether there is an end of a cell, or the other half of a doubled quote, beside each quote."""
        return bool(np.isin(beside, (self._delimiter[0], self._quote[0], *_LINE_ENDS)).all())

    def _walked(self, data: bytes, instead: Callable[[bytes], bytes]) -> tuple[list[bytes], int]:
        """The whole rows at the start of some data, and where they end."""
        done: list[bytes] = []
        position = 0
        while True:
            good = self._good.match(data, position)
            assert good is not None  # it matches nothing, too
            if good.end() > position:
                done.append(data[position : good.end()])
            position = good.end()
            row = self._row.match(data, position) if position < len(data) else None
            if row is None:
                return done, position
            done.append(instead(row[0]))
            position = row.end()


def _outer_end(data: bytes, found: npt.NDArray[np.uint8], places: npt.NDArray[np.intp]) -> int:
    """Where the last line ends at which no cell is open.

    :param places: of quotes.
    """
    end = 1 + max(data.rfind(b"\n"), data.rfind(b"\r"))
    if np.searchsorted(places, end) % 2 == 0:
        return end
    ends = np.flatnonzero((found == _LINE_ENDS[0]) | (found == _LINE_ENDS[1])) + 1
    ends = ends[np.searchsorted(places, ends) % 2 == 0]
    return int(ends[-1]) if len(ends) else 0
