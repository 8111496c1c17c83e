"""What the session sensor decides, from values alone."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from fakes.tables import SWAP, SYNC, write_table

from pinot_assets.core.json_object import JsonObject
from pinot_assets.scheduling.files_tick import FIRST_WAIT_S, LONGEST_WAIT_S, Tick
from pinot_assets.scheduling.stalled_session import DEAD_S, PATIENCE_S, StallCursor, decide_session
from pinot_assets.session.context.context import WRITER_VERSION
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.state import AuditReceipt, Mode, ObjectRef, Owner, Pointer, Session, State
from pinot_assets.snapshot.receipt import Failure
from pinot_assets.table_spec import TableSpec

NOW = 1_800_000_000
REF = ObjectRef("some/key", "00")
OWNER = Owner("run-me", "host", 7, 1_700_000_000_000)
FAILED_AUDIT = AuditReceipt(1, "00", passed=False, at_ms=0, summary="a replica is in ERROR")


class StalledTable:
    """A table with an open session, as the sensor sees it tick by tick."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.spec: TableSpec = write_table(folder, "t")
        fingerprint = self.spec.config_fingerprint(WRITER_VERSION)
        session = Session("cp2-bbbbbb", 2, Mode.SYNC, fingerprint, 0, REF, State.IN_PROGRESS, attempt=3)
        self.seen = Observation(Pointer("cp2", epoch=5), session, (), {}, None, None, NO_HOLD)
        self.running: list[dg.DagsterRun] = []
        self.cursor = ""

    def options(self, mode: dict[str, str] = SYNC, **options: Any) -> None:
        self.spec = write_table(self._folder, "t", {**mode, **options})

    def session(self, **fields: Any) -> None:
        assert self.seen.session is not None
        self.seen = replace(self.seen, session=replace(self.seen.session, **fields))

    def pointer(self, **fields: Any) -> None:
        self.seen = replace(self.seen, pointer=replace(self.seen.pointer, **fields))

    def fails(self, files: int) -> None:
        self.session(failures=REF)
        self.seen = replace(
            self.seen, failures=tuple(Failure(f"F{n}", n, 0, "UNREADABLE", "torn") for n in range(files))
        )

    def runs(self, status: dg.DagsterRunStatus, run_id: str = "run-me") -> None:
        self.running = [dg.DagsterRun(job_name="t_ingest", run_id=run_id, status=status)]

    def tick(self, now_s: int) -> Tick:
        running = {run.run_id: run.status.value for run in self.running}
        verdict = decide_session(self.spec, self.seen, running, self.cursor, now_s)
        self.cursor = verdict.cursor
        return verdict

    def launches(self, seconds: int) -> list[int]:
        """When the job was started, with a tick every 30 s from now on."""
        return [at for at in range(NOW, NOW + seconds, 30) if self.tick(at).launch]


@pytest.fixture
def table(tmp_path: Path) -> StalledTable:
    return StalledTable(tmp_path)


def test_without_a_session_there_is_nothing_to_do(table: StalledTable) -> None:
    table.seen = replace(table.seen, session=None, pointer=Pointer())
    assert table.launches(3 * LONGEST_WAIT_S) == []
    assert table.tick(NOW).message == "no session is open"


def test_a_session_whose_driver_died_is_launched_when_nobody_else_did(table: StalledTable) -> None:
    assert not table.tick(NOW).launch
    assert not table.tick(NOW + PATIENCE_S - 1).launch
    verdict = table.tick(NOW + PATIENCE_S)
    assert verdict.launch
    assert verdict.message == (
        "session cp2-bbbbbb (IN_PROGRESS, attempt 3) has made no progress since 2027-01-15 08:00:00 UTC: "
        "launched"
    )


@pytest.mark.parametrize("fields", [{"state": State.INIT}, {"state": State.SWITCH}, {"mode": Mode.ROLLBACK}])
def test_whatever_its_state(table: StalledTable, fields: JsonObject) -> None:
    table.session(**fields)
    assert len(table.launches(FIRST_WAIT_S)) == 1


def test_a_launch_in_vain_is_repeated_later_and_later(table: StalledTable) -> None:
    """Each of them took the lease and got nowhere: the attempt grew, and nothing else did."""
    launches, now = [], NOW
    while now < NOW + 4 * LONGEST_WAIT_S:
        if table.tick(now).launch:
            launches.append(now)
            table.pointer(epoch=table.seen.pointer.epoch + 1)
            assert table.seen.session is not None
            table.session(attempt=table.seen.session.attempt + 1)
        now += 30
    gaps = [after - before for before, after in itertools.pairwise(launches)]
    assert gaps[:3] == [FIRST_WAIT_S, 2 * FIRST_WAIT_S, LONGEST_WAIT_S]
    assert gaps[-1] == LONGEST_WAIT_S


