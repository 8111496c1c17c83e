"""The jobs for people, executed again after their run died: what was asked for once is done once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_pyspark import LazyPySparkResource

from pinot_assets.assets import operations as module
from pinot_assets.assets.location_jobs import TableChoice, run_config
from pinot_assets.core.json_object import JsonObject
from pinot_assets.resources import ConsistentPushResource, PinotResource
from pinot_assets.session.values.state import Mode

pytestmark = pytest.mark.integration


class Jobs:
    """The operations of a world's table in Dagster.

    :ivar dies: whether the worker dies as soon as it has acted.
    """

    def __init__(self, world: Any, instance: dg.DagsterInstance, patch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.instance = instance
        self.dies = False
        patch.setattr(module, "publication_by", self._show)

    def _show(self, *_: Any) -> None:
        assert not self.dies, "the worker dies here"

    def execute(
        self,
        patch: pytest.MonkeyPatch,
        name: str,
        tags: dict[str, str] | None = None,
        config: JsonObject | None = None,
    ) -> dg.DagsterRun:
        jobs = module.operation_jobs(TableChoice([self.world.read_spec()]))
        (job,) = [job for job in jobs if job.name == f"pinot_{name}"]
        push = ConsistentPushResource(
            pinot=PinotResource(controller_url="http://x:1", zookeeper="x:1"),
            spark=LazyPySparkResource(spark_config={}),
        )
        with ExitStack() as drivers:
            patch.setattr(module, "driver_of", lambda *_: drivers.enter_context(self.world.driver()))
            result = job.execute_in_process(
                instance=self.instance,
                raise_on_error=False,
                resources={"push": push},
                tags=tags,
                run_config=run_config(name, self.world.table, **(config or {})),
            )
        assert result.success is not self.dies
        run = self.instance.get_run_by_id(result.run_id)
        assert run is not None
        return run


@pytest.fixture
def again(make_world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Executes a job whose worker dies, lets something happen, and executes the run again."""
    with dg.DagsterInstance.local_temp(
        str(tmp_path), overrides={"telemetry": {"enabled": False}}
    ) as instance:
        jobs = Jobs(make_world("sync"), instance, monkeypatch)

        def twice(
            name: str, between: Callable[[], Any] = lambda: None, config: JsonObject | None = None
        ) -> str:
            jobs.dies = True
            died = jobs.execute(monkeypatch, name, None, config)
            jobs.dies = False
            between()
            jobs.execute(monkeypatch, name, dict(died.tags), config)
            return "\n".join(entry.user_message for entry in instance.all_logs(died.run_id))

        yield jobs.world, twice


def test_a_rollback_takes_back_one_snapshot(again: Any) -> None:
    world, twice = again
    for name in ("F1", "F2", "F3"):
        world.write(name)
        world.run()
    twice("rollback")
    assert world.visible == ["F1", "F2"]
    world.assert_settled()


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_rollback_to_the_snapshot_that_the_config_names(again: Any, dry_run: bool) -> None:
    world, twice = again
    for name in ("F1", "F2", "F3"):
        world.write(name)
        world.run()
    log = twice("rollback", config={"to": "1", "dry_run": dry_run})
    assert world.visible == (["F1", "F2", "F3"] if dry_run else ["F1"])
    assert len(world.read_sessions()) == 2
    assert world.read_sessions()[-1].seq == (3 if dry_run else 4)
    assert "way: re-publish of 0 staged segments" in log
    assert ("8091 counts 1 row, 1 expected" in log) is not dry_run
    world.assert_settled()


def test_a_rollback_that_was_left_half_way_is_finished(again: Any) -> None:
    world, twice = again
    half_way: list[Mode] = []
    for name in ("F1", "F2"):
        world.write(name)
        world.run()
    world.pinot.after("revert_replace_segments", broken)
    twice("rollback", between=lambda: half_way.append(world.read_session().mode))
    assert half_way == [Mode.ROLLBACK]
    assert world.visible == ["F1"]
    world.assert_settled()


def broken() -> None:
    raise RuntimeError("the worker dies here")


def test_a_session_that_was_begun_since_is_not_cleared(again: Any) -> None:
    world, twice = again
    world.write("F1")
    world.trigger()
    first = world.read_session().id
    twice("clear", between=world.trigger)
    assert world.read_session().id != first


def test_a_later_rollback_stays_held(again: Any) -> None:
    world, twice = again
    for name in ("F1", "F2"):
        world.write(name)
        world.run()
    world.rollback()

    def publish_and_roll_back() -> None:
        assert world.read_pointer().hold is None
        world.run()
        world.rollback()

    twice("resume", between=publish_and_roll_back)
    assert world.read_pointer().hold is not None


def test_dagster_does_not_ask_twice(make_world: Any) -> None:
    *jobs, plan = module.operation_jobs(TableChoice([make_world("sync").read_spec()]))
    assert plan.name == "pinot_plan"
    for job in jobs:
        assert job.tags["dagster/max_retries"] == "0"
        assert job.tags["dagster/retry_on_asset_or_op_failure"] == "false"


def test_garbage_is_only_told_of_unless_the_config_says_apply(again: Any) -> None:
    world, twice = again
    world.options["snapshotsToKeep"] = 1
    for name in ("F1", "F2", "F3"):
        world.write(F1=name)
        world.run()
        world.later(30)
    litter = world.folder / "staging" / f"{world.table}_OFFLINE" / "segments"
    stray = litter / f"{world.table}__cp1-abcdef_0_0_0.tar.gz"
    stray.write_bytes(b"late")
    before = sorted(path.name for path in litter.iterdir())
    assert stray.name in twice("gc", config={"grace_hours": 0.0})
    assert sorted(path.name for path in litter.iterdir()) == before
    twice("gc", config={"apply": True, "grace_hours": 1.0})
    assert stray.exists()
    log = twice("gc", config={"apply": True, "grace_hours": 0.0})
    assert "gone: " in log
    assert not stray.exists()
    assert world.visible == ["F3"]
    world.assert_settled()
