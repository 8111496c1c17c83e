"""A REALTIME table in Dagster: what is there, what a look becomes, what jobs do."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from fakes.realtime.memory import S1, S2, FakeRealtime
from fakes.realtime.specs import write_realtime_table
from fakes.tables import write_table

from pinot_assets.assets.keys import TABLE_TAG, table_key
from pinot_assets.assets.location_jobs import run_config
from pinot_assets.assets.realtime import observed
from pinot_assets.code_location import build_location_definitions, build_realtime_definitions
from pinot_assets.definitions import build_definitions
from pinot_assets.realtime.health.all_checks import CHECKS, RealtimeView
from pinot_assets.realtime.preflight.facts import Aim, Facts
from pinot_assets.realtime.preflight.gather import gather
from pinot_assets.realtime.read.stream import StreamRetention
from pinot_assets.resources import PinotResource
from pinot_assets.table_spec import RealtimeTableSpec

JOBS = ("preflight", "repair", "pauseless_enable", "pauseless_disable", "rebalance")
KEY = dg.AssetKey("clicks_realtime")
PINOT = PinotResource(controller_url="http://controller:9000", zookeeper="127.0.0.1:1", cluster="test")


@pytest.fixture
def spec(tmp_path: Path) -> RealtimeTableSpec:
    return write_realtime_table(tmp_path, dagster={"owners": ["team:data"]})


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRealtime:
    """A Pinot that every part of these tests sees."""
    made = FakeRealtime()
    made.segment(sequence=0)
    made.segment(sequence=1, status="IN_PROGRESS", start=100, end=200)

    def seen(*_: object) -> RealtimeView:
        from pinot_assets.realtime.health.all_checks import examine_state

        state = made.look()
        return RealtimeView(state, examine_state(state))

    def facts(pinot: object, table: str, config: dict, aim: Aim | None = None) -> Facts:
        return gather(pinot, table, config, aim, lambda _: StreamRetention(7 * 86_400_000))  # type: ignore[arg-type]

    monkeypatch.setattr("pinot_assets.assets.realtime.view_of", seen)
    monkeypatch.setattr("pinot_assets.assets.looks.view_of", seen)
    monkeypatch.setattr("pinot_assets.assets.realtime.RealtimePinot", lambda _: made.pinot())
    monkeypatch.setattr("pinot_assets.assets.realtime.gather", facts)
    return made


def located(spec: RealtimeTableSpec) -> dg.Definitions:
    """The table in a code location of its own."""
    shared = build_location_definitions([spec])
    return dg.Definitions.merge(
        build_realtime_definitions(spec), shared, dg.Definitions(resources={"pinot": PINOT})
    )


def run(spec: RealtimeTableSpec, job: str, instance: dg.DagsterInstance, **config: object) -> object:
    name = job if job == "health" else f"realtime_{job}"
    return (
        located(spec)
        .resolve_job_def(f"pinot_{name}")
        .execute_in_process(
            run_config=run_config(name, "clicks", **config), instance=instance, raise_on_error=False
        )
    )


def test_a_directory_may_hold_both_kinds(tmp_path: Path) -> None:
    write_table(tmp_path, "flights")
    write_realtime_table(tmp_path)
    definitions = build_definitions(tmp_path / "tables")
    dg.Definitions.validate_loadable(definitions)
    repository = definitions.get_repository_def()
    assert KEY in repository.asset_graph.get_all_asset_keys()
    jobs = {job.name for job in repository.get_all_jobs() if not job.name.startswith("__")}
    assert {*(f"pinot_realtime_{name}" for name in JOBS), "pinot_health", "flights_ingest"} <= jobs
    sensors = {sensor.name for sensor in repository.sensor_defs}
    assert sensors == {"flights_files", "pinot_sessions", "pinot_tables"}


def test_a_hybrid_table_is_two_assets_of_one_group(tmp_path: Path) -> None:
    spec = write_realtime_table(tmp_path)
    definitions = located(spec)
    node = definitions.resolve_asset_graph().get(KEY)
    assert node.group_name == "clicks"
    assert node.kinds == {"pinot", "table", "kafka"}
    assert node.metadata["pauseless"] is True
    assert node.is_external


def test_owners_and_checks(spec: RealtimeTableSpec) -> None:
    graph = located(spec).resolve_asset_graph()
    assert graph.get(KEY).owners == ["team:data"]
    assert {key.name for key in graph.get_check_keys_for_assets({KEY})} == {check.name for check in CHECKS}


def test_a_run_of_the_checks_is_one_observation_and_every_answer(
    spec: RealtimeTableSpec, fake: FakeRealtime
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        result = run(spec, "health", instance)
        assert result.success
        assert len(result.get_asset_check_evaluations()) == len(CHECKS)
        (record,) = instance.fetch_observations(KEY, limit=9).records
        assert record.asset_observation.metadata["committed_rows"] == dg.IntMetadataValue(100)
        assert record.asset_observation.metadata["lag_s"] == dg.FloatMetadataValue(0.01)


def test_what_a_look_shows_of_trouble(fake: FakeRealtime) -> None:
    states = {S1: "ERROR", S2: "ERROR"}
    name = fake.segment(sequence=2, status="COMMITTING", states=states, start=200, end=210)
    fake.away.add("/query/sql")
    shown = observed(fake.look())
    assert name in str(shown["troubled_segments"].value)
    assert "- answered:" in str(shown["not_read"].value)


def test_the_preflight_says_what_it_judged(spec: RealtimeTableSpec, fake: FakeRealtime) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        assert run(spec, "preflight", instance).success
        fake.version = "0.11.0"
        result = run(spec, "preflight", instance)
        assert not result.success
        (failure,) = [event for event in result.all_events if event.is_step_failure]
        assert "version: 0.11.0 does not know" in str(failure.step_failure_data.error)


def test_runs_of_a_table_are_tagged_with_it_by_their_partition(spec: RealtimeTableSpec) -> None:
    definitions = located(spec)
    for name in JOBS:
        job = definitions.resolve_job_def(f"pinot_realtime_{name}")
        assert job.partitioned_config is not None
        tags = job.partitioned_config.get_tags_for_partition_key("clicks_REALTIME")
        assert tags[TABLE_TAG] == "clicks_REALTIME"
        assert job.tags["dagster/max_retries"] == "0"
    assert table_key(spec) == KEY
