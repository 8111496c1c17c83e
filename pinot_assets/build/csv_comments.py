"""Comment lines of a CSV file, which Arrow does not know."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pinot_assets.build.content import BLOCK_BYTES
from pinot_assets.build.rejected import Unreadable


def without_comments(blocks: Iterator[bytes], marker: str, quote: str) -> Iterator[bytes]:
    """The blocks without lines that start with `marker`, but for those inside of a quoted cell.

    :raises Unreadable: a line is longer than a block.
    """
    rest, quotes = b"", 0
    for block in blocks:
        data = rest + block if rest else block
        end = data.rfind(b"\n") + 1
        if not end and len(data) > BLOCK_BYTES:
            raise Unreadable(f"a line is longer than {BLOCK_BYTES >> 20} MB")
        rest = data[end:]
        if end:
            lines = data[:end]
            kept = _kept(lines, marker.encode(), quote.encode(), quotes)
            quotes += kept.count(quote.encode())
            if kept:
                yield kept
    if rest and (kept := _kept(rest, marker.encode(), quote.encode(), quotes)):
        yield kept


def _kept(lines: bytes, marker: bytes, quote: bytes, quotes: int) -> bytes:
    """Whole lines without the comments among them.

    :param quotes: how many quotes stand before them; an odd number means that a cell is open.
    """
    if not lines.startswith(marker) and b"\n" + marker not in lines:
        return lines
    data = np.frombuffer(lines, np.uint8)
    starts = np.concatenate([[0], np.flatnonzero(data == ord("\n")) + 1])
    starts = starts[starts < len(data)]
    ends = np.append(starts[1:], len(data))
    parts, position, comments = [], 0, 0
    places = np.flatnonzero(data == ord(quote))
    for n in np.flatnonzero(data[starts] == ord(marker)):
        before = int(np.searchsorted(places, starts[n]))
        if (quotes + before - comments) % 2:
            continue  # inside of a cell
        comments += int(np.searchsorted(places, ends[n])) - before  # a comment's quotes open nothing
        parts.append(lines[position : starts[n]])
        position = int(ends[n])
    return b"".join([*parts, lines[position:]])
