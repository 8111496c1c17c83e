"""Calls that are waited for so long and no longer."""

from __future__ import annotations

import threading

import pytest

from pinot_assets.core.waiting import Late, Patience


def raises() -> None:
    raise ValueError("no")


def test_what_a_call_returns_or_raises_comes_through() -> None:
    patience = Patience()
    assert patience.wait_for(lambda: 5, 10) == 5
    with pytest.raises(ValueError, match="no"):
        patience.wait_for(raises, 10)
    assert patience.wait_for(lambda: None, 10) is None


def test_one_that_hangs_is_given_up_and_none_is_begun_beside_it() -> None:
    patience, answered, calls = Patience(), threading.Event(), list[int]()

    def hangs() -> None:
        calls.append(1)
        answered.wait()

    with pytest.raises(Late, match="not within 0 s"):
        patience.wait_for(hangs, 0.05)
    with pytest.raises(Late, match="an earlier call still waits for it"):
        patience.wait_for(hangs, 10)
    assert calls == [1]
    answered.set()
    for thread in threading.enumerate():
        if thread.name == "waited for":
            thread.join(10)
    assert patience.wait_for(lambda: 5, 10) == 5
