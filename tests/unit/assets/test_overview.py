"""The asset that lists the state of all tables: from what Dagster stores, and once for each change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.events import DagsterEvent, DagsterEventType
from fakes.realtime.specs import write_realtime_table
from fakes.tables import SYNC, write_table

from pinot_assets.assets import overview
from pinot_assets.assets.health import AssetEvent
from pinot_assets.assets.keys import table_key
from pinot_assets.assets.overview import ALL, CHECK, KEY, overview_definitions, overview_events
from pinot_assets.assets.status import status_events
from pinot_assets.session.detect.table_status import StatusReport, TableCondition
from pinot_assets.table_spec import AnyTableSpec, TableSpec, read_tables

STATES = {
    "fine": TableCondition.UP_TO_DATE,
    "new": TableCondition.NOT_PUBLISHED,
    "taken_back": TableCondition.HELD,
    "torn": TableCondition.FAILED,
}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as one:
        yield one


@pytest.fixture
def specs(tmp_path: Path) -> list[TableSpec]:
    return [write_table(tmp_path, name, SYNC) for name in STATES]


def report(name: str, state: TableCondition, why: str = "") -> StatusReport:
    return StatusReport(name, state, f"{name} is so{why}", "queries see all", "do", f"pinot-assets {name}")


def store(instance: dg.DagsterInstance, events: tuple[AssetEvent, ...]) -> tuple[AssetEvent, ...]:
    for event in events:
        instance.report_runless_asset_event(event)
    return events


def record(instance: dg.DagsterInstance, spec: TableSpec, why: str = "") -> None:
    store(instance, tuple(status_events(instance, spec, report(spec.name, STATES[spec.name], why))))


def entries(events: tuple[AssetEvent, ...]) -> dict[str, object]:
    (made,) = (event for event in events if isinstance(event, dg.AssetMaterialization))
    return {name: value.value for name, value in made.metadata.items()}


def test_tables_that_need_a_person_come_first_and_those_that_are_well_are_counted(
    instance: dg.DagsterInstance, specs: list[TableSpec]
) -> None:
    for spec in specs:
        record(instance, spec)
    events = overview_events(instance, specs, ())
    assert list(entries(events)) == [ALL, "taken_back", "torn", "new"]
    assert entries(events)[ALL] == "4 tables: 1 held, 1 failed, 1 not published, 1 up to date"
    assert entries(events)["torn"] == "torn is so → pinot-assets torn"
    (check,) = (event for event in events if isinstance(event, dg.AssetCheckEvaluation))
    assert (check.asset_key, check.passed, check.severity) == (KEY, False, dg.AssetCheckSeverity.ERROR)


def test_it_is_recorded_when_a_line_changes_and_not_before(
    instance: dg.DagsterInstance, specs: list[TableSpec]
) -> None:
    for spec in specs:
        record(instance, spec)
    store(instance, overview_events(instance, specs, ()))
    record(instance, specs[0], " again")  # up to date as before: its newest session is no news here
    assert overview_events(instance, specs, ()) == ()
    record(instance, specs[1], " again")
    assert entries(overview_events(instance, specs, ()))["new"] == "new is so again → pinot-assets new"


def test_an_event_of_this_tick_counts_before_dagster_has_stored_it(
    instance: dg.DagsterInstance, specs: list[TableSpec]
) -> None:
    fresh = tuple(status_events(instance, specs[0], report("fine", TableCondition.UP_TO_DATE)))
    events = overview_events(instance, specs[:1], fresh)
    assert entries(events) == {ALL: "1 table: 1 up to date"}
    (check,) = (event for event in events if isinstance(event, dg.AssetCheckEvaluation))
    assert check.passed


def test_while_a_run_evaluates_a_check_the_evaluation_before_counts(
    instance: dg.DagsterInstance, specs: list[TableSpec]
) -> None:
    record(instance, specs[3])
    planned = DagsterEvent(
        DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED.value,
        "pinot_health",
        event_specific_data=AssetCheckEvaluationPlanned(asset_key=table_key(specs[3]), check_name="status"),
    )
    entry = dg.EventLogEntry(None, 10, "", "run", time.time(), dagster_event=planned)
    instance.event_log_storage.store_event(entry)
    assert entries(overview_events(instance, specs[3:], ()))["torn"] == "torn is so → pinot-assets torn"


def test_a_table_that_nothing_has_looked_at_is_not_known(
    instance: dg.DagsterInstance, specs: list[TableSpec]
) -> None:
    assert entries(overview_events(instance, specs[:1], ())) == {
        ALL: "1 table: 1 not known",
        "fine": "fine was not looked at yet",
    }


@pytest.mark.parametrize(
    ("severity", "state"),
    [(None, ""), (dg.AssetCheckSeverity.WARN, "warning"), (dg.AssetCheckSeverity.ERROR, "unhealthy")],
)
def test_a_realtime_table_is_as_its_checks_are(
    instance: dg.DagsterInstance, tmp_path: Path, severity: dg.AssetCheckSeverity | None, state: str
) -> None:
    spec: AnyTableSpec = write_realtime_table(tmp_path)
    checks = tuple(
        dg.AssetCheckEvaluation(
            asset_key=table_key(spec),
            check_name=check.name,
            passed=number > 0 or severity is None,
            severity=severity or dg.AssetCheckSeverity.ERROR,
            metadata={},
        )
        for number, check in enumerate(overview.REALTIME_CHECKS)
    )
    listed = entries(overview_events(instance, [spec], checks))
    name = overview.REALTIME_CHECKS[0].name
    line = str(listed.get(spec.name_with_type, ""))
    assert line == (f"{state}: {name} failed; see its checks" if state else "")


def test_more_tables_than_a_page_takes_are_counted(
    instance: dg.DagsterInstance, specs: list[TableSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "MOST_LINES", 1)
    listed = entries(overview_events(instance, specs, ()))
    assert list(listed) == [ALL, "fine", "not listed"]
    assert str(listed["not listed"]).startswith("3 tables")


def test_a_person_can_run_its_check(specs: list[TableSpec], instance: dg.DagsterInstance) -> None:
    record(instance, specs[3])
    (check,) = overview_definitions([specs[3]]).asset_checks or ()
    assert isinstance(check, dg.AssetChecksDefinition)
    result = dg.materialize([check], instance=instance, selection=dg.AssetSelection.checks(check))
    (found,) = result.get_asset_check_evaluations()
    assert (found.check_name, found.passed, found.description) == (CHECK, False, "1 table: 1 failed")


def test_a_table_whose_spec_is_wrong_is_listed_with_its_problem(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "torn.yaml").write_text("[")
    listed = entries(overview_events(instance, [], (), read_tables(tmp_path / "tables").left_out))
    assert listed[ALL] == "1 table: 1 broken"
    assert "not valid YAML" in str(listed["torn"])
