"""Runs under the shipped dagster.yaml, with a real daemon: one per table at a time, and gone on with when
their worker is killed."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml
from fakes.project import ROOT
from fakes.tables import write_files, write_table
from fakes.waiting import until

from pinot_assets.assets.keys import keys_of, partitions_name
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.core.json_object import JsonObject
from pinot_assets.local import ui
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.session.detect.observe import Observation, observe
from pinot_assets.session.stores.clients import open_session_store, open_staging
from pinot_assets.session.values.state import Outcome, Session
from pinot_assets.settings.environment import load_settings
from pinot_assets.settings.local_stack import StackState
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply

pytestmark = pytest.mark.integration

LAUNCH = """
mutation ($params: ExecutionParams!) { launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
} }
"""
RUNS = """
{ runsOrError { ... on Runs { results {
    runId status startTime endTime tags { key value }
} } } }
"""
START_SENSOR = """
mutation ($selector: SensorSelector!) { startSensor(sensorSelector: $selector) {
    __typename
    ... on PythonError { message }
} }
"""
TICKS = """
query ($selector: SensorSelector!) { sensorOrError(sensorSelector: $selector) {
    ... on Sensor { sensorState { ticks(limit: 10) { skipReason } } }
} }
"""
ADD_PARTITION = """
mutation ($repository: RepositorySelector!, $name: String!, $key: String!) {
    addDynamicPartition(repositorySelector: $repository, partitionsDefName: $name, partitionKey: $key) {
        __typename
} }
"""
LOCATION = """
{ workspaceOrError { ... on Workspace { locationEntries {
    locationOrLoadError { __typename ... on PythonError { message } }
} } } }
"""
REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": "runs"}


class Location:
    """`dagster dev` on `fakes/locations/runs.py`, and the table in it."""

    def __init__(self, folder: Path, spec: TableSpec) -> None:
        self.folder = folder
        self.spec = spec
        project = folder / "project"
        project.mkdir()
        shutil.copyfile(ROOT / "dagster.yaml", project / "dagster.yaml")
        place = {"relative_path": str(ROOT / "tests/fakes/locations/runs.py"), "location_name": "runs"}
        (project / "workspace.yaml").write_text(yaml.safe_dump({"load_from": [{"python_file": place}]}))
        self.url = ui.start(folder / "home", project)
        until(lambda: self.ask(LOCATION)[0]["locationOrLoadError"], 90)
        (loaded,) = self.ask(LOCATION)
        assert loaded["locationOrLoadError"]["__typename"] == "RepositoryLocation", loaded
        answer = self.ask(ADD_PARTITION, repository=REPOSITORY, name=partitions_name(spec), key=ALL_FILES)
        assert answer["__typename"] == "AddDynamicPartitionSuccess", answer

    def ask(self, query: str, **variables: Any) -> Any:
        body = {"query": query, "variables": variables}
        reply = httpx.post(f"{self.url}/graphql", json=body, timeout=60, trust_env=False).json()
        assert "errors" not in reply, reply
        (answer,) = reply["data"].values()
        return answer.get("locationEntries", answer)

    def trigger(self) -> str:
        """A run of the table's job."""
        return self._launch({"jobName": f"{self.spec.asset_name}_ingest"})

    def materialize(self) -> str:
        """A run of its assets, as the asset graph starts it."""
        keys = keys_of(self.spec)
        selection = [{"path": list(key.path)} for key in (keys.segments, keys.snapshot)]
        return self._launch({"jobName": "__ASSET_JOB", "assetSelection": selection})

    def _launch(self, selector: JsonObject) -> str:
        params = {
            "selector": {**REPOSITORY, **selector},
            "mode": "default",
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": ALL_FILES}]},
        }
        answer = self.ask(LAUNCH, params=params)
        assert answer["__typename"] == "LaunchRunSuccess", answer
        return str(answer["run"]["runId"])

    def start_session_sensor(self) -> None:
        answer = self.ask(START_SENSOR, selector=self._sensor)
        assert answer["__typename"] == "Sensor", answer

    def ticks(self) -> list[str]:
        """What the sensor of all sessions said, the last first."""
        ticks = self.ask(TICKS, selector=self._sensor)["sensorState"]["ticks"]
        return [tick["skipReason"] or "" for tick in ticks]

    @property
    def _sensor(self) -> dict[str, str]:
        return {**REPOSITORY, "sensorName": "pinot_sessions"}

    def runs(self) -> JsonObject:
        return {run["runId"]: run for run in self.ask(RUNS)["results"]}

    def observe(self) -> Observation:
        with open_session_store(self.spec, load_settings()) as store:
            return observe(store, open_staging(self.spec))

    def sessions(self) -> list[Session]:
        with open_session_store(self.spec, load_settings()) as store:
            return store.sessions()

    def built(self) -> list[str]:
        """Names of the files that were built, in order."""
        log = self.folder / "built"
        return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []

    def hold(self, name: str) -> None:
        (self.folder / f"hold-{name}.csv").touch()

    def let_go(self, name: str) -> None:
        (self.folder / f"hold-{name}.csv").unlink()

    def kill_worker(self, run_id: str) -> None:
        """SIGKILL the process that holds the table's lease for this run."""
        owner = self.observe().holder
        assert owner is not None
        assert owner.run == run_id
        worker = psutil.Process(owner.pid)
        assert worker.environ()["RUNS_FOLDER"] == str(self.folder), "not a process of this test"
        os.kill(owner.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def location(stack: StackState, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Location]:
    folder = tmp_path_factory.mktemp("runs")
    spec = write_table(folder, f"runs_{time.time_ns()}")
    with spec.path.open("a") as file:  # the sensor of all sessions leaves a table alone that nothing starts
        file.write("dagster: {automation: true}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PINOT_CONTROLLER_URL", stack.controller_url)
        patch.setenv("PINOT_ZOOKEEPER", stack.zookeeper)
        patch.setenv("RUNS_FOLDER", str(folder))
        patch.setenv("PINOT_ASSETS_TABLES", str(folder / "tables"))
        patch.setenv("PYTHONPATH", str(ROOT / "tests"), prepend=os.pathsep)
        patch.setenv("DAGSTER_HOME", "")  # `start` sets it; this puts it back
        with HttpPinotClient(load_settings().pinot) as pinot:
            apply_plan(plan_apply(spec, pinot), pinot)
            until(lambda: len(pinot.brokers(spec.name)) == 2, 90)
            try:
                yield Location(folder, spec)
            finally:
                ui.stop(folder / "home")
                pinot.delete_table(spec.name)
                pinot.delete_schema(spec.name)


def test_runs_of_one_table_are_strictly_serial(location: Location) -> None:
    """Of its job, and of assets that a person picked: those carry no tag."""
    launched = [location.materialize(), location.trigger(), location.materialize()]
    until(lambda: {location.runs()[run]["status"] for run in launched} == {"SUCCESS"}, 300)
    runs = location.runs()
    spans = sorted((runs[run]["startTime"], runs[run]["endTime"]) for run in launched)
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert end <= start, f"two runs at a time: {spans}"


def test_after_its_worker_was_killed_a_session_goes_on(location: Location) -> None:
    """Found by Dagster, gone on with by nobody's hand, nothing built twice, no retry spent."""
    location.start_session_sensor()
    write_files(location.folder, F1="a", F2="b", F3="c")
    location.hold("F2")
    run = location.trigger()
    until(lambda: location.built() == ["F1.csv"], 120)
    location.kill_worker(run)
    until(lambda: location.runs()[run]["status"] == "FAILURE", 60)
    location.let_go("F2")

    until(lambda: location.observe().pointer.current_snapshot, 300)
    until(lambda: {run["status"] for run in location.runs().values()} == {"SUCCESS", "FAILURE"}, 120)
    assert sorted(location.built()) == ["F1.csv", "F2.csv", "F3.csv"]
    (session,) = location.sessions()
    assert (session.outcome, session.retry_count) == (Outcome.PUBLISHED, 0)
    assert session.attempt >= 1, "it was not continued"
    snapshot = location.observe().snapshot
    assert snapshot is not None
    assert len(snapshot.ledger) == 3


def test_a_shut_gate_is_no_reason_to_run_again(location: Location) -> None:
    """Neither for Dagster nor for the session sensor: both would spend the session's retries (R26)."""
    (location.folder / "source" / "F4.csv").write_bytes(b"v\n\xff\xfe broken \xff\n")
    run = location.trigger()
    until(lambda: location.runs()[run]["status"] == "FAILURE", 180)
    before = set(location.runs())
    said = until(lambda: next((t for t in location.ticks() if "failed with 1 file" in t), None), 90)
    assert said.endswith("waits for the schedule or a run by hand (sensorRetries is off)")
    assert set(location.runs()) == before
    assert {tag["key"]: tag["value"] for tag in location.runs()[run]["tags"]}["dagster/will_retry"] == "false"
    session = location.observe().session
    assert session is not None
    assert session.retry_count == 0