def test_also_when_the_run_never_took_the_lease(table: StalledTable) -> None:
    first, second = table.launches(3 * FIRST_WAIT_S)
    assert second - first == FIRST_WAIT_S
    assert "launched again, number 3 without progress" in table.tick(second + 2 * FIRST_WAIT_S).message


@pytest.mark.parametrize(
    "progress", [{"counts": {"done": 4}}, {"state": State.SWITCH}, {"switch": 1}, {"id": "cp3-cccccc"}]
)
def test_after_progress_it_is_launched_as_soon_as_at_first(table: StalledTable, progress: JsonObject) -> None:
    launched = table.launches(3 * FIRST_WAIT_S)[-1]
    table.pointer(epoch=6)
    table.session(**progress)
    assert not table.tick(launched + 30).launch
    assert table.tick(launched + 30 + PATIENCE_S).launch


def test_a_long_run_that_died_is_no_reason_to_hurry(table: StalledTable) -> None:
    (first,) = table.launches(FIRST_WAIT_S)
    table.seen = replace(table.seen, holder=OWNER)
    table.tick(first + 3600)
    table.seen = replace(table.seen, holder=None)
    assert not table.tick(first + 3630).launch
    assert table.tick(first + 3630 + PATIENCE_S).launch


def test_a_held_lease_pauses(table: StalledTable) -> None:
    table.seen = replace(table.seen, holder=OWNER)
    assert table.launches(LONGEST_WAIT_S) == []
    held = "held by run-me on host (pid 7) since 2023-11-14 22:13:20 UTC"
    assert table.tick(NOW).message == f"paused: session cp2-bbbbbb {held}"
    table.seen = replace(table.seen, session=None)
    assert table.tick(NOW).message == f"paused: t {held}"


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED])
def test_a_run_under_way_pauses(table: StalledTable, status: dg.DagsterRunStatus) -> None:
    table.runs(status)
    assert table.launches(LONGEST_WAIT_S) == []
    assert table.tick(NOW).message == f"paused: run run-me is {status.value.lower().replace('_', ' ')}"


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "[]",
        "{}",
        '{"listing": 1}',
        '{"epoch": 5, "since_s": "long ago"}',
        '{"epoch": 5, "since_s": null}',
        '{"epoch": 5, "since_s": 1.5}',
        '{"progress": ["cp2-bbbbbb"]}',
        '{"times": "often"}',
        '{"launched_s": {}}',
    ],
)
def test_a_cursor_that_somebody_else_wrote_is_none(table: StalledTable, cursor: str) -> None:
    assert StallCursor.read(cursor) == StallCursor()
    table.cursor = cursor
    assert len(table.launches(FIRST_WAIT_S)) == 1


def test_a_launch_that_was_never_counted_is_no_reason_to_wait(table: StalledTable) -> None:
    (first,) = table.launches(FIRST_WAIT_S)
    table.cursor = json.dumps({**json.loads(table.cursor), "times": 0})
    assert table.tick(first + FIRST_WAIT_S).launch


# --- what costs a retry is not the sensor's (R26) --------------------------------------------------


def test_a_session_with_failed_files_waits(table: StalledTable) -> None:
    table.fails(3)
    assert table.launches(3 * LONGEST_WAIT_S) == []
    assert table.tick(NOW).message == (
        "session cp2-bbbbbb failed with 3 files and waits for the schedule or a run by hand "
        "(sensorRetries is off)"
    )
    table.options(sensorRetries="true")
    assert table.launches(3 * LONGEST_WAIT_S) == []
    assert table.tick(NOW).message.endswith("failed with 3 files and waits for a change of what failed")


def test_a_session_whose_audit_failed_waits(table: StalledTable) -> None:
    table.session(audit=FAILED_AUDIT, switch=1, state=State.SWITCH)
    assert table.launches(3 * LONGEST_WAIT_S) == []
    assert "failed its audit and waits for the schedule" in table.tick(NOW).message
    table.options(sensorRetries="true")
    assert table.launches(3 * LONGEST_WAIT_S) == []
    assert "waits for a change of its files" in table.tick(NOW).message


def test_a_session_that_would_be_abandoned_for_its_spec_waits_unless_it_may_be(table: StalledTable) -> None:
    table.options(includeFileNamePattern="glob:**/*.csv")
    assert table.launches(3 * LONGEST_WAIT_S) == []
    assert "was planned for another table spec and waits" in table.tick(NOW).message
    table.options(includeFileNamePattern="glob:**/*.csv", sensorRetries="true")
    assert len(table.launches(FIRST_WAIT_S)) == 1


def test_a_rollback_that_died_is_finished_whatever_the_spec_says(table: StalledTable) -> None:
    table.session(mode=Mode.ROLLBACK, config_fingerprint="of old")
    assert len(table.launches(FIRST_WAIT_S)) == 1


