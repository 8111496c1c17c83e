"""The whole machine once on a real Pinot, with queries at both brokers all the while."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pinot_assets.errors import PinotError
from pinot_assets.session.report import Result

pytestmark = pytest.mark.integration


@contextmanager
def queries(world: Any) -> Iterator[dict[str, list[list[str]]]]:
    """Asks every broker for all rows, again and again: what each showed, one answer after the other.

    Pinot deletes what a rollback takes back at once: a query that was on its way to it fails, which its
    sender sees. What must not be is an answer that looks whole and is neither the one state nor the other.
    """
    shown: dict[str, list[list[str]]] = {broker: [world.shown_by(broker)] for broker in world.brokers}
    over = threading.Event()
    errors: list[BaseException] = []

    def ask(broker: str) -> None:
        try:
            while not over.wait(0.02):
                try:
                    values = world.shown_by(broker)
                except PinotError as error:
                    if "ServerSegmentMissing" not in str(error):
                        raise
                    continue
                if values != shown[broker][-1]:
                    shown[broker].append(values)
        except BaseException as error:  # told in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(broker,)) for broker in world.brokers]
    for thread in threads:
        thread.start()
    try:
        yield shown
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert errors == []


def test_push_rewrite_retry_and_rollback(real_world: Any) -> None:
    world = real_world
    world.write("P1", F1="F1a F1b", Q="Q1 Q2 Q3")
    assert world.run().result is Result.STAGED
    first = ["F1a", "F1b", "P1", "Q1", "Q2", "Q3"]
    for broker in world.brokers:
        assert world.shown_by(broker) == first

    with queries(world) as shown:
        world.write("F2", F1="F1.1")
        world.remove("Q")
        world.builder.failing = {"F2"}
        assert world.run().result is Result.FAILED
        assert world.pinot.all_segments(world.table) == set(world.snapshot.segments)
        world.builder.failing = set()
        assert world.run().result is Result.STAGED
        assert world.built == ["F2"]
        world.rollback()
        assert world.run().result is Result.HELD
    second = ["F1.1", "F2", "P1"]
    assert shown == {broker: [first, second, first] for broker in world.brokers}

    assert world.resume()
    world.run()
    for broker in world.brokers:
        assert world.shown_by(broker) == second
    world.assert_settled()
