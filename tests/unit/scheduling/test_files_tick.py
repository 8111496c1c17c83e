"""What one tick decides, from values alone."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.tables import APPEND, SWAP, SYNC, write_table

from pinot_assets.scheduling.files_tick import FIRST_WAIT_S, LONGEST_WAIT_S, FilesCursor, Tick, decide_tick
from pinot_assets.session.context.context import WRITER_VERSION
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.session.values.state import AuditReceipt, Mode, ObjectRef, Owner, Pointer, Session, State
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Failure
from pinot_assets.source import Fingerprint, Inventory, SourceFile
from pinot_assets.table_spec import TableSpec

NOW = 1_800_000_000
REF = ObjectRef("some/key", "00")


def listing(**versions: int) -> Inventory:
    """`F1=1, F2=2`: names and sizes; the digest is as good as the real one."""
    files = {name: SourceFile(name, Fingerprint(size, 0)) for name, size in versions.items()}
    return Inventory(files, 0, digest=json.dumps(versions, sort_keys=True))


def published(**versions: int) -> Snapshot:
    rows = tuple(
        PublishedFile(name, Fingerprint(size, 0), "00", 1, 0, "cp1", ()) for name, size in versions.items()
    )
    return Snapshot(1, "t_OFFLINE", "cp1-aaaaaa", "SYNC", "entry", None, "", "", 0, rows)


class ObservedTable:
    """A table as the sensor sees it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.spec = self.options()
        self.seen = Observation(Pointer(), None, (), {}, None, None, NO_HOLD)
        self.cursor = ""

    def options(self, mode: dict[str, str] = SYNC, **options: Any) -> TableSpec:
        self.spec = write_table(self._folder, "t", {**mode, **options})
        return self.spec

    def publishes(self, **versions: int) -> None:
        pointer = Pointer(current_snapshot=SnapshotRef(json.dumps(versions), "00"))
        self.seen = replace(self.seen, pointer=pointer, snapshot=published(**versions), session=None)

    def opens(self, **fields: Any) -> Session:
        fingerprint = self.spec.config_fingerprint(WRITER_VERSION)
        session = Session("cp2-bbbbbb", 2, Mode.SYNC, fingerprint, 0, REF, State.IN_PROGRESS, **fields)
        pointer = replace(self.seen.pointer, active_session=session.node)
        self.seen = replace(self.seen, pointer=pointer, session=session)
        return session

    def fails(self, **versions: int) -> None:
        """An open session whose files of these versions could not be built."""
        self.opens(failures=REF)
        failures = tuple(Failure(name, n, 0, "UNREADABLE", "torn") for n, name in enumerate(versions))
        tokens = {name: Fingerprint(size, 0).token for name, size in versions.items()}
        self.seen = replace(self.seen, failures=failures, failed_versions=tokens)

    def tick(self, inventory: Inventory, now_s: int = NOW) -> Tick:
        tick = decide_tick(self.spec, inventory, self.seen, self.cursor, now_s)
        self.cursor = tick.cursor
        return tick


@pytest.fixture
def table(tmp_path: Path) -> ObservedTable:
    table = ObservedTable(tmp_path)
    table.publishes(F1=1, F2=2)
    return table


def test_nothing_has_changed(table: ObservedTable) -> None:
    tick = table.tick(listing(F1=1, F2=2))
    assert (tick.launch, tick.message) == (False, "0 new, 0 rewritten, 0 deleted of 2 files listed")


def test_new_rewritten_and_deleted_files_are_told_apart(table: ObservedTable) -> None:
    tick = table.tick(listing(F1=11, F3=3, F4=4))
    assert tick.launch
    assert tick.message == "2 new, 1 rewritten, 1 deleted; launched"


@pytest.mark.parametrize("files", [{"F1": 1, "F2": 2, "F3": 3}, {"F1": 1, "F2": 22}, {"F1": 1}])
def test_each_kind_of_change_launches(table: ObservedTable, files: dict[str, int]) -> None:
    assert table.tick(listing(**files)).launch


def test_a_table_that_was_never_published_starts_with_all_files(table: ObservedTable) -> None:
    table.seen = Observation(Pointer(), None, (), {}, None, None, NO_HOLD)
    assert table.tick(listing(F1=1)).message == "1 new, 0 rewritten, 0 deleted; launched"


