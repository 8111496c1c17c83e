"""Options that commands share: the tables to work on, with completion in the shell, and plain JSON.

A table whose file is wrong does not stop the work on other tables; the command names it.
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
# Completion is silent about errors: an error message would appear in the line that the user types.


def table_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the tables of the command's directory, by their file names; reads no file."""
    try:
        names = sorted(path.stem for path in _directory(ctx).iterdir() if path.suffix in _SUFFIXES)
    except OSError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def kept_snapshots(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the numbers of the kept snapshots of the table typed before, newest first."""
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
        "--tables",
        metavar="FOLDER",
        help="Directory of the table specs (default: $PINOT_ASSETS_TABLES, else tables).",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Newest = Annotated[int, typer.Option("--newest", min=1, metavar="NUMBER", help="How many to show.")]


# --- the tables to work on -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chosen(Generic[Spec]):
    """The tables that a command works on, if it accepts several.

    :ivar specs: the requested tables whose specs can be used.
    :ivar left_out: the requested tables whose files are wrong.
    """

    specs: Sequence[Spec]
    left_out: Sequence[LeftOut] = ()

    def unless_empty(self) -> Chosen[Spec]:
        """Return `self`, if a table can be used or none was left out.

        :raises SpecError: all files are wrong; lists every problem.
        """
        if self.left_out and not self.specs:
            raise spec_error([problem for one in self.left_out for problem in one.problems])
        return self


def one_table(name: str, directory: Path | None = None) -> TableSpec:
    """Return the OFFLINE table of that name. Name other files that are wrong on standard error.

    :raises SpecError: there is no such table, or its file is wrong.
    """
    tables = read_tables(directory or tables_directory())
    (spec,) = tables.choose([name])
    warn_of(tables.left_out)
    return spec


def realtime_table(name: str, directory: Path) -> RealtimeTableSpec | None:
    """As `one_table`, for a REALTIME table by its raw name; None if no file describes it.

    :raises SpecError: its file is wrong.
    """
    tables = read_tables(directory)
    spec = tables.find_realtime(name)
    warn_of(tables.left_out)
    return spec


def offline_tables(names: Iterable[str], directory: Path | None = None) -> Chosen[TableSpec]:
    """Return the OFFLINE tables of these names, or all OFFLINE tables if there are no names.

    :raises SpecError: there is no table with one of the names.
    """
    return Chosen(*read_tables(directory or tables_directory()).sort_out_offline(names))


def any_tables(names: Iterable[str], directory: Path | None = None) -> Chosen[AnyTableSpec]:
    """Return the tables of these names, of either type, or all tables if there are no names.

    :raises SpecError: there is no table with one of the names.
    """
    return Chosen(*read_tables(directory or tables_directory()).sort_out(names))


def warn_of(left_out: Iterable[LeftOut]) -> None:
    """Print a warning for each left-out table on standard error."""
    err = new_console(stderr=True)
    for one in left_out:
        err.print(f"[yellow]warning[/]: left out: {escape(one.in_one_line)}")
