"""Whether there is a way back, and until when (R22)."""

from __future__ import annotations

from dataclasses import replace

from fakes.looked import looked

from pinot_assets.core.check_result import HOUR_MS, CheckResult
from pinot_assets.health import serving
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.session.values.state import Mode, ObjectRef, Session
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Fingerprint, Output

NOW, WINDOW = 100 * HOUR_MS, 20 * HOUR_MS
OLD, NEW = "t__cp1-aaaaaa_0_0_0", "t__cp2-bbbbbb_0_0_0"


def snapshot(*names: str, parent: SnapshotRef | None = None, age_h: float = 5) -> Snapshot:
    files = tuple(
        PublishedFile(n, Fingerprint(1, 1), "h", 1, 0, "cp", (Output(n, 1, 1, "u", 1, "h", "m"),))
        for n in names
    )
    published = int(NOW - age_h * HOUR_MS)
    return Snapshot(2, "t_OFFLINE", "cp2-bbbbbb", "SYNC", "e", parent, "d", "c", published, files)


FIRST = snapshot(OLD)
SECOND = snapshot(NEW, parent=SnapshotRef("k", "h"))


def lineage(age_h: float = 5) -> Lineage:
    stamp = int(NOW - age_h * HOUR_MS)
    entry = LineageEntry("e", frozenset({OLD}), frozenset({NEW}), LineageState.COMPLETED, stamp)
    return Lineage((entry,))


def rollback_window(
    current: Snapshot | None,
    before: Snapshot | None,
    lineage: Lineage,
    segments: set[str],
    session: Session | None,
) -> CheckResult:
    return serving.rollback_window(
        looked(
            NOW,
            snapshot=current,
            before=before,
            lineage=lineage,
            segments=segments,
            session=session,
            revert_window_ms=WINDOW,
        )
    )


def test_the_way_back_and_its_end() -> None:
    answer = rollback_window(SECOND, FIRST, lineage(), {OLD, NEW}, None)
    assert (answer.passed, answer.expected, answer.found) == (True, 20, 15)
    assert "`pinot-assets rollback t` reverts cp2-bbbbbb (1 segment) until 1970-01-05 19:00:00 UTC" in (
        answer.message
    )
    assert answer.numbers == {"rollback_hours_left": 15}


def test_nothing_to_go_back_to_is_no_fault() -> None:
    assert rollback_window(None, None, Lineage(), set(), None).passed
    answer = rollback_window(FIRST, None, Lineage(), {OLD}, None)
    assert (answer.passed, answer.found) == (True, 0)
    assert "no snapshot before this one" in answer.message


def test_a_window_that_closed_in_time_is_no_fault() -> None:
    answer = rollback_window(SECOND, FIRST, lineage(20.5), {OLD, NEW}, None)
    assert (answer.passed, answer.found) == (True, 0)
    assert "a rollback is only possible by publishing" in answer.message


def test_replaced_segments_that_are_gone_too_early() -> None:
    answer = rollback_window(SECOND, FIRST, lineage(), {NEW}, None)
    assert (answer.passed, answer.found) == (False, 0)
    assert "sources that are missing" in answer.message
    assert "tars of kept snapshots" in answer.next_step


def test_an_entry_that_somebody_removed() -> None:
    answer = rollback_window(SECOND, FIRST, Lineage(), {OLD, NEW}, None)
    assert not answer.passed
    assert "there is no entry e" in answer.message


def test_a_switch_that_only_added_may_be_forgotten() -> None:
    added = replace(snapshot(OLD, NEW), parent=SnapshotRef("k", "h"))
    answer = rollback_window(added, FIRST, Lineage(), {OLD, NEW}, None)
    assert (answer.passed, answer.found) == (True, 0)


def test_a_later_entry_that_builds_on_it() -> None:
    later = LineageEntry("f", frozenset({NEW}), frozenset({"m"}), LineageState.IN_PROGRESS, NOW)
    answer = rollback_window(SECOND, FIRST, Lineage((*lineage(), later)), {OLD, NEW}, None)
    assert not answer.passed
    assert "entry f (IN_PROGRESS) builds on it" in answer.message


def test_the_open_sessions_own_entry_only_has_to_end_first() -> None:
    session = Session("cp3-cccccc", 3, Mode.SYNC, "c", NOW, ObjectRef("p", "h"), lineage_entry_id="f")
    later = LineageEntry("f", frozenset({NEW}), frozenset({"x"}), LineageState.IN_PROGRESS, NOW)
    answer = rollback_window(SECOND, FIRST, Lineage((*lineage(), later)), {OLD, NEW}, session)
    assert (answer.passed, answer.found) == (True, 15)
    assert "after session cp3-cccccc has ended" in answer.message


def test_a_rollback_under_way_is_no_fault() -> None:
    session = Session("cp3-cccccc", 3, Mode.ROLLBACK, "c", NOW, ObjectRef("p", "h"), lineage_entry_id="e")
    reverted = Lineage((replace(next(iter(lineage())), state=LineageState.REVERTED),))
    answer = rollback_window(SECOND, FIRST, reverted, {OLD}, session)
    assert answer.passed
    assert "cp3-cccccc is rolling" in answer.message