def test_a_swap_table_stays_held_until_it_is_resumed(table: StalledTable) -> None:
    table.options(SWAP)
    table.session(config_fingerprint=table.spec.config_fingerprint(WRITER_VERSION))
    table.pointer(hold=REF)
    assert table.launches(LONGEST_WAIT_S) == []
    assert "pinot-assets resume t" in table.tick(NOW).message


# --- trouble that passes by itself ------------------------------------------------------------------


def troubled(table: StalledTable, code: str) -> None:
    """The attempt that began a minute ago failed with that code, and had not before."""
    table.session(failures=REF, attempt_started_ms=(NOW - 60) * 1000, trouble_since_ms=NOW * 1000)
    table.seen = replace(table.seen, failures=(Failure("F1", 0, 0, code, "away"),))


@pytest.mark.parametrize("code", ["VANISHED", "CHANGED_DURING_READ", "STORE", "OUT_OF_MEMORY"])
def test_trouble_that_passes_is_tried_again_by_itself(table: StalledTable, code: str) -> None:
    """After the files sensor, which sees other files, too."""
    troubled(table, code)
    assert table.tick(NOW).message == (
        "session cp2-bbbbbb has had trouble that may pass since 2027-01-15 08:00:00 UTC; tried again in 120 s"
    )
    assert table.launches(180) == [NOW + 120]


def test_an_older_driver_that_leaves_it_alone_is_not_launched_at_every_tick(
    table: StalledTable,
) -> None:
    """It takes the failures for such as need a retry, makes no attempt, and writes no time of trouble."""
    troubled(table, "VANISHED")
    table.session(trouble_since_ms=0)
    launches = table.launches(4 * LONGEST_WAIT_S)
    gaps = [after - before for before, after in itertools.pairwise(launches)]
    assert gaps == [FIRST_WAIT_S, 2 * FIRST_WAIT_S, LONGEST_WAIT_S, LONGEST_WAIT_S]


def test_a_store_that_ended_the_whole_build_is_tried_again_too(table: StalledTable) -> None:
    table.session(attempt_started_ms=(NOW - 60) * 1000, trouble_since_ms=NOW * 1000)
    assert table.launches(180) == [NOW + 120]


def test_servers_that_were_down_in_the_audit_are_tried_again_too(table: StalledTable) -> None:
    audit = replace(FAILED_AUDIT, waits=True)
    started_ms = (NOW - 60) * 1000
    table.session(audit=audit, state=State.SWITCH, attempt_started_ms=started_ms, trouble_since_ms=NOW * 1000)
    assert table.launches(180) == [NOW + 120]
    table.session(audit=replace(audit, of_data=True), trouble_since_ms=0)
    assert table.launches(3 * LONGEST_WAIT_S) == []


# --- runs that died unseen ------------------------------------------------------------------------


@pytest.mark.parametrize("open_session", [True, False])
def test_a_run_that_lost_its_lease_and_does_not_end_is_dead(table: StalledTable, open_session: bool) -> None:
    """A machine that was switched off: nobody told Dagster, and nothing of the table may start."""
    if not open_session:
        table.seen = replace(table.seen, session=None)
    table.runs(dg.DagsterRunStatus.STARTED)
    table.pointer(owner=OWNER)
    for now in range(NOW, NOW + DEAD_S, 30):
        verdict = table.tick(now)
        assert not verdict.dead_run
        assert not verdict.launch
    verdict = table.tick(NOW + DEAD_S)
    assert verdict.dead_run == "run-me"
    assert not verdict.launch
    assert verdict.message == (
        "run run-me lost its lease (run-me on host (pid 7) since 2023-11-14 22:13:20 UTC) "
        "and has not ended since 2027-01-15 08:00:00 UTC: marked as failed"
    )


def test_time_under_the_lease_does_not_count(table: StalledTable) -> None:
    table.runs(dg.DagsterRunStatus.STARTED)
    table.pointer(owner=OWNER)
    table.tick(NOW)
    table.seen = replace(table.seen, holder=OWNER)
    table.tick(NOW + DEAD_S)
    table.seen = replace(table.seen, holder=None)
    assert not table.tick(NOW + DEAD_S + 30).dead_run


@pytest.mark.parametrize(
    ("owner", "status"),
    [
        (None, dg.DagsterRunStatus.STARTED),  # it let go: the run is about to end
        (replace(OWNER, run="another"), dg.DagsterRunStatus.STARTED),  # it has not taken the lease yet
        (OWNER, dg.DagsterRunStatus.CANCELING),  # Dagster's own monitoring sees to it
    ],
)
def test_others_are_alive(table: StalledTable, owner: Owner | None, status: dg.DagsterRunStatus) -> None:
    table.runs(status)
    table.pointer(owner=owner)
    for now in range(NOW, NOW + LONGEST_WAIT_S, 30):
        assert not table.tick(now).dead_run
