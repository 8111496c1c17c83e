"""Change or check the text of a CSV file before a parser reads it.

Arrow does not know comments (`without_comment_lines`). From a cell with text after its closing quote, `"x"y`,
Arrow makes `xy`; if quotes are escaped in a way that is not set, it misreads most texts. Such a row is bad
(commons-csv refuses it, too): see `Quotes`. A quote opens a cell only as its first character; elsewhere it
is an ordinary character. Blanks may follow the quote that closes a cell.

Arrow accepts bytes that are not UTF-8. But when it reports a row with too many cells, that row has to be
UTF-8, or Arrow fails on the file: see `ForeignBytes`. Spark's reader silently reads some files differently
from what their writer meant: see `scan_csv`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.core.file_errors import Unreadable, shown
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.formats.content import BLOCK_BYTES

_LINE_ENDS: Final = (ord("\n"), ord("\r"))
_ROW_END: Final = rb"(?:\r\n|\n|\r)"


def cell_pattern(settings: CsvSettings, behind: bytes | None = None) -> bytes:
    """Return a pattern for a cell as Arrow reads it.

    :param behind: pattern of what may follow a closing quote; None: whatever Arrow accepts.
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
    """Checks the rows of one file before a parser reads them.

    :param block_bytes: the parser's block size; no row may be longer than two blocks.
    """

    def __init__(self, settings: CsvSettings, block_bytes: int = BLOCK_BYTES) -> None:
        self._longest = 2 * block_bytes
        quote, delimiter, escape = settings.quote, settings.delimiter, settings.escape or ""
        self._quote, self._delimiter, self._escape = quote.encode(), delimiter.encode(), escape.encode()
        self._escaped = re.compile(re.escape(self._escape) + rb"[\s\S]") if escape else None
        blanks = "".join(blank for blank in " \t" if blank not in (quote, delimiter, escape)).encode()
        kinds = (cell_pattern(settings, rb"[%b]*+" % blanks), cell_pattern(settings))
        good, any_row = (rb"%b(?:%b%b)*+" % (cell, re.escape(self._delimiter), cell) for cell in kinds)
        self._good = re.compile(rb"(?:%b%b)*+" % (good, _ROW_END))
        self._row = re.compile(rb"(?:%b)(?=%b)" % (any_row, _ROW_END))

    def first_bad(self, rows: bytes) -> bytes | None:
        """Return the first row with text after a closing quote, None if there is none.

        :param rows: whole rows.
        """
        data = rows + b"\n"  # the last row may lack its end
        match = self._row.match(data, _end(self._good, data, 0))
        return None if match is None else match[0]

    def checked(self, blocks: Iterator[bytes], instead: Callable[[bytes], bytes]) -> Iterator[bytes]:
        """Yield the same rows, with the bad ones replaced.

        :param blocks: the file's bytes, from the start of a row.
        :param instead: returns the replacement of a row that has text after a closing quote.
        """
        rest = b""
        for block in blocks:
            data = rest + block if rest else block
            if len(rest) > self._longest:
                yield data  # too long; the parser refuses it
                yield from blocks
                return
            if (end := self._regular_end(data)) is None:
                done, end = self._walked(data, instead)
                yield from done
            elif end:
                yield data[:end]
            rest = data[end:]
        if rest:
            # The last row may lack only its line end. If it lacks a closing quote, Arrow reports that.
            done, end = self._walked(rest + b"\n", instead)
            last = b"".join(done) + rest[end:]
            yield last.removesuffix(b"\n") if end > len(rest) else last

    def _regular_end(self, data: bytes) -> int | None:
        """Return where the last whole row ends, 0 if none does; None if a quote is in a wrong place."""
        if self._escaped is not None and self._escape in data:
            data = self._escaped.sub(b"__", data)
        if self._quote not in data:
            return 1 + max(data.rfind(b"\n"), data.rfind(b"\r"))
        codes = np.frombuffer(data, np.uint8)
        places = np.flatnonzero(codes == self._quote[0])
        opening, closing = places[0::2], places[1::2]
        opening, closing = opening[opening > 0], closing[closing < len(data) - 1]
        if not self._stands(codes[opening - 1]) or not self._stands(codes[closing + 1]):
            return None
        return _outer_end(data, codes, places)

    def _stands(self, beside: npt.NDArray[np.uint8]) -> bool:
        """Whether each quote is beside a cell's end, or beside the other half of a doubled quote."""
        return bool(np.isin(beside, (self._delimiter[0], self._quote[0], *_LINE_ENDS)).all())

    def _walked(self, data: bytes, instead: Callable[[bytes], bytes]) -> tuple[list[bytes], int]:
        """Return the whole rows at the start of the data, bad ones replaced, and where they end."""
        done: list[bytes] = []
        position = 0
        while True:
            end = _end(self._good, data, position)
            if end > position:
                done.append(data[position:end])
            position = end
            row = self._row.match(data, position) if position < len(data) else None
            if row is None:
                return done, position
            done.append(instead(row[0]))
            position = row.end()


