"""A run that goes on for a dead one waits for its lease, and for nobody else's."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from pinot_assets.assets.runs import SENSOR_TAG, SLACK_S, trigger_once, wait_out
from pinot_assets.core.connections import Waits
from pinot_assets.session.values.state import Owner


class Leases:
    """A store that lets go of one lease after a while.

    :param held_s: for how long; a look takes no time.
    """

    waits = Waits(lease=12, pinot_write=6)

    def __init__(self, holder: str, held_s: float) -> None:
        self.now_s = 0.0
        self._holder, self._held_s = Owner(holder, "host", 7, 0), held_s

    def holder(self) -> Owner | None:
        return self._holder if self.now_s < self._held_s else None

    def now_ms(self) -> int:
        return int(self.now_s * 1000)

    def sleep(self, seconds: float, /) -> None:
        self.now_s += seconds


def waited(leases: Any) -> tuple[float, list[str]]:
    notes: list[str] = []
    wait_out("dead-run", leases, notes.append, leases)
    return leases.now_s, notes


@pytest.mark.parametrize("held_s", [1, 10, Leases.waits.lease])
def test_the_lease_of_the_run_before_is_waited_for(held_s: float) -> None:
    seconds, notes = waited(Leases("dead-run", held_s))
    assert seconds == held_s
    assert notes == ["waiting for the lease of run dead-run, which this run continues"]


def test_but_not_for_ever() -> None:
    """Not dead after all: taking the lease says who holds it."""
    seconds, _ = waited(Leases("dead-run", 10_000))
    assert seconds == Leases.waits.lease + SLACK_S


def test_nobody_elses_is_waited_for() -> None:
    assert waited(Leases("another-run", 10_000)) == (0, [])
    assert waited(Leases("dead-run", 0)) == (0, [])


class Triggers:
    """A driver that tells which trigger was asked of it."""

    def trigger(self) -> str:
        return "may spend a retry"

    def trigger_without_retry(self) -> str:
        return "spends none"

    def trigger_scheduled(self) -> str:
        return "may spend a retry, and waits for files"


SCHEDULED = {"dagster/schedule_name": "s"}


@pytest.mark.parametrize(
    ("tags", "parent", "asked"),
    [
        ({}, None, "may spend a retry"),
        ({SENSOR_TAG: "true"}, None, "spends none"),
        (SCHEDULED, None, "may spend a retry, and waits for files"),
        (SCHEDULED, "a run", "may spend a retry"),
        (SCHEDULED | {"dagster/retry_number": "1"}, "a run", "spends none"),
    ],
)
def test_who_started_a_run_decides_how_it_begins(
    tags: dict[str, str], parent: str | None, asked: str
) -> None:
    driver: Any = Triggers()
    run = dg.DagsterRun("t_ingest", tags=tags, parent_run_id=parent, root_run_id=parent)
    assert str(trigger_once(driver, run)) == asked
