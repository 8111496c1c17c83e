"""A service falls silent while `run` works on a real Pinot: it is named within 15 seconds.

The run then continues by itself, or it ends and says why.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes.processes.middles import Place, place, started
from fakes.relay import Relay
from fakes.tables import SYNC, write_files, write_table
from fakes.waiting import until

from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.settings.local_stack import StackState

pytestmark = [pytest.mark.integration, pytest.mark.spark]

NAMED_S = 15.0


@dataclass
class RelayedRun:
    """A table in Pinot with one file, and a `run` that reaches its services through relays."""

    here: Place
    table: str
    zookeeper: Relay
    controller: Relay

    def said(self) -> str:
        return self.here.said.read_text()


@pytest.fixture
def relayed(tmp_path: Path, stack: StackState) -> Iterator[RelayedRun]:
    table = f"outage_{time.time_ns()}"
    with ExitStack() as during:
        here = during.enter_context(place(tmp_path))
        zookeeper = during.enter_context(Relay(stack.zookeeper))
        controller = during.enter_context(Relay(stack.controller_url.removeprefix("http://")))
        here.environment |= {
            "PINOT_CONTROLLER_URL": f"http://{controller.address}",
            "PINOT_ZOOKEEPER": zookeeper.address,
        }
        pinot = during.enter_context(HttpPinotClient(PinotConnection(stack.controller_url)))
        spec = write_table(tmp_path, table, SYNC)
        write_files(tmp_path, F1="a b")
        pinot.put_schema(spec.schema_json)
        pinot.create_table(spec.table_json)
        yield RelayedRun(here, table, zookeeper, controller)
        pinot.delete_table(table)
        pinot.delete_schema(table)


def seconds_until(run: RelayedRun, text: str) -> float:
    begun = time.monotonic()
    until(lambda: text in run.said(), 120)
    return time.monotonic() - begun


def test_zookeeper_comes_back_and_the_run_goes_on(relayed: RelayedRun) -> None:
    with started(relayed.here, f"run {relayed.table}") as process:
        until(lambda: "1 file to build" in relayed.said(), 120)
        relayed.zookeeper.fall_silent()
        assert seconds_until(relayed, f"waiting: ZooKeeper at {relayed.zookeeper.address}") < NAMED_S
        relayed.zookeeper.speak()
        until(lambda: "answers again" in relayed.said(), 60)
        assert process.wait(120) == 0, relayed.said()
    assert "switched" in relayed.said()


def test_pinot_stays_away_and_the_run_ends_with_its_name(relayed: RelayedRun) -> None:
    with started(relayed.here, f"run {relayed.table}") as process:
        until(lambda: "1 file to build" in relayed.said(), 120)
        relayed.controller.fall_silent()
        assert seconds_until(relayed, "waiting: Pinot's controller at http://") < NAMED_S
        assert process.wait(180) == 1, relayed.said()
    assert f"Pinot's controller at http://{relayed.controller.address} has not answered for" in relayed.said()
    assert "Traceback" not in relayed.said()


def test_zookeeper_stays_away_and_it_is_blamed_not_pinot(relayed: RelayedRun) -> None:
    with started(relayed.here, f"run {relayed.table}") as process:
        until(lambda: "1 file to build" in relayed.said(), 120)
        relayed.zookeeper.fall_silent()
        relayed.controller.fall_silent()  # it waits for ZooKeeper itself
        assert process.wait(180) == 1, relayed.said()
    last = relayed.said()[relayed.said().rindex("error:") :]
    assert f"ZooKeeper at {relayed.zookeeper.address} has not answered for" in last
    assert "Traceback" not in relayed.said()
