"""While a run makes no progress, the service that does not answer is named; an error names it first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from pinot_assets.core.outages import OutageWatch, Service
from pinot_assets.errors import PinotUnreachable

MakeWatch = Callable[..., OutageWatch]


class ServiceToStop:
    """A service that a test stops and starts; while stopped it refuses, or hangs as a paused process does."""

    def __init__(self, name: str, *, longest: float | None = None, hangs: bool = False) -> None:
        self.is_up, self.asked, self._hangs = True, 0, hangs
        self.service = Service(name, self._ask, longest)

    def _ask(self) -> None:
        self.asked += 1
        while not self.is_up:
            if not self._hangs:
                raise OSError("refused")
            time.sleep(0.01)


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def watch_of(lines: list[str]) -> Iterator[MakeWatch]:
    watches: list[OutageWatch] = []

    def make(*services: ServiceToStop, end: Callable[[str], None] = lambda _: None) -> OutageWatch:
        made = OutageWatch([s.service for s in services], lines.append, end, quiet=0.2, answer=0.2)
        watches.append(made)
        return made

    yield make
    for made in watches:
        made.stop()


def wait_for(holds: Callable[[], object]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def fail_once(holds: Callable[[], object]) -> None:
    wait_for(holds)
    raise PinotUnreachable("no answer to GET /lineage", why="ReadTimeout")


@pytest.mark.parametrize("hangs", [False, True])
def test_a_service_that_is_away_is_named_and_named_again_when_it_is_back(
    watch_of: MakeWatch, lines: list[str], hangs: bool
) -> None:
    keeper = ServiceToStop("ZooKeeper at z:2181", hangs=hangs)
    watch = watch_of(keeper)
    with watch.in_errors():
        keeper.is_up = False
        wait_for(lambda: lines)
        assert lines[0].startswith("waiting: ZooKeeper at z:2181 has not answered for ")
        keeper.is_up = True
        wait_for(lambda: len(lines) == 2)
    assert lines[1].startswith("ZooKeeper at z:2181 answers again, after ")


def test_an_error_begins_with_the_first_service_that_is_away(watch_of: MakeWatch, lines: list[str]) -> None:
    keeper, pinot = ServiceToStop("ZooKeeper at z:2181"), ServiceToStop("Pinot's controller at p:9000")
    watch = watch_of(keeper, pinot)
    keeper.is_up = pinot.is_up = False
    with pytest.raises(PinotUnreachable) as raised, watch.in_errors():
        fail_once(lambda: lines)
    assert raised.value.why is not None
    first, second = raised.value.why.split("; ")
    assert first.startswith("ZooKeeper at z:2181 has not answered for ")
    assert second == "ReadTimeout"


def test_an_error_stays_as_it_is_where_all_services_answer(watch_of: MakeWatch) -> None:
    keeper = ServiceToStop("ZooKeeper")
    with pytest.raises(PinotUnreachable) as raised, watch_of(keeper).in_errors():
        fail_once(lambda: keeper.asked)
    assert raised.value.why == "ReadTimeout"


def test_services_are_not_asked_while_the_run_makes_progress_nor_between_its_steps(
    watch_of: MakeWatch,
) -> None:
    keeper = ServiceToStop("ZooKeeper")
    watch = watch_of(keeper)
    with watch.in_errors():
        for _ in range(60):
            watch.feed()
            time.sleep(0.01)
    time.sleep(0.6)
    assert keeper.asked == 0
    with watch.in_errors():
        wait_for(lambda: keeper.asked)


def test_a_run_that_waits_too_long_is_ended_once_with_the_reason(
    watch_of: MakeWatch, lines: list[str]
) -> None:
    ended: list[str] = []
    over = threading.Event()

    def end(why: str) -> None:
        ended.append(why)
        over.set()

    keeper = ServiceToStop("ZooKeeper at z:2181", longest=0.5, hangs=True)
    keeper.is_up = False
    with watch_of(keeper, end=end).in_errors():
        assert over.wait(20)
        time.sleep(0.3)
    assert len(ended) == 1
    assert ended[0].startswith("ZooKeeper at z:2181 has not answered for ")
    keeper.is_up = True
