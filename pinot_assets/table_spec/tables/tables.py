"""The tables of one directory: those that can be used, and those that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pinot_assets.errors import SpecError
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX, REALTIME_SUFFIX, raw_table_name
from pinot_assets.table_spec.tables.spec import AnyTableSpec, RealtimeTableSpec, TableSpec
from pinot_assets.table_spec.yaml.document import Problem, did_you_mean

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


T = TypeVar("T")


class Tables(Mapping[str, TableSpec]):
    """The table specs of one directory by raw table name, in the order of their names.

    As a mapping it holds the OFFLINE tables, which files are pushed to.

    :ivar realtime: the REALTIME tables by raw name; a hybrid table's two halves have the same.
    :ivar left_out: tables whose files are wrong. To ask for one by its name raises what is wrong with it.
    """

    def __init__(self, specs: Iterable[AnyTableSpec], left_out: Iterable[LeftOut] = ()) -> None:
        ordered = sorted(specs, key=lambda spec: spec.name)
        self._offline = {spec.name: spec for spec in ordered if isinstance(spec, TableSpec)}
        self.realtime: Mapping[str, RealtimeTableSpec] = {
            spec.name: spec for spec in ordered if isinstance(spec, RealtimeTableSpec)
        }
        self.left_out: Sequence[LeftOut] = tuple(left_out)

    def __getitem__(self, name: str) -> TableSpec:
        return self._offline[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._offline)

    def __len__(self) -> int:
        return len(self._offline)

    def choose(self, names: Iterable[str]) -> list[TableSpec]:
        """The OFFLINE tables of these names in their order; where no name is given, all that can be used.

        :raises SpecError: there is no such table, or its file is wrong.
        """
        wanted = list(names) or list(self._offline)
        for name in wanted:
            self._refuse_left_out(name, OFFLINE_SUFFIX, self._offline)
            if name not in self._offline and name in self.realtime:
                raise SpecError(f"{name} is a REALTIME table", hint="see `pinot-assets realtime --help`")
            if name not in self._offline:
                raise self._absent(name, self._offline)
        return [self._offline[name] for name in wanted]

    def find_realtime(self, name: str) -> RealtimeTableSpec | None:
        """The REALTIME table of that raw name, None where no file is about it.

        :raises SpecError: its file is wrong.
        """
        self._refuse_left_out(name, REALTIME_SUFFIX, self.realtime)
        return self.realtime.get(name)

    def sort_out(self, names: Iterable[str]) -> tuple[list[AnyTableSpec], list[LeftOut]]:
        """The tables of these names, of either type, that can be used, and those that are left out; each
        once, however often and by whichever of its names it is named. A hybrid's name stands for both halves,
        unless it ends in `_OFFLINE` or `_REALTIME`. Where no name is given, all of them.

        :raises SpecError: there is no such table.
        """
        known = dict.fromkeys([*self._offline, *self.realtime])
        wanted = list(names)
        if not wanted:
            return [spec for name in sorted(known) for spec in self._halves(name)], [*self.left_out]
        chosen: list[AnyTableSpec] = []
        missing: list[LeftOut] = []
        for name in wanted:
            halves, wrong = self._halves(name), [one for one in self.left_out if one.answers_to(name)]
            if not halves and not wrong:
                raise self._absent(name, known)
            chosen += halves
            missing += wrong
        return _once(chosen), _once(missing)

    def sort_out_offline(self, names: Iterable[str]) -> tuple[list[TableSpec], list[LeftOut]]:
        """As `choose`: the tables that can be used, and those of the names that are left out; each once.

        :raises SpecError: there is no such table.
        """
        wrong = [one for one in self.left_out if OFFLINE_SUFFIX in one.kinds]
        wanted = list(names)
        if not wanted:
            return self.choose([]), wrong
        absent = [name for name in wanted if name not in self._offline]
        missing = {name: one for name in absent for one in wrong if one.answers_to(name)}
        good = [name for name in wanted if name not in missing]
        return _once(self.choose(good)) if good else [], _once(missing.values())

    def _halves(self, name: str) -> list[AnyTableSpec]:
        raw = raw_table_name(name)
        halves = (self._offline.get(raw), self.realtime.get(raw))
        return [spec for spec in halves if spec is not None and name in (spec.name, spec.name_with_type)]

    def _refuse_left_out(self, name: str, kind: str, good: Iterable[str]) -> None:
        for one in self.left_out:
            if one.answers_to(name) and kind in one.kinds and name not in good:
                raise one.error

    def _absent(self, name: str, known: Iterable[str]) -> SpecError:
        names = sorted({*known, *(one.name for one in self.left_out)})
        hint = did_you_mean(name, names) or f"there are: {', '.join(names) or 'none'}"
        return SpecError(f"there is no table spec for {name}", hint=hint)


def _once(found: Iterable[T]) -> list[T]:
    """Each of these in its first place; specs hold JSON and cannot be hashed."""
    return [*{id(one): one for one in found}.values()]
