"""What Pinot's retention does to lineage, at once and after a day.

Source: docs/design/lineage.md#retention-and-clean-up, E9.
"""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.errors import SwitchConflict
from pinot_assets.pinot import LineageState

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages


# --- IN_PROGRESS -----------------------------------------------------------------------------------------


def test_e09_an_open_entry_is_left_alone_for_a_day(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    lab.age(entry, hours=23)
    lab.retention()
    assert (lab.all, lab.visible) == ({"old", "new"}, {"old"})
    lab.end(entry)
    assert lab.visible == {"new"}


def test_e09_of_an_open_entry_the_segments_go_first_and_the_entry_in_a_later_pass(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new", "more"})
    lab.push("new")
    lab.age(entry, hours=25)

    lab.retention()
    lab.at_last("old")
    assert lab.entry(entry).state is LineageState.IN_PROGRESS  # never REVERTED
    with pytest.raises(SwitchConflict) as refusal:
        lab.end(entry)
    assert "not in the table" in (refusal.value.why or "")

    lab.retention()
    assert lab.entry(entry) is None
    for call in (lab.end, lab.revert, lab.force_revert):
        with pytest.raises(SwitchConflict) as refusal:
            call(entry)
        assert "there is no entry" in (refusal.value.why or "")
    assert lab.visible == {"old"}


def test_e09_what_is_pushed_between_the_passes_goes_with_the_next(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    lab.age(entry, hours=25)
    lab.retention()
    lab.at_last("old")
    lab.push("new")  # hidden still
    assert lab.visible == {"old"}
    lab.retention()
    lab.at_last("old")
    assert lab.entry(entry).state is LineageState.IN_PROGRESS


def test_e09_an_upload_after_the_entry_has_gone_is_visible_at_once(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.age(entry, hours=25)
    lab.retention()
    assert lab.entry(entry) is None  # nothing was pushed, so one pass is enough
    lab.push("new")
    assert lab.visible == {"old", "new"}


def test_e09_the_names_are_free_again_for_a_new_entry(lab: ContractLab) -> None:
    lab.push("old")
    lab.age(lab.start({"old"}, {"new"}), hours=25)
    lab.push("new")
    lab.retention()
    lab.at_last("old")
    lab.retention()
    lab.replace({"old"}, {"new"})
    assert lab.visible == {"new"}


def test_e09_an_old_entry_that_is_ended_in_time_is_safe(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    lab.age(entry, hours=25)
    lab.end(entry)  # and the age counts from here
    lab.retention()
    assert (lab.all, lab.visible) == ({"old", "new"}, {"new"})


# --- REVERTED --------------------------------------------------------------------------------------------


def test_a_reverted_entry_goes_at_once_when_its_segments_are_gone(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.replace({"old"}, {"new"})
    lab.revert(entry)
    lab.at_last("old")
    lab.retention()
    assert lab.entry(entry) is None


def test_of_a_reverted_entry_too_the_segments_go_first(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"late"})
    lab.force_revert(entry)
    lab.push("late")
    lab.retention()
    lab.at_last("old")
    assert lab.entry(entry).state is LineageState.REVERTED
    lab.retention()
    assert lab.entry(entry) is None


# --- COMPLETED -------------------------------------------------------------------------------------------


def test_e31_the_sources_of_a_refresh_table_are_kept_for_a_day(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.replace({"old"}, {"new"})
    lab.age(entry, hours=23)
    lab.retention()
    assert lab.all == {"old", "new"}
    lab.revert(entry)
    assert lab.visible == {"old"}


def test_e31_after_a_day_the_sources_go_and_then_the_entry(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.replace({"old"}, {"new"})
    lab.age(entry, hours=25)
    lab.retention()
    lab.at_last("new")
    assert lab.entry(entry).state is LineageState.COMPLETED
    with pytest.raises(SwitchConflict) as refusal:  # no way back
        lab.revert(entry)
    assert "sources that are missing: old" in (refusal.value.why or "")
    lab.retention()
    assert lab.entry(entry) is None
    assert lab.visible == {"new"}


def test_e31_the_sources_of_an_append_table_go_at_once_or_after_hours(lab: ContractLab) -> None:
    lab.appends()
    lab.push("old")
    entry = lab.replace({"old"}, {"new"})
    if hours := lab.dialect.append_keeps_hours:
        lab.age(entry, hours=hours - 1)
        lab.retention()
        assert lab.all == {"old", "new"}
        lab.age(entry, hours=2)
    lab.retention()
    lab.at_last("new")
    assert lab.entry(entry).state is LineageState.COMPLETED
    lab.retention()
    assert lab.entry(entry) is None


def test_an_addition_loses_its_entry_at_once_and_with_it_the_way_back(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.replace(set(), {"new"})
    lab.retention()
    assert lab.entry(entry) is None
    assert lab.visible == {"old", "new"}
    with pytest.raises(SwitchConflict):
        lab.revert(entry)


def test_one_pass_looks_at_every_entry_by_itself(lab: ContractLab) -> None:
    lab.push("a", "b", "c")
    old = lab.replace({"a"}, {"a2"})
    young = lab.replace({"b"}, {"b2"})
    stale = lab.start({"c"}, {"c2"})
    lab.push("c2")
    lab.age(old, hours=30)
    lab.age(stale, hours=30)
    lab.retention()
    lab.at_last("a2", "b", "b2", "c")
    lab.retention()
    assert [entry.id for entry in lab.pinot.lineage(lab.table)] == [young]
    assert lab.visible == {"a2", "b2", "c"}
