"""The promised list beside what the code has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

Surface = Mapping[str, Sequence[str]]
ADD = "PYTHONPATH=tests python -m surface"
NOTE = "docs/upgrading.md"


def complaints(promised: Surface, found: Surface, note: str) -> Iterator[str]:
    """One sentence for each name that is new, or gone without a word to those who use it.

    :param note: text of docs/upgrading.md. It names what has gone in backticks.
    """
    named = set(re.findall(r"`([^`]+)`", note))
    for section in sorted({*promised, *found}):
        before, now = set(promised.get(section, ())), set(found.get(section, ()))
        yield from (f"new: {section}: {name}; add it with {ADD}" for name in sorted(now - before))
        gone = before - now - named
        yield from (f"removed: {section}: {name}; it needs a line in {NOTE}" for name in sorted(gone))


def together(promised: Surface, found: Surface) -> dict[str, list[str]]:
    """All names of both."""
    sections = sorted({*promised, *found})
    return {name: sorted({*promised.get(name, ()), *found.get(name, ())}) for name in sections}
