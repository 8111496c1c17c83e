"""A table that is not up to date is unsynced in Dagster, and only as long as it is that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from fakes.tables import SYNC, write_table

from pinot_assets.assets.keys import keys_of
from pinot_assets.assets.snapshot import Publication
from pinot_assets.assets.status import status_events
from pinot_assets.code_location import build_table_definitions
from pinot_assets.resources import profile_resources
from pinot_assets.session.detect.table_status import StatusReport, TableCondition, unknown_status
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef

REF = SnapshotRef("snapshots/1", "ab" * 32)
FINE = StatusReport("t", TableCondition.UP_TO_DATE, "t is published as the source has it", "queries see all")
BEHIND = StatusReport("t", TableCondition.WAITING, "t is behind its source: 1 new", "queries see all")
NOT_UP_TO_DATE = [state for state in TableCondition if state not in ("up to date", "not known")]


class ShownTable:
    """A table in an instance of Dagster in memory, to which statuses and publications are reported."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.spec = write_table(folder, "t", SYNC)
        self.keys = keys_of(self.spec)
        self.instance = instance
        own = dg.Definitions(resources=dict(profile_resources()))
        self.graph = dg.Definitions.merge(own, build_table_definitions(self.spec)).resolve_asset_graph()

    def publish(self) -> None:
        """As the sensor reports what the command line published."""
        snapshot = Snapshot(1, "t_OFFLINE", "cp1-0", "SYNC", "e", None, "", "", 0, ())
        shown = Publication(self.spec, REF, snapshot, {})
        for key in (self.keys.snapshot, self.keys.table):
            self.instance.report_runless_asset_event(shown.event(key))

    def look(self, status: StatusReport) -> int:
        """As a look reports a status; returns how many observations of `waiting` that is."""
        events = list(status_events(self.instance, self.spec, status))
        for event in events:
            self.instance.report_runless_asset_event(event)
        return sum(isinstance(event, dg.AssetObservation) for event in events)

    @property
    def sync(self) -> str:
        """What Dagster says of the table: FRESH, STALE or MISSING."""
        resolver = CachingStaleStatusResolver(self.instance, self.graph, LoadingContextForTest(self.instance))
        return str(resolver.get_status(self.keys.table).name)

    @property
    def partitions(self) -> int:
        """How many partitions of `waiting` Dagster counts as missing."""
        return len(self.instance.get_dynamic_partitions("t_waiting"))


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ShownTable]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield ShownTable(tmp_path, instance)


def test_a_table_is_unsynced_exactly_while_something_waits(table: ShownTable) -> None:
    table.publish()
    table.look(FINE)
    assert (table.sync, table.partitions) == ("FRESH", 0)
    table.look(BEHIND)
    assert (table.sync, table.partitions) == ("STALE", 1)
    table.publish()
    table.look(FINE)
    assert (table.sync, table.partitions) == ("FRESH", 0)


def test_what_waits_again_is_shown_again(table: ShownTable) -> None:
    """Dagster keeps the observation of the first time; the same files may come, go and come."""
    table.publish()
    for status in (BEHIND, FINE, BEHIND):
        table.look(status)
    assert table.sync == "STALE"


def test_what_still_waits_after_a_publication_is_shown(table: ShownTable) -> None:
    """A file may come while a run works: the observation is older than the publication."""
    table.look(BEHIND)
    table.publish()
    assert table.sync == "STALE"


def test_a_table_without_a_publication_is_missing_and_not_unsynced(table: ShownTable) -> None:
    table.look(replace(BEHIND, state=TableCondition.NOT_PUBLISHED))
    assert (table.sync, table.partitions) == ("MISSING", 1)


@pytest.mark.parametrize("state", NOT_UP_TO_DATE)
def test_whatever_is_not_up_to_date_differs_from_what_is(table: ShownTable, state: TableCondition) -> None:
    table.publish()
    table.look(replace(BEHIND, state=state))
    assert (table.sync, table.partitions) == ("STALE", 1)


@pytest.mark.parametrize("before", [FINE, BEHIND], ids=["fine", "behind"])
def test_a_look_that_saw_nothing_changes_nothing(table: ShownTable, before: StatusReport) -> None:
    table.publish()
    table.look(before)
    shown = table.sync, table.partitions
    assert table.look(unknown_status("t", "ZooKeeper is away", "look again")) == 0
    assert (table.sync, table.partitions) == shown


def test_a_look_that_found_the_same_adds_no_event(table: ShownTable) -> None:
    assert table.look(FINE) == 0
    assert [table.look(BEHIND), table.look(BEHIND)] == [1, 0]
    assert table.look(replace(BEHIND, what="t is behind its source: 2 new")) == 1
    (newest,) = table.instance.fetch_observations(table.keys.waiting, limit=1).records
    assert newest.asset_observation is not None
    assert newest.asset_observation.description == "t is behind its source: 2 new"
