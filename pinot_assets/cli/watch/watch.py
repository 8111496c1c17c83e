"""What the sensors do, without Dagster: look at tables, decide by the sensors' own rules, run what is due.

Nothing here knows a terminal, and time and the outside are handed in. A table is never run beside another
driver: the decision sees the lease's holder, and who comes too late all the same waits for the next look.
Retries are spent by nobody here (rule R26), as by the sensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from pinot_assets.cli.program import of_system
from pinot_assets.core.deadline import doubled
from pinot_assets.core.exit_codes import ExitCode, code_of
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError, SessionHeld
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.driver import RunOutcome
from pinot_assets.session.values.trouble import aged
from pinot_assets.source import Inventory
from pinot_assets.table_spec import TableSpec

LONGEST_S: Final = 600
"""Between two looks at a table that cannot be looked at: doubled up to that."""


class TableState(StrEnum):
    """How it stands with one table."""

    NEW = "new"
    """Not looked at yet."""
    WAITS = "waits"
    """There is nothing to do, or it is not time; the message says why."""
    RUNS = "runs"
    REFUSED = "refused"
    """The last run published nothing, or not everything."""
    ERROR = "error"
    """It could not be looked at or run; it is tried again."""
    LEFT_OUT = "left out"
    """Its file is wrong; it is not looked at."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One table.

    :ivar message: why it stands as it does.
    :ivar last: how its last run ended; empty before the first.
    :ivar last_s: when that was, seconds since the epoch.
    :ivar next_s: when it is looked at next.
    :ivar errors: looks and runs in a row that failed.
    :ivar failing_s: when the first of them did, seconds since the epoch; 0 without any.
    :ivar code: what a command would end with after its last look.
    :ivar files_cursor: what the decision about its files remembers, `session_cursor` that about its session.
    """

    spec: TableSpec
    state: TableState = TableState.NEW
    message: str = ""
    last: str = ""
    last_s: int = 0
    next_s: int = 0
    errors: int = 0
    failing_s: int = 0
    code: ExitCode = ExitCode.DONE
    files_cursor: str = ""
    session_cursor: str = ""


class Outside(Protocol):
    """What a watch asks and does."""

    def look(self, spec: TableSpec) -> tuple[Observation, Inventory]:
        """What stands of the table, and its files."""
        ...

    def run(self, spec: TableSpec) -> RunOutcome:
        """Trigger without spending a retry, gate, switch."""
        ...

    def now_s(self) -> int:
        """Seconds since the epoch."""
        ...

    def told(self, table: Watched) -> None:
        """A table has come to stand otherwise."""
        ...


def look_at(table: Watched, outside: Outside, interval_s: int) -> Watched:
    """One look, and one run if it is due. What goes wrong ends in the state, never in an exception."""
    try:
        table, launch = _decided(table, outside)
        if launch:
            table = replace(table, state=TableState.RUNS)
            outside.told(table)
            table = _ended(table, outside.run(table.spec), outside.now_s())
        else:
            table = replace(table, state=TableState.WAITS, code=ExitCode.DONE)
        table = replace(table, errors=0, failing_s=0, next_s=outside.now_s() + interval_s)
    except SessionHeld as error:
        table = replace(table, state=TableState.WAITS, message=error.reason, code=ExitCode.DONE)
        table = replace(table, errors=0, failing_s=0, next_s=outside.now_s() + interval_s)
    except PinotAssetsError as error:
        table = _failed(table, error, outside.now_s(), interval_s)
    except OSError as error:
        table = _failed(table, of_system(error), outside.now_s(), interval_s)
    outside.told(table)
    return table


def due(tables: Iterable[Watched], now_s: int) -> list[Watched]:
    """Those whose time has come, in their order."""
    return [table for table in tables if table.next_s <= now_s]


def _decided(table: Watched, outside: Outside) -> tuple[Watched, bool]:
    # Imported here: beside the decisions lie Dagster's sensors, which take a second to load.
    from pinot_assets.scheduling.decision import decide_tick
    from pinot_assets.scheduling.stalled_session import decide_session

    seen, inventory = outside.look(table.spec)
    now_s = outside.now_s()
    tick = decide_tick(table.spec, inventory, seen, table.files_cursor, now_s)
    verdict = decide_session(table.spec, seen, (), table.session_cursor, now_s)
    decided = replace(table, files_cursor=tick.cursor, session_cursor=verdict.cursor)
    if verdict.launch and not tick.launch:
        return replace(decided, message=verdict.message), True
    return replace(decided, message=tick.message), tick.launch


def _ended(table: Watched, outcome: RunOutcome, now_s: int) -> Watched:
    code = outcome.exit_code
    return replace(
        table,
        state=TableState.WAITS if code is ExitCode.DONE else TableState.REFUSED,
        message=outcome.report.summary if outcome.refusal is None else outcome.refusal.reason,
        last=ended_as(outcome),
        last_s=now_s,
        code=code,
    )


def _failed(table: Watched, error: PinotAssetsError, now_s: int, interval_s: int) -> Watched:
    """What was decided before is kept: a run that failed is not launched again at once."""
    if table.state is TableState.RUNS:
        table = replace(table, last="failed", last_s=now_s)
    wait = doubled(interval_s, table.errors + 1, max(LONGEST_S, interval_s))
    since_s = table.failing_s or now_s
    return replace(
        table,
        state=TableState.ERROR,
        message=aged(error, since_s * 1000, now_s * 1000),
        errors=table.errors + 1,
        failing_s=since_s,
        code=code_of(error),
        next_s=now_s + wait,
    )


def ended_as(outcome: RunOutcome) -> str:
    """How a run ended, in a few words."""
    if outcome.snapshot is not None:
        left = f", {plural(len(outcome.left_out), 'file')} left out" if outcome.left_out else ""
        return f"switched: {plural(outcome.snapshot.rows, 'row')}{left}"
    if outcome.refusal is not None:
        return "not switched"
    return outcome.report.result.value.lower()


Stop = Callable[[float], bool]
"""Waits so many seconds, less when the end is asked for; whether it is."""


def watch(tables: Iterable[TableSpec], outside: Outside, interval_s: int, stopped: Stop) -> None:
    """Look at each table every `interval_s` seconds, until the end is asked for.

    A run that is under way when it is asked for comes to its end first.

    :param stopped: called between two looks, with what is left until the next one.
    """
    known = {spec.name: Watched(spec) for spec in tables}
    while not stopped(0):
        for table in due(known.values(), outside.now_s()):
            known[table.spec.name] = look_at(table, outside, interval_s)
            if stopped(0):
                return
        if stopped(max(0, min(table.next_s for table in known.values()) - outside.now_s())):
            return
