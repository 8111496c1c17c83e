"""What becomes of a start that checked, was slow, and wrote when others had written in between.

Source: docs/design/lineage.md#races. Each of these is why a rule of docs/design/session.md#rules exists.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from pinot_assets.errors import SwitchConflict
from pinot_assets.pinot import LineageEntry, LineageState

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages


def of_another(segments_from: set[str], segments_to: set[str]) -> LineageEntry:
    """An entry as another controller writes it."""
    now_ms = time.time_ns() // 1_000_000
    names = frozenset(segments_from), frozenset(segments_to)
    return LineageEntry("0a0a0a0a-of-another-controller", *names, LineageState.IN_PROGRESS, now_ms)


def test_r01_a_forced_start_that_lands_after_the_end_hides_both_sides(racing_lab: ContractLab) -> None:
    lab = racing_lab
    lab.push("old")
    ours = lab.start({"old"}, {"new"})
    lab.push("new")
    # The delayed start of ours is checked while the outputs are hidden, and written when they are not.
    lab.in_between(lab.rewriting(ours, state=LineageState.COMPLETED))
    late = lab.force({"old"}, {"new"})
    assert lab.entry(ours).state is LineageState.COMPLETED
    assert lab.entry(late).state is LineageState.IN_PROGRESS
    assert lab.visible == set()
    assert lab.all == {"old", "new"}

    # The way out: what the late entry hides, ending it shows; its outputs are there already.
    lab.end(late)
    assert lab.visible == {"new"}


def test_r01_reverting_that_late_entry_deletes_what_was_published(racing_lab: ContractLab) -> None:
    lab = racing_lab
    lab.push("old", "kept")
    ours = lab.start({"old"}, {"new"})
    lab.push("new")
    lab.in_between(lab.rewriting(ours, state=LineageState.COMPLETED))
    late = lab.force({"old"}, {"new"})
    lab.force_revert(late)
    lab.at_last("old", "kept")
    assert lab.visible == {"kept"}


def test_r01_the_way_out_as_the_rule_has_it(racing_lab: ContractLab) -> None:
    """A forced start of the sources that are still visible and the same outputs, then its end."""
    lab = racing_lab
    lab.push("old", "kept")
    ours = lab.start({"old", "kept"}, {"new"})
    lab.push("new")
    lab.in_between(lab.rewriting(ours, state=LineageState.COMPLETED))
    lab.force({"old", "kept"}, {"new"})
    assert lab.visible == set()
    again = lab.force(set(), {"new"})
    assert lab.all == {"old", "kept", "new"}  # the names that it keeps are not deleted
    lab.end(again)
    assert lab.visible == {"new"}


def test_r06_the_first_entry_of_a_table_can_be_lost_to_another_controller(racing_lab: ContractLab) -> None:
    lab = racing_lab
    lab.push("a", "b")
    other = of_another({"a"}, {"a2"})
    lab.in_between(lambda: lab.inside.put_entry(lab.table, other))
    ours = lab.start({"b"}, {"b2"})
    assert [entry.id for entry in lab.pinot.lineage(lab.table)] == [ours]


def test_later_entries_are_not_lost(racing_lab: ContractLab) -> None:
    lab = racing_lab
    lab.push("a", "b", "c")
    lab.replace({"c"}, {"c2"})
    other = of_another({"a"}, {"a2"})
    lab.in_between(lambda: lab.inside.put_entry(lab.table, other))
    ours = lab.start({"b"}, {"b2"})
    assert {entry.id for entry in lab.pinot.lineage(lab.table)} >= {ours, other.id}


def test_a_start_that_meets_an_overlapping_one_is_refused_after_all(racing_lab: ContractLab) -> None:
    lab = racing_lab
    lab.push("a", "c")
    lab.replace({"c"}, {"c2"})
    other = of_another({"a"}, {"a2"})
    lab.in_between(lambda: lab.inside.put_entry(lab.table, other))
    with pytest.raises(SwitchConflict):
        lab.start({"a"}, {"a3"})
    assert lab.pinot.lineage(lab.table).find({"a"}, {"a3"}) == ()


def test_a_forced_start_may_delete_what_was_published_while_it_tried(racing_lab: ContractLab) -> None:
    """Its list of what to delete is made in every try and never cleared: why nothing of others is forced away
    (R4), and why the outputs are looked at again after a start (E9)."""
    lab = racing_lab
    lab.push("old", "kept")
    other = lab.start({"old"}, {"theirs"})
    lab.push("theirs")
    lab.in_between(lab.rewriting(other, state=LineageState.COMPLETED))
    lab.force({"old", "kept"}, {"ours"})
    assert lab.entry(other).state is LineageState.COMPLETED
    lab.at_last("old", "kept")  # their published segment is gone
    assert lab.visible == {"kept"}
