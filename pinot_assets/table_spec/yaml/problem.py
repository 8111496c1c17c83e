"""What can be wrong or worth knowing about a table spec, as values: all of them are shown at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

KeyPath = tuple[str | int, ...]
"""Where a value stands in its file: mapping keys and list positions, outermost first."""


def show_path(path: KeyPath) -> str:
    """`("table", "tableIndexConfig", "sortedColumn", 0)` → `table.tableIndexConfig.sortedColumn[0]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One reason why a table spec cannot be used.

    :ivar file: the file to open.
    :ivar line: the line to go to, counted from 1.
    :ivar key: dotted path of the key, empty for the file as a whole.
    :ivar reason: what is wrong, without a final full stop; never shows a refused secret.
    :ivar fix: what to write instead.
    """

    file: Path
    line: int
    key: str
    reason: str
    fix: str | None = None

    def __str__(self) -> str:
        return _sentence(self.file, self.line, self.key, self.reason, self.fix)


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """Something accepted that the author should know about; fields as in `Problem`."""

    file: Path
    line: int
    key: str
    text: str

    def __str__(self) -> str:
        return _sentence(self.file, self.line, self.key, self.text, None)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was most likely meant to be, upper and lower case apart."""
    by_lower = {k.lower(): k for k in known}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A fix to show: the nearest known word, None if nothing is near."""
    near = nearest(word, known)
    return None if near is None else f"did you mean {near}?"


def _sentence(file: Path, line: int, key: str, text: str, fix: str | None) -> str:
    where = f"{file}:{line}: {key}: " if key else f"{file}:{line}: "
    return f"{where}{text}." + (f" → {fix}" if fix else "")
