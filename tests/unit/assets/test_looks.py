"""Status and health checks in Dagster: on the table asset, by hand with a job."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from fakes.tables import SYNC, write_table

from pinot_assets.assets.keys import keys_of
from pinot_assets.assets.location_jobs import TableChoice, run_config
from pinot_assets.assets.looks import health_job, table_health
from pinot_assets.assets.runs import works_on
from pinot_assets.health import CHECKS, CheckResult, Severity
from pinot_assets.resources import PinotResource
from pinot_assets.session.detect.table_status import unknown_status
from pinot_assets.table_spec import TableSpec

HALF_SET = PinotResource(controller_url="http://127.0.0.1:1")  # refused before anything is asked


@pytest.fixture
def spec(tmp_path: Path) -> TableSpec:
    return write_table(tmp_path, "web-logs", SYNC)


def answer(name: str, *, passed: bool, severity: Severity = Severity.WARN) -> CheckResult:
    return CheckResult(name, passed, 3, 2.5, "message", "do this", severity, {"files_missing": 1})


def test_the_checks_stand_on_the_table_and_block_nothing(spec: TableSpec) -> None:
    specs = list(table_health(spec).check_specs)
    assert [s.name for s in specs] == ["status", *(c.name for c in CHECKS)]
    assert {s.asset_key for s in specs} == {keys_of(spec).table}
    assert not any(s.blocking for s in specs)
    assert all(s.description for s in specs)


def test_the_job_makes_all_checks_in_one_run_that_succeeds_whatever_they_find(
    spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = tuple(answer(c.name, passed=n > 1) for n, c in enumerate(CHECKS))
    answers = (answer(CHECKS[0].name, passed=False, severity=Severity.ERROR), *answers[1:])
    status = unknown_status("web-logs", "away", "look again")
    monkeypatch.setattr("pinot_assets.assets.looks.look_at", lambda *_: (answers, (status, None)))
    job = health_job(TableChoice([spec]))
    config = run_config("health", "web-logs")
    with dg.DagsterInstance.ephemeral() as instance:
        run = instance.create_run_for_job(job, run_config=config)
        assert not works_on(run, spec)  # it holds up no run that writes
        result = job.execute_in_process(instance=instance, run_config=config, resources={"pinot": HALF_SET})
    assert result.success
    evaluations = {e.check_name: e for e in result.get_asset_check_evaluations()}
    assert list(evaluations) == ["status", *(c.name for c in CHECKS)]
    first, second, third = (evaluations[c.name] for c in CHECKS[:3])
    assert (first.passed, first.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert (second.passed, second.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert third.passed
    assert first.description == "message\n→ do this"
    assert first.metadata["found"] == dg.FloatMetadataValue(2.5)
    assert first.metadata["files_missing"] == dg.IntMetadataValue(1)
    assert first.metadata["next_step"] == dg.TextMetadataValue("do this")


def test_one_check_alone(spec: TableSpec) -> None:
    definitions = dg.Definitions(asset_checks=[table_health(spec)], resources={"pinot": HALF_SET})
    name = CHECKS[3].name
    selection = dg.AssetSelection.checks(dg.AssetCheckKey(keys_of(spec).table, name))
    job = dg.define_asset_job("one", selection=selection)
    definitions = dg.Definitions.merge(definitions, dg.Definitions(jobs=[job]))
    with dg.DagsterInstance.ephemeral() as instance:
        result = definitions.resolve_job_def("one").execute_in_process(instance=instance)
    assert result.success
    (evaluation,) = result.get_asset_check_evaluations()
    assert (evaluation.check_name, evaluation.passed) == (name, False)
    assert "not known" in (evaluation.description or "")  # the resource is half set
