"""What was published or rolled back without Dagster is shown in it by the sensor of all tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from fakes.builder import InProcessBuilder
from fakes.locations.code_location import LocationTable

from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.keys import keys_of
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.assets.snapshot import data_version_of
from pinot_assets.resources import PinotResource
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients
from pinot_assets.settings.environment import load_settings

pytestmark = pytest.mark.integration


@contextmanager
def driver(table: LocationTable) -> Iterator[Driver]:
    """As the command line makes it."""
    with (
        open_clients(table.spec, load_settings(), InProcessBuilder()) as clients,
        Driver(table.spec, clients, "pinot-assets test") as driver,
    ):
        yield driver


def publish(table: LocationTable) -> None:
    with driver(table) as outside:
        outside.trigger()
        outside.audit()
        outside.publish()


def tick(table: LocationTable) -> Any:
    definitions = table.definitions
    with dg.build_sensor_context(
        instance=table.instance, definitions=definitions, resources={"pinot": PinotResource()}
    ) as context:
        return definitions.resolve_sensor_def("pinot_tables").evaluate_tick(context)


def materialized(table: LocationTable, key: dg.AssetKey) -> list[tuple[str | None, str]]:
    """Partition and data version of all materializations so far, oldest first."""
    records = table.instance.fetch_materializations(key, limit=100, ascending=True).records
    events = [record.asset_materialization for record in records]
    return [(e.partition, (e.tags or {})[DATA_VERSION_TAG]) for e in events if e is not None]


def test_what_was_published_and_rolled_back_without_dagster_is_shown_once(table: LocationTable) -> None:
    keys = keys_of(table.spec)

    def tick_tells() -> tuple[str, set[str | None]]:
        """The new data version of the table, and the partitions of segments that were told."""
        before = {key: len(materialized(table, key)) for key in (keys.segments, keys.snapshot, keys.table)}
        assert "looked at 1 table" in tick(table).skip_message
        new = {key: materialized(table, key)[count:] for key, count in before.items()}
        ((_, version),) = new[keys.table]
        assert new[keys.snapshot] == [(None, version)]
        snapshot = table.observe().snapshot
        assert snapshot is not None
        assert version == data_version_of(snapshot)
        everything = [materialized(table, key) for key in before]
        tick(table)
        assert [materialized(table, key) for key in before] == everything, "a second tick tells it again"
        return version, {partition for partition, _ in new[keys.segments]}

    table.write(F1="a", F2="b")
    publish(table)
    first, partitions = tick_tells()
    assert partitions == {"F1.csv", "F2.csv", ALL_FILES}
    assert TableHistory(table.instance, table.spec).partitions() == partitions
    assert set(table.stale_statuses("segments", sorted(partitions)).values()) == {"FRESH"}

    table.write(F1="a2")
    publish(table)
    second, partitions = tick_tells()
    assert second != first
    assert partitions == {"F1.csv", ALL_FILES}

    with driver(table) as outside:
        outside.rollback()
    back, partitions = tick_tells()
    assert back == first
    assert partitions == {"F1.csv", ALL_FILES}
    assert table.shown() == ["a", "b"]


def shown(table: LocationTable, asset: dg.AssetKey, name: str) -> dg.AssetCheckEvaluation:
    """What the page of a check shows."""
    (record,) = table.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(asset, name), limit=1
    )
    assert record.evaluation is not None
    return record.evaluation


def told(table: LocationTable) -> tuple[str, bool, str]:
    """Standing, whether the check passes, and the last line of its text, after a tick."""
    for event in tick(table).asset_events:  # as the sensor daemon does
        table.instance.report_runless_asset_event(event)
    status = shown(table, keys_of(table.spec).table, "status")
    return str(status.metadata["state"].value), status.passed, (status.description or "").splitlines()[-1]


def test_each_way_in_which_a_table_can_be_is_told_within_a_tick(table: LocationTable) -> None:
    """One table through all five, driven by the command line alone."""
    keys, name = keys_of(table.spec), table.name
    assert told(table) == ("not published", False, f"`pinot-assets run {name}`")
    assert table.stale_statuses(name) == {None: "MISSING"}

    table.write(F1="a")
    publish(table)
    state, passed, _ = told(table)
    assert (state, passed) == ("up to date", True)
    assert table.stale_statuses(name) == {None: "FRESH"}
    gate = shown(table, keys.segments, "consistent_push")
    assert (gate.passed, gate.description) == (True, "passed, and switched")

    table.write(F2="b")
    assert told(table) == ("waiting", False, f"`pinot-assets run {name}`")
    assert table.stale_statuses(name) == {None: "STALE"}, "it looks like one that is up to date"

    table.corrupt("F2")
    with driver(table) as outside:
        outside.trigger()
        outside.audit()
    state, passed, command = told(table)
    assert (state, passed, command) == ("failed", False, f"`pinot-assets run {name}`")
    assert shown(table, keys.table, "status").severity is dg.AssetCheckSeverity.ERROR
    gate = shown(table, keys.segments, "consistent_push")
    assert not gate.passed
    assert "F2.csv" in (gate.description or "")
    assert "Nothing is switched: queries see cp1-" in (gate.description or "")

    table.write(F2="b")
    publish(table)
    with driver(table) as outside:
        outside.rollback()
    assert told(table) == ("held", False, f"`pinot-assets resume {name}`")
    assert shown(table, keys.table, "status").severity is dg.AssetCheckSeverity.ERROR
