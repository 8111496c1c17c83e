"""Lay out rows as an aligned table for a terminal, or one value a line where the columns do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size

from pinot_assets.printable import visible

GAP: Final = "  "
_NARROWEST: Final = 8
"""Cells to which a wide column may be cut before the rows are laid out one value a line."""


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One column.

    :ivar is_number: whether values are aligned to the right.
    """

    name: str
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """A table as lines.

    :ivar head: the line with the names of the columns; "" if each value has a line.
    :ivar lines: the other lines.
    :ivar is_cut: whether a value was cut.
    """

    head: str
    lines: tuple[str, ...]
    is_cut: bool


def layout(columns: Sequence[ResultColumn], rows: Sequence[Sequence[str]], width: int | None) -> Layout:
    """Return the rows as a table.

    :param rows: texts, as many in each row as there are columns.
    :param width: cells of the terminal; None cuts nothing.
    """
    names = [_one_line(column.name) for column in columns]
    cells = [[_one_line(value) for value in row] for row in rows]
    natural = [max(map(cell_len, column)) for column in zip(names, *cells, strict=True)]
    room = sum(natural) if width is None else width - len(GAP) * (len(columns) - 1)
    if (widths := _fitted(columns, natural, room)) is None:
        return _by_value(names, cells, width or 0)
    lines = [_line(columns, row, widths) for row in (names, *cells)]
    is_cut = any(cell_len(value) > size for row in cells for value, size in zip(row, widths, strict=True))
    return Layout(lines[0], tuple(lines[1:]), is_cut)


def _one_line(value: str) -> str:
    return visible(value).replace("\n", "\\n").replace("\t", "\\t")


def _fitted(columns: Sequence[ResultColumn], natural: Sequence[int], room: int) -> list[int] | None:
    """Return the widths of the columns; None if they do not fit. The widest texts are cut, and no number."""
    widths = [
        size if column.is_number else min(size, max(room, 0))
        for column, size in zip(columns, natural, strict=True)
    ]
    texts = [place for place, column in enumerate(columns) if not column.is_number]
    while sum(widths) > room:
        widest = max(texts, key=widths.__getitem__, default=None)
        if widest is None or widths[widest] <= _NARROWEST:
            return None
        widths[widest] -= 1
    return widths


def _line(columns: Sequence[ResultColumn], values: Sequence[str], widths: Sequence[int]) -> str:
    cells = (
        _cell(value, size, column.is_number)
        for column, value, size in zip(columns, values, widths, strict=True)
    )
    return GAP.join(cells).rstrip()


def _cell(value: str, size: int, is_number: bool) -> str:
    if cell_len(value) > size:
        return _cut(value, size)
    padding = " " * (size - cell_len(value))
    return padding + value if is_number else value + padding


def _cut(value: str, size: int) -> str:
    return set_cell_size(value, max(size - 1, 0)) + "…"


def _by_value(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Layout:
    label = min(max(map(cell_len, names)), max(width // 2, 1))
    room = max(width - label - 2 * len(GAP), 1)
    lines: list[str] = []
    is_cut = False
    for number, row in enumerate(rows, 1):
        lines.append(f"row {number}")
        for name, value in zip(names, row, strict=True):
            is_wide = cell_len(value) > room
            is_cut |= is_wide
            shown = _cut(value, room) if is_wide else value
            lines.append(f"{GAP}{_cell(name, label, False)}{GAP}{shown}".rstrip())
    return Layout("", tuple(lines), is_cut)
