"""`compact`: it shows what it would do, asks, and goes in rounds until nothing is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from model.test_merges import arrivals, compact, foreseen
from model.test_packs import fill
from model.world.restored import snapshot
from model.world.table import ModelTable
from typer.testing import CliRunner, Result

from pinot_assets.cli.commands import compact as command
from pinot_assets.cli.main import app
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.values.outcome import RunOutcome
from pinot_assets.session.values.outdated import CompactRequest
from pinot_assets.session.values.report import TriggerReport, TriggerResult


class Driven:
    """A driver of a table of the model: a round is carried out there as a whole."""

    def __init__(self, table: ModelTable) -> None:
        self._table = table
        self.ran: list[str] = []

    def plan(self, request: CompactRequest) -> PlanReport:
        return foreseen(self._table)

    def trigger_planned(self, plan_hash: str, request: CompactRequest) -> TriggerReport:
        self.ran.append(plan_hash)
        report = self._table.start(compact).report
        assert report is not None
        return report

    def gate_and_publish(self, report: TriggerReport, _: Callable[[object], None]) -> RunOutcome:
        return RunOutcome(report, snapshot=snapshot(self._table))


def call(table: ModelTable, *options: str, answer: str | None = None) -> tuple[Result, Driven]:
    driver = Driven(table)

    @contextmanager
    def driver_of(spec: object, name: str) -> Iterator[Driven]:
        assert (spec, name) == (table.spec, "compact")
        yield driver

    def spec_of(name: str, tables: Path | None) -> object:
        return table.spec

    def end(spec: object, outcome: RunOutcome, as_json: bool) -> None:
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "one_table", spec_of)
        patch.setattr(command, "open_driver", driver_of)
        patch.setattr(command, "end_run", end)
        return CliRunner().invoke(app, ["compact", "model", *options], input=answer), driver


def said(result: Result) -> str:
    return " ".join(result.stdout.split())


def small_packs(*, limit: str = "") -> ModelTable:
    """Four packs of one file each, and how many bytes one round merges."""
    table = arrivals("sync", "A", "B", "C", "D", maxMergeBytes="0")
    del table.options["layout.maxMergeBytes"]
    if limit:
        table.options["layout.maxMergeBytes"] = limit
    return table


def test_it_shows_what_it_would_merge_and_asks() -> None:
    table = small_packs()
    result, driver = call(table, answer="n\n")
    assert (result.exit_code, driver.ran) == (1, [])
    assert "merges 4 small packs of 4 files into about 1 (8 rows," in said(result)
    assert "segments 4 → 1: 4 replaced, 1 new" in said(result)
    assert "Merge these segments of model?" in said(result)
    assert len(snapshot(table).packs) == 4


def test_the_last_line_of_a_dry_run_runs_exactly_that() -> None:
    result, driver = call(small_packs(), "--dry-run")
    assert (result.exit_code, driver.ran) == (0, [])
    assert "pinot-assets compact model --plan " in result.stdout


def test_it_goes_in_rounds_until_nothing_is_left() -> None:
    table = small_packs()
    size = snapshot(table).packs[0].bytes
    table.options["layout.maxMergeBytes"] = str(round(2.5 * size))
    result, driver = call(table, "--yes")
    assert result.exit_code == 0, result.output
    assert len(driver.ran) > 1
    assert len(snapshot(table).packs) < 4


def test_a_round_that_brings_nothing_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_effect(self: Driven, plan_hash: str, request: CompactRequest) -> TriggerReport:
        self.ran.append(plan_hash)
        return TriggerReport(TriggerResult.NOTHING, None, 4)

    monkeypatch.setattr(Driven, "trigger_planned", without_effect)
    table = small_packs()
    result, driver = call(table, "--yes")
    assert (result.exit_code, len(driver.ran)) == (0, 2)
    assert foreseen(table).compacts


def test_with_a_plan_it_does_one_round() -> None:
    table = small_packs()
    result, driver = call(table, "--plan", foreseen(table).planned.plan_basis.hash)
    assert (result.exit_code, len(driver.ran)) == (0, 1)
    assert len(snapshot(table).packs) == 1


def test_nothing_to_merge() -> None:
    table = arrivals("sync", "A")
    result, driver = call(table)
    assert (result.exit_code, driver.ran) == (0, [])
    assert "nothing to merge" in said(result)
    fill(table, "B")
    result, driver = call(table, "--json")
    assert "asks no question" in str(result.exception)
