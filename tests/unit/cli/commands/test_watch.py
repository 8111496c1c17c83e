"""A watch decides as the sensors do, runs what is due, and lives through what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fakes.tables import SYNC, write_files, write_table
from typer.testing import CliRunner

from pinot_assets.cli import main
from pinot_assets.cli.commands import watch as watch_command
from pinot_assets.cli.commands.watch import (
    Outside,
    Watched,
    WatchEvent,
    WatchLook,
    WatchState,
    run_if_due,
    watch_tables,
)
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.errors import ListingFailed, PinotError, SessionHeld, SnapshotIncomplete
from pinot_assets.session.context.context import WRITER_VERSION
from pinot_assets.session.detect.observe import Observation, list_source
from pinot_assets.session.detect.table_status import TableCondition
from pinot_assets.session.stores.clients import open_source
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.session.values.outcome import RunOutcome
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import Mode, ObjectRef, Owner, Pointer, Session, State
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Failure
from pinot_assets.table_spec import TableSpec

NOW = 1_800_000_000


class WatchedTable(Outside):
    """A table, its files, and runs that publish what they see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spec = write_table(folder, "t")
        self.seen = Observation(Pointer(), None, (), {}, None, None, NO_HOLD)
        self.now = NOW
        self.runs = 0
        self.states: list[tuple[WatchState, str]] = []
        self.trouble: BaseException | None = None
        self.run_trouble: BaseException | None = None

    def look(self, spec: TableSpec) -> WatchLook:
        if self.trouble is not None:
            raise self.trouble
        return WatchLook(self.seen, list_source(spec, open_source(spec)))

    def run(self, spec: TableSpec) -> RunOutcome:
        self.runs += 1
        if self.run_trouble is not None:
            raise self.run_trouble
        files = list_source(spec, open_source(spec)).files
        rows = tuple(PublishedFile(uri, f.fingerprint, "00", 1, 0, "cp1", ()) for uri, f in files.items())
        snapshot = Snapshot(self.runs, "t_OFFLINE", f"cp{self.runs}", Mode.SYNC, "e", None, "", "", 0, rows)
        pointer = Pointer(current_snapshot=SnapshotRef(f"snapshots/{self.runs}", "00"))
        self.seen = Observation(pointer, None, (), {}, None, snapshot, NO_HOLD)
        return RunOutcome(TriggerReport(TriggerResult.STAGED, None, len(files)), (), snapshot)

    def now_s(self) -> int:
        return self.now

    def changed(self, table: Watched) -> None:
        self.states.append((table.state, table.message))


@pytest.fixture
def outside(tmp_path: Path) -> WatchedTable:
    return WatchedTable(tmp_path)


def test_runs_when_files_have_changed_and_else_waits(outside: WatchedTable) -> None:
    write_files(outside.folder, F1="a b")
    table = run_if_due(Watched(outside.spec), outside, 30)
    assert [state for state, _ in outside.states] == [TableCondition.RUNNING, WatchEvent.SWITCHED]
    assert "1 file, 0 segments, 1 row are visible" in table.message
    assert (table.last, table.last_s, table.next_s) == ("switched: 1 row", NOW, NOW + 30)
    table = run_if_due(table, outside, 30)
    assert (table.state, outside.runs) == (TableCondition.UP_TO_DATE, 1)
    assert "0 new, 0 rewritten, 0 deleted" in table.message
    write_files(outside.folder, F2="c")
    run_if_due(table, outside, 30)
    assert outside.runs == 2


def test_another_driver_at_work_is_waited_for(outside: WatchedTable) -> None:
    write_files(outside.folder, F1="a")
    outside.seen = Observation(Pointer(), None, (), {}, Owner("other", "host", 7, 0), None, NO_HOLD)
    table = run_if_due(Watched(outside.spec), outside, 30)
    assert (table.state, table.code, outside.runs) == (TableCondition.RUNNING, ExitCode.DONE, 0)
    assert "held by other" in table.message


def test_one_that_takes_the_lease_in_between_is_no_error(outside: WatchedTable) -> None:
    write_files(outside.folder, F1="a")
    outside.run_trouble = SessionHeld("t is held by other")
    table = run_if_due(Watched(outside.spec), outside, 30)
    assert (table.state, table.code, table.errors) == (TableCondition.RUNNING, ExitCode.DONE, 0)


@pytest.mark.parametrize("trouble", [ListingFailed("no listing"), OSError(5, "Input/output error")])
def test_what_cannot_be_looked_at_is_tried_again_later_each_time(
    outside: WatchedTable, trouble: Exception
) -> None:
    outside.trouble = trouble
    table, waits = Watched(outside.spec), []
    for _ in range(7):
        table = run_if_due(table, outside, 30)
        assert (table.state, table.code) == (TableCondition.NOT_KNOWN, ExitCode.ERROR)
        waits.append(table.next_s - NOW)
    assert waits == [30, 60, 120, 240, 480, 600, 600]
    outside.trouble = None
    assert run_if_due(table, outside, 30).next_s == NOW + 30


