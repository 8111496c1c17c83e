"""A clean lineage: nothing open but the open session's, nothing published hidden."""

from __future__ import annotations

from dataclasses import replace

from fakes.looked import looked

from pinot_assets.core.check_result import HOUR_MS, CheckResult, Severity
from pinot_assets.health import serving
from pinot_assets.health.serving import owned
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.session.values.state import Mode, ObjectRef, Session

NOW, LIMIT = 100 * HOUR_MS, 20 * HOUR_MS
OLD, NEW = "t__cp1-aaaaaa_0_0_0", "t__cp2-bbbbbb_0_0_0"
SESSION = Session("cp2-bbbbbb", 2, Mode.SYNC, "c", NOW, ObjectRef("p", "h"), lineage_entry_id="e1")


def entry(
    state: LineageState, segments_from: set[str], segments_to: set[str], age_h: float = 0, name: str = "e1"
) -> LineageEntry:
    stamp = int(NOW - age_h * HOUR_MS)
    return LineageEntry(name, frozenset(segments_from), frozenset(segments_to), state, stamp)


def lineage_clean(
    lineage: Lineage, segments: set[str], published: set[str], session: Session | None, limit_ms: int = LIMIT
) -> CheckResult:
    return serving.lineage_clean(
        looked(
            NOW,
            lineage=lineage,
            segments=segments,
            served=dict.fromkeys(published),
            session=session,
            entry_renewed_ms=limit_ms,
        )
    )


def test_the_open_sessions_own_entry_is_clean() -> None:
    lineage = Lineage((entry(LineageState.IN_PROGRESS, {OLD}, {NEW}, 1),))
    answer = lineage_clean(lineage, {OLD, NEW}, {OLD}, SESSION)
    assert answer.passed
    assert answer.numbers["entries_open"] == 1
    assert answer.numbers["oldest_open_hours"] == 1.0


def test_so_is_one_whose_id_the_session_has_not_stored_yet() -> None:
    lineage = Lineage((entry(LineageState.IN_PROGRESS, {OLD}, {NEW}),))
    session = replace(SESSION, lineage_entry_id="")
    assert lineage_clean(lineage, {OLD, NEW}, {OLD}, session).passed


def test_a_published_switch_is_clean() -> None:
    lineage = Lineage((entry(LineageState.COMPLETED, {OLD}, {NEW}),))
    assert lineage_clean(lineage, {OLD, NEW}, {NEW}, None).passed


def test_an_open_entry_of_somebody_else() -> None:
    lineage = Lineage((entry(LineageState.IN_PROGRESS, {OLD}, {"merged_0"}, 3),))
    answer = lineage_clean(lineage, {OLD}, {OLD}, None)
    assert (answer.passed, answer.severity, answer.found) == (False, Severity.WARN, 1)
    assert "e1 (IN_PROGRESS, foreign, 3.0 h) → merged_0" in answer.message
    assert "ask their owner" in answer.next_step
    assert answer.numbers["entries_foreign"] == 1


def test_an_open_entry_that_completes_itself() -> None:
    own = entry(LineageState.IN_PROGRESS, {OLD}, {"merged_0"}, 3)
    answer = lineage_clean(Lineage((replace(own, completes_itself=True),)), {OLD}, {OLD}, None)
    assert not answer.passed
    assert "autoCompleteLineageEntry" in answer.message
    assert "until they are completed" in answer.next_step


def test_an_open_entry_of_ours_without_its_session() -> None:
    lineage = Lineage((entry(LineageState.IN_PROGRESS, {OLD}, {NEW}),))
    answer = lineage_clean(lineage, {OLD, NEW}, {OLD}, None)
    assert (answer.passed, answer.severity) == (False, Severity.WARN)
    assert "segmentLineageEntryId=e1" in answer.next_step


def test_the_sessions_entry_grows_too_old() -> None:
    lineage = Lineage((entry(LineageState.IN_PROGRESS, {OLD}, {NEW}, 21),))
    answer = lineage_clean(lineage, {OLD, NEW}, {OLD}, SESSION)
    assert not answer.passed
    assert "waited for 21.0 h" in answer.message
    assert answer.numbers["entries_too_old"] == 1
    assert lineage_clean(lineage, {OLD, NEW}, {OLD}, SESSION, 22 * HOUR_MS).passed


def test_published_segments_that_a_merge_task_hides_are_an_error() -> None:
    lineage = Lineage((entry(LineageState.COMPLETED, {OLD}, {"merged_0"}),))
    answer = lineage_clean(lineage, {OLD, "merged_0"}, {OLD}, None)
    assert (answer.severity, answer.numbers["segments_hidden"]) == (Severity.ERROR, 1)
    assert "merge or rollup" in answer.next_step


def test_a_late_start_over_published_segments_is_an_error_that_the_next_trigger_mends() -> None:
    lineage = Lineage((entry(LineageState.IN_PROGRESS, set(), {NEW}),))
    answer = lineage_clean(lineage, {NEW}, {NEW}, None)
    assert answer.severity is Severity.ERROR
    assert "run t" in answer.next_step


def test_whose_an_entry_is() -> None:
    assert owned("t", entry(LineageState.COMPLETED, {"foreign"}, {NEW}))  # our swap
    assert owned("t", entry(LineageState.COMPLETED, {OLD}, set()))  # our removal
    assert not owned("t", entry(LineageState.COMPLETED, {OLD}, {"merged_0"}))
    assert not owned("other", entry(LineageState.COMPLETED, set(), {NEW}))
