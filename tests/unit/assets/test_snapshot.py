"""What Dagster is told of a published snapshot, while Pinot is away."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fakes.pinot.memory import FakePinot
from fakes.tables import write_table

from pinot_assets.assets.snapshot import Publication, publication
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.state import Mode, Pointer
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef

REF = SnapshotRef("snapshots/3", "ab" * 32)


class PublishedTable:
    """A table with a snapshot that can be rolled back, as far as ZooKeeper knows."""

    def __init__(self, folder: Path) -> None:
        self.pinot = FakePinot()
        self.spec = write_table(folder, "t")
        self.pinot.put_schema(self.spec.schema_json)
        self.pinot.create_table(self.spec.table_json)

    def shown(self) -> Publication:
        snapshot = Snapshot(
            3, "t_OFFLINE", "cp3-abcdef", Mode.SYNC, "an-entry", REF, "listing", "config", 1_000, ()
        )
        seen = Observation(Pointer(current_snapshot=REF), None, (), {}, None, snapshot, NO_HOLD)
        staging: Any = SimpleNamespace(
            store=SimpleNamespace(uri_of=lambda key: f"s3://b/{key}", stat=lambda key: key),
            snapshot=lambda ref: snapshot,
        )
        settings: Any = SimpleNamespace(pinot=SimpleNamespace(controller_url="http://127.0.0.1:1"))
        store: Any = SimpleNamespace(sessions=list)
        shown = publication(self.spec, seen, store, staging, self.pinot, settings)
        return cast(Publication, shown)


@pytest.fixture
def table(tmp_path: Path) -> PublishedTable:
    return PublishedTable(tmp_path)


def test_a_pinot_that_is_away_does_not_unsay_the_switch(table: PublishedTable) -> None:
    table.pinot.refuse_connection("lineage")
    shown = table.shown()
    assert shown.metadata["rollback_until"] == "not known"
    assert shown.metadata["session"] == "cp3-abcdef"


def test_a_pinot_that_answers_is_believed(table: PublishedTable) -> None:
    assert table.shown().metadata["rollback_until"] == "no way back"
