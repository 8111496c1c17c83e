from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot import Lineage, LineageEntry, LineageState
from pinot_assets.pinot.lineage import why_not_end, why_not_revert, why_not_start

OPEN, DONE, BACK = LineageState.IN_PROGRESS, LineageState.COMPLETED, LineageState.REVERTED


def entry(
    sources: str, outputs: str, state: LineageState = OPEN, *, name: str = "e", at: int = 0
) -> LineageEntry:
    return LineageEntry(name, frozenset(sources), frozenset(outputs), state, at)


# The rule of docs/design/lineage.md#visibility, one row each.
@pytest.mark.parametrize(
    ("entries", "visible"),
    [
        ([], "abcd"),
        ([entry("a", "b", OPEN)], "acd"),
        ([entry("a", "b", DONE)], "bcd"),
        ([entry("a", "b", BACK)], "acd"),
        ([entry("a", "b", DONE), entry("b", "c", DONE)], "cd"),
        ([entry("a", "b", DONE), entry("b", "c", OPEN)], "bd"),
        ([entry("a", "b", DONE), entry("b", "c", BACK)], "bd"),
        ([entry("", "b", OPEN)], "acd"),
        ([entry("", "b", DONE)], "abcd"),
        ([entry("a", "", DONE)], "bcd"),
        ([entry("a", "", OPEN)], "abcd"),
        # R1: a delayed start of ours behind our own end hides both sides.
        ([entry("a", "b", DONE), entry("a", "b", OPEN)], "cd"),
    ],
)
def test_visible(entries: list[LineageEntry], visible: str) -> None:
    assert Lineage(tuple(entries)).visible("abcd") == set(visible)


@pytest.mark.parametrize(("mark", "marked"), [({"autoCompleteLineageEntry": True}, True), ({}, False)])
def test_an_entry_that_completes_itself_is_told_from_others(mark: JsonObject, marked: bool) -> None:
    """`SegmentLineage.toJsonObject` of Pinot's master: the key comes from the getter's name."""
    told = {"segmentsFrom": ["a"], "segmentsTo": ["b"], "state": "IN_PROGRESS", "timestamp": 1, **mark}
    lineage = Lineage.from_json({"lineageEntries": {"e": told}})
    assert bool(lineage.open_and_self_completing()) is marked
    done = Lineage.from_json({"lineageEntries": {"e": {**told, "state": "COMPLETED"}}})
    assert not done.open_and_self_completing()


sets = st.sets(st.sampled_from("abcdef")).map("".join)
entries = st.lists(st.builds(entry, sets, sets, st.sampled_from(LineageState)), max_size=6)


@given(entries, st.randoms())
def test_the_order_of_entries_does_not_matter_and_they_only_hide(
    entries: list[LineageEntry], random: Any
) -> None:
    visible = Lineage(tuple(entries)).visible("abcdef")
    random.shuffle(entries)
    assert Lineage(tuple(entries)).visible("abcdef") == visible <= set("abcdef")
    # A segment that no entry names is always visible.
    named = set().union(*(e.segments_from | e.segments_to for e in entries))
    assert set("abcdef") - named <= visible


def reply(**entries: JsonObject) -> JsonObject:
    return {"tableNameWithType": "t_OFFLINE", "lineageEntries": entries}


def test_from_json_is_oldest_first() -> None:
    young = {"state": "COMPLETED", "timestamp": 20, "segmentsFrom": ["a"], "segmentsTo": ["b", "c"]}
    old = {"state": "REVERTED", "timestamp": 10, "segmentsFrom": [], "segmentsTo": ["d"]}
    lineage = Lineage.from_json({**reply(young=young, old=old), "customMap": {"k": "v"}})
    assert lineage.entries == (
        entry("", "d", BACK, name="old", at=10),
        entry("a", "bc", DONE, name="young", at=20),
    )


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"lineageEntries": []},
        reply(e={"state": "PAUSED", "timestamp": 1, "segmentsFrom": [], "segmentsTo": []}),
        reply(e={"state": "COMPLETED", "timestamp": 1, "segmentsFrom": []}),
        reply(e={"state": "COMPLETED", "timestamp": "?", "segmentsFrom": [], "segmentsTo": []}),
    ],
)
def test_what_is_not_a_lineage_is_refused(value: JsonObject) -> None:
    with pytest.raises(ValueError, match=r"not a lineage|PAUSED|invalid literal"):
        Lineage.from_json(value)


def test_finding() -> None:
    first, second, third = (
        entry("ab", "c", BACK, name="1"),
        entry("ba", "c", OPEN, name="2"),
        entry("a", "c", DONE, name="3"),
    )
    lineage = Lineage((first, second, third))
    assert lineage.find(["a", "b"], ["c"]) == (first, second)
    assert lineage.get("3") is third
    assert lineage.get("4") is None
    assert lineage.in_state(DONE) == (third,)
    assert lineage.overlapping(["b"], ["x"]) == (second,)
    assert lineage.overlapping([], ["c"]) == (second, third)
    assert lineage.overlapping(["c"], ["a"]) == ()
    assert lineage.naming(["c", "x"], OPEN) == (second,)


def test_why_not_start() -> None:
    lineage = Lineage((entry("a", "b", OPEN, name="e1"), entry("c", "d", BACK, name="e2")))
    assert why_not_start(lineage, "c", "c", "x") == []
    reasons = why_not_start(lineage, "acx", "az", "x")
    assert [reason.split(":")[0] for reason in reasons] == [
        "sources that are missing or not visible",
        "outputs that are visible already",
        "entry e1 (IN_PROGRESS) overlaps",
    ]
    assert why_not_start(lineage, "a", "a", "b") == [
        "entry e1 (IN_PROGRESS) with exactly these names overlaps"
    ]


def test_why_not_end() -> None:
    lineage = Lineage((entry("a", "bc", OPEN, name="e1"), entry("c", "d", BACK, name="e2")))
    assert why_not_end(lineage, "ab", "e1") == ["outputs that are not in the table: c"]
    assert why_not_end(lineage, "abc", "e1") == []
    assert why_not_end(lineage, "abc", "e2") == ["the entry is REVERTED"]
    assert why_not_end(lineage, "abc", "e3") == ["there is no entry e3"]


def test_why_not_revert() -> None:
    lineage = Lineage((entry("a", "b", DONE, name="e1"), entry("b", "c", OPEN, name="e2")))
    assert why_not_revert(lineage, "abc", "e1") == ["entry e2 (IN_PROGRESS) builds on it"]
    assert why_not_revert(lineage, "b", "e1")[0] == "sources that are missing: a"
    assert why_not_revert(lineage, "abc", "e2") == ["the entry is IN_PROGRESS"]
    assert why_not_revert(lineage, "abc", "e3") == ["there is no entry e3"]


def test_a_long_list_of_names_is_cut() -> None:
    names = [f"s{n:03}" for n in range(500)]
    (reason,) = why_not_start(Lineage(), [], names, [])
    assert reason.endswith("s004 and 495 more")