def _outer_end(data: bytes, codes: npt.NDArray[np.uint8], places: npt.NDArray[np.intp]) -> int:
    """Return where the last line ends that leaves no cell open; 0 if there is none.

    :param places: positions of the quotes.
    """
    end = 1 + max(data.rfind(b"\n"), data.rfind(b"\r"))
    if np.searchsorted(places, end) % 2 == 0:
        return end
    ends = np.flatnonzero((codes == _LINE_ENDS[0]) | (codes == _LINE_ENDS[1])) + 1
    ends = ends[np.searchsorted(places, ends) % 2 == 0]
    return int(ends[-1]) if len(ends) else 0


_COMMENT_END: Final = rb"(?:\n|\r\n|\r(?=[^\n]))"  # a \r at the end of a block needs the next block


def without_comment_lines(blocks: Iterator[bytes], settings: CsvSettings) -> Iterator[bytes]:
    """Yield the blocks without lines that start with `settings.comment`, except inside a quoted cell.

    Rows end where Arrow ends them: a quote opens a cell only at its start, elsewhere it is a character.

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
    """Return two patterns: as many whole rows, or whole comments, as follow each other; maybe none."""
    assert settings.comment is not None
    comment, delimiter = (re.escape(text.encode()) for text in (settings.comment, settings.delimiter))
    cell = cell_pattern(settings)
    row = rb"(?!%b)%b(?:%b%b)*+%b" % (comment, cell, delimiter, cell, _COMMENT_END)
    return re.compile(rb"(?:%b)*+" % row), re.compile(rb"(?:%b[^\r\n]*+%b)*+" % (comment, _COMMENT_END))


def _end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    match = pattern.match(data, position)
    assert match is not None  # the patterns also match an empty text
    return match.end()


_PRIVATE: Final = 0x10F700
_ESCAPED: Final = re.compile("[\udc80-\udcff]")  # the characters that `surrogateescape` decodes a byte to
_PRIVATE_TEXT: Final = re.compile(f"[{chr(_PRIVATE + 0x80)}-{chr(_PRIVATE + 0xFF)}]")
_PRIVATE_BYTES: Final = re.compile(rb"\xf4\x8f[\x9e\x9f][\x80-\xbf]")


class ForeignBytes:
    """Carries one file's bytes that are not UTF-8 through the parser, which may be ahead of the rows read.

    Each such byte passes the parser as a character of a private plane, and is restored after it. If a file
    also uses those characters itself, its rows may be refused as "is not UTF-8"; no value is changed
    silently.
    """

    def __init__(self) -> None:
        self._has_any = False

    def hidden(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the same blocks, with all bytes made UTF-8."""
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
        """Return a text of the parser, with the bytes as Python escapes them (`surrogateescape`)."""
        if not self._has_any:
            return text
        return _PRIVATE_TEXT.sub(lambda match: chr(ord(match[0]) - _PRIVATE + 0xDC00), text)

    def restored(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return texts of the parser with the bytes of the file in them."""
        if not self._has_any:
            return column
        mask = pc.fill_null(pc.match_substring_regex(column, _PRIVATE_TEXT.pattern), False)
        values = column.filter(mask).cast(pa.binary()).to_pylist()
        if not values:
            return column
        before = pa.array([_PRIVATE_BYTES.sub(_byte, value) for value in values], pa.binary())
        array = pc.replace_with_mask(column.cast(pa.binary()).combine_chunks(), mask.combine_chunks(), before)
        return pa.chunked_array([array.view(pa.string())])

    def _hidden(self, text: str) -> bytes:
        self._has_any = True
        return _ESCAPED.sub(lambda match: chr(ord(match[0]) - 0xDC00 + _PRIVATE), text).encode()


def _byte(match: re.Match[bytes]) -> bytes:
    return bytes([ord(match[0].decode()) - _PRIVATE])


_CR, _LF, _CRLF = b"\r", b"\n", b"\r\n"
_SHOWN: Final = {_CR: r"\r", _LF: r"\n", _CRLF: r"\r\n"}


def scan_csv(blocks: Iterable[bytes], settings: CsvSettings) -> None:
    """Refuse a file that Spark's reader would read differently from what its writer meant.

    Spark takes a quote that is never closed for a long cell. It takes a cell with text after its closing
    quote for one without quotes, which ends at the first delimiter in it. And it takes the first line end of
    the file, quoted or not, for that of all lines: if others differ, a carriage return would stay in the last
    cell of each row.

    :param blocks: blocks of the file's text.
    :raises Unreadable: a quote is left open, text follows a closing quote, or line ends differ.
    """
    scan = _Scan(settings)
    text = scan.noting_first(blocks)
    if settings.comment is not None:
        text = without_comment_lines(text, settings)
    for block in Quotes(settings).checked(iter(text), _refuse):
        scan.take(block)
    scan.finish()


def _refuse(row: bytes) -> NoReturn:
    raise Unreadable(
        f"text follows a closing quote: {shown(row.decode(errors='replace'))}",
        why="Spark would read the cell as one without quotes",
        hint="double the quotes inside a cell; or check quoteCharacter and escapeCharacter",
    )


class _Scan:
    """Counts quotes and compares line ends, block by block."""

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
        """Yield the same blocks; remember the first line end, with which all others are compared."""
        held = b""
        for block in blocks:
            if not self._end:
                match = re.search(rb"\r\n|\n|\r(?=.)", held + block, re.DOTALL)
                self._end = match[0] if match is not None else b""
                held = _CR if block.endswith(_CR) else b""
            yield block
        self._end = self._end or held

    def take(self, block: bytes) -> None:
        """Check the next block.

        :raises Unreadable: its line ends differ from the first one.
        """
        block = self._held + block
        if self._escaped is not None:
            block = self._escaped.sub(b"  ", block)
        # A pair that the end of the block cuts in two is checked with the next block.
        self._held = next((mark for mark in self._pairs if block.endswith(mark)), b"")
        self._look(block[: len(block) - len(self._held)])

    def finish(self) -> None:
        """Check the end of the file.

        :raises Unreadable: a quote is left open.
        """
        self._look(self._held if self._held == _CR else b"")
        if self._is_open:
            raise Unreadable(
                "the number of quotes is odd: one is opened and never closed",
                hint="the file is incomplete, or it was written with another quoteCharacter or "
                "escapeCharacter",
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
                    why="Spark uses the first line end of a file for all lines",
                    hint="write the file with one kind of line end, or remove transforms, filter and "
                    "engine: spark",
                )


def _ends_of(block: bytes) -> bytes | None:
    """Return the one kind of line end in a block, b"" if it has none, None if it has several kinds."""
    lf, cr = block.count(_LF), block.count(_CR)
    if not cr:
        return _LF if lf else b""
    if not lf:
        return _CR
    return _CRLF if lf == cr == block.count(_CRLF) else None
