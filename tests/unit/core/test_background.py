"""Calls beside the caller: quick ones one after the other, slow ones beside the others, none twice."""

from __future__ import annotations

import threading

from pinot_assets.core.background import BackgroundCalls

LONG_S = 60.0


def test_a_quick_call_is_waited_for() -> None:
    calls = BackgroundCalls[int](2)
    assert calls.start("a", lambda: 1, LONG_S)
    assert calls.collect() == {"a": 1}
    assert calls.collect() == {}


def test_a_slow_call_keeps_no_other_one_from_being_made() -> None:
    calls, end = BackgroundCalls[str](2), threading.Event()

    def slow() -> str:
        end.wait(LONG_S)
        return "slow"

    assert calls.start("slow", slow, 0.0)
    assert calls.start("quick", lambda: "quick", LONG_S)
    assert calls.collect() == {"quick": "quick"}
    assert not calls.start("slow", lambda: "again", LONG_S)
    end.set()
    assert calls.start("another", lambda: "another", LONG_S)
    found = calls.collect()
    while "slow" not in found:
        found |= calls.collect()
    assert found == {"slow": "slow", "another": "another"}
    assert calls.start("slow", lambda: "again", LONG_S)


def test_too_many_slow_calls_stop_further_ones() -> None:
    calls, end = BackgroundCalls[bool](1), threading.Event()
    assert calls.start("a", lambda: end.wait(LONG_S), 0.0)
    assert not calls.start("b", lambda: True, LONG_S)
    end.set()


def test_a_call_that_lasts_too_long_is_given_up_once_and_its_outcome_is_dropped() -> None:
    calls, end = BackgroundCalls[bool](2), threading.Event()
    assert calls.start("a", lambda: end.wait(LONG_S), 0.0)
    assert calls.give_up(LONG_S) == []
    assert calls.give_up(0.0) == ["a"]
    assert calls.give_up(0.0) == []
    end.set()
    while not calls.start("a", lambda: True, LONG_S):
        assert calls.collect() == {}
    assert calls.collect() == {"a": True}


def test_what_a_call_raises_is_its_outcome() -> None:
    error = ValueError("broken")

    def broken() -> int:
        raise error

    calls = BackgroundCalls[int](2)
    assert calls.start("a", broken, LONG_S)
    assert calls.start("b", lambda: 2, LONG_S)
    assert calls.collect() == {"a": error, "b": 2}
