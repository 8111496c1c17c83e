"""A driver that hangs does not hold its table for ever (R25), though ZooKeeper's heartbeat goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from pinot_assets.errors import LeaseLost
from pinot_assets.session.values.state import State

pytestmark = pytest.mark.integration


@contextmanager
def impatient(world: Any, **waits: float) -> Iterator[Any]:
    """A driver with a short patience."""
    with world.driver() as driver:
        driver.clients.store.waits = replace(driver.clients.store.waits, **waits)
        yield driver


def hang(*_: object) -> None:
    for _ in range(600):
        time.sleep(0.05)
    raise AssertionError("nobody ended it")


def test_r25_a_hung_builder_lets_go_of_the_table(make_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world("sync")
    world.write("P1")
    world.run()
    world.write("F1", "F2")
    with monkeypatch.context() as patch, impatient(world, stall=1.0) as hung:
        patch.setattr(world.builder, "build", hang)
        with pytest.raises(LeaseLost, match=r"made no progress(.|\n)*the next trigger continues"):
            hung.trigger()
        with world.store() as store:
            assert store.holder() is None  # at once, not after a session time-out
        assert world.read_session().state is State.IN_PROGRESS
        with pytest.raises(LeaseLost):
            hung.trigger()  # whoever asks it again hears the same
    world.run()
    assert world.visible == ["F1", "F2", "P1"]
    assert [s.retry_count for s in world.read_sessions()] == [0, 0]
    world.assert_settled()


def test_r25_nothing_is_written_after_the_lease_went(
    make_world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A builder that swallows the end and comes back: its driver finds the lease gone before it writes."""
    world = make_world("sync")
    world.write("P1")
    build = world.builder.build

    def deaf(*arguments: Any) -> None:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            try:
                time.sleep(0.05)
            except BaseException:
                continue
        build(*arguments)

    with monkeypatch.context() as patch, impatient(world, stall=1.0) as hung:
        patch.setattr(world.builder, "build", deaf)
        with pytest.raises(LeaseLost):
            hung.trigger()
    assert world.pinot.all_segments(world.table) == frozenset()
    assert world.read_session().counts["done"] == 0
    world.run()
    assert world.visible == ["P1"]


def test_r25_the_time_of_holding_a_table_is_limited(make_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world("sync")
    world.write("P1")
    with monkeypatch.context() as patch, impatient(world, hold=1.0) as driver:
        patch.setattr(world.builder, "build", hang)
        with pytest.raises(LeaseLost, match="has held the lease of its table"):
            driver.trigger()
    world.run()
    assert world.visible == ["P1"]