def test_a_listing_is_not_launched_at_every_tick(table: ObservedTable) -> None:
    assert table.tick(listing(F1=1)).launch
    tick = table.tick(listing(F1=1), NOW + 30)
    assert not tick.launch
    assert "launched before" in tick.message


def test_another_listing_is_launched_at_once(table: ObservedTable) -> None:
    assert table.tick(listing(F1=1)).launch
    assert table.tick(listing(F1=1, F3=3), NOW + 30).launch


def test_a_rewrite_and_its_way_back_are_both_launched(table: ObservedTable) -> None:
    """The content is the one of before, but what was published in between is not: no run key may say so."""
    assert table.tick(listing(F1=11, F2=2)).launch
    table.publishes(F1=11, F2=2)
    assert table.tick(listing(F1=1, F2=2), NOW + 30).launch
    table.publishes(F1=1, F2=2)
    assert table.tick(listing(F1=11, F2=2), NOW + 60).launch


def test_a_rewrite_back_before_anything_was_published_forgets_what_was_launched(table: ObservedTable) -> None:
    """The run of B came to nothing; when B comes again, with its old time even, it is a change again."""
    assert table.tick(listing(F1=11, F2=2)).launch
    tick = table.tick(listing(F1=1, F2=2), NOW + 30)
    assert (tick.launch, tick.message) == (False, "0 new, 0 rewritten, 0 deleted of 2 files listed")
    assert table.tick(listing(F1=11, F2=2), NOW + 60).launch


def test_a_rewrite_back_while_its_session_is_open_launches(table: ObservedTable) -> None:
    """The session was planned for B; only a run can take B out of it."""
    assert table.tick(listing(F1=11, F2=2)).launch
    table.opens()
    assert table.tick(listing(F1=1, F2=2), NOW + 30).launch


def test_a_rewrite_back_during_the_run_that_publishes_it_launches(table: ObservedTable) -> None:
    assert table.tick(listing(F1=11, F2=2)).launch
    table.opens()
    table.seen = replace(table.seen, holder=Owner("run-me", "host", 7, 0))
    assert not table.tick(listing(F1=1, F2=2), NOW + 30).launch
    table.publishes(F1=11, F2=2)
    table.seen = replace(table.seen, holder=None)
    assert table.tick(listing(F1=1, F2=2), NOW + 60).message == "0 new, 1 rewritten, 0 deleted; launched"


def test_a_launch_without_effect_is_repeated_later_and_later(table: ObservedTable) -> None:
    """A run that met a Pinot that was away leaves no trace; its files must not wait for others."""
    assert table.tick(listing(F1=1)).launch
    assert not table.tick(listing(F1=1), NOW + FIRST_WAIT_S - 1).launch
    assert table.tick(listing(F1=1), NOW + FIRST_WAIT_S).launch
    second = NOW + FIRST_WAIT_S
    assert not table.tick(listing(F1=1), second + 2 * FIRST_WAIT_S - 1).launch
    assert table.tick(listing(F1=1), second + 2 * FIRST_WAIT_S).launch
    now, gaps = second + 2 * FIRST_WAIT_S, []
    for _ in range(40):
        start = now
        while not table.tick(listing(F1=1), now).launch:
            now += FIRST_WAIT_S
        gaps.append(now - start)
    assert max(gaps) == gaps[-1] == LONGEST_WAIT_S


def test_a_cursor_that_somebody_else_wrote_is_none(table: ObservedTable) -> None:
    for cursor in ("x", "[]", "{}", "null", '{"launches": 1}', '{"times": "x"}', '{"since_s": null}'):
        table.cursor = cursor
        assert table.tick(listing(F1=1)).launch


def test_a_held_lease_pauses(table: ObservedTable) -> None:
    table.opens()
    table.seen = replace(table.seen, holder=Owner("run-me", "host", 7, 1_700_000_000_000))
    tick = table.tick(listing(F1=1))
    assert not tick.launch
    assert tick.message == (
        "paused: session cp2-bbbbbb held by run-me on host (pid 7) since 2023-11-14 22:13:20 UTC"
    )
    table.seen = replace(table.seen, holder=None)
    assert table.tick(listing(F1=1), NOW + 30).launch, "what was not launched then is launched now"


