"""A start with force: what of others it reverts and deletes (docs/design/lineage.md#forced-start).

No start of ours forces anything of others away (rule R4, edge case E22); these are the reasons.
"""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.errors import SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot import LineageState

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages


def test_a_forced_start_with_the_same_names_takes_the_entry_over(lab: ContractLab) -> None:
    lab.push("old")
    first = lab.start({"old"}, {"new"})
    lab.push("new")
    second = lab.force({"old"}, {"new"})
    assert [entry.id for entry in lab.pinot.lineage(lab.table)] == [second] != [first]
    assert (lab.all, lab.visible) == ({"old", "new"}, {"old"})


def test_a_forced_start_deletes_what_it_does_not_keep(lab: ContractLab) -> None:
    lab.push("old")
    first = lab.start({"old"}, {"stale", "new"})
    lab.push("stale", "new")
    second = lab.force({"old"}, {"new", "more"})
    lineage = lab.pinot.lineage(lab.table)
    assert (lineage.get(first).state, lineage.get(first).segments_to) == (
        LineageState.REVERTED,
        {"stale"},
    )
    assert lineage.get(second).state is LineageState.IN_PROGRESS
    assert (lab.all, lab.visible) == ({"old", "new"}, {"old"})
    with pytest.raises(SwitchConflict):
        lab.end(first)


def test_r04_a_forced_start_leaves_a_disjoint_entry_alone(lab: ContractLab) -> None:
    lab.push("a", "b")
    first = lab.start({"a"}, {"new"})
    lab.force({"b"}, {"other"})
    assert lab.entry(first).state is LineageState.IN_PROGRESS


def test_a_forced_start_keeps_two_snapshots_of_a_refresh_table(lab: ContractLab) -> None:
    lab.push("a")
    first = lab.replace({"a"}, {"b"})
    lab.force({"b"}, {"c"})
    assert lab.all == {"b"}
    with pytest.raises(SwitchConflict):  # no way back
        lab.revert(first)


def test_e22_a_forced_start_takes_over_what_overlaps_in_its_sources_only(lab: ContractLab) -> None:
    lab.push("old")
    first = lab.start({"old"}, {"stale"})
    lab.push("stale")
    second = lab.force({"old"}, {"new"})
    assert lab.is_reverted(first)
    assert lab.entry(second).state is LineageState.IN_PROGRESS
    lab.at_last("old")


def test_a_forced_start_takes_over_what_overlaps_in_its_outputs_only(lab: ContractLab) -> None:
    lab.push("a", "b")
    first = lab.start({"a"}, {"new", "stale"})
    lab.push("new", "stale")
    second = lab.force({"b"}, {"new"})
    assert lab.is_reverted(first)
    former = lab.entry(first)
    assert former is None or former.segments_to == {"stale"}
    lab.at_last("a", "b", "new")
    lab.end(second)
    assert lab.visible == {"a", "new"}


def test_forced_additions_do_not_disturb_each_other(lab: ContractLab) -> None:
    first, second = lab.force(set(), {"a"}), lab.force(set(), {"b"})
    lab.push("a", "b")
    lab.end(second)
    lab.end(first)
    assert lab.visible == {"a", "b"}


def test_a_forced_start_deletes_the_outputs_of_reverted_entries(lab: ContractLab) -> None:
    lab.push("old", "kept")
    entry = lab.start({"old"}, {"stale"})
    lab.force_revert(entry)
    lab.push("stale")  # a late upload of somebody whose entry is gone
    assert lab.all == {"old", "kept", "stale"}
    lab.force({"kept"}, {"new"})
    lab.at_last("old", "kept")
    assert lab.is_reverted(entry)


def test_r16_a_forced_start_deletes_reverted_names_that_it_takes_itself(lab: ContractLab) -> None:
    lab.push("old")
    lab.force_revert(lab.start({"old"}, {"new"}))
    lab.push("new")
    lab.force({"old"}, {"new"})
    lab.at_last("old")


@pytest.mark.parametrize(
    "segments_from",
    [pytest.param({"b"}, id="a part"), pytest.param({"b", "c", "d"}, id="more")],
)
def test_a_forced_start_keeps_the_generation_before_unless_it_replaces_just_the_last(
    lab: ContractLab, segments_from: set[str]
) -> None:
    lab.push("a", "d")
    first = lab.replace({"a"}, {"b", "c"})
    lab.force(segments_from, {"e"})
    lab.eventually(lambda: lab.all >= {"b", "c", "d"})
    assert "a" in lab.all
    assert lab.entry(first).state is LineageState.COMPLETED


def test_a_forced_start_deletes_no_generation_of_an_append_table(lab: ContractLab) -> None:
    lab.appends()
    lab.push("a")
    lab.replace({"a"}, {"b"})
    lab.force({"b"}, {"c"})
    assert lab.all == {"a", "b"}


def test_r04_a_forced_start_takes_an_entry_away_under_its_owner(lab: ContractLab) -> None:
    lab.push("old")
    first = lab.start({"old"}, {"new"})
    lab.push("new")
    lab.force({"old"}, {"other"})
    with pytest.raises(SwitchConflict):
        lab.end(first)
    with pytest.raises(SwitchConflict):
        lab.revert(first)
    lab.at_last("old")


@pytest.mark.parametrize(
    ("segments_from", "segments_to"),
    [
        pytest.param({"nosuch"}, {"x"}, id="source missing"),
        pytest.param({"replaced"}, {"x"}, id="source replaced already"),
        pytest.param({"hidden"}, {"x"}, id="source hidden"),
        pytest.param({"a"}, {"b"}, id="output visible"),
    ],
)
def test_force_does_not_help_against_what_is_visible(
    lab: ContractLab, segments_from: set[str], segments_to: set[str]
) -> None:
    lab.push("a", "b", "replaced")
    lab.replace({"replaced"}, {"replacement"})
    lab.start(set(), {"hidden"})
    lab.push("hidden")
    before = lab.pinot.lineage(lab.table)
    with pytest.raises(SwitchConflict):
        lab.force(segments_from, segments_to)
    assert lab.pinot.lineage(lab.table) == before


def test_a_forced_start_that_deletes_may_answer_late(lab: ContractLab) -> None:
    lab.push("a")
    lab.replace({"a"}, {"b"})
    late = pytest.raises(SwitchStateUnknown) if lab.dialect.forced_start_waits else lab.refusal(None)
    with lab.hurried() as hurried, late:
        hurried.force_start_replace_segments(lab.table, {"b"}, {"c"})
    (entry,) = lab.pinot.lineage(lab.table).find({"b"}, {"c"})
    assert entry.state is LineageState.IN_PROGRESS
    lab.at_last("b")
