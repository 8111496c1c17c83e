"""A table's job, gate and files sensor, as Dagster runs them, on a real ZooKeeper and a real Pinot."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from fakes.locations.code_location import (
    LocationTable,
    failure,
    gate_evaluations,
    materializations,
    observations,
    staged_and_published,
    values,
)
from fakes.monitoring.pushgateway import pushgateway

from pinot_assets.assets.keys import ATTEMPT_TAG, SESSION_TAG, TABLE_TAG
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.metrics.pushing import GATEWAY
from pinot_assets.scheduling.files_tick import FilesCursor
from pinot_assets.session.stores.clients import open_session_store
from pinot_assets.session.values.state import Owner
from pinot_assets.settings.environment import load_settings

pytestmark = pytest.mark.integration

# --- the whole job ---------------------------------------------------------------------------------


def test_one_run_builds_gates_and_switches_under_one_lease(
    table: LocationTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write(F1="a b", F2="c")
    with pushgateway() as gateway:
        monkeypatch.setenv(GATEWAY, gateway.url)
        result = table.publish()
    monkeypatch.delenv(GATEWAY)
    (pushed,) = gateway.groups.values()
    assert pushed["pinot_assets_run_success", table.name] == 1
    assert pushed["pinot_assets_run_step_duration_seconds", "publish", table.name] > 0
    assert pushed["pinot_assets_run_rows", table.name] == 3
    assert table.shown() == ["a", "b", "c"]

    built, published = staged_and_published(result)
    assert {k: values(m.metadata)["rows"] for k, m in built.items()} == {"F1.csv": 2, "F2.csv": 1}
    assert published.keys() == {*built, ALL_FILES}
    assert values(published.pop(ALL_FILES).metadata)["rows"] == 3
    for key, m in published.items():
        shown = values(m.metadata)
        assert shown["file"] == f"{table.spec.input_uri()}/{key}"
        assert shown["segments"].startswith(f"{table.name}__cp1-")
        assert shown["seconds"] > 0
        assert shown["state"] == "published"
        assert m.tags is not None
        assert m.tags["dagster/data_version"].startswith(f"{shown['version']}-")
    (report,) = observations(result, "segments")
    assert values(report.metadata)["summary"].startswith("2 new, 0 rewritten, 0 deleted")
    run = table.instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.tags[SESSION_TAG].startswith("cp1-")
    assert (run.tags[TABLE_TAG], run.tags[ATTEMPT_TAG]) == (table.name, "0")

    evaluation = table.evaluation(result)
    assert evaluation.passed
    assert evaluation.blocking
    assert evaluation.severity is dg.AssetCheckSeverity.ERROR
    assert values(evaluation.metadata)["replicas_online_found"] == 4

    (snapshot,) = materializations(result, "snapshot")
    shown = values(snapshot.metadata)
    assert (shown["files"], shown["rows"], shown["retry_count"]) == (2, 3, 0)
    assert Path(shown["manifest"]).is_file()
    assert shown["pinot_console"].endswith(f"/#/tenants/table/{table.name}_OFFLINE")
    assert shown["rollback_until"] == "no way back"
    (whole,) = materializations(result, table.name)
    assert whole.metadata["lineage_entry"] == snapshot.metadata["lineage_entry"]
    again = gate_evaluations(result)[-1]
    (newest,) = table.instance.fetch_materializations(table.key("segments"), limit=1).records
    assert again.passed
    numbers = values(evaluation.metadata)
    assert values(again.metadata) == {
        key: number for key, number in numbers.items() if key.endswith(("_expected", "_found"))
    }, "the newest evaluation is the one that the page shows"
    assert again.target_materialization_data is not None
    assert again.target_materialization_data.storage_id == newest.storage_id, "the page says: not checked"
    assert table.stale_statuses("snapshot") == {None: "FRESH"}, "it has seen the segments that it published"
    observation = table.observe()
    assert observation.pointer.epoch == 1, "each step took a lease of its own"
    assert (observation.holder, observation.session) == (None, None)

    result = table.publish()
    assert result.get_asset_materialization_events() == []
    assert gate_evaluations(result) == []
    assert table.epoch == 2


def test_a_run_that_goes_on_for_one_that_died_after_its_switch_only_says_so(table: LocationTable) -> None:
    table.write(F1="a")
    died = table.instance.get_run_by_id(table.publish().run_id)
    assert died is not None
    table.write(F2="b")
    last_step = dg.AssetSelection.assets(table.key("snapshot"))
    result = table.materialize(last_step, None, tags={SESSION_TAG: died.tags[SESSION_TAG]})
    assert result.success
    assert len(materializations(result, "snapshot")) == 1
    assert table.shown() == ["a"]


def test_on_spark_a_corrupt_file_shuts_the_gate_until_it_is_repaired(spark_table: LocationTable) -> None:
    table = spark_table
    table.write(F1="a b", F2="c")
    table.publish()
    table.write(F1="a1", F3="d")
    table.corrupt("F4")

    result = table.run()
    assert not result.success
    built, published = staged_and_published(result)
    assert (built.keys(), published.keys()) == ({"F1.csv", "F3.csv"}, set())
    evaluation = table.evaluation(result)
    assert not evaluation.passed
    assert evaluation.severity is dg.AssetCheckSeverity.ERROR
    assert evaluation.description is not None
    assert evaluation.description.startswith("2 of 3 files are built: F4.csv: ")
    assert ". Nothing is switched: queries see cp1-" in evaluation.description
    shown = values(evaluation.metadata)
    assert shown["still_served"].endswith(": 2 files, 3 rows")
    assert (shown["files_built_expected"], shown["files_built_found"]) == (3, 2)
    assert materializations(result, "snapshot") == []
    assert table.shown() == ["a", "b", "c"]
    assert table.observe().holder is None, "a failed run keeps the lease"

    table.write(F4="e f")
    result = table.publish()
    built, published = staged_and_published(result)
    assert (built.keys(), published.keys()) == ({"F4.csv"}, {"F1.csv", "F3.csv", "F4.csv", ALL_FILES})
    assert table.shown() == ["a1", "c", "d", "e", "f"]
    assert table.epoch == 3


# --- one run at a time -----------------------------------------------------------------------------


def test_a_run_beside_another_fails_and_names_the_holder(table: LocationTable) -> None:
    table.write(F1="a")
    with open_session_store(table.spec, load_settings()) as store:
        lease = store.take_lease(Owner("another-run", "elsewhere", 7, 1_700_000_000_000))
        result = table.run()
        assert not result.success
        held = "held by another-run on elsewhere (pid 7) since 2023-11-14 22:13:20 UTC"
        assert f"{table.name}_OFFLINE is paused: {held}" in failure(result)
        assert gate_evaluations(result) == []
        tick = table.tick()
        assert not tick.run_requests
        assert tick.skip_message == f"paused: lease {held}"
        lease.release()
    table.publish()
    assert table.shown() == ["a"]


# --- the files sensor ------------------------------------------------------------------------------


def test_the_sensor_launches_what_it_sees_and_the_run_takes_it_in(table: LocationTable) -> None:
    table.write(F1="a", F2="b", F3="c")
    table.publish()
    assert table.tick().skip_message == "0 new, 0 rewritten, 0 deleted of 3 files listed"
    table.write(F1="a1", F4="d")
    (table.folder / "source" / "F3.csv").unlink()

    tick = table.tick()
    (request,) = tick.run_requests
    assert request.tags[TABLE_TAG] == table.name
    assert request.tags["pinot/tick"] == "1 new, 1 rewritten, 1 deleted; launched"
    assert not table.tick(tick.cursor).run_requests

    run_id = dg.DagsterRun(job_name="x").run_id
    run = dg.DagsterRun(
        job_name=f"{table.name}_ingest",
        run_id=run_id,
        status=dg.DagsterRunStatus.STARTED,
        tags={TABLE_TAG: table.name},
    )
    table.instance.add_run(run)
    paused = table.tick("as it was")
    assert not paused.run_requests
    assert paused.skip_message == f"paused: run {run_id} of {table.name} has not ended"
    assert paused.cursor == "as it was"
    table.instance.delete_run(run_id)

    table.publish()
    assert table.shown() == ["a1", "b", "d"]
    assert not table.tick(tick.cursor).run_requests


def test_a_listing_that_fails_is_a_sentence_and_no_empty_listing(table: LocationTable) -> None:
    table.write(F1="a")
    table.publish()
    before = table.tick()
    (table.folder / "source").rename(table.folder / "moved")
    tick = table.tick(before.cursor)
    assert not tick.run_requests
    assert str(table.folder / "source") in tick.skip_message
    cursor = FilesCursor.read(str(tick.cursor))
    assert cursor.failing_s > 0
    assert cursor == FilesCursor.read(str(before.cursor)).fails(cursor.failing_s)
    assert not table.run().success
    assert table.shown() == ["a"]
