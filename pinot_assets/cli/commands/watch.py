"""`pinot-assets watch`: keep tables equal to their files, without Dagster.

The command does the same as the sensors: it looks at tables, decides by the sensors' rules, and runs what is
due. It does not run a table while another driver holds the lease: the decision sees the holder, and a run
that still comes too late waits for the next look. Like the sensors, it never spends a retry (rule R26).
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from types import FrameType
from typing import Annotated, Final, TypeAlias

import typer
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from pinot_assets.cli.commands.run import published_text
from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import AsJson, TablesOption, offline_tables, table_names, warn_of
from pinot_assets.cli.program import of_system
from pinot_assets.cli.table_status import BROKEN, STYLES, status_of
from pinot_assets.cli.terminal import Terminal, new_console
from pinot_assets.core import interrupts
from pinot_assets.core.exit_codes import ExitCode, code_of, worst
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import doubled
from pinot_assets.errors import PinotAssetsError, SessionHeld, SpecError, TypedWrong
from pinot_assets.scheduling.files_tick import decide_tick
from pinot_assets.scheduling.stalled_session import decide_session
from pinot_assets.session.detect.observe import Observation, list_source, observe
from pinot_assets.session.detect.table_status import TableCondition
from pinot_assets.session.stores.clients import open_session_store, open_source, open_staging
from pinot_assets.session.values.outcome import RunOutcome
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Session, utc_iso, utc_text
from pinot_assets.session.values.trouble import aged
from pinot_assets.settings.environment import load_settings
from pinot_assets.source import Inventory
from pinot_assets.table_spec import LeftOut, TableSpec
from pinot_assets.table_spec.tables.specs import NO_SPECS

Stop = Callable[[float], bool]
"""Waits that many seconds, or until the watch is asked to end; returns whether it was."""

LONGEST_S: Final = 600
"""The wait between two looks at a table that fails doubles up to this limit."""


class WatchEvent(StrEnum):
    """What a watch reports and no later look can see."""

    SWITCHED = "switched"
    """The last run published what changed; the next look shows whether anything is left."""


WatchState: TypeAlias = TableCondition | WatchEvent
"""The state of a watched table, in the words of `status`."""


@dataclass(frozen=True, slots=True)
class WatchLook:
    """What a look at a table reads.

    :ivar newest: the newest session, if none is open.
    """

    observation: Observation
    inventory: Inventory
    newest: Session | None = None


@dataclass(frozen=True, slots=True)
class Watched:
    """One watched table.

    :ivar message: the reason for its state.
    :ivar last: how its last run ended; empty before the first run.
    :ivar last_s: when its last run ended, seconds since the epoch.
    :ivar next_s: time of its next look, seconds since the epoch; 0 before the first one and during a run.
    :ivar errors: number of looks and runs that failed in a row.
    :ivar failing_s: when the first of these failed, seconds since the epoch; 0 if none did.
    :ivar code: the exit code that a command would have after the last look.
    :ivar files_cursor: memory of the decision about its files; `session_cursor` of the one about its session.
    """

    spec: TableSpec
    state: WatchState = TableCondition.NOT_KNOWN
    message: str = ""
    last: str = ""
    last_s: int = 0
    next_s: int = 0
    errors: int = 0
    failing_s: int = 0
    code: ExitCode = ExitCode.DONE
    files_cursor: str = ""
    session_cursor: str = ""


_COLOURS: Final = {**STYLES, TableCondition.RUNNING: "cyan", WatchEvent.SWITCHED: "green"}
_OF_RUNS: Final = {
    TriggerResult.HELD: TableCondition.HELD,
    TriggerResult.PAUSED: TableCondition.FAILED,
    TriggerResult.WAITING: TableCondition.WAITING,
}
"""What a table is after a run that had nothing to switch, if it is not up to date."""


def watch(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Tables, as in tables/<name>.yaml.", metavar="TABLE", autocompletion=table_names),
    ] = None,
    every_table: Annotated[bool, typer.Option("--all", help="All tables of the directory.")] = False,
    interval: Annotated[
        int, typer.Option("--interval", min=1, metavar="SECONDS", help="Seconds between two looks.")
    ] = 30,
    once: Annotated[
        bool, typer.Option("--once", help="Look once at each, run those that are due, end.")
    ] = False,
    tables: TablesOption = None,
    as_json: AsJson = False,
) -> None:
    """Look at tables again and again, and run those whose files have changed and are ready.

    Decides as the sensors in Dagster do. It waits for files that are being written, and for another driver
    that works on the table. It continues a session whose driver died, without spending a retry.

    A session waits 1, 2, 4 and 8 minutes, then every 15 minutes, and is then tried again together with new
    files, if its files vanished or changed while they were read, or if a store or server did not answer,
    memory was too small or its drivers died. A session that failed in another way waits for `pinot-assets
    run`. A table that cannot be read is tried again, later each time; the error shows for how long.
    Schedules are Dagster's. Do not watch a table whose sensors run.

    Shows the state of each table in the words of `status`, or `switched` after a run that published.

    Ctrl-C or SIGTERM ends the command after the current run, a second one at once. With --json, writes one
    object a line for each change. A table whose spec is wrong is named at the start and left out.

    Exits 0 when it was ended. With --once it exits with the worst exit code of its runs (0, 1 or 2), with 2
    where a table stays behind its files, and with 1 where a table was left out.
    """
    if names and every_table:
        raise TypedWrong("tables are named, and --all is given, too", hint="give one of the two")
    if not names and not every_table:
        raise TypedWrong("which tables?", hint="name tables, or give --all")
    chosen = offline_tables(names or (), tables).unless_empty()
    if not chosen.specs:
        raise SpecError("there is no OFFLINE table to watch", hint=NO_SPECS)
    teller = _LineTeller() if as_json else _People()
    outside = Outside(teller)
    for one in chosen.left_out:
        teller.left_out(one)
    codes = [ExitCode.ERROR] if chosen.left_out else []
    if once:
        codes += [run_if_due(Watched(spec), outside, interval).code for spec in chosen.specs]
    else:
        with _stopping(teller) as stopped:
            watch_tables(chosen.specs, outside, interval, stopped)
    raise typer.Exit(worst(codes))


# --- what is due ----------------------------------------------------------------------------------


def run_if_due(table: Watched, outside: Outside, interval_s: int) -> Watched:
    """Look at a table once, and run it if it is due. An error sets the state; it raises no exception."""
    table = replace(table, state=TableCondition.NOT_KNOWN)
    try:
        table, is_due = _decided(table, outside.look(table.spec), outside.now_s())
        if is_due:
            table = replace(table, state=TableCondition.RUNNING, next_s=0)
            outside.changed(table)
            table = _ended(table, outside.run(table.spec), outside.now_s())
        table = replace(table, errors=0, failing_s=0, next_s=outside.now_s() + interval_s)
    except SessionHeld as error:
        table = replace(table, state=TableCondition.RUNNING, message=error.reason, code=ExitCode.DONE)
        table = replace(table, errors=0, failing_s=0, next_s=outside.now_s() + interval_s)
    except (PinotAssetsError, OSError) as error:
        table = _failed(table, of_system(error), outside.now_s(), interval_s)
    outside.changed(table)
    return table


def _decided(table: Watched, look: WatchLook, now_s: int) -> tuple[Watched, bool]:
    """Return the table as the look shows it, and whether to run it."""
    spec, observation = table.spec, look.observation
    tick = decide_tick(spec, look.inventory, observation, table.files_cursor, now_s)
    session_tick = decide_session(spec, observation, {}, table.session_cursor, now_s)
    by_session = session_tick.launch and not tick.launch
    decided = replace(
        table,
        state=status_of(spec, observation, tick.diff, None, look.newest, now_s * 1000).state,
        message=session_tick.message if by_session else tick.message,
        code=ExitCode.REFUSED if tick.stays_behind else ExitCode.DONE,
        files_cursor=tick.cursor,
        session_cursor=session_tick.cursor,
    )
    return decided, by_session or tick.launch


def _ended(table: Watched, outcome: RunOutcome, now_s: int) -> Watched:
    code, message, result = outcome.exit_code, outcome.report.summary, outcome.report.result
    state: WatchState = _OF_RUNS.get(result, TableCondition.UP_TO_DATE)
    if code is not ExitCode.DONE:
        state = TableCondition.TRIED_AGAIN if outcome.may_pass else TableCondition.FAILED
    elif outcome.snapshot is not None:
        state = WatchEvent.SWITCHED
    elif result is TriggerResult.PAUSED:
        code = ExitCode.REFUSED
    if outcome.snapshot is not None:
        message = f"{outcome.report.work}; {published_text(outcome.snapshot)}"
    if outcome.refusal is not None:
        message = outcome.refusal.reason
    return replace(table, state=state, message=message, last=ended_as(outcome), last_s=now_s, code=code)


def _failed(table: Watched, error: PinotAssetsError, now_s: int, interval_s: int) -> Watched:
    """Return the table with its error. It keeps its cursors, so a failed run is not repeated at once."""
    if table.state is TableCondition.RUNNING:
        table = replace(table, state=TableCondition.FAILED, last="failed", last_s=now_s)
    wait = doubled(interval_s, table.errors + 1, max(LONGEST_S, interval_s))
    since_s = table.failing_s or now_s
    return replace(
        table,
        message=aged(error, since_s * 1000, now_s * 1000),
        errors=table.errors + 1,
        failing_s=since_s,
        code=code_of(error),
        next_s=now_s + wait,
    )


def ended_as(outcome: RunOutcome) -> str:
    """Return a few words about how a run ended."""
    if outcome.snapshot is not None:
        left = f", {plural(len(outcome.left_out), 'file')} left out" if outcome.left_out else ""
        return f"switched: {plural(outcome.snapshot.rows, 'row')}{left}"
    return "not switched" if outcome.refusal is not None else outcome.report.result.value.lower()


def watch_tables(tables: Iterable[TableSpec], outside: Outside, interval_s: int, stopped: Stop) -> None:
    """Look at each table every `interval_s` seconds, until the watch is asked to end.

    A run that is under way then is completed first.

    :param stopped: called between two looks, with the seconds until the next one.
    """
    known = {spec.name: Watched(spec) for spec in tables}
    while not stopped(0):
        now_s = outside.now_s()
        for table in [table for table in known.values() if table.next_s <= now_s]:
            known[table.spec.name] = run_if_due(table, outside, interval_s)
            if stopped(0):
                return
        if stopped(max(0, min(table.next_s for table in known.values()) - outside.now_s())):
            return


# --- output ---------------------------------------------------------------------------------------


class _LineTeller:
    """Output for log collectors: one JSON object for each change."""

    def changed(self, table: Watched) -> None:
        values = {
            "at": utc_iso(time.time_ns() // 1_000_000),
            "table": table.spec.name_with_type,
            "state": table.state,
            "message": table.message,
            "lastRun": table.last or None,
            "lastRunAt": utc_iso(table.last_s * 1000),
            "nextLookAt": utc_iso(table.next_s * 1000),
            "failingSince": utc_iso(table.failing_s * 1000),
        }
        typer.echo(json.dumps(values))

    def left_out(self, one: LeftOut) -> None:
        values = {
            "at": utc_iso(time.time_ns() // 1_000_000),
            "table": one.name,
            "state": BROKEN,
            "message": one.in_one_line,
            **dict.fromkeys(("lastRun", "lastRunAt", "nextLookAt", "failingSince")),
        }
        typer.echo(json.dumps(values))

    def wait(self, seconds: float, stop: threading.Event) -> bool:
        return stop.wait(seconds)


class _People:
    """Output for people: a line for each change, and on a terminal a live table of all watched tables."""

    def __init__(self) -> None:
        self._tables: dict[str, Watched] = {}

    def changed(self, table: Watched) -> None:
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
        # Hidden while a run is under way, because the run shows its own bar.
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


# --- this machine ---------------------------------------------------------------------------------


class Outside:
    """What a watch reads and does outside its own decisions.

    :param teller: the output; it is called when the state of a table changes.
    """

    def __init__(self, teller: _LineTeller | _People) -> None:
        self._teller = teller

    def look(self, spec: TableSpec) -> WatchLook:
        """Read the table's session state, and list its files."""
        with open_session_store(spec, load_settings()) as store:
            observation = observe(store, open_staging(spec))
            newest = None if observation.session else store.newest_session()
        return WatchLook(observation, list_source(spec, open_source(spec)), newest)

    def run(self, spec: TableSpec) -> RunOutcome:
        """Make a trigger that spends no retry, then the gate and the switch."""
        with open_driver(spec, "watch") as driver:
            return driver.gate_and_publish(driver.trigger_without_retry(), lambda _: None)

    def now_s(self) -> int:
        """Return the time in seconds since the epoch."""
        return int(time.time())

    def changed(self, table: Watched) -> None:
        """Report that the state of a table has changed."""
        self._teller.changed(table)


@contextmanager
def _stopping(teller: _LineTeller | _People) -> Iterator[Callable[[float], bool]]:
    """Let the first Ctrl-C or SIGTERM ask the watch to end; the second one interrupts as usual."""
    stop = threading.Event()

    def ask(_: int, __: FrameType | None) -> None:
        as_before()
        Terminal(stderr=True).print("ends when the current run has ended; Ctrl-C again ends that, too")
        stop.set()

    before = {number: signal.signal(number, ask) for number in interrupts.SIGNALS}

    def as_before() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    try:
        yield lambda seconds: teller.wait(seconds, stop)
    finally:
        as_before()
