"""The status from a look: what the checks have read is not read again, and what fails is not known."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest
from fakes.tables import write_table

from pinot_assets.errors import SessionError
from pinot_assets.health.readings import SourceDifference
from pinot_assets.health.status_look import STATUS, status_from
from pinot_assets.health.table_probe import Ports, TableProbe
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.detect.table_status import TableCondition
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.state import ObjectRef, Pointer
from pinot_assets.snapshot.manifest import Snapshot

NOW = 1_800_000_000_000
SNAPSHOT = Snapshot(1, "t", "cp1-aaaaaa", "SYNC", "e", None, "", "", NOW - 60_000, ())


def fails() -> NoReturn:
    raise SessionError("ZooKeeper does not answer")


@pytest.fixture
def probe(tmp_path: Path) -> TableProbe:
    made = TableProbe(write_table(tmp_path, "t"), Ports(fails, fails, fails, fails), NOW)
    made.readings |= {
        "observation": Observation(Pointer(), None, (), {}, None, SNAPSHOT, NO_HOLD),
        "newest_session": None,
        "snapshot": SNAPSHOT,
        "difference": SourceDifference(2, ("s/F1.csv",), (), ("s/F2.csv",), 0, 0),
        "waiting_since_ms": {"s/F1.csv": NOW - 7_200_000},
    }
    return made


def test_a_change_waits_no_longer_than_since_what_is_published(probe: TableProbe) -> None:
    status = status_from(probe)
    assert status.state is TableCondition.WAITING
    assert "1 new, 1 deleted" in status.what
    assert status.since_ms == SNAPSHOT.published_ms


def test_held_files_are_counted(probe: TableProbe) -> None:
    seen = Observation(Pointer(hold=ObjectRef("h", "0")), None, (), {}, None, SNAPSHOT, NO_HOLD)
    difference = SourceDifference(2, (), (), (), 2, 0)
    probe.readings |= {"observation": seen, "difference": difference, "waiting_since_ms": {}}
    status = status_from(probe)
    assert status.state is TableCondition.HELD
    assert "2 files of the source" in status.what


def test_an_error_is_not_known_and_not_raised(tmp_path: Path) -> None:
    probe = TableProbe(write_table(tmp_path, "t"), Ports(fails, fails, fails, fails), NOW)
    assert status_from(probe).state is TableCondition.NOT_KNOWN
    assert not STATUS(probe).known