def test_what_cannot_be_looked_at_says_for_how_long_until_it_can(outside: WatchedTable) -> None:
    outside.trouble, table, told = (
        ListingFailed("no listing", hint="bring it back"),
        Watched(outside.spec),
        [],
    )
    since = "since 2027-01-15 08:00:00 UTC"
    for _ in range(12):
        table = run_if_due(table, outside, 30)
        told.append(table.message)
        outside.now = table.next_s
    assert told[0] == "no listing\n  → bring it back"
    assert told[1] == f"no listing; for 30 s, {since}\n  → bring it back"
    assert told[-1] == f"no listing; for 1.3 h, {since}\n  → bring it back"
    assert (table.failing_s, table.state, table.code) == (NOW, TableCondition.NOT_KNOWN, ExitCode.ERROR)
    outside.trouble = None
    table = run_if_due(table, outside, 30)
    assert (table.failing_s, table.state) == (0, TableCondition.NOT_PUBLISHED)
    outside.trouble = PinotError("Pinot is away")
    assert run_if_due(table, outside, 30).message == "Pinot is away"


def test_a_run_that_failed_is_not_started_again_at_once(outside: WatchedTable) -> None:
    write_files(outside.folder, F1="a")
    outside.run_trouble = PinotError("Pinot is away")
    table = run_if_due(Watched(outside.spec), outside, 30)
    assert (table.state, table.last, table.code) == (TableCondition.FAILED, "failed", ExitCode.ERROR)
    outside.now += 30
    table = run_if_due(table, outside, 30)
    assert (table.state, table.code, outside.runs) == (TableCondition.NOT_PUBLISHED, ExitCode.REFUSED, 1)
    assert "launched before" in table.message
    outside.now += 300
    run_if_due(table, outside, 30)
    assert outside.runs == 2


