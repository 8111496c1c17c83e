"""What commands have in common: which tables they work on, how the shell completes them, and plain JSON.

A table whose file is wrong keeps no other from its turn; it is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeVar

import typer
from rich.markup import escape

from pinot_assets.cli.terminal import new_console
from pinot_assets.errors import PinotAssetsError
from pinot_assets.settings.environment import tables_directory
from pinot_assets.table_spec import AnyTableSpec, LeftOut, RealtimeTableSpec, TableSpec, read_tables
from pinot_assets.table_spec.tables.specs import spec_error

_SUFFIXES = (".yaml", ".yml")
Spec = TypeVar("Spec", bound=AnyTableSpec)


# --- completion ----------------------------------------------------------------------------------
# Nothing is said when something is wrong: a completion that fails would write into the line that is typed.


def table_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tables of the directory that the command looks at, by the names of their files: none is read."""
    try:
        names = sorted(path.stem for path in _directory(ctx).iterdir() if path.suffix in _SUFFIXES)
    except OSError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def kept_snapshots(ctx: typer.Context, incomplete: str) -> list[str]:
    """Numbers of the snapshots that are kept of the table that was named before, newest first."""
    from pinot_assets.session.stores.clients import open_staging
    from pinot_assets.session.stores.stored_snapshots import snapshot_refs

    try:
        spec = read_tables(_directory(ctx)).choose([str(ctx.params.get("table"))])[0]
        keys = [ref.key for ref in snapshot_refs(open_staging(spec))]
    except (PinotAssetsError, OSError):
        return []
    numbers = [str(int(key.removeprefix("snapshots/").partition("-")[0])) for key in keys]
    return [number for number in dict.fromkeys(numbers) if number.startswith(incomplete)]


def _directory(ctx: typer.Context) -> Path:
    return Path(ctx.params.get("tables") or tables_directory())


# --- options -------------------------------------------------------------------------------------

TableName = Annotated[
    str,
    typer.Argument(help="Table name, as in tables/<name>.yaml.", metavar="TABLE", autocompletion=table_names),
]
TablesOption = Annotated[
    Path | None,
    typer.Option(
        "--tables", help="Directory of the table specs (default: $PINOT_ASSETS_TABLES, else tables)."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Plain JSON for other programs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Newest = Annotated[int, typer.Option("--newest", min=1, help="How many to show.")]


# --- the tables that are meant -------------------------------------------------------------------


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
    err = new_console(stderr=True)
    for one in left_out:
        err.print(f"[yellow]warning[/]: left out: {escape(one.in_one_line)}")
