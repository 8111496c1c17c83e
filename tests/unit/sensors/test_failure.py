"""The sensor that tells a webhook of failed runs, on a real instance and a real HTTP server."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from fakes.monitoring.webhook import SECRET, Hook, webhook
from fakes.realtime.specs import write_realtime_table
from fakes.tables import write_table
from tenacity import wait_none

from pinot_assets.assets.keys import TABLE_TAG, pool_of
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import PinotResource
from pinot_assets.sensors import failure
from pinot_assets.sensors import notice as delivery
from pinot_assets.sensors.failure import failure_sensor
from pinot_assets.table_spec import AnyTableSpec

SERVED = {"text": "still served: cp1-aaaaaa", "session": None, "snapshot": {"rows": 3}}


class Failures:
    """The sensor of one table, tick by tick."""

    def __init__(
        self, spec: AnyTableSpec, other: AnyTableSpec, instance: dg.DagsterInstance, hook: Hook
    ) -> None:
        self.other = other
        self.instance = instance
        self.hook = hook
        self.cursor: str | None = None
        env = {"PINOT_ASSETS_WEBHOOK_URL": hook.url, "DAGSTER_WEBSERVER_URL": "http://ui:3000/"}
        sensor = failure_sensor([spec, other], env)
        assert sensor is not None
        self.sensor = sensor

    def tick(self) -> str:
        """What it says; the cursor is kept when it raises, as Dagster does."""
        with dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"pinot": PinotResource()}
        ) as context:
            data = self.sensor.evaluate_tick(context)
        self.cursor = data.cursor
        return data.skip_message or ""

    def run(self, table: str = "t", pool: str | None = None, number: float = 3) -> str:
        """A run whose gate is shut.

        :param pool: of a step, which says that the run works on another table, too.
        """

        @dg.asset
        def segments() -> None: ...

        @dg.asset_check(asset=segments, blocking=True, pool=pool)
        def consistent_push() -> dg.AssetCheckResult:
            numbers: JsonObject = {
                "files_built_expected": 5,
                "files_built_found": number,
                "said": "2 are torn",
            }
            return dg.AssetCheckResult(passed=False, description="3 of 5 files are built", metadata=numbers)

        @dg.asset(deps=[segments])
        def snapshot() -> None: ...

        result = dg.materialize(
            [segments, consistent_push, snapshot],
            instance=self.instance,
            raise_on_error=False,
            tags={TABLE_TAG: table},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
        assert not result.success
        return result.run_id


@pytest.fixture
def failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Failures]:
    monkeypatch.setattr(failure, "_served", lambda spec, pinot: SERVED)
    monkeypatch.setattr(delivery, "wait_fixed", lambda _: wait_none())
    spec = write_table(tmp_path, "t")
    quiet = {"telemetry": {"enabled": False}}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=quiet) as instance, webhook() as hook:
        yield Failures(spec, write_table(tmp_path, "u"), instance, hook)


def test_without_a_url_there_is_no_sensor(tmp_path: Path) -> None:
    spec = write_table(tmp_path, "t")
    assert failure_sensor([spec], {}) is None
    assert failure_sensor([spec], {"PINOT_ASSETS_WEBHOOK_URL": " "}) is None


def test_with_one_it_runs_without_being_asked(failures: Failures) -> None:
    assert failures.sensor.default_status is dg.DefaultSensorStatus.RUNNING


def test_a_failed_run_is_told_once_with_all_that_a_person_needs(failures: Failures) -> None:
    failures.tick()
    run_id = failures.run()
    assert failures.tick() == f"posted the failure of run {run_id} of t"
    assert failures.tick() == "no run of a table has failed"
    (notice,) = failures.hook.posted
    step = "segments_consistent_push"
    assert notice["text"] == f"t: run {run_id} failed in {step}; still served: cp1-aaaaaa"
    assert notice["table"] == "t"
    assert notice["run_url"] == f"http://ui:3000/runs/{run_id}"
    assert [s["step"] for s in notice["failed_steps"]] == [step]
    assert "blocking" in notice["failed_steps"][0]["error"]
    assert notice["failed_checks"] == [
        {
            "asset": "segments",
            "check": "consistent_push",
            "description": "3 of 5 files are built",
            "numbers": {"files_built_expected": 5, "files_built_found": 3},
        }
    ]
    assert notice["still_served"] == {"rows": 3}
    assert notice["will_be_retried"] is False


def test_what_failed_before_the_sensor_was_there_is_not_told(failures: Failures) -> None:
    failures.run()
    failures.tick()
    failures.tick()
    assert failures.hook.posted == []


def test_a_cursor_that_somebody_else_wrote_is_said_and_stops_no_later_notice(failures: Failures) -> None:
    for cursor in ("{}", '{"format": 3, "needs": "3.0.0"}', "soon t", "-1", "1.5", "²", "9" * 5000, " "):
        failures.cursor = cursor
        said = failures.tick()
        assert "which runs it had posted before is not known" in said
        assert len(said) < 300
    run_id = failures.run()
    assert failures.tick() == f"posted the failure of run {run_id} of t"


def test_its_cursor_is_as_release_0_1_0_wrote_it() -> None:
    for text in ("0", "12", "12 t u_REALTIME"):
        cursor = failure.FailureCursor.read(text)
        assert cursor is not None
        assert cursor.text() == text


def test_runs_of_others_are_not_told(failures: Failures) -> None:
    failures.tick()
    failures.run("another")
    mine = failures.run()
    failures.run("another")
    failures.tick()
    assert [n["run_id"] for n in failures.hook.posted] == [mine]


def test_a_webhook_that_is_down_loses_nothing(failures: Failures) -> None:
    failures.tick()
    failures.run("another")
    runs = [failures.run(), failures.run()]
    for _ in range(2):
        failures.hook.statuses = [503] * delivery.ATTEMPTS
        with pytest.raises(PinotAssetsError, match="it answered 503") as caught:
            failures.tick()
        assert SECRET not in "".join(traceback.format_exception(caught.value))
    failures.tick()
    assert [n["run_id"] for n in failures.hook.posted] == runs


def test_one_that_goes_down_in_between_gets_no_notice_twice(failures: Failures) -> None:
    failures.tick()
    runs = [failures.run(), failures.run()]
    failures.hook.statuses = [200] + [503] * delivery.ATTEMPTS
    assert failures.tick() == f"posted the failure of run {runs[0]} of t"
    assert failures.tick() == f"posted the failure of run {runs[1]} of t"
    assert [n["run_id"] for n in failures.hook.posted] == runs


def test_a_notice_that_is_refused_does_not_stand_in_the_way(failures: Failures) -> None:
    failures.tick()
    runs = [failures.run(), failures.run()]
    failures.hook.statuses = [400]
    assert (
        failures.tick()
        == f"posted the failure of run {runs[0]} of t, whose notice was refused, run {runs[1]} of t"
    )
    assert [n["run_id"] for n in failures.hook.posted] == runs[1:]


def test_a_run_on_two_tables_is_told_once_of_each(failures: Failures) -> None:
    failures.tick()
    run_id = failures.run(pool=pool_of(failures.other))
    for _ in range(2):
        failures.hook.statuses = [200] + [503] * delivery.ATTEMPTS
        assert failures.tick() == f"posted the failure of run {run_id} of t"
        failures.hook.statuses = [503] * delivery.ATTEMPTS
        with pytest.raises(PinotAssetsError, match="it answered 503"):
            failures.tick()
        failures.hook.statuses = []
        assert failures.tick() == f"posted the failure of run {run_id} of u"
        assert [(n["run_id"], n["table"]) for n in failures.hook.posted] == [(run_id, "t"), (run_id, "u")]
        failures.hook.posted.clear()
        run_id = failures.run(pool=pool_of(failures.other))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_has_no_word_for_is_left_out(failures: Failures, number: float) -> None:
    failures.tick()
    failures.run(number=number)
    failures.tick()
    (notice,) = failures.hook.posted
    assert notice["failed_checks"][0]["numbers"] == {"files_built_expected": 5}


def test_a_notice_that_cannot_be_made_is_replaced_by_the_least(
    failures: Failures, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures.tick()
    runs = [failures.run(), failures.run()]
    made = iter([{**SERVED, "snapshot": {"rows": float("nan")}}, SERVED])
    monkeypatch.setattr(failure, "_served", lambda spec, pinot: next(made))
    failures.tick()
    least, whole = failures.hook.posted
    assert (least["run_id"], least["table"]) == (runs[0], "t")
    assert f"t: run {runs[0]} failed" in least["text"]
    assert (whole["run_id"], whole["still_served"]) == (runs[1], {"rows": 3})


def test_a_pinot_that_is_away_is_said_and_not_an_error(
    failures: Failures, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    for name in ("PINOT_CONTROLLER_URL", "PINOT_ZOOKEEPER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://127.0.0.1:1")
    failures.tick()
    failures.run()
    failures.tick()
    (notice,) = failures.hook.posted
    assert notice["still_served"] is None
    assert "what queries see is not known: PINOT_ZOOKEEPER is not set" in notice["text"]
    assert json.dumps(notice)


def test_a_failed_job_of_a_realtime_table_is_told_by_its_whole_name(tmp_path: Path) -> None:
    spec = write_realtime_table(tmp_path)
    quiet = {"telemetry": {"enabled": False}}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=quiet) as instance, webhook() as hook:
        mine = Failures(spec, write_table(tmp_path, "u"), instance, hook)
        mine.tick()
        mine.run("clicks")
        run_id = mine.run("clicks_REALTIME")
        mine.tick()
    assert [notice["run_id"] for notice in hook.posted] == [run_id]
    assert hook.posted[0]["table"] == "clicks_REALTIME"
    assert hook.posted[0]["text"].endswith("; its servers consume without a run")
