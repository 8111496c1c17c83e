"""What is scraped is what was seen last; a table that cannot be read takes no other with it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fakes.monitoring.pushgateway import Numbers, numbers
from fakes.waiting import until

from pinot_assets.core.waiting import TABLES_AT_A_TIME
from pinot_assets.errors import SourceError
from pinot_assets.metrics.collector import HANGS_S, Collector, ScrapePart
from pinot_assets.metrics.exposition import prometheus_text
from pinot_assets.metrics.family import Sample
from pinot_assets.metrics.session import OPEN


def told(collector: Collector) -> Numbers:
    return {(key[0].removeprefix("pinot_assets_"), *key[1:]): v for key, v in _all(collector).items()}


def _all(collector: Collector) -> Numbers:
    return numbers(prometheus_text(collector.samples()))


class Reads:
    """A part whose looks answer as they are told: a number, or an error that is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = [*answers]

    def __call__(self) -> list[Sample]:
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return [OPEN.of(answer, "t")]


def collector(said: list[str]) -> Collector:
    return Collector(said.append, clock=lambda: 1000.0)


def test_nothing_is_said_of_what_was_not_looked_at_yet() -> None:
    assert [key[0] for key in told(collector([]))] == ["build_info"]


def test_a_scrape_reads_nothing() -> None:
    said: list[str] = []
    seen, part = collector(said), ScrapePart("t", "session", Reads(1))
    seen.look([part])
    assert told(seen)["session_open", "t"] == told(seen)["session_open", "t"] == 1
    assert told(seen)["up", "session", "t"] == 1
    assert told(seen)["last_look_timestamp_seconds", "session", "t"] == 1000
    assert said == []


def test_a_part_that_cannot_be_read_says_so_and_no_more() -> None:
    said: list[str] = []
    seen = collector(said)
    away = SourceError("no answer", why="it is down")
    bad, good = (
        ScrapePart("t", "session", Reads(1, away, away, 0)),
        ScrapePart("u", "session", Reads(1, 1, 1, 1)),
    )
    for _ in range(3):
        seen.look([bad, good])
    found = told(seen)
    assert (found["up", "session", "t"], found["scrape_errors_total", "session", "t"]) == (0, 2)
    assert (found["up", "session", "u"], found["scrape_errors_total", "session", "u"]) == (1, 0)
    assert found["last_look_timestamp_seconds", "session", "t"] == 1000, "the one that succeeded"
    assert said == ["t, session: no answer: it is down"], "once, not with every look"
    seen.look([bad, good])
    assert told(seen)["up", "session", "t"] == 1


def test_what_was_true_of_a_table_that_cannot_be_read_is_not_repeated() -> None:
    seen = collector([])
    part = ScrapePart("t", "session", Reads(1, RuntimeError("a fault")))
    seen.look([part])
    seen.look([part])
    assert ("session_open", "t") not in told(seen)


def test_a_table_that_hangs_keeps_no_other_from_being_looked_at() -> None:
    seen, goes_on, looked = collector([]), threading.Event(), threading.Event()

    def hangs() -> list[Sample]:
        assert goes_on.wait(30)
        return []

    def last() -> list[Sample]:
        looked.set()
        return [OPEN.of(1, "t")]

    parts = [
        *(ScrapePart(f"hangs{n}", "session", hangs) for n in range(TABLES_AT_A_TIME - 1)),
        ScrapePart("t", "session", last),
    ]
    thread = threading.Thread(target=seen.look, args=(parts,))
    thread.start()
    try:
        assert looked.wait(30)
        while ("session_open", "t") not in told(seen):
            pass
        assert ("up", "session", "hangs0") not in told(seen)
    finally:
        goes_on.set()
        thread.join()


class Rounds:
    """Looks for ever at some parts that hang and at one that does not."""

    def __init__(self, hanging: int) -> None:
        self.now = 0.0
        self.seen = Collector([].append, clock=lambda: 1000.0, ticks=lambda: self.now)
        self.stopped, self.goes_on, self.looks = threading.Event(), threading.Event(), list[int]()
        self.held = 0
        self.hanging = [ScrapePart(f"hangs{n}", "session", self._hangs) for n in range(hanging)]
        self.good = ScrapePart("t", "session", self._looks)

    def _hangs(self) -> list[Sample]:
        if not self.goes_on.is_set():
            self.held += 1
            assert self.goes_on.wait(30)
        return [OPEN.of(1, "hangs0")]

    def _looks(self) -> list[Sample]:
        self.looks.append(1)
        return [OPEN.of(1, "t")]

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """The good one comes last, when the others hang."""
        try:
            self.seen.look_for_ever([*self.hanging, self.good], 0.01, self.stopped)
            yield
        finally:
            self.stopped.set()
            self.goes_on.set()


