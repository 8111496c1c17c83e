"""Partitions of a table as a person sees and picks them, from the files to what queries see and back."""

from __future__ import annotations

import os
from collections.abc import Mapping

import dagster as dg
import pytest
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    BACKFILL_ID_TAG,
)
from fakes.locations.code_location import QUIET, LocationTable, materializations, staged_and_published, values

from pinot_assets.assets.keys import partitions_name
from pinot_assets.assets.location_jobs import run_config
from pinot_assets.assets.partitions import ALL_FILES

pytestmark = pytest.mark.integration


def stale(table: LocationTable) -> dict[str, bool]:
    """What the page of `segments` says of every partition."""
    keys = table.instance.get_dynamic_partitions(partitions_name(table.spec))
    return {key: status == "STALE" for key, status in table.stale_statuses("segments", sorted(keys)).items()}


def everything(table: LocationTable) -> dg.AssetSelection:
    return dg.AssetSelection.assets(table.key("segments"), table.key("snapshot"))


def by_hand(
    table: LocationTable, first: str, last: str, tags: Mapping[str, str] | None = None
) -> dg.ExecuteInProcessResult:
    """A range of partitions, as the dialog of `segments` starts it."""
    span = {ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: last}
    return table.materialize(everything(table), None, {**span, **(tags or {})})


def test_picking_partitions_triggers_the_table_and_never_narrows_it(table: LocationTable) -> None:
    table.write(F1="a", F3="c")
    table.corrupt("F2")
    table.tick()  # the partitions of the files
    result = table.materialize(everything(table), "F2.csv")
    assert staged_and_published(result)[0].keys() == {"F1.csv", "F3.csv"}
    assert not table.evaluation(result).passed
    picked = [m for m in materializations(result, "segments") if m.partition == "F2.csv"]
    assert picked == [], "what failed is shown as materialized"

    table.write(F2="b")
    result = by_hand(table, "F1.csv", "F2.csv")
    assert result.success
    built, published = staged_and_published(result)
    assert (built.keys(), published.keys()) == ({"F2.csv"}, {"F1.csv", "F2.csv", "F3.csv", ALL_FILES})
    every = materializations(result, "segments")
    assert len(every) == 5, "a partition that was picked is shown once more"
    assert all(values(m.metadata)["state"] for m in every if m.partition != ALL_FILES)
    assert table.shown() == ["a", "b", "c"]

    result = table.materialize(everything(table), "F1.csv")
    assert result.success
    assert result.get_asset_materialization_events() == [], "nothing was built, nothing was switched"


def test_r26_the_runs_of_a_backfill_are_one_trigger(table: LocationTable) -> None:
    """R26: Dagster makes a run of every contiguous range."""
    table.write(F1="a", F2="b", F4="d")
    table.corrupt("F3")
    table.tick()
    backfill = {BACKFILL_ID_TAG: "picked"}
    for partition in ("F1.csv", "F4.csv"):
        result = by_hand(table, partition, partition, backfill)
        description = table.evaluation(result).description
        assert description is not None
        assert description.startswith("3 of 4 files are built: F3.csv: ")
        session = table.observe().session
        assert session is not None
        assert (session.retry_count, session.attempt) == (0, 0)
    assert result.get_asset_materialization_events() == []

    by_hand(table, "F1.csv", "F1.csv", {BACKFILL_ID_TAG: "picked again"})
    session = table.observe().session
    assert session is not None
    assert session.retry_count == 1


def test_a_partition_is_stale_until_queries_see_its_file(table: LocationTable) -> None:
    fresh = {"F1.csv": False, "F2.csv": False, "F3.csv": False, ALL_FILES: False}
    source = table.folder / "source"
    table.write(F1="a", F2="b", F3="c")
    table.publish()
    assert stale(table) == fresh

    # Written and written back before anybody built it.
    mtime = (source / "F1.csv").stat().st_mtime_ns
    table.write(F1="longer")
    table.tick()
    assert stale(table) == {**fresh, "F1.csv": True, ALL_FILES: True}
    table.write(F1="a")
    os.utime(source / "F1.csv", ns=(mtime, mtime))
    table.tick()
    assert stale(table) == fresh

    # As before, but of another time: it takes a trigger to see that the content is the same.
    os.utime(source / "F1.csv", ns=(mtime, mtime + 7_000_000_000))
    table.tick()
    assert stale(table) == {**fresh, "F1.csv": True, ALL_FILES: True}
    assert table.publish().get_asset_materialization_events() == []
    assert stale(table) == fresh

    # Built, but not published.
    table.write(F1="longer")
    table.corrupt("F3")
    result = table.run()
    assert staged_and_published(result)[0].keys() == {"F1.csv"}
    assert stale(table) == {**fresh, "F1.csv": True, "F3.csv": True, ALL_FILES: True}
    table.write(F3="d")
    table.publish()
    assert stale(table) == fresh
    assert table.shown() == ["b", "d", "longer"]

    (source / "F2.csv").unlink()
    table.tick()
    assert stale(table) == {**fresh, "F2.csv": True, ALL_FILES: True}
    table.publish()
    del fresh["F2.csv"]
    assert stale(table) == fresh
    assert table.shown() == ["d", "longer"]


def test_a_table_is_unsynced_while_changes_wait_and_until_its_run_has_ended(table: LocationTable) -> None:
    def shown() -> str:
        return table.stale_statuses(table.name)[None]

    table.write(F1="a")
    table.publish()
    assert shown() == "FRESH"
    table.write(F1="longer")
    assert operate(table, "health").success
    assert shown() == "STALE"
    table.publish()
    assert shown() == "FRESH"

    table.write(F1="a")
    table.corrupt("F2")
    assert not table.run().success
    assert shown() == "STALE"
    table.write(F2="b")
    table.publish()
    assert shown() == "FRESH"

    assert operate(table, "rollback").success
    assert shown() == "STALE"
    assert operate(table, "resume").success
    table.publish()
    assert shown() == "FRESH"


def test_what_a_rollback_brings_back_is_stale(table: LocationTable) -> None:
    table.write(F1="a", F2="b")
    table.publish()
    table.write(F1="longer")
    (table.folder / "source" / "F2.csv").unlink()
    table.publish()
    assert stale(table) == {"F1.csv": False, ALL_FILES: False}

    assert operate(table, "rollback").success
    assert table.shown() == ["a", "b"]
    table.tick()
    assert stale(table) == {"F1.csv": True, "F2.csv": True, ALL_FILES: True}
    assert operate(table, "resume").success
    table.publish()
    assert stale(table) == {"F1.csv": False, ALL_FILES: False}
    assert table.shown() == ["longer"]


def operate(table: LocationTable, name: str) -> dg.ExecuteInProcessResult:
    job = table.definitions.resolve_job_def(f"pinot_{name}")
    config = {**QUIET, **run_config(name, table.name)}
    return job.execute_in_process(instance=table.instance, raise_on_error=False, run_config=config)
