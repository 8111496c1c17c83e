"""What became of one setting on the way into a table spec, for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Disposition(StrEnum):
    """What became of it."""

    CARRIED = "carried"
    CHANGED = "changed"
    DROPPED = "dropped"
    ADDED = "added"
    TO_DO = "to do"
    """It is left to who imports."""


@dataclass(frozen=True, slots=True)
class ImportNote:
    """One line; values that may be secrets are in none.

    :ivar key: of the setting, where it stood, or where it stands now if it is added.
    """

    fate: Disposition
    key: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.fate} {self.key}" + (f": {self.why}" if self.why else "")


def each_once(told: Sequence[ImportNote]) -> list[ImportNote]:
    """Without what is said to be carried and was changed, or has still to be."""
    changed = {line.key for line in told if line.fate in (Disposition.CHANGED, Disposition.TO_DO)}
    return [line for line in told if line.fate is not Disposition.CARRIED or line.key not in changed]
