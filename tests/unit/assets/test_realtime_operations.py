"""The jobs of a REALTIME table, run in this process against a Pinot and a ZooKeeper in memory."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from fakes.realtime.memory import FakeRealtime
from fakes.realtime.specs import write_realtime_table
from fakes.zookeeper.memory import FakeZooKeeper
from fakes.zookeeper.opened import opened_zookeeper

from pinot_assets.assets import realtime as operations
from pinot_assets.assets.location_jobs import TableChoice, run_config
from pinot_assets.assets.realtime import OPERATIONS, OperationInputs, realtime_jobs
from pinot_assets.realtime.health.all_checks import RealtimeView, examine_state
from pinot_assets.realtime.lease import OperationsStore
from pinot_assets.realtime.operations import table_operation
from pinot_assets.realtime.preflight.gather import gather
from pinot_assets.realtime.read.stream import StreamRetention
from pinot_assets.resources import PinotResource
from pinot_assets.session.values.state import Owner
from pinot_assets.table_spec import RealtimeTableSpec

PINOT = PinotResource(controller_url="http://controller:9000", zookeeper="127.0.0.1:1", cluster="test")
URL = "segment.download.url"


@pytest.fixture
def zookeeper(monkeypatch: pytest.MonkeyPatch) -> FakeZooKeeper:
    return opened_zookeeper(monkeypatch)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, zookeeper: FakeZooKeeper) -> FakeRealtime:
    made = FakeRealtime()
    made.segment(sequence=0, url="")
    made.segment(sequence=1, status="IN_PROGRESS", start=100, end=200)
    week = StreamRetention(7 * 86_400_000)

    def seen(*_: object) -> RealtimeView:
        state = made.look()
        return RealtimeView(state, examine_state(state))

    monkeypatch.setattr("pinot_assets.assets.realtime.view_of", seen)
    for name, stand_in in {
        "RealtimePinot": lambda _: made.pinot(),
        "open_deep_store": lambda _: None,
        "gather": lambda pinot, table, config: gather(pinot, table, config, None, lambda _: week),
        "before_drain": lambda _: lambda state, goal: (),
    }.items():
        monkeypatch.setattr(operations, name, stand_in)
    monkeypatch.setattr(table_operation, "read_state", lambda *_, **__: made.look())
    return made


def run(spec: RealtimeTableSpec, name: str, **config: object) -> str:
    """Run a job; returns what its failure says, empty where it did not fail."""
    jobs = realtime_jobs(TableChoice([spec]))
    (job,) = [job for job in jobs if job.name == f"pinot_realtime_{name}"]
    ops = run_config(f"realtime_{name}", "clicks", **config)
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(
            run_config=ops, instance=instance, resources={"pinot": PINOT}, raise_on_error=False
        )
        failures = [event.step_failure_data for event in result.all_events if event.is_step_failure]
        if not failures:
            (record,) = instance.fetch_observations(dg.AssetKey("clicks_realtime"), limit=9).records
            assert record.asset_observation is not None
            return ""
    assert failures[0].error is not None
    cause = failures[0].error.cause
    return (cause or failures[0].error).message + str(failures[0].user_failure_data or "")


def writes(fake: FakeRealtime) -> list[str]:
    return [
        call for call in fake.asked if call.split()[0] in ("POST", "PUT", "DELETE") and "/sql" not in call
    ]


def test_the_plan_alone_changes_nothing(tmp_path: Path, fake: FakeRealtime, zookeeper: FakeZooKeeper) -> None:
    spec = write_realtime_table(tmp_path)
    before = len(zookeeper.writes)
    assert run(spec, "repair") == ""
    assert writes(fake) == []
    assert len(zookeeper.writes) == before


def test_a_repair_is_done_and_read_back(tmp_path: Path, fake: FakeRealtime) -> None:
    spec = write_realtime_table(tmp_path)
    assert run(spec, "repair", apply=True, limit=1) == ""
    assert fake.nodes["clicks__0__0__20260202T0240Z"].fields[URL].startswith("s3://")


def test_a_repair_with_nothing_to_do_says_so(tmp_path: Path, fake: FakeRealtime) -> None:
    spec = write_realtime_table(tmp_path)
    (repair,) = [one for one in OPERATIONS if one.name == "repair"]

    def said(**config: object) -> str:
        log = dg.build_op_context().log
        return repair.act(OperationInputs(spec, PINOT.settings(), "run 1", {"limit": 8, **config}, log))

    assert said(apply=False) == "1 step would be done; nothing was done, because apply is not set"
    assert said(apply=True) == "1 step done"
    assert said(apply=False) == "nothing to repair"
    assert said(apply=True) == "nothing to repair"


def test_a_step_that_is_refused_fails_the_run(tmp_path: Path, fake: FakeRealtime) -> None:
    spec = write_realtime_table(tmp_path)
    fake.refused["/segments"] = 500
    assert "refused here" in run(spec, "repair", apply=True, limit=1)


def test_two_operations_never_work_on_one_table(
    tmp_path: Path, fake: FakeRealtime, zookeeper: FakeZooKeeper
) -> None:
    spec = write_realtime_table(tmp_path)
    store = OperationsStore(zookeeper.client(), "test", "clicks_REALTIME")  # type: ignore[arg-type]
    with store.take(Owner("somebody", "elsewhere", 1, 2)):
        said = run(spec, "repair", apply=True, limit=1)
    assert "another run works on clicks_REALTIME: by somebody on elsewhere" in said
    assert writes(fake) == []


@pytest.mark.parametrize(("job", "wanted"), [("pauseless_enable", False), ("pauseless_disable", True)])
def test_the_spec_has_to_say_it_first(tmp_path: Path, fake: FakeRealtime, job: str, wanted: bool) -> None:
    spec = write_realtime_table(tmp_path, {"pauselessConsumptionEnabled": wanted})
    said = run(spec, job)
    assert "clicks.yaml does not set pauseless consumption" in said
    assert f"pauselessConsumptionEnabled: {str(not wanted).lower()}" in said
    assert writes(fake) == []


def test_what_is_on_already_is_left_alone(tmp_path: Path, fake: FakeRealtime) -> None:
    assert run(write_realtime_table(tmp_path), "pauseless_enable") == ""
    assert writes(fake) == []


def test_what_is_not_over_is_a_failure_that_goes_on(tmp_path: Path, fake: FakeRealtime) -> None:
    spec = write_realtime_table(tmp_path, {"pauselessConsumptionEnabled": False})
    said = run(spec, "pauseless_disable", patience=0.0)
    assert "pauseless consumption is not off yet" in said
    assert "run the job again to continue" in said


def test_a_rebalance_is_only_judged(tmp_path: Path, fake: FakeRealtime) -> None:
    spec = write_realtime_table(tmp_path)
    assert run(spec, "rebalance") == ""
    assert [call for call in fake.asked if "rebalance" in call] == [
        "POST controller/tables/clicks_REALTIME/rebalance"
    ]


def test_a_rebalance_that_could_lose_rows_is_refused(tmp_path: Path, fake: FakeRealtime) -> None:
    said = run(write_realtime_table(tmp_path), "rebalance", apply=True, options={"downtime": "true"})
    assert "the rebalance of clicks_REALTIME is refused: downtime" in said


def test_a_rebalance_is_followed_to_its_end(
    tmp_path: Path, fake: FakeRealtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinot_assets.realtime.operations.rebalance.POLL_S", 0.0)
    spec = write_realtime_table(tmp_path)
    assert run(spec, "rebalance", apply=True, upload_first=True) == ""
    assert fake.nodes["clicks__0__0__20260202T0240Z"].fields[URL].startswith("s3://")


def test_options_that_mean_nothing(tmp_path: Path, fake: FakeRealtime) -> None:
    said = run(write_realtime_table(tmp_path), "rebalance", options={"minAvailableReplicas": "some"})
    assert "the options of the rebalance cannot be read" in said
