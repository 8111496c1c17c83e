"""A table whose file is wrong, so that it is left out; the others go on without it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pinot_assets.errors import SpecError
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX, REALTIME_SUFFIX
from pinot_assets.table_spec.yaml.problem import Problem

EITHER: Final = frozenset((OFFLINE_SUFFIX, REALTIME_SUFFIX))
"""Kinds of a table whose file does not say which one it is."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One file that cannot be used.

    :ivar file: the YAML file.
    :ivar name: the raw name of its table: as the file says it, else the name of the file.
    :ivar kinds: what its table may be: `_OFFLINE` or `_REALTIME`; where the file does not say, those of the
        two that no good file of its table is.
    :ivar problems: what is wrong with it, at least one.
    """

    file: Path
    name: str
    kinds: frozenset[str]
    problems: tuple[Problem, ...]

    @property
    def error(self) -> SpecError:
        """All that is wrong with it."""
        return spec_error(self.problems)

    @property
    def in_one_line(self) -> str:
        """The file, its first problem, and how many more there are."""
        more = len(self.problems) - 1
        behind = f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""
        first = self.problems[0]
        where = "" if first.file == self.file else f"{self.file}: "
        return f"{where}{first}{behind}"

    def answers_to(self, name: str) -> bool:
        """Whether a command that is given this name means its table: a raw name, or one with its type."""
        return name == self.name or any(name == self.name + kind for kind in self.kinds)


def spec_error(problems: Sequence[Problem]) -> SpecError:
    """The error that lists these."""
    listed = "\n".join(f"  {problem}" for problem in problems)
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return SpecError(f"the table specs have {count}:\n{listed}")


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each once, by file and line."""
    # `key` alone would mix None and text in `fix`.
    return sorted(set(problems), key=lambda p: (p.file, p.line, p.key, p.reason))
