"""The promised lists beside what the code has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

Surface = Mapping[str, Sequence[str]]
ADD = "PYTHONPATH=tests python -m surface"
NOTE = "docs/upgrading.md"
GONE = "What is gone"


def complaints(written: Surface, current: Surface) -> Iterator[str]:
    """One sentence for each name that is not in both: what a change does to the surface is in its diff."""
    for section in sorted({*written, *current}):
        before, now = set(written.get(section, ())), set(current.get(section, ()))
        yield from (
            f"new: {section}: {name}; write the list anew with {ADD}" for name in sorted(now - before)
        )
        yield from (
            f"gone: {section}: {name}; write the list anew with {ADD}" for name in sorted(before - now)
        )


def broken(released: Mapping[str, Surface], current: Surface, note: str) -> Iterator[str]:
    """One sentence for each name that a release had and that is gone without a word to those who use it.

    :param released: by release.
    :param note: text of docs/upgrading.md. Its sections on what is gone name it in backticks.
    """
    sections = re.findall(rf"^#+ {GONE}$(.*?)(?=^#|\Z)", note, re.MULTILINE | re.DOTALL)
    named = {name for section in sections for name in re.findall(r"`([^`]+)`", section)}
    for release, promised in released.items():
        for section, names in sorted(promised.items()):
            for name in sorted({*names} - {*current.get(section, ())} - named):
                yield f"{release} had {section}: {name}; it needs a line under {GONE} in {NOTE}"


def together(*surfaces: Surface) -> dict[str, list[str]]:
    """All names of all."""
    sections = sorted({section for surface in surfaces for section in surface})
    return {
        section: sorted({name for surface in surfaces for name in surface.get(section, ())})
        for section in sections
    }
