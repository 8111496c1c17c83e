"""A table's job, gate and sensor, as Dagster runs them, on a real ZooKeeper and a real Pinot."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from fakes.builder import InProcessBuilder
from fakes.tables import write_files, write_table
from kazoo.exceptions import ConnectionLoss

from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.assets.table import table_assets
from pinot_assets.connect import open_session_store, open_staging
from pinot_assets.definitions import build_definitions
from pinot_assets.local import StackState
from pinot_assets.pinot import PinotCluster
from pinot_assets.pinot.broker import NoResult
from pinot_assets.resources import PinotResource, consistent_push
from pinot_assets.session.driver import Driver
from pinot_assets.session.model import Owner, State
from pinot_assets.session.observe import Observation, observe
from pinot_assets.settings import load_settings
from pinot_assets.spec import TableSpec
from pinot_assets.spec.apply import apply_plan, plan_apply

pytestmark = [
    pytest.mark.integration,
    # Dagster itself calls what it deprecates when a resource holds another one.
    pytest.mark.filterwarnings("ignore:InitResourceContext.dagster_run is deprecated:DeprecationWarning"),
]

_numbers = itertools.count()
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Table:
    """One table of the code location."""

    def __init__(self, folder: Path, pinot: PinotCluster, instance: dg.DagsterInstance) -> None:
        self.folder = folder
        self.instance = instance
        self.pinot = pinot
        self.name = f"dagster_{time.time_ns()}_{next(_numbers)}"
        self.spec: TableSpec = write_table(folder, self.name)

    def write(self, **values: str) -> None:
        write_files(self.folder, **values)

    def corrupt(self, name: str) -> None:
        (self.folder / "source" / f"{name}.csv").write_bytes(b"v\n\xff\xfe broken \xff\n")

    @property
    def definitions(self) -> dg.Definitions:
        return build_definitions(self.folder / "tables")

    def key(self, name: str) -> dg.AssetKey:
        return dg.AssetKey([self.name, name])

    def run(self) -> dg.ExecuteInProcessResult:
        """The job that the sensor starts."""
        job = self.definitions.resolve_job_def(f"{self.name}_ingest")
        return job.execute_in_process(instance=self.instance, raise_on_error=False, run_config=QUIET)

    def publish(self) -> dg.ExecuteInProcessResult:
        """A run that must succeed."""
        result = self.run()
        assert result.success, [said(event) for event in failures(result)]
        return result

    def materialize(self, selection: dg.AssetSelection) -> dg.ExecuteInProcessResult:
        """Some of the assets, as a person may choose them."""
        table = table_assets(self.spec)
        return dg.materialize(
            [*table.assets, table.check],
            selection=selection,
            resources=self.definitions.resources,
            instance=self.instance,
            raise_on_error=False,
            run_config=QUIET,
        )

    def tick(self, cursor: str | None = None) -> Any:
        definitions = self.definitions
        with dg.build_sensor_context(
            instance=self.instance,
            cursor=cursor,
            definitions=definitions,
            resources={"pinot": PinotResource()},
        ) as context:
            return definitions.resolve_sensor_def(f"{self.name}_files").evaluate_tick(context)

    def observe(self) -> Observation:
        with open_session_store(self.spec, load_settings()) as store:
            return observe(store, open_staging(self.spec))

    @property
    def epoch(self) -> int:
        return self.observe().pointer.epoch

    def shown(self) -> list[str]:
        """The values that queries see: the same at every broker, each as often as it is there."""
        sql = f'SELECT v, COUNT(*) FROM "{self.name}" GROUP BY v LIMIT 1000'
        values: list[list[str]] = []
        for url in self.pinot.brokers(self.name):
            try:
                rows = self.pinot.broker(url).query(sql).rows
            except NoResult:  # a table without segments
                rows = ()
            values.append(sorted(v for v, count in rows for _ in range(count)))
        assert len(values) == 2
        assert values[0] == values[1]
        return values[0]

    def evaluation(self, result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
        """The one evaluation of the gate in a run."""
        (evaluation,) = result.get_asset_check_evaluations()
        assert evaluation.check_name == "consistent_push"
        return evaluation


def materializations(result: dg.ExecuteInProcessResult, name: str) -> list[dg.AssetMaterialization]:
    events = [event.materialization for event in result.get_asset_materialization_events()]
    return [m for m in events if m.asset_key.path[-1] == name]


def values(metadata: Any) -> dict[str, Any]:
    return {key: value.value for key, value in metadata.items()}


def failures(result: dg.ExecuteInProcessResult) -> list[dg.DagsterEvent]:
    return [event for event in result.all_events if event.is_failure]


def said(event: dg.DagsterEvent) -> str:
    """The message at the root of a failure."""
    data: Any = event.event_specific_data
    error = data.error
    while error.cause is not None:
        error = error.cause
    return str(error.message)


def failure(result: dg.ExecuteInProcessResult) -> str:
    """What the one step that failed says."""
    (event,) = result.get_step_failure_events()
    return said(event)


@pytest.fixture
def environment(stack: StackState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOT_CONTROLLER_URL", stack.controller_url)
    monkeypatch.setenv("PINOT_ZOOKEEPER", stack.zookeeper)


@pytest.fixture
def spark_table(environment: None, tmp_path: Path) -> Iterator[Table]:
    """As the code location is shipped: builds on Spark."""
    with (
        PinotCluster(load_settings().pinot) as pinot,
        dg.DagsterInstance.local_temp(str(tmp_path), overrides={"telemetry": {"enabled": False}}) as instance,
    ):
        table = Table(tmp_path, pinot, instance)
        apply_plan(plan_apply(table.spec, pinot), pinot)
        deadline = time.monotonic() + 60
        while len(pinot.brokers(table.name)) < 2:
            assert time.monotonic() < deadline, "the brokers do not take the table"
            time.sleep(0.1)
        yield table
        pinot.delete_table(table.name)
        pinot.delete_schema(table.name)


@pytest.fixture
def table(spark_table: Table, monkeypatch: pytest.MonkeyPatch) -> Table:
    """The same tasks in this process, without Spark."""
    monkeypatch.setattr(consistent_push, "SparkBuilder", lambda session: InProcessBuilder())
    return spark_table


# --- the whole job ---------------------------------------------------------------------------------


def test_one_run_builds_gates_and_switches_under_one_lease(table: Table) -> None:
    table.write(F1="a b", F2="c")
    result = table.publish()
    assert table.shown() == ["a", "b", "c"]

    *files, whole = materializations(result, "segments")
    assert {m.partition: values(m.metadata)["rows"] for m in files} == {"F1.csv": 2, "F2.csv": 1}
    for m in files:
        shown = values(m.metadata)
        assert shown["file"] == f"{table.spec.input_uri()}/{m.partition}"
        assert shown["segments"].startswith(f"{table.name}__cp1-")
        assert shown["worker"]
        assert m.tags is not None
        assert m.tags["dagster/data_version"] == shown["version"]
    assert whole.partition is None
    assert values(whole.metadata)["summary"].startswith("2 new, 0 rewritten, 0 deleted")

    evaluation = table.evaluation(result)
    assert evaluation.passed
    assert evaluation.blocking
    assert evaluation.severity is dg.AssetCheckSeverity.ERROR
    assert values(evaluation.metadata)["replicas_online_found"] == 4

    (snapshot,) = materializations(result, "snapshot")
    assert values(snapshot.metadata)["rows"] == 3
    seen = table.observe()
    assert seen.pointer.epoch == 1, "each step took a lease of its own"
    assert (seen.holder, seen.session) == (None, None)

    result = table.publish()
    assert result.get_asset_materialization_events() == []
    assert result.get_asset_check_evaluations() == []
    assert table.epoch == 2


def test_on_spark_a_corrupt_file_shuts_the_gate_until_it_is_repaired(spark_table: Table) -> None:
    table = spark_table
    table.write(F1="a b", F2="c")
    table.publish()
    table.write(F1="a1", F3="d")
    table.corrupt("F4")

    result = table.run()
    assert not result.success
    assert {m.partition for m in materializations(result, "segments")} == {"F1.csv", "F3.csv", None}
    evaluation = table.evaluation(result)
    assert not evaluation.passed
    assert evaluation.severity is dg.AssetCheckSeverity.ERROR
    assert evaluation.description is not None
    assert evaluation.description.startswith("2 of 3 files are built: F4.csv: ")
    shown = values(evaluation.metadata)
    assert (shown["files_built_expected"], shown["files_built_found"]) == (3, 2)
    assert materializations(result, "snapshot") == []
    assert table.shown() == ["a", "b", "c"]
    assert table.observe().holder is None, "a failed run keeps the lease"

    table.write(F4="e f")
    result = table.publish()
    assert {m.partition for m in materializations(result, "segments")} == {"F4.csv", None}
    assert table.shown() == ["a1", "c", "d", "e", "f"]
    assert table.epoch == 3


# --- the gate cannot be walked around --------------------------------------------------------------


def test_snapshot_alone_switches_nothing(table: Table) -> None:
    table.write(F1="a")
    alone = dg.AssetSelection.assets(table.key("snapshot"))
    result = table.materialize(alone)
    assert "SnapshotIncomplete" in failure(result)
    assert "no session is open" in failure(result)

    assert table.materialize(dg.AssetSelection.assets(table.key("segments")).without_checks()).success
    result = table.materialize(alone)
    assert "SnapshotIncomplete" in failure(result)
    assert "has not been audited" in failure(result)
    assert table.shown() == []
    assert table.observe().holder is None


def test_a_selection_without_checks_switches_nothing(table: Table) -> None:
    table.write(F1="a")
    unchecked = dg.AssetSelection.assets(table.key("segments"), table.key("snapshot")).without_checks()
    result = table.materialize(unchecked)
    assert not result.success
    assert result.get_asset_check_evaluations() == []
    assert len(materializations(result, "segments")) == 2
    assert "has not been audited" in failure(result)
    assert table.shown() == []

    table.corrupt("F2")
    result = table.materialize(unchecked)
    assert "SnapshotIncomplete" in failure(result)
    assert table.shown() == []

    table.write(F2="b")
    table.publish()
    assert table.shown() == ["a", "b"]


def test_a_gate_that_breaks_is_shut_and_says_so(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.write(F1="a")

    def broken(self: Driver) -> Any:
        raise ConnectionLoss("ZooKeeper went away")

    with monkeypatch.context() as patch:
        patch.setattr(Driver, "audit", broken)
        result = table.run()
    assert not result.success
    evaluation = table.evaluation(result)
    assert not evaluation.passed
    assert evaluation.description == "ZooKeeper went away"
    assert materializations(result, "snapshot") == []
    session = table.observe().session
    assert session is not None
    assert session.state is State.SWITCH
    assert table.shown() == []
    table.publish()
    assert table.shown() == ["a"]


# --- one run at a time -----------------------------------------------------------------------------


def test_a_run_beside_another_fails_and_names_the_holder(table: Table) -> None:
    table.write(F1="a")
    with open_session_store(table.spec, load_settings()) as store:
        lease = store.take_lease(Owner("another-run", "elsewhere", 7, 1_700_000_000_000))
        result = table.run()
        assert not result.success
        held = "held by another-run on elsewhere (pid 7) since 2023-11-14 22:13:20 UTC"
        assert f"{table.name}_OFFLINE is paused: {held}" in failure(result)
        assert result.get_asset_check_evaluations() == []
        tick = table.tick()
        assert not tick.run_requests
        assert tick.skip_message == f"paused: no session yet {held}"
        lease.release()
    table.publish()
    assert table.shown() == ["a"]


# --- the files sensor ------------------------------------------------------------------------------


def test_the_sensor_launches_what_it_sees_and_the_run_takes_it_in(table: Table) -> None:
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
    assert paused.skip_message == f"paused: run {run_id} of {table.name} is under way"
    assert paused.cursor == "as it was"
    table.instance.delete_run(run_id)

    table.publish()
    assert table.shown() == ["a1", "b", "d"]
    assert not table.tick(tick.cursor).run_requests


def test_a_listing_that_fails_is_a_sentence_and_no_empty_listing(table: Table) -> None:
    table.write(F1="a")
    table.publish()
    (table.folder / "source").rename(table.folder / "moved")
    tick = table.tick("as it was")
    assert not tick.run_requests
    assert str(table.folder / "source") in tick.skip_message
    assert tick.cursor == "as it was"
    assert not table.run().success
    assert table.shown() == ["a"]