def test_a_gate_that_stays_shut_is_told(outside: WatchedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(outside.folder, F1="a")
    refused = RunOutcome(
        TriggerReport(TriggerResult.FAILED, None, 1), (), None, SnapshotIncomplete("not all is built")
    )
    monkeypatch.setattr(outside, "run", lambda spec: refused)
    table = run_if_due(Watched(outside.spec), outside, 30)
    assert (table.state, table.message, table.code) == (
        TableCondition.FAILED,
        "not all is built",
        ExitCode.REFUSED,
    )


FAILED = Failure("file:///F1.csv", 0, 0, "UNREADABLE", "torn")


def test_a_session_that_waits_for_a_person_keeps_the_table_behind(outside: WatchedTable) -> None:
    """So that cron does not take the table for published."""
    write_files(outside.folder, F1="a")
    fingerprint, plan = outside.spec.config_fingerprint(WRITER_VERSION), SnapshotRef("plans/1", "00")
    session = Session("cp1-aaaaaa", 1, Mode.SYNC, fingerprint, 0, plan, State.IN_PROGRESS)
    outside.seen = Observation(Pointer(), session, (FAILED,), {}, None, None, NO_HOLD)
    table = run_if_due(Watched(outside.spec), outside, 30)
    assert (table.state, table.code, outside.runs) == (TableCondition.FAILED, ExitCode.REFUSED, 0)
    assert "waits for the schedule or a run by hand" in table.message


def test_a_run_that_may_do_nothing_keeps_the_table_behind(
    outside: WatchedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(outside.folder, F1="a")
    paused = RunOutcome(TriggerReport(TriggerResult.PAUSED, None, 1, paused="failed"))
    monkeypatch.setattr(outside, "run", lambda spec: paused)
    table = run_if_due(Watched(outside.spec), outside, 30)
    assert (table.state, table.code) == (TableCondition.FAILED, ExitCode.REFUSED)


def test_what_a_rollback_holds_back_is_called_held(outside: WatchedTable) -> None:
    """The files that are held count as none that changed."""
    hold = Hold({}, ("file:///F1.csv",))
    pointer = Pointer(hold=ObjectRef("holds/1", "00"))
    outside.seen = Observation(pointer, None, (), {}, None, None, hold)
    table = run_if_due(Watched(outside.spec), outside, 30)
    assert (table.state, table.code, outside.runs) == (TableCondition.HELD, ExitCode.DONE, 0)
    assert "1 removal held after a rollback until `pinot-assets resume t`" in table.message


def test_files_that_may_not_be_published_yet_wait(outside: WatchedTable) -> None:
    write_files(outside.folder, F1="a")
    run_if_due(Watched(outside.spec), outside, 30)
    write_files(outside.folder, F2="b")
    outside.spec = write_table(outside.folder, "t", {**SYNC, "settleSeconds": "60"})
    table = run_if_due(Watched(outside.spec), outside, 30)
    assert (table.state, table.code, outside.runs) == (TableCondition.WAITING, ExitCode.DONE, 1)
    assert "settling" in table.message


@pytest.mark.parametrize(("code", "state"), [("VANISHED", "tried again"), ("UNREADABLE", "failed")])
def test_a_run_whose_files_failed_is_tried_again_if_that_may_pass(
    outside: WatchedTable, monkeypatch: pytest.MonkeyPatch, code: str, state: str
) -> None:
    write_files(outside.folder, F1="a")
    failure = Failure("file:///F1.csv", 0, 0, code, "no")
    report = TriggerReport(TriggerResult.FAILED, None, 1, failed=(failure,))
    refused = RunOutcome(report, (), None, SnapshotIncomplete("not all is built"))
    monkeypatch.setattr(outside, "run", lambda spec: refused)
    table = run_if_due(Watched(outside.spec), outside, 30)
    assert (table.state, table.code) == (state, ExitCode.REFUSED)


def test_looks_until_it_is_to_end_and_lets_a_run_come_to_its_end(outside: WatchedTable) -> None:
    write_files(outside.folder, F1="a")
    slept: list[float] = []

    def stopped(seconds: float) -> bool:
        slept.append(seconds)
        outside.now += int(seconds)
        return outside.now >= NOW + 90

    watch_tables([outside.spec], outside, 30, stopped)
    assert outside.runs == 1
    assert [seconds for seconds in slept if seconds] == [30, 30, 30]


# --- the command -----------------------------------------------------------------------------------


@pytest.fixture
def typed(outside: WatchedTable, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    monkeypatch.chdir(outside.folder)
    monkeypatch.delenv("PINOT_ASSETS_TABLES", raising=False)

    class Here(Outside):
        look = staticmethod(outside.look)
        run = staticmethod(outside.run)

    monkeypatch.setattr(watch_command, "Outside", Here)

    def type_in(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main.app, ["watch", *words])
        return result.exit_code, result.stdout

    return type_in


def test_a_table_whose_spec_is_wrong_is_named_and_the_others_are_watched(
    outside: WatchedTable, typed: Callable[..., tuple[int, str]]
) -> None:
    write_files(outside.folder, F1="a")
    (outside.folder / "tables" / "b.yaml").write_text("[")
    code, out = typed("--all", "--once", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == ExitCode.ERROR
    assert [(line["table"], line["state"]) for line in lines] == [
        ("b", "broken"),
        ("t_OFFLINE", "running"),
        ("t_OFFLINE", "switched"),
    ]
    assert "b.yaml:1" in lines[0]["message"]
    assert outside.runs == 1
    assert typed("t", "--once")[0] == ExitCode.DONE
    assert typed("t", "b", "--once")[0] == ExitCode.ERROR
    shown = CliRunner().invoke(main.app, ["watch", "--all", "--once"])
    assert "warning: left out: " in shown.stderr


@pytest.mark.usefixtures("typed")
def test_there_must_be_something_to_watch(outside: WatchedTable) -> None:
    (outside.folder / "tables" / "t.yaml").write_text("[")
    assert "t.yaml:1" in str(CliRunner().invoke(main.app, ["watch", "--all"]).exception)
    (outside.folder / "tables" / "t.yaml").unlink()
    assert "there is no OFFLINE table" in str(CliRunner().invoke(main.app, ["watch", "--all"]).exception)


def test_once_for_log_collectors(outside: WatchedTable, typed: Callable[..., tuple[int, str]]) -> None:
    write_files(outside.folder, F1="a")
    code, out = typed("--all", "--once", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["state"] for line in lines] == ["running", "switched"]
    assert datetime.fromisoformat(lines[1]["lastRunAt"]).tzinfo is UTC
    assert lines[1]["table"] == "t_OFFLINE"
    assert lines[1]["lastRun"] == "switched: 1 row"
    assert [line["failingSince"] for line in lines] == [None, None]
    outside.trouble = ListingFailed("no listing")
    code, out = typed("t", "--once")
    assert code == 1
    assert "t not known no listing" in out
    code, out = typed("t", "--once", "--json")
    assert code == 1
    assert datetime.fromisoformat(json.loads(out)["failingSince"]).tzinfo is UTC


def test_ctrl_c_ends_it_cleanly(outside: WatchedTable, typed: Callable[..., tuple[int, str]]) -> None:
    before = signal.getsignal(signal.SIGINT)
    threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    code, out = typed("t", "--interval", "60")
    assert code == 0
    assert "t not published 0 new" in out
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("words", [[], ["t", "--all"]])
def test_which_tables_must_be_said(typed: Callable[..., tuple[int, str]], words: list[str]) -> None:
    assert typed(*words)[0] == 1
