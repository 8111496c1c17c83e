"""The order in which a sensor comes to the tables of a location."""

from __future__ import annotations

import pytest

from pinot_assets.errors import NeedsNewerRelease
from pinot_assets.scheduling.rounds import SessionsCursor, due, in_turn

MINUTE = {"a": 60.0, "b": 60.0, "c": 60.0}


@pytest.mark.parametrize(
    ("after", "order"), [("", "abc"), ("a", "bca"), ("bb", "cab"), ("c", "abc"), ("z", "abc")]
)
def test_the_next_tick_goes_on_behind_the_last_table(after: str, order: str) -> None:
    assert "".join(in_turn(["c", "a", "b"], after)) == order


def test_what_was_never_looked_at_is_due_beginning_behind_the_last_table() -> None:
    assert due(MINUTE, {}, (), 0.0, "a") == ["b", "c", "a"]


def test_a_table_is_due_when_its_own_time_has_come() -> None:
    intervals, looked_s = {"a": 60.0, "b": 600.0}, {"a": 0.0, "b": 0.0}
    assert due(intervals, looked_s, (), 59.0) == []
    assert due(intervals, looked_s, (), 60.0) == ["a"]
    assert due(intervals, looked_s, (), 600.0) == ["a", "b"]


def test_the_longest_unseen_comes_first() -> None:
    assert due(MINUTE, {"a": 30.0, "b": 10.0, "c": 20.0}, (), 100.0) == ["b", "c", "a"]


def test_a_changed_table_does_not_wait_and_keeps_no_other_one_waiting() -> None:
    looked_s = {"a": 0.0, "b": 0.0, "c": 99.0}
    assert due(MINUTE, looked_s, {"c"}, 100.0) == ["c", "a", "b"]
    busy = dict.fromkeys("abcdef", 60.0)
    order = due(busy, dict.fromkeys("abcdef", 0.0), set("abcd"), 100.0)
    assert order[:4] == ["a", "e", "b", "f"]


def test_every_table_has_its_turn_however_many_change() -> None:
    """One table a tick, and all but one change all the time."""
    names = [f"t{number}" for number in range(10)]
    looked_s, now_s = dict.fromkeys(names, 0.0), 1000.0
    seen = set()
    for _ in range(21):
        first, second, *_ = due(dict.fromkeys(names, 60.0), looked_s, set(names[1:]), now_s)
        for name in (first, second):
            seen.add(name)
            looked_s[name] = now_s
        now_s += 30.0
    assert seen == set(names)


def test_the_cursor_keeps_what_is_open_and_forgets_tables_that_are_gone() -> None:
    cursor = SessionsCursor("b").with_table("a", "one").with_table("b", "two").with_table("a", "")
    assert SessionsCursor.read(cursor.text) == cursor
    assert cursor.tables == {"b": "two"}
    assert cursor.only({"a"}).tables == {}


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"tables": 3}'])
def test_a_foreign_cursor_begins_anew(text: str) -> None:
    assert SessionsCursor.read(text) == SessionsCursor()


def test_a_cursor_of_a_newer_release_is_left_to_it() -> None:
    with pytest.raises(NeedsNewerRelease):
        SessionsCursor.read('{"format": 9, "needs": "7.5.0"}')
