"""What nothing refers to, and what is referred to and is not there."""

from __future__ import annotations

from collections.abc import Collection

from fakes.looked import looked

from pinot_assets.core.check_result import CheckResult, Severity
from pinot_assets.health import leftovers
from pinot_assets.health.leftovers import (
    TOLERATED_BYTES,
    unreferenced,
)
from pinot_assets.health.readings import ReferencedObjects
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.snapshot.receipt import Output

OLD, NOW, NEXT = "t__cp1-aaaaaa_0_0_0", "t__cp2-bbbbbb_0_0_0", "t__cp3-cccccc_0_0_0"
NOTHING = Lineage()
NODES = ["cp1", "cp2"]


def output(name: str) -> Output:
    return Output(name, 1, 1, f"file:///s/segments/{name}.tar.gz", 100, "h", "m")


def staged(*names: str, size: int = 100) -> dict[str, int]:
    tars = {f"segments/{n}.tar.gz": size for n in names}
    return tars | {f"segments/{n}.metadata.tar.gz": 1 for n in names}


WANTED = ReferencedObjects(True, {NOW}, {NOW: output(NOW)}, "")


def entry(state: LineageState, segments_from: set[str], segments_to: set[str]) -> Lineage:
    return Lineage((LineageEntry("e", frozenset(segments_from), frozenset(segments_to), state, 0),))


def orphans(
    lineage: Lineage,
    segments: set[str],
    session_nodes: list[str],
    staged: dict[str, int],
    wanted: ReferencedObjects,
    later: Collection[str] = (),
) -> CheckResult:
    return leftovers.orphans(
        looked(
            lineage=lineage,
            segments=segments,
            session_nodes=session_nodes,
            staged=staged,
            referenced=wanted,
            published_later=later,
        )
    )


def staged_tars(staged: dict[str, int], wanted: ReferencedObjects) -> CheckResult:
    return leftovers.staged_tars(looked(staged=staged, referenced=wanted))


def test_nothing_is_left_over() -> None:
    answer = orphans(NOTHING, {NOW}, NODES, staged(NOW), WANTED)
    assert (answer.passed, answer.found) == (True, 0)


def test_a_visible_stray_is_an_error_that_the_next_trigger_mends() -> None:
    answer = orphans(NOTHING, {OLD, NOW}, NODES, {}, WANTED)
    assert (answer.passed, answer.severity, answer.found) == (False, Severity.ERROR, 1)
    assert OLD in answer.message
    assert "every trigger deletes them" in answer.next_step


def test_what_came_after_a_restored_pointer_is_no_stray() -> None:
    answer = orphans(NOTHING, {OLD, NOW}, NODES, {}, WANTED, later={OLD})
    assert (answer.passed, answer.severity, answer.found) == (False, Severity.ERROR, 1)
    assert "than ZooKeeper's pointer names" in answer.message
    assert "deletes" not in answer.next_step
    assert "was a backup restored?" in answer.next_step


def test_visible_segments_without_any_ledger_become_the_ledger_of_a_run() -> None:
    answer = orphans(NOTHING, {NOW}, [], {}, ReferencedObjects(False, set(), {}, ""))
    assert answer.severity is Severity.ERROR
    assert "`pinot-assets run t`): it makes the ledger from them" in answer.next_step
    assert "delete the table spec" in answer.next_step


def test_a_hidden_stray_is_a_warning() -> None:
    lineage = entry(LineageState.IN_PROGRESS, {NOW}, {NEXT})
    answer = orphans(lineage, {NOW, NEXT}, NODES, {}, WANTED)
    assert (answer.passed, answer.severity) == (False, Severity.WARN)
    assert answer.numbers["segments_hidden"] == 1
    assert "/delete" in answer.next_step


def test_what_an_open_switch_or_a_way_back_needs_is_no_orphan() -> None:
    opened = entry(LineageState.IN_PROGRESS, {NOW}, {NEXT})
    wanted = ReferencedObjects(True, {NOW, NEXT}, WANTED.tars, "cp3-cccccc")
    assert orphans(opened, {NOW, NEXT}, NODES, {}, wanted).passed
    ended = entry(LineageState.COMPLETED, {OLD}, {NOW})
    assert orphans(ended, {OLD, NOW}, NODES, {}, WANTED).passed
    reverted = entry(LineageState.REVERTED, {NOW}, {NEXT})
    assert orphans(reverted, {NOW, NEXT}, NODES, {}, WANTED).passed


def test_foreign_segments_are_not_ours_to_judge() -> None:
    assert orphans(NOTHING, {NOW, "by_hand", "u__cp1-aaaaaa_0_0_0"}, NODES, {}, WANTED).passed


def test_session_nodes_beyond_those_that_are_kept() -> None:
    answer = orphans(NOTHING, {NOW}, ["cp1", "cp2", "cp3"], {}, WANTED)
    assert (answer.passed, answer.numbers["session_nodes"]) == (False, 1)
    assert "(cp1)" in answer.message


def test_tars_in_use_and_of_the_open_session_are_referred_to() -> None:
    there = staged(OLD, NOW, NEXT) | {"sessions/cp1-aaaaaa/plan-0-x.parquet": 5, "snapshots/1-x.json": 5}
    left = unreferenced("t", there, {NOW}, "cp3-cccccc")
    assert list(left) == [f"segments/{OLD}.metadata.tar.gz", f"segments/{OLD}.tar.gz"]
    assert sum(left.values()) == 101


def test_superseded_tars_are_counted_and_tolerated_until_they_pile_up() -> None:
    answer = orphans(NOTHING, {NOW}, NODES, staged(OLD, NOW), WANTED)
    assert answer.passed
    assert (answer.numbers["staged_objects"], answer.numbers["staged_bytes"]) == (2, 101)
    pile = staged(NOW) | staged(OLD, size=TOLERATED_BYTES + 1)
    answer = orphans(NOTHING, {NOW}, NODES, pile, WANTED)
    assert (answer.passed, answer.severity) == (False, Severity.WARN)
    assert "snapshotsToKeep" in answer.next_step
    assert "pinot-assets gc t" in answer.next_step
    assert answer.found == 2


def test_every_tar_in_use_is_there() -> None:
    answer = staged_tars(staged(NOW), WANTED)
    assert (answer.passed, answer.expected, answer.found) == (True, 1, 1)


def test_a_tar_that_is_gone_or_torn_is_an_error() -> None:
    answer = staged_tars({}, WANTED)
    assert (answer.severity, answer.expected, answer.found) == (Severity.ERROR, 1, 0)
    assert f"1 tar is missing ({NOW})" in answer.message
    assert "restore" in answer.next_step
    torn = staged_tars(staged(NOW, size=99), WANTED)
    assert (torn.severity, torn.numbers["tars_torn"]) == (Severity.ERROR, 1)
