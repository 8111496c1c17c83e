"""Replacing segments by others, as `pinot_assets.pinot.api.PinotClient` promises it: start, end, revert,
refusals.

Source: docs/design/lineage.md#visibility, #startreplacesegments, #endreplacesegments and
#revertreplacesegments.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from pinot_assets.errors import PinotError, SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot import LineageState
from pinot_assets.pinot.versions import takes_empty_outputs

ContractLab = Any  # conftest.ContractLab; the folders of the tests are not packages


def test_outputs_are_hidden_until_the_switch_and_sources_from_then_on(lab: ContractLab) -> None:
    lab.push("old", "kept")
    entry = lab.start({"old"}, {"new1", "new2"})
    lab.push("new1", "new2")
    assert lab.all == {"old", "kept", "new1", "new2"}
    assert lab.visible == {"old", "kept"}

    lab.end(entry)

    assert lab.visible == {"kept", "new1", "new2"}
    assert lab.all == {"old", "kept", "new1", "new2"}
    (completed,) = lab.pinot.lineage(lab.table)
    assert (completed.id, completed.state) == (entry, LineageState.COMPLETED)
    assert (completed.segments_from, completed.segments_to) == ({"old"}, {"new1", "new2"})


def test_an_entry_without_sources_adds(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start(set(), {"new"})
    lab.push("new")
    assert lab.visible == {"old"}
    lab.end(entry)
    assert lab.visible == {"old", "new"}


def test_an_entry_without_outputs_deletes_where_pinot_takes_it(lab: ContractLab) -> None:
    lab.push("old", "kept")
    refused = lab.dialect.empty_outputs_refused
    with lab.refusal(refused):
        lab.end(lab.start({"old"}, set()))
    assert lab.visible == ({"kept"} if refused is None else {"old", "kept"})
    assert takes_empty_outputs(lab.pinot.version()) == (refused is None)


def test_reverting_brings_the_sources_back_and_deletes_the_outputs(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.replace({"old"}, {"new"})
    lab.revert(entry)
    assert lab.visible == lab.all == {"old"}
    assert lab.is_reverted(entry)


def test_the_newest_of_a_chain_is_all_that_shows(lab: ContractLab) -> None:
    lab.push("a")
    first = lab.replace({"a"}, {"b"})
    second = lab.replace({"b"}, {"c"})
    assert lab.visible == {"c"}
    assert [entry.id for entry in lab.pinot.lineage(lab.table)] == [first, second]


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("segments_from", "segments_to", "why"),
    [
        pytest.param({"nosuch"}, {"x"}, "not visible: nosuch", id="source missing"),
        pytest.param({"replaced"}, {"x"}, "not visible: replaced", id="source replaced already"),
        pytest.param({"hidden"}, {"x"}, "not visible: hidden", id="source hidden"),
        pytest.param({"a"}, {"b"}, "visible already: b", id="output visible"),
        pytest.param({"busy"}, {"x"}, "IN_PROGRESS.* overlaps", id="source of an open entry"),
        pytest.param(set(), {"hidden"}, "IN_PROGRESS.* overlaps", id="output of an open entry"),
        pytest.param({"busy"}, {"hidden"}, "with exactly these names overlaps", id="the same entry again"),
        pytest.param({"a"}, {"replacement"}, "COMPLETED.* overlaps", id="output of an ended entry"),
    ],
)
def test_a_start_that_cannot_be_is_refused(
    lab: ContractLab, segments_from: set[str], segments_to: set[str], why: str
) -> None:
    lab.push("a", "b", "replaced", "busy")
    lab.replace({"replaced"}, {"replacement"})
    lab.start({"busy"}, {"hidden"})
    lab.push("hidden")
    before = lab.pinot.lineage(lab.table)
    with pytest.raises(SwitchConflict) as refusal:
        lab.start(segments_from, segments_to)
    assert re.search(why, refusal.value.why or "")
    assert lab.pinot.lineage(lab.table) == before


def test_a_start_of_nothing_or_of_a_torn_name_is_a_mistake_of_the_caller(lab: ContractLab) -> None:
    with pytest.raises(ValueError, match="a replacement of nothing"):
        lab.start(set(), set())
    with pytest.raises(ValueError, match="split in two"):
        lab.start(set(), {"a,b"})
    assert lab.pinot.lineage(lab.table).entries == ()


def test_the_names_of_a_reverted_entry_are_free_for_a_start(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.force_revert(entry)
    assert lab.start({"old"}, {"new"}) != entry


def test_names_may_be_torn_between_entries(lab: ContractLab) -> None:
    """Sources that are the outputs of one entry and foreign ones together."""
    lab.push("a", "other")
    lab.replace({"a"}, {"b"})
    lab.replace({"b", "other"}, {"c"})
    assert lab.visible == {"c"}


def test_ending_an_entry_whose_outputs_are_not_there_is_refused(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new", "more"})
    lab.push("new")
    with pytest.raises(SwitchConflict) as refusal:
        lab.end(entry)
    assert "not in the table: more" in (refusal.value.why or "")
    assert lab.visible == {"old"}
    assert lab.entry(entry).state is LineageState.IN_PROGRESS
    lab.push("more")
    lab.end(entry)
    assert lab.visible == {"new", "more"}


def test_ending_twice_does_nothing(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.replace({"old"}, {"new"})
    ended = lab.entry(entry)
    lab.end(entry)
    assert lab.entry(entry) == ended


def test_an_end_that_cannot_be_is_refused(lab: ContractLab) -> None:
    lab.push("old")
    with pytest.raises(SwitchConflict) as refusal:
        lab.end("6e1b8e6e-no-such-entry")
    assert "there is no entry" in (refusal.value.why or "")
    entry = lab.replace({"old"}, {"new"})
    lab.revert(entry)
    with pytest.raises(SwitchConflict) as refusal:
        lab.end(entry)
    assert "REVERTED" in (refusal.value.why or "")
    assert lab.visible == {"old"}


def test_r08_ending_does_not_ask_after_the_sources(unlocked_lab: ContractLab) -> None:
    """So whoever ends looks at them first (rule R8)."""
    lab = unlocked_lab
    lab.push("old", "kept")
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    lab.pinot.delete_segments(lab.table, ["old"])
    lab.end(entry)
    assert lab.visible == {"kept", "new"}


def test_what_an_end_drops_from_its_outputs_becomes_visible(narrowing_lab: ContractLab) -> None:
    """Why no end of ours has a body."""
    lab = narrowing_lab
    lab.push("old")
    entry = lab.start({"old"}, {"new", "dropped", "never pushed"})
    lab.push("new", "dropped")
    lab.inside.narrow_and_end(lab.table, entry, ["new"])
    assert lab.entry(entry).state is LineageState.COMPLETED
    assert lab.entry(entry).segments_to == {"new"}
    assert lab.visible == {"new", "dropped"}


def test_one_locked_name_keeps_a_whole_delete_from_happening(locking_lab: ContractLab) -> None:
    """Exclusive delete: sources and outputs of open entries, sources of completed ones."""
    lab = locking_lab
    lab.push("old", "free", "other")
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    for locked in ("old", "new"):
        with pytest.raises(PinotError):
            lab.pinot.delete_segments(lab.table, [locked, "free"])
    lab.end(entry)
    with pytest.raises(PinotError):
        lab.pinot.delete_segments(lab.table, ["old", "free"])
    assert lab.all == {"old", "new", "free", "other"}
    lab.pinot.delete_segments(lab.table, ["new", "free"])
    assert lab.all == {"old", "other"}


def test_an_output_that_is_deleted_meanwhile_keeps_the_switch_shut(unlocked_lab: ContractLab) -> None:
    lab = unlocked_lab
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    lab.pinot.delete_segments(lab.table, ["new"])
    lab.at_last("old")
    with pytest.raises(SwitchConflict):
        lab.end(entry)
    assert lab.visible == {"old"}


def test_reverting_what_is_open_needs_force(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    with pytest.raises(SwitchConflict):
        lab.revert(entry)
    assert lab.all == {"old", "new"}
    lab.force_revert(entry)
    assert lab.all == lab.visible == {"old"}


def test_reverts_that_cannot_be_are_refused(lab: ContractLab) -> None:
    lab.push("a")
    first = lab.replace({"a"}, {"b"})
    second = lab.replace({"b"}, {"c"})
    with pytest.raises(SwitchConflict):  # the second builds on it
        lab.revert(first)
    with pytest.raises(SwitchConflict):
        lab.revert("6e1b8e6e-no-such-entry")
    lab.revert(second)
    for revert in (lab.revert, lab.force_revert):
        with pytest.raises(SwitchConflict):  # it is reverted
            revert(second)
    assert lab.visible == {"b"}


def test_a_revert_to_deleted_sources_is_refused(unlocked_lab: ContractLab) -> None:
    lab = unlocked_lab
    lab.push("old", "kept")
    entry = lab.replace({"old"}, {"new"})
    lab.pinot.delete_segments(lab.table, ["old"])
    lab.eventually(lambda: not lab.pinot.online_replicas(lab.table, ["old"])["old"])
    with pytest.raises(SwitchConflict):
        lab.revert(entry)
    assert lab.visible == {"kept", "new"}


def test_an_open_entry_is_reverted_without_its_sources(unlocked_lab: ContractLab) -> None:
    lab = unlocked_lab
    lab.push("old", "kept")
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    lab.pinot.delete_segments(lab.table, ["old"])
    lab.force_revert(entry)
    assert lab.visible == lab.all == {"kept"}


def test_an_entry_without_sources_is_reverted_to_nothing(lab: ContractLab) -> None:
    lab.push("kept")
    entry = lab.replace(set(), {"new"})
    lab.revert(entry)
    assert lab.visible == lab.all == {"kept"}


def test_r16_what_is_pushed_under_a_reverted_entry_stays_hidden(lab: ContractLab) -> None:
    """A name once in a REVERTED entry is spent (rule R16): it hides whatever comes under that name."""
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.force_revert(entry)
    lab.push("new")
    assert (lab.all, lab.visible) == ({"old", "new"}, {"old"})


def test_lineage_goes_with_its_table(lab: ContractLab) -> None:
    lab.push("old")
    lab.replace({"old"}, {"new"})
    lab.start({"new"}, {"newer"})
    lab.pinot.delete_table(lab.table)
    lab.create_again()
    assert lab.pinot.lineage(lab.table).entries == ()
    assert lab.all == set()


# --- lost calls and lost replies ---------------------------------------------------------------------


def test_after_a_lost_start_the_lineage_tells(lab: ContractLab) -> None:
    lab.push("old")
    lab.trouble.lose_call("start_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        lab.start({"old"}, {"new"})
    assert lab.pinot.lineage(lab.table).find({"old"}, {"new"}) == ()

    lab.trouble.lose_reply("start_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        lab.start({"old"}, {"new"})
    (entry,) = lab.pinot.lineage(lab.table).find({"old"}, {"new"})
    assert entry.state is LineageState.IN_PROGRESS
    with pytest.raises(SwitchConflict):  # not idempotent
        lab.start({"old"}, {"new"})


def test_after_a_lost_end_the_lineage_tells(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.start({"old"}, {"new"})
    lab.push("new")
    lab.trouble.lose_call("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        lab.pinot.end_replace_segments(lab.table, entry)
    assert lab.pinot.lineage(lab.table).get(entry).state is LineageState.IN_PROGRESS

    lab.trouble.lose_reply("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        lab.pinot.end_replace_segments(lab.table, entry)
    assert lab.pinot.lineage(lab.table).get(entry).state is LineageState.COMPLETED
    assert lab.visible == {"new"}


def test_after_a_lost_revert_the_lineage_tells(lab: ContractLab) -> None:
    lab.push("old")
    entry = lab.replace({"old"}, {"new"})
    lab.trouble.lose_reply("revert_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        lab.pinot.revert_replace_segments(lab.table, entry)
    assert lab.pinot.lineage(lab.table).get(entry).state is LineageState.REVERTED
    assert lab.visible == {"old"}


def test_a_lost_forced_start_may_be_sent_again(lab: ContractLab) -> None:
    """The second finds the first, keeps its names and takes its place."""
    lab.push("old")
    lab.trouble.lose_reply("force_start_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        lab.force({"old"}, {"new"})
    second = lab.force({"old"}, {"new"})
    assert [entry.id for entry in lab.pinot.lineage(lab.table)] == [second]
