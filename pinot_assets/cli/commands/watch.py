"""`pinot-assets watch`: keeps tables equal to their files, without Dagster."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from pinot_assets.cli.completion import table_names
from pinot_assets.cli.options import AsJson, TablesOption, new_console
from pinot_assets.cli.table_selection import Chosen, warn_of
from pinot_assets.cli.terminal import Terminal
from pinot_assets.cli.watch.watch import TableState, Watched, look_at, watch
from pinot_assets.core import interrupts
from pinot_assets.core.exit_codes import ExitCode, worst
from pinot_assets.errors import SpecError, TypedWrong
from pinot_assets.session.connect import open_session_store, open_source, open_staging
from pinot_assets.session.detect.observe import Observation, list_source, observe
from pinot_assets.session.driver import Driver, RunOutcome
from pinot_assets.session.values.state import utc_text
from pinot_assets.settings.environment import load_settings
from pinot_assets.source import Inventory
from pinot_assets.table_spec import LeftOut, TableSpec
from pinot_assets.table_spec.tables.load import NO_DIRECTORY

SpecsOf = Callable[[Sequence[str], Path | None], Chosen[TableSpec]]
DriverOf = Callable[[TableSpec, str], AbstractContextManager[Driver]]
_COLOURS = {TableState.RUNS: "cyan", TableState.REFUSED: "yellow", TableState.ERROR: "red"}

Names = Annotated[
    list[str] | None,
    typer.Argument(help="Tables, as in tables/<name>.yaml.", metavar="TABLE", autocompletion=table_names),
]


def add_watch_command(app: typer.Typer, specs_of: SpecsOf, driver_of: DriverOf) -> None:
    """Add the command to the program.

    :param specs_of: the table specs of these names; of none, all.
    :param driver_of: opens a driver for a command.
    """

    @app.command("watch")
    def watch_(
        names: Names = None,
        every_table: Annotated[bool, typer.Option("--all", help="All tables of the directory.")] = False,
        interval: Annotated[int, typer.Option("--interval", min=1, help="Seconds between two looks.")] = 30,
        once: Annotated[
            bool, typer.Option("--once", help="Look once at each, run what is due, end.")
        ] = False,
        tables: TablesOption = None,
        as_json: AsJson = False,
    ) -> None:
        """Look at tables every so often, and run those whose files have changed and are ready.

        Decides as the sensors in Dagster do: files that are being written are waited for, another driver at
        work too, a session whose driver died is gone on with; no retry is spent. A session whose files
        vanished or changed while they were read, or that met a store or a server that was away, a lack of
        memory or the death of its drivers, is tried again after 1, 2, 4 and 8 minutes, then every 15 minutes,
        together with other files that came. One that failed otherwise waits for `pinot-assets run`. What
        cannot be looked at is tried again, later each time, and is an error that says for how long.
        Schedules are Dagster's. Do not watch a table whose sensors run.

        Ctrl-C or SIGTERM ends it after the run that is under way, a second one at once. With --json, one
        object a line for each change. A table whose spec is wrong is named at the start and left out. Exits 0
        when it was ended; with --once as the worst of its runs would: 0, 1 or 2; and 1 where a table was left
        out.
        """
        if names and every_table:
            raise TypedWrong("which tables? Some are named, and --all is given", hint="leave one of them out")
        if not names and not every_table:
            raise TypedWrong("which tables?", hint="name some, or give --all")
        chosen = specs_of(names or (), tables).unless_empty()
        if not chosen.specs:
            raise SpecError("there is no OFFLINE table to watch", hint=NO_DIRECTORY)
        here = _Here(driver_of, _Lines() if as_json else _People())
        for one in chosen.left_out:
            here.teller.left_out(one)
        codes = [ExitCode.ERROR] if chosen.left_out else []
        if once:
            codes += [look_at(Watched(spec), here, interval).code for spec in chosen.specs]
        else:
            with _stopping(here) as stopped:
                watch(chosen.specs, here, interval, stopped)
        raise typer.Exit(worst(codes))


class _Lines:
    """For log collectors: one JSON object for each change."""

    def told(self, table: Watched) -> None:
        values = {
            "at": utc_text(time.time_ns() // 1_000_000),
            "table": table.spec.name_with_type,
            "state": table.state,
            "message": table.message,
            "lastRun": table.last or None,
            "lastRunAt": utc_text(table.last_s * 1000) if table.last_s else None,
            "nextLookAt": utc_text(table.next_s * 1000) if table.state is not TableState.RUNS else None,
            "failingSince": utc_text(table.failing_s * 1000) if table.failing_s else None,
        }
        typer.echo(json.dumps(values))

    def left_out(self, one: LeftOut) -> None:
        values = {
            "at": utc_text(time.time_ns() // 1_000_000),
            "table": one.name,
            "state": TableState.LEFT_OUT,
            "message": one.in_one_line,
            "lastRun": None,
            "lastRunAt": None,
            "nextLookAt": None,
            "failingSince": None,
        }
        typer.echo(json.dumps(values))

    def wait(self, seconds: float, stop: threading.Event) -> bool:
        return stop.wait(seconds)


class _People:
    """For people: a line for each change, and on a terminal a table of all that is brought up to date."""

    def __init__(self) -> None:
        self._tables: dict[str, Watched] = {}

    def told(self, table: Watched) -> None:
        before = self._tables.get(table.spec.name)
        self._tables[table.spec.name] = table
        if before is None or (before.state, before.message) != (table.state, table.message):
            colour = _COLOURS.get(table.state, "dim")
            at = time.strftime("%H:%M:%S")
            new_console().print(
                f"{at} [bold]{escape(table.spec.name)}[/] [{colour}]{table.state}[/] {escape(table.message)}"
            )

    def left_out(self, one: LeftOut) -> None:
        warn_of([one])

    def wait(self, seconds: float, stop: threading.Event) -> bool:
        console = Terminal()
        if not console.is_terminal or not seconds:
            return stop.wait(seconds)
        until = time.monotonic() + seconds
        # Gone while a run is under way: that shows a bar of its own.
        with Live(self._view(), console=console, refresh_per_second=1, transient=True) as live:
            while (left := until - time.monotonic()) > 0 and not stop.wait(min(1.0, left)):
                live.update(self._view())
        return stop.is_set()

    def _view(self) -> Table:
        shown = Table("table", "state", "files", "last run", "next look", box=None, header_style="bold")
        now_s = int(time.time())
        for table in self._tables.values():
            shown.add_row(
                escape(table.spec.name),
                f"[{_COLOURS.get(table.state, 'green')}]{table.state}[/]",
                escape(table.message.splitlines()[0] if table.message else ""),
                escape(f"{table.last}, {utc_text(table.last_s * 1000)}" if table.last else "none yet"),
                f"in {max(0, table.next_s - now_s)} s",
            )
        return shown


class _Here:
    """The outside of a watch: this machine."""

    def __init__(self, driver_of: DriverOf, teller: _Lines | _People) -> None:
        self._driver_of, self.teller = driver_of, teller

    def look(self, spec: TableSpec) -> tuple[Observation, Inventory]:
        with open_session_store(spec, load_settings()) as store:
            seen = observe(store, open_staging(spec))
        return seen, list_source(spec, open_source(spec))

    def run(self, spec: TableSpec) -> RunOutcome:
        with self._driver_of(spec, "watch") as driver:
            return driver.gate_and_publish(driver.trigger_without_retry(), lambda _: None)

    def now_s(self) -> int:
        return int(time.time())

    def told(self, table: Watched) -> None:
        self.teller.told(table)


@contextmanager
def _stopping(here: _Here) -> Iterator[Callable[[float], bool]]:
    """The first Ctrl-C or SIGTERM asks for the end, the second is one as always."""
    stop = threading.Event()

    def ask(_: int, __: FrameType | None) -> None:
        as_before()
        Terminal(stderr=True).print("ends after what is under way; Ctrl-C again ends that, too")
        stop.set()

    before = {number: signal.signal(number, ask) for number in interrupts.SIGNALS}

    def as_before() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    try:
        yield lambda seconds: here.teller.wait(seconds, stop)
    finally:
        as_before()
