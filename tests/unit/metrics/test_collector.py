"""What is scraped is what was seen last; a table that cannot be read takes no other with it."""

from __future__ import annotations

import threading
from typing import Any

from fakes.pushgateway import Numbers, numbers

from pinot_assets.errors import SourceError
from pinot_assets.metrics.collector import AT_A_TIME, Collector
from pinot_assets.metrics.exposition import text_of
from pinot_assets.metrics.family import Sample
from pinot_assets.metrics.looking import Part
from pinot_assets.metrics.session import OPEN


def told(collector: Collector) -> Numbers:
    return {(key[0].removeprefix("pinot_assets_"), *key[1:]): v for key, v in _all(collector).items()}


def _all(collector: Collector) -> Numbers:
    return numbers(text_of(collector.samples()))


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
    seen, part = collector(said), Part("t", "session", Reads(1))
    seen.look([part])
    assert told(seen)["session_open", "t"] == told(seen)["session_open", "t"] == 1
    assert told(seen)["up", "session", "t"] == 1
    assert told(seen)["last_look_timestamp_seconds", "session", "t"] == 1000
    assert said == []


def test_a_part_that_cannot_be_read_says_so_and_no_more() -> None:
    said: list[str] = []
    seen = collector(said)
    away = SourceError("no answer", why="it is down")
    bad, good = Part("t", "session", Reads(1, away, away, 0)), Part("u", "session", Reads(1, 1, 1, 1))
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
    part = Part("t", "session", Reads(1, RuntimeError("a fault")))
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

    parts = [*(Part(f"hangs{n}", "session", hangs) for n in range(AT_A_TIME - 1)), Part("t", "session", last)]
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


def test_it_looks_until_it_is_stopped() -> None:
    seen, stopped, looks = collector([]), threading.Event(), []

    def read() -> list[Sample]:
        looks.append(1)
        if len(looks) == 3:
            stopped.set()
        return []

    seen.look_for_ever([Part("t", "session", read)], 0.01, stopped)
    assert len(looks) == 3
