"""Which tables a command works on. A table whose file is wrong keeps no other from its turn; it is named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from rich.markup import escape

from pinot_assets.cli.terminal import Terminal
from pinot_assets.settings.environment import tables_directory
from pinot_assets.table_spec import AnyTableSpec, LeftOut, RealtimeTableSpec, TableSpec, read_tables
from pinot_assets.table_spec.tables.specs import spec_error

Spec = TypeVar("Spec", bound=AnyTableSpec)


@dataclass(frozen=True, slots=True)
class Chosen(Generic[Spec]):
    """What a command that takes several tables works on.

    :ivar specs: the tables that can be used.
    :ivar left_out: those that were asked for and whose files are wrong.
    """

    specs: Sequence[Spec]
    left_out: Sequence[LeftOut] = ()

    def unless_empty(self) -> Chosen[Spec]:
        """The same.

        :raises SpecError: all files are wrong; lists every problem.
        """
        if self.left_out and not self.specs:
            raise spec_error([problem for one in self.left_out for problem in one.problems])
        return self


def one_table(name: str, directory: Path | None = None) -> TableSpec:
    """The OFFLINE table of that name. Other files that are wrong are named on standard error.

    :raises SpecError: there is no such table, or its file is wrong.
    """
    tables = read_tables(directory or tables_directory())
    (spec,) = tables.choose([name])
    warn_of(tables.left_out)
    return spec


def realtime_table(name: str, directory: Path) -> RealtimeTableSpec | None:
    """As `one_table`, of a REALTIME table by its raw name; None where no file is about it.

    :raises SpecError: its file is wrong.
    """
    tables = read_tables(directory)
    spec = tables.find_realtime(name)
    warn_of(tables.left_out)
    return spec


def offline_tables(names: Iterable[str], directory: Path | None = None) -> Chosen[TableSpec]:
    """The OFFLINE tables of these names; all of them where no name is given.

    :raises SpecError: there is no table of one of the names.
    """
    return Chosen(*read_tables(directory or tables_directory()).sort_out_offline(names))


def any_tables(names: Iterable[str], directory: Path | None = None) -> Chosen[AnyTableSpec]:
    """The tables of these names, of either type; all of them where no name is given.

    :raises SpecError: there is no table of one of the names.
    """
    return Chosen(*read_tables(directory or tables_directory()).sort_out(names))


def warn_of(left_out: Iterable[LeftOut]) -> None:
    """Name each on standard error, with its first problem."""
    err = Terminal(stderr=True, soft_wrap=True, highlight=False)
    for one in left_out:
        err.print(f"[yellow]warning[/]: left out: {escape(one.in_one_line)}")
