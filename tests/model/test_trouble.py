"""Trouble that passes by itself costs no retry; whoever comes goes on, and takes other files in."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
from model.world.ending import settle
from model.world.lives import make_table, of_format_1
from model.world.process import Kind, Trouble
from model.world.table import MODES, TABLE, ModelTable

from pinot_assets.cli.commands.watch import Outside, Watched, WatchLook, run_if_due
from pinot_assets.errors import PinotUnreachable, SessionHeld, SourceError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.session.detect.observe import Observation, list_source, observe
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.outcome import RunOutcome
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import Session
from pinot_assets.table_spec import TableSpec


def sensor_run(driver: Driver) -> TriggerReport:
    """The whole job as a sensor starts it."""
    report = driver.trigger_without_retry()
    if report.result in (TriggerResult.STAGED, TriggerResult.FAILED):
        _, findings = driver.audit()
        if all(f.passed for f in findings):
            driver.publish()
    return report


def once_before_build(table: ModelTable, name: str, act: Callable[[], object]) -> None:
    """Do this between the listing and the build of that file, once."""
    original, done = table.truth.ordered, [False]

    def ordered(build_spec: BuildSpec, task: FileTask) -> None:
        original(build_spec, task)
        if task.file.uri.endswith(f"/{name}") and not done[0]:
            done[0] = True
            act()

    table.truth.ordered = ordered  # type: ignore[method-assign]


def store_of(table: ModelTable) -> SessionStore:
    return SessionStore(table.zookeeper.client(), "pinot", f"{TABLE}_OFFLINE")


def sessions(table: ModelTable) -> list[Session]:
    return store_of(table).sessions()


def observation_of(table: ModelTable) -> Observation:
    return observe(store_of(table), Staging(table.staging))


def rows(table: ModelTable) -> list[str]:
    metadata = table.pinot._tables[TABLE].metadata
    return sorted(metadata[s].custom["test.rows"] for s in table.pinot.visible_segments(TABLE))


def assert_right(table: ModelTable) -> None:
    settle(table)
    assert not table.truth.violations, "\n".join([*table.story, "", *table.truth.violations])


@pytest.mark.parametrize("mode", MODES)
def test_r26_a_file_that_vanished_is_forgotten_and_another_one_taken_in(mode: str) -> None:
    """By a table with default settings, without a retry to spend."""
    table = make_table(mode, consistentPushMaxRetries=0)
    table.source.write("A", b"A1")
    table.source.write("B", b"B1")
    once_before_build(table, "B", lambda: table.source.remove("B"))
    assert table.start(sensor_run).report.result is TriggerResult.FAILED  # type: ignore[union-attr]
    observed = observation_of(table)
    assert [f.code for f in observed.failures] == ["VANISHED"]
    assert observed.passing
    assert observed.session is not None
    assert observed.session.trouble_since_ms > 0
    table.source.write("C", b"C1")
    table.later(60)
    second = table.start(sensor_run).report
    assert second is not None
    assert (second.result, second.kept, len(second.built)) == (TriggerResult.STAGED, 1, 1)
    assert rows(table) == ["A1", "C1"]
    (session,) = sessions(table)
    assert (session.retry_count, session.trouble_since_ms) == (0, 0)
    assert_right(table)


@pytest.mark.parametrize("mode", MODES)
def test_a_file_that_came_back_otherwise_is_built_as_it_is_now(mode: str) -> None:
    table = make_table(mode)
    table.source.write("A", b"A1")
    once_before_build(table, "A", lambda: table.source.remove("A"))
    table.start(sensor_run)
    table.source.write("A", b"A2 A3")
    table.later(60)
    table.start(sensor_run)
    assert rows(table) == ["A2", "A3"]
    assert_right(table)


def test_trouble_that_stays_spends_nothing_and_remembers_since_when() -> None:
    table = make_table("sync", consistentPushMaxRetries=1)
    table.source.write("A", b"A1")

    def away(build_spec: BuildSpec, task: FileTask) -> None:
        raise SourceError("the store does not answer")

    known, table.truth.ordered = table.truth.ordered, away  # type: ignore[method-assign]
    since = set[int]()
    for _ in range(5):
        assert isinstance(table.start(sensor_run).process.error, SourceError)
        table.later(3600)
        (session,) = sessions(table)
        since.add(session.trouble_since_ms)
        assert (session.retry_count, session.stalls) == (0, 0)
        assert session.last_error == "the store does not answer"
    assert len(since) == 1
    table.truth.ordered = known  # type: ignore[method-assign]
    table.start(sensor_run)
    assert rows(table) == ["A1"]
    assert sessions(table)[-1].trouble_since_ms == 0
    assert_right(table)


def test_a_file_that_has_to_be_repaired_beside_it_still_waits_for_a_retry() -> None:
    table = make_table("sync")
    table.source.write("A", b"!")
    table.source.write("B", b"B1")
    once_before_build(table, "B", lambda: table.source.remove("B"))
    table.start(sensor_run)
    (before,) = sessions(table)
    assert before.trouble_since_ms == 0
    assert not observation_of(table).passing
    assert table.start(sensor_run).report.result is TriggerResult.FAILED  # type: ignore[union-attr]
    assert sessions(table) == [before]
    assert_right(table)


# --- what comes after it is another matter ---------------------------------------------------------


def test_it_is_over_as_soon_as_every_file_is_built_whatever_comes_then() -> None:
    table = make_table("sync", consistentPushMaxRetries=0)
    table.source.write("A", b"A1")
    table.source.write("B", b"B1")
    once_before_build(table, "B", lambda: table.source.remove("B"))
    table.start(sensor_run)
    assert observation_of(table).passing
    table.source.write("B", b"B2")
    table.later(60)
    once_before_build(table, "B", lambda: table.pinot.refuse_connection("visible_segments"))
    assert isinstance(table.start(sensor_run).process.error, PinotUnreachable)
    (session,) = sessions(table)
    assert (session.trouble_since_ms, session.failures, session.last_error) == (0, None, "")
    assert not observation_of(table).passing
    table.later(60)
    table.start(sensor_run)
    assert rows(table) == ["A1", "B2"]
    assert_right(table)


# --- servers that are down while the audit asks them -----------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_r10_a_server_that_is_down_is_waited_for_by_whoever_comes(mode: str) -> None:
    """By a table with default settings, without a retry to spend; files that come meanwhile are taken in."""
    table = make_table(mode, consistentPushMaxRetries=0)
    table.source.write("A", b"A1")
    table.pinot.cut_off_server()
    since = set[int]()
    for number in range(1, 4):
        table.start(sensor_run)
        observed = observation_of(table)
        assert observed.passing
        assert observed.session is not None
        assert "did not answer" in observed.session.last_error
        assert (observed.session.retry_count, rows(table)) == (0, [])
        since.add(observed.session.trouble_since_ms)
        table.source.write(f"A{number}", f"new{number}".encode())
        table.later(3600)
    assert 0 not in since
    assert len(since) == 1
    table.pinot.start_server()
    table.start(sensor_run)
    assert rows(table) == ["A1", "new1", "new2", "new3"]
    (session,) = sessions(table)
    assert (session.retry_count, session.trouble_since_ms) == (0, 0)
    assert_right(table)


# --- drivers and JVMs that die ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (Kind.DIES_BEFORE, "2 runs in a row ended before a file was built"),
        (Kind.CALL_LOST, "the Spark application died"),
    ],
)
def test_r10_whatever_dies_before_a_file_is_built_spends_nothing_and_is_tried_again(
    kind: Kind, cause: str
) -> None:
    table = make_table("sync", consistentPushMaxRetries=0)
    table.source.write("A", b"A1")
    since = []
    for _ in range(5):
        table.start(sensor_run, [Trouble("build A", kind)])
        table.later(3600)
        (session,) = sessions(table)
        assert session.retry_count == 0
        since.append(session.trouble_since_ms)
    assert since[:2] == [0, 0], "one death is nothing to be told of"
    assert since[2] > 0
    assert len(set(since[2:])) == 1
    assert cause in session.last_error
    assert observation_of(table).passing
    table.start(sensor_run)
    assert rows(table) == ["A1"]
    (session,) = sessions(table)
    assert (session.retry_count, session.stalls, session.trouble_since_ms) == (0, 0, 0)
    assert_right(table)


# --- whoever watches the table ---------------------------------------------------------------------

TICK_S = 31


class Here(Outside):
    """What a watch of the table sees and does; each of its runs meets this trouble.

    :ivar runs_s: when it ran the table.
    """

    def __init__(self, table: ModelTable, troubles: Sequence[Trouble]) -> None:
        self.table, self.troubles = table, troubles
        self.runs_s: list[int] = []

    def look(self, spec: TableSpec) -> WatchLook:
        return WatchLook(observation_of(self.table), list_source(spec, self.table.source))

    def run(self, spec: TableSpec) -> RunOutcome:
        self.runs_s.append(self.now_s())
        running = self.table.start(sensor_run, self.troubles)
        if running.process.error is not None:
            raise running.process.error
        if running.report is None:
            raise SessionHeld("its process is gone")
        return RunOutcome(running.report)

    def now_s(self) -> int:
        return self.table.now_ms // 1000

    def changed(self, table: Watched) -> None:
        pass


LATER = [60, 120, 240, 480, 900, 900]


def watches(table: ModelTable, here: Here) -> tuple[Watched, list[int]]:
    """An hour and more of a watch, while a file grows all the time.

    :returns: how it stands then, and the seconds between its runs, in whole minutes.
    """
    watched = Watched(table.spec)
    for tick in range(150):
        table.source.write("B", f"B{tick}".encode())
        watched = run_if_due(watched, here, TICK_S)
        table.later(TICK_S)
    waits = [after - before for before, after in itertools.pairwise(here.runs_s)]
    return watched, [wait - wait % 60 for wait in waits]


@pytest.mark.parametrize("what", ["server is down", "driver dies", "JVM dies"])
def test_a_watch_tries_again_later_each_time_whatever_is_listed(what: str) -> None:
    """A file that grows all the time changes with every listing: no run at each of them."""
    table = make_table("sync", consistentPushMaxRetries=0)
    table.source.write("A", b"A1")
    kinds = {"driver dies": Kind.DIES_BEFORE, "JVM dies": Kind.CALL_LOST}
    here = Here(table, [Trouble("build A", kinds[what])] if what in kinds else [])
    if what == "server is down":
        table.pinot.cut_off_server()
    watched, waits = watches(table, here)
    reported = waits[2:] if what in kinds else waits  # two deaths in a row are not told of yet
    assert reported[:6] == LATER
    (session,) = sessions(table)
    assert session.retry_count == 0
    assert "tried again in" in watched.message
    here.troubles = []
    table.pinot.start_server()
    table.later(900)
    run_if_due(watched, here, TICK_S)
    assert "A1" in rows(table)
    assert_right(table)


@pytest.mark.parametrize("kind", [Kind.DIES_BEFORE, Kind.CALL_LOST])
def test_a_table_of_format_1_too_where_drivers_die(kind: Kind) -> None:
    """Since when it has trouble is not stored there; how many died in a row is."""
    table = of_format_1()
    table.source.write("A2", b"A2")
    _, waits = watches(table, Here(table, [Trouble("build A2", kind)]))
    assert waits[2:8] == LATER
    assert sessions(table)[-1].retry_count == 0
    assert_right(table)
