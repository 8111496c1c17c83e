"""A driver that comes no further is ended; one that does is left alone."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from pinot_assets.core.connections import Waits
from pinot_assets.errors import LeaseLost
from pinot_assets.session.context.watchdog import Fed, Watchdog
from pinot_assets.session.values.progress import Quiet


def refuse(why: str) -> None:
    raise AssertionError(f"the process would have been ended: {why}")


@pytest.fixture
def watch() -> Any:
    """`watch(stall=…, hold=…)`: a watchdog and the list of what it let go."""
    dogs: list[Watchdog] = []

    def make(
        stall: float = 60, hold: float = 60, end: Callable[[str], None] = refuse, grace: float = 10
    ) -> tuple[Watchdog, list[str]]:
        let_go: list[str] = []
        dog = Watchdog(Waits(stall=stall, hold=hold), lambda: let_go.append("lease"), end, grace)
        dogs.append(dog)
        return dog, let_go

    yield make
    for dog in dogs:
        dog.stop()


def hang(seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.01)
    raise AssertionError("nobody came")


def test_r25_a_step_without_progress_is_ended_and_the_lease_goes_first(watch: Any) -> None:
    dog, let_go = watch(stall=0.2)
    began = time.monotonic()
    with pytest.raises(LeaseLost, match=r"made no progress for 0\.00.* minutes") as lost, dog.guard():
        hang()
    assert let_go == ["lease"]
    assert 0.2 <= time.monotonic() - began < 5
    assert "continues from what is stored" in str(lost.value)


def test_no_handler_of_errors_takes_it_for_one(watch: Any) -> None:
    dog, _ = watch(stall=0.2)
    swallowed = []

    def careless() -> None:
        try:
            hang()
        except Exception as error:
            swallowed.append(error)

    with pytest.raises(LeaseLost), dog.guard():
        careless()
    assert swallowed == []


def test_progress_keeps_a_step_alive(watch: Any) -> None:
    dog, let_go = watch(stall=1.0)
    progress = Fed(Quiet(), dog.feed)
    with dog.guard():
        for word in range(8):
            time.sleep(0.25)
            [lambda: progress.note("x"), lambda: progress.building({}), dog.feed][word % 3]()
    assert let_go == []


def test_r25_holding_a_table_is_limited_however_much_progress_there_is(watch: Any) -> None:
    dog, let_go = watch(hold=0.4)

    def busy() -> None:
        while True:
            dog.feed()
            time.sleep(0.01)

    with pytest.raises(LeaseLost, match="PINOT_ASSETS_HOLD_HOURS"), dog.guard():
        busy()
    assert let_go == ["lease"]


def test_between_two_steps_the_lease_goes_and_the_next_step_says_why(watch: Any) -> None:
    dog, let_go = watch(stall=0.2)
    with dog.guard():
        pass
    time.sleep(0.6)  # somebody else's code: it must not be hit
    assert let_go == ["lease"]
    ran = []
    with pytest.raises(LeaseLost, match="no progress"), dog.guard():
        ran.append("step")
    assert ran == []


def test_a_released_driver_is_watched_no_more(watch: Any) -> None:
    before = set(threading.enumerate())  # another test's driver may still be watched
    dog, let_go = watch(stall=0.2)
    (watching,) = [one for one in set(threading.enumerate()) - before if one.name == "watchdog"]
    dog.stop()
    watching.join(10)
    assert not watching.is_alive()
    assert let_go == []


def test_a_process_that_is_going_down_is_watched_no_more(watch: Any) -> None:
    dog, let_go = watch(stall=0.3)
    with pytest.raises(KeyboardInterrupt), dog.guard():
        raise KeyboardInterrupt
    time.sleep(0.6)
    assert let_go == []


def test_an_error_of_the_step_stays_the_error(watch: Any) -> None:
    dog, _ = watch()
    with pytest.raises(ZeroDivisionError), dog.guard():
        raise ZeroDivisionError


def test_a_lease_that_cannot_be_let_go_ends_the_step_all_the_same() -> None:
    def broken() -> None:
        raise OSError("the connection is gone")

    dog = Watchdog(Waits(stall=0.2), broken, refuse)
    with pytest.raises(LeaseLost), dog.guard():
        hang()


def test_r25_a_step_that_cannot_be_reached_ends_with_its_process() -> None:
    program = """
import threading
from pinot_assets.core.connections import Waits
from pinot_assets.session.context.watchdog import Watchdog
dog = Watchdog(Waits(stall=0.2), lambda: print("let go", flush=True), grace=0.3)
with dog.guard():
    threading.Event().wait()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stdout == "let go\n"
    assert "error: this run made no progress" in ended.stderr


def test_after_its_end_functions_can_be_traced() -> None:
    """An exception that CPython still looks for keeps a traced function from beginning."""
    program = """
import sys, time
from pinot_assets.errors import LeaseLost
from pinot_assets.core.connections import Waits
from pinot_assets.session.context.watchdog import Watchdog
try:
    with Watchdog(Waits(stall=0.2), lambda: None).guard():
        while True:
            time.sleep(0.01)
except LeaseLost:
    pass
sys.settrace(lambda *_: None)
(lambda: print("went on", flush=True))()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout) == (0, "went on\n")


def test_a_step_that_ends_as_it_is_told_is_not_hit_later() -> None:
    for _ in range(50):
        dog = Watchdog(Waits(stall=0.002), lambda: None, refuse)
        with suppress(LeaseLost), dog.guard():
            time.sleep(0.002)
        dog.stop()
        for _ in range(200):
            pass


def test_r25_a_file_that_moves_is_no_hang_and_one_that_stands_still_is(watch: Any) -> None:
    dog, let_go = watch(stall=1.0)
    progress = Fed(Quiet(), dog.feed)
    alive = []

    def one_file() -> None:
        progress.building({0: 10**12})
        for n in range(6):
            time.sleep(0.4)
            progress.moving(n * 1000)
            alive.append(list(let_go))
        hang()

    with pytest.raises(LeaseLost, match="no progress"), dog.guard():
        one_file()
    assert alive == [[]] * 6
    assert let_go == ["lease"]


def test_a_step_can_be_ended_for_another_reason(watch: Callable[[], tuple[Watchdog, list[str]]]) -> None:
    dog, let_go = watch()
    threading.Timer(0.2, lambda: dog.end_step("ZooKeeper has not answered for 35 s")).start()
    with pytest.raises(LeaseLost, match="ZooKeeper has not answered for 35 s"), dog.guard():
        hang()
    assert let_go == ["lease"]