def test_a_table_that_hangs_does_not_end_the_rounds_of_the_others() -> None:
    rounds = Rounds(hanging=1)
    with rounds.under_way():
        until(lambda: len(rounds.looks) >= 3)


def test_tables_that_hang_give_up_their_places() -> None:
    rounds = Rounds(hanging=TABLES_AT_A_TIME)
    with rounds.under_way():
        until(lambda: rounds.held == TABLES_AT_A_TIME)
        before = len(rounds.looks)
        rounds.now += HANGS_S + 1
        until(lambda: len(rounds.looks) >= before + 2)


def test_a_look_that_hangs_shows_and_what_was_true_is_not_repeated() -> None:
    rounds = Rounds(hanging=1)
    rounds.goes_on.set()
    with rounds.under_way():
        until(lambda: ("session_open", "hangs0") in told(rounds.seen))
        rounds.goes_on.clear()
        until(lambda: rounds.held == 1)
        assert told(rounds.seen)["up", "session", "hangs0"] == 1, "it may only be slow"
        rounds.now += HANGS_S + 1
        found = told(rounds.seen)
        assert found["up", "session", "hangs0"] == 0
        assert found["look_duration_seconds", "session", "hangs0"] == HANGS_S + 1
        assert found["last_look_timestamp_seconds", "session", "hangs0"] == 1000
        assert ("session_open", "hangs0") not in found
        rounds.goes_on.set()
        until(lambda: told(rounds.seen)["up", "session", "hangs0"] == 1)


def test_a_first_look_that_hangs_shows_too() -> None:
    rounds = Rounds(hanging=1)
    with rounds.under_way():
        until(lambda: len(rounds.looks) >= 1)
        assert ("up", "session", "hangs0") not in told(rounds.seen)
        rounds.now += HANGS_S + 1
        assert told(rounds.seen)["up", "session", "hangs0"] == 0


def test_a_look_that_is_made_seldom_may_take_as_long() -> None:
    rounds, seldom = Rounds(hanging=1), threading.Event()
    try:
        rounds.seen.look_for_ever(rounds.hanging, 7200, seldom)
        until(lambda: rounds.held == 1)
        rounds.now += 7200
        assert ("up", "session", "hangs0") not in told(rounds.seen)
        rounds.now += 1
        found = told(rounds.seen)
        assert found["up", "session", "hangs0"] == 0
        assert found["look_interval_seconds", "session", "hangs0"] == 7200
    finally:
        seldom.set()
        rounds.goes_on.set()


def test_it_looks_until_it_is_stopped() -> None:
    seen, stopped, looks = collector([]), threading.Event(), []

    def read() -> list[Sample]:
        looks.append(1)
        if len(looks) == 3:
            stopped.set()
        return []

    seen.look_for_ever([ScrapePart("t", "session", read)], 0.01, stopped)
    assert stopped.wait(30)
    assert len(looks) == 3


def test_what_cannot_be_told_ends_a_look() -> None:
    """Standard error is closed, say; all of the threads that look meet it."""

    def told(_: str) -> None:
        raise BrokenPipeError

    parts = [ScrapePart(f"t{n}", "session", Reads(SourceError("gone"))) for n in range(TABLES_AT_A_TIME + 1)]
    with pytest.raises(BrokenPipeError):
        Collector(told).look(parts)


HANGING = """
import threading
from pinot_assets.metrics.collector import Collector, ScrapePart

def hang():
    print("looking", flush=True)
    threading.Event().wait()

Collector(print).look([ScrapePart("t", "session", hang)])
"""


def test_whoever_interrupts_a_look_does_not_wait_for_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANGING], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"looking\n"
        run.send_signal(signal.SIGINT)
        try:
            _, said = run.communicate(timeout=20)
        finally:
            run.kill()
    assert b"KeyboardInterrupt" in said