def test_append_has_nothing_to_do_for_a_deleted_file(table: ObservedTable) -> None:
    table.options(APPEND)
    assert not table.tick(listing(F1=1)).launch
    assert table.tick(listing(F1=1, F3=3)).launch


def test_what_a_rollback_holds_does_not_come_back(table: ObservedTable) -> None:
    table.seen = replace(table.seen, hold=Hold({"F3": Fingerprint(3, 0).token}, removals=("F2",)))
    assert not table.tick(listing(F1=1, F3=3)).launch
    assert table.tick(listing(F1=1, F3=33)).message == "1 new, 0 rewritten, 0 deleted; launched"


def test_a_run_lets_go_of_what_source_and_table_agree_on_again(table: ObservedTable) -> None:
    hold = Hold({"F3": Fingerprint(3, 0).token, "F1": Fingerprint(9, 0).token}, removals=("F2",))
    table.seen = replace(table.seen, hold=hold)
    tick = table.tick(listing(F1=1, F2=2, F3=3))
    said = "0 new, 0 rewritten, 0 deleted, 2 that the hold no longer keeps out; launched"
    assert (tick.launch, tick.message) == (True, said)
    table.seen = replace(table.seen, hold=replace(hold, files={"F3": hold.files["F3"]}, removals=()))
    assert not table.tick(listing(F1=1, F2=2, F3=3)).launch


def test_a_swap_table_stays_held_until_it_is_resumed(table: ObservedTable) -> None:
    table.options(SWAP)
    table.seen = replace(table.seen, pointer=replace(table.seen.pointer, hold=REF))
    tick = table.tick(listing(F9=9))
    assert not tick.launch
    assert "pinot-assets resume t" in tick.message


# --- uploads under way -----------------------------------------------------------------------------


def test_a_listing_is_launched_when_it_has_settled(table: ObservedTable) -> None:
    table.options(settleSeconds=60)
    waits = table.tick(listing(F1=1, F2=2, F3=3))
    assert (waits.launch, waits.message) == (False, "1 new, 0 rewritten, 0 deleted; settling, 60 s left")
    assert table.tick(listing(F1=1, F2=2, F3=3), NOW + 20).message.endswith("settling, 40 s left")
    assert not table.tick(listing(F1=1, F2=2, F3=33), NOW + 59).launch, "it grows"
    assert not table.tick(listing(F1=1, F2=2, F3=33), NOW + 118).launch
    assert table.tick(listing(F1=1, F2=2, F3=33), NOW + 119).launch


def test_an_upload_of_ten_minutes_is_one_launch(table: ObservedTable) -> None:
    table.options(settleSeconds=60)
    launched = []
    for tick in range(40):
        size = min(tick, 20)
        if table.tick(listing(F1=1, F2=2, F3=size), NOW + 30 * tick).launch:
            launched.append(tick)
    assert launched[0] == 22
    assert launched[1:] == [32], "only what was launched in vain is launched again, after its first wait"


def test_what_has_settled_during_a_pause_need_not_settle_again(table: ObservedTable) -> None:
    table.options(settleSeconds=60)
    table.opens()
    table.seen = replace(table.seen, holder=Owner("run-me", "host", 7, 0))
    table.tick(listing(F1=11, F2=2))
    table.seen = replace(table.seen, holder=None)
    assert table.tick(listing(F1=11, F2=2), NOW + 60).launch


def test_new_files_wait_for_others(table: ObservedTable) -> None:
    """`layout.waitFor`: for a start only, and not where other work is due. The files here are of 1970."""
    append = {"ingestionMode": "append", "consistentPushEnabled": "true", "layout.pack": "true"}
    table.options(append, **{"layout.waitFor": "60"})
    waits = table.tick(listing(F1=1, F2=2, F3=3), 1800)
    assert not waits.launch
    assert waits.message == (
        "1 new, 0 rewritten, 0 deleted; 1 new file of 3 B wait for others: a session begins in 30 min"
    )
    assert table.tick(listing(F1=1, F2=2, F3=3), 3600).launch
    table.opens()
    assert table.tick(listing(F1=1, F2=2, F3=3, F4=4), 1801).launch, "an open session goes on"


