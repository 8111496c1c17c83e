"""Many small calls, some at a time."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from pinot_assets.core.waiting import in_threads


def test_answers_come_in_order_and_so_many_calls_are_under_way() -> None:
    met = threading.Barrier(4, timeout=10)

    def call(n: int) -> int:
        met.wait()  # of four threads, none goes on alone
        return n * n

    assert in_threads(call, range(12), 4, "x") == [n * n for n in range(12)]
    assert in_threads(call, [], 4, "x") == []


def test_after_an_error_no_call_is_begun() -> None:
    done = []

    def call(n: int) -> None:
        done.append(n)
        if n == 3:
            raise ValueError(f"no {n}")

    with pytest.raises(ValueError, match="no 3"):
        in_threads(call, range(100_000), 2, "x")
    assert len(done) < 50_000


def test_of_two_errors_the_earlier_ones_is_told() -> None:
    met = threading.Barrier(2, timeout=10)

    def call(n: int) -> None:
        met.wait()
        raise ValueError(f"no {n}")

    with pytest.raises(ValueError, match="no 0"):
        in_threads(call, range(2), 2, "x")


def test_an_interrupt_drops_what_has_not_begun_and_waits_for_what_goes_on() -> None:
    done: list[int] = []
    under_way: set[int] = set()

    def call(n: int) -> None:
        under_way.add(n)
        if n == 50:
            os.kill(os.getpid(), signal.SIGINT)
        # The interrupt meets a call that goes on, in the thread that is waited for first.
        time.sleep(0.5 if n >= 45 and threading.current_thread().name == "x_0" else 0.005)
        done.append(n)
        under_way.remove(n)

    with pytest.raises(KeyboardInterrupt):
        in_threads(call, range(100_000), 4, "x")
    assert 40 < len(done) < 10_000
    assert not under_way
    until = time.monotonic() + 10
    while any(thread.name.startswith("x_") for thread in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.001)