@pytest.mark.parametrize(("mode", "launches"), [("append", False), ("sync", True)])
def test_a_rewritten_file_waits_only_where_its_older_version_stays(
    table: ObservedTable, mode: str, launches: bool
) -> None:
    packed = {"ingestionMode": mode, "consistentPushEnabled": "true", "layout.pack": "true"}
    table.options(packed, **{"layout.waitFor": "60"})
    assert table.tick(listing(F1=11, F2=2), 1800).launch == launches


def aged(inventory: Inventory, seconds: int) -> Inventory:
    """The listing, made so long after its files were written."""
    return replace(inventory, listed_at_ms=1000 * seconds)


def test_a_new_file_that_is_young_is_not_there_yet(table: ObservedTable) -> None:
    table.options(minFileAgeSec=60)
    tick = table.tick(aged(listing(F1=1, F2=2, F3=3), 12))
    assert not tick.launch
    assert tick.message == (
        "0 new, 0 rewritten, 0 deleted of 3 files listed; "
        "1 file is not ready (F3 is 12 s old, minFileAgeSec is 60)"
    )
    assert table.tick(aged(listing(F1=1, F2=2, F3=3), 60), NOW + 48).launch, "without any other change"


def test_a_rewritten_file_that_is_young_holds_everything_up(table: ObservedTable) -> None:
    table.options(minFileAgeSec=60)
    tick = table.tick(aged(listing(F1=11, F3=3), 12))
    assert not tick.launch
    assert "waiting: 1 file is not ready (F1 is 12 s old, minFileAgeSec is 60)" in tick.message
    assert table.tick(aged(listing(F1=11, F3=3), 60), NOW + 48).launch


# --- an open session -------------------------------------------------------------------------------


def test_a_session_whose_driver_died_goes_on(table: ObservedTable) -> None:
    table.opens()
    assert table.tick(listing(F1=1, F2=2)).launch


@pytest.mark.parametrize("files", [{"F1": 1, "F2": 2, "F3": 3}, {"F1": 1, "F2": 2, "F3": 33}, {"F9": 9}])
def test_r26_a_failed_session_is_not_the_sensors_to_retry(
    table: ObservedTable, files: dict[str, int]
) -> None:
    """R26: whatever has changed in the source."""
    table.fails(F3=3)
    tick = table.tick(listing(**files))
    assert not tick.launch
    assert "sensorRetries is off" in tick.message
    assert "cp2-bbbbbb failed with 1 file" in tick.message


def test_with_sensor_retries_a_failed_file_that_stays_as_it_is_wakes_nobody(table: ObservedTable) -> None:
    table.options(sensorRetries="true")
    table.fails(F3=3)
    for other in ({}, {"F4": 4}):
        tick = table.tick(listing(F1=1, F2=2, F3=3, **other))
        assert not tick.launch
        assert "waits for 1 failed file to change" in tick.message


@pytest.mark.parametrize("files", [{"F3": 33, "F4": 4}, {"F4": 4}])
def test_with_sensor_retries_a_failed_file_that_changed_or_vanished_launches_once(
    table: ObservedTable, files: dict[str, int]
) -> None:
    """At the first tick already: it may have changed before the sensor looked."""
    table.options(sensorRetries="true")
    table.fails(F3=3, F4=4)
    assert table.tick(listing(F1=1, F2=2, **files)).launch
    assert not table.tick(listing(F1=1, F2=2, **files), NOW + 30).launch


def failed_audit() -> AuditReceipt:
    return AuditReceipt(1, "00", passed=False, at_ms=0, summary="a replica is in ERROR")


def test_a_failed_audit_is_a_failure_too(table: ObservedTable) -> None:
    table.opens(audit=failed_audit(), switch=1)
    tick = table.tick(listing(F1=1, F2=2, F3=3))
    assert not tick.launch
    assert "failed its audit" in tick.message


def test_with_sensor_retries_a_file_that_became_a_folder_waits_until_it_is_a_file_again(
    table: ObservedTable,
) -> None:
    table.options(sensorRetries="true")
    table.fails(F1=1)
    failures = tuple(replace(failure, code="BECAME_FOLDER") for failure in table.seen.failures)
    table.seen = replace(table.seen, failures=failures)
    assert "waits for 1 failed file to change" in table.tick(listing(F2=2)).message
    assert table.tick(listing(F1=1, F2=2)).launch


def test_with_sensor_retries_a_failed_audit_waits_for_another_listing(table: ObservedTable) -> None:
    table.options(sensorRetries="true")
    assert table.tick(listing(F1=1, F2=2, F3=3)).launch
    table.opens(audit=failed_audit(), switch=1)
    assert not table.tick(listing(F1=1, F2=2, F3=3), NOW + LONGEST_WAIT_S).launch
    assert table.tick(listing(F1=1, F2=2, F3=4), NOW + LONGEST_WAIT_S).launch


def test_r26_the_sensor_does_not_abandon_a_session_for_a_changed_spec(table: ObservedTable) -> None:
    table.opens()
    table.options(includeFileNamePattern="glob:**/*.csv")
    tick = table.tick(listing(F1=1, F2=2, F3=3))
    assert not tick.launch
    assert "another table spec" in tick.message
    table.options(includeFileNamePattern="glob:**/*.csv", sensorRetries="true")
    assert table.tick(listing(F1=1, F2=2, F3=3)).launch


def test_a_rollback_that_died_is_finished_whatever_the_spec_says(table: ObservedTable) -> None:
    table.opens()
    assert table.seen.session is not None
    rollback = replace(table.seen.session, mode=Mode.ROLLBACK, config_fingerprint="of old")
    table.seen = replace(table.seen, session=rollback)
    assert table.tick(listing(F1=1, F2=2)).launch


# --- trouble that passes by itself ------------------------------------------------------------------


def troubled(
    table: ObservedTable, code: str, since_s: int = NOW, attempt_s: int = NOW, also: str = ""
) -> None:
    """F3 failed with that code in every attempt since then, the last of which began at `attempt_s`."""
    table.opens(failures=REF, trouble_since_ms=since_s * 1000, attempt_started_ms=attempt_s * 1000)
    codes = (code, also) if also else (code,)
    failures = tuple(Failure("F3", n, 0, code, "away") for n, code in enumerate(codes))
    table.seen = replace(table.seen, failures=failures, failed_versions={"F3": Fingerprint(3, 0).token})


TRANSIENT = ["VANISHED", "CHANGED_DURING_READ", "STORE", "OUT_OF_MEMORY", "MACHINE"]


@pytest.mark.parametrize("code", TRANSIENT)
@pytest.mark.parametrize(
    "files", [{"F1": 1, "F2": 2}, {"F1": 1, "F2": 2, "F3": 3}, {"F1": 1, "F2": 2, "F9": 9}]
)
def test_trouble_that_passes_is_tried_again_by_itself(
    table: ObservedTable, code: str, files: dict[str, int]
) -> None:
    """Whether the failed file has gone, stayed as it is, or others came."""
    troubled(table, code)
    waiting = table.tick(listing(**files), NOW + 59)
    assert not waiting.launch
    assert waiting.message.endswith(f"cp2-bbbbbb has trouble that may pass (1 {code}), tried again in 1 s")
    assert table.tick(listing(**files), NOW + 60).launch


def test_it_is_tried_again_later_each_time_whatever_is_listed(table: ObservedTable) -> None:
    """A file that grows all the time changes with every listing, and must not be run at every tick."""
    attempts, now = [NOW], NOW
    troubled(table, "CHANGED_DURING_READ")
    while len(attempts) < 9:
        now += 30
        if table.tick(listing(F1=1, F2=2, F3=now), now).launch:
            attempts.append(now)
            troubled(table, "CHANGED_DURING_READ", attempt_s=now)
    waits = [(after - before) // 60 for before, after in itertools.pairwise(attempts)]
    assert waits == [1, 2, 4, 8, 15, 15, 15, 15]


def test_a_launch_that_came_to_no_attempt_is_not_repeated_at_every_tick(table: ObservedTable) -> None:
    """Pinot was away, or a driver of an older release left the session alone."""
    troubled(table, "STORE", attempt_s=NOW - 3600, since_s=0)
    files = listing(F1=1, F2=2, F3=3)
    launches = [now for now in range(NOW, NOW + 3600, 30) if table.tick(files, now).launch]
    gaps = [after - before for before, after in itertools.pairwise(launches)]
    assert gaps == [FIRST_WAIT_S, 2 * FIRST_WAIT_S, LONGEST_WAIT_S, LONGEST_WAIT_S]


def away(**fields: Any) -> AuditReceipt:
    """The audit failed since a server did not answer."""
    summary = "servers_answered: 1 of 2 servers say what they have loaded"
    return AuditReceipt(1, "00", passed=False, at_ms=NOW * 1000, summary=summary, waits=True, **fields)


@pytest.mark.parametrize("since_s", [NOW, 0], ids=["known", "of an older format"])
@pytest.mark.parametrize("files", [{"F1": 1, "F2": 2}, {"F1": 1, "F2": 2, "F9": 9}])
def test_servers_that_are_down_in_the_audit_are_tried_again_whatever_is_listed(
    table: ObservedTable, since_s: int, files: dict[str, int]
) -> None:
    attempts, now, cause = [NOW], NOW, away().summary
    while len(attempts) < 5:
        started = {"trouble_since_ms": since_s * 1000, "attempt_started_ms": attempts[-1] * 1000}
        table.opens(audit=away(), last_error=cause, **started)
        now += 30
        tick = table.tick(listing(**files), now)
        if tick.launch:
            attempts.append(now)
        else:
            assert f"trouble that may pass ({cause}), tried again in" in tick.message
    waits = [(after - before) // 60 for before, after in itertools.pairwise(attempts)]
    assert waits == ([1, 2, 4, 8] if since_s else [1, 1, 1, 1])


def test_data_that_did_not_pass_beside_them_wait_for_a_person(table: ObservedTable) -> None:
    table.opens(audit=away(of_data=True), attempt_started_ms=NOW * 1000)
    tick = table.tick(listing(F1=1, F2=2), NOW + 3600)
    assert not tick.launch
    assert "failed its audit and waits for the schedule" in tick.message


def test_one_file_that_has_to_be_repaired_makes_the_session_wait(table: ObservedTable) -> None:
    troubled(table, "VANISHED", also="UNREADABLE")
    table.seen = replace(table.seen, session=replace(table.opens(failures=REF), trouble_since_ms=0))
    tick = table.tick(listing(F1=1, F2=2), NOW + 3600)
    assert not tick.launch
    assert "sensorRetries is off" in tick.message


# --- looks that fail -----------------------------------------------------------------------------------


def test_a_cursor_knows_since_when_looks_have_failed() -> None:
    cursor = FilesCursor.read("")
    assert cursor.failing_s == 0
    for now in (NOW, NOW + 30, NOW + 9000):
        cursor = FilesCursor.read(cursor.fails(now).text)
        assert cursor.failing_s == NOW
    assert cursor.restless.failing_s == NOW
    assert cursor.works.failing_s == 0
    assert cursor.works.fails(NOW + 9030).failing_s == NOW + 9030


def test_what_was_quiet_or_launched_before_is_no_failure() -> None:
    quiet = FilesCursor("d", "s", 5, 2, quiet="q", quiet_s=NOW)
    assert (quiet.failing_s, quiet.restless.failing_s, quiet.works) == (0, 0, quiet)
    failing = quiet.fails(NOW + 30)
    assert (failing.failing_s, failing.launched, failing.times) == (NOW + 30, "d", 2)
    assert FilesCursor("d", "s", 5, 2).failing_s == 0


def test_a_clock_that_was_put_back_begins_the_row_anew() -> None:
    assert FilesCursor().fails(NOW).fails(NOW - 9000).failing_s == NOW - 9000


def test_a_look_that_succeeds_is_decided_as_if_none_had_failed(table: ObservedTable) -> None:
    files = listing(F1=1, F2=2, F3=3)
    table.tick(files)
    untroubled = table.cursor
    table.cursor = FilesCursor.read(untroubled).fails(NOW + 30).text
    tick = table.tick(files, NOW + 60)
    assert tick.message.endswith(
        f"a run of this listing was launched before, launched again in {FIRST_WAIT_S - 60} s"
    )
    assert tick.cursor == untroubled


def test_a_failed_look_is_followed_by_the_next_whatever_a_queue_tells(table: ObservedTable) -> None:
    table.tick(listing(F1=1, F2=2))
    cursor = FilesCursor.read(table.cursor)
    assert cursor.rests_s(table.spec, NOW + 60) > 0
    assert cursor.fails(NOW + 60).rests_s(table.spec, NOW + 60) == 0
    again = cursor.fails(NOW + 60).listed_anew(table.spec, NOW + 90)
    assert (again.failing_s, again.rests_s(table.spec, NOW + 90)) == (0, 900)
