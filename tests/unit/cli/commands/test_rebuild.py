"""`rebuild`: it shows what it would do, asks, and does exactly that."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from model.test_rebuild import change_spec, plan_of, published
from model.world.lives import lived, make_table, remove
from model.world.table import ModelTable, run
from typer.testing import CliRunner, Result

from pinot_assets.cli.commands import rebuild
from pinot_assets.cli.main import app
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.values.outcome import RunOutcome
from pinot_assets.session.values.outdated import RebuildRequest
from pinot_assets.session.values.report import TriggerReport, TriggerResult


class Driven:
    """A driver whose plans are those of a table of the model, and which publishes nothing."""

    def __init__(self, table: ModelTable) -> None:
        self._table = table
        self.ran: list[tuple[str, RebuildRequest]] = []

    def plan(self, request: RebuildRequest) -> PlanReport:
        return plan_of(self._table, request)

    def trigger_planned(self, plan_hash: str, request: RebuildRequest) -> TriggerReport:
        self.ran.append((plan_hash, request))
        return TriggerReport(TriggerResult.NOTHING, None, 3)

    def gate_and_publish(self, report: TriggerReport, _: Callable[[object], None]) -> RunOutcome:
        return RunOutcome(report)


def call(table: ModelTable, *options: str, answer: str | None = None) -> tuple[Result, Driven]:
    driver = Driven(table)

    @contextmanager
    def driver_of(spec: object, command: str) -> Iterator[Driven]:
        assert (spec, command) == (table.spec, "rebuild")
        yield driver

    def spec_of(name: str, tables: Path | None) -> object:
        return table.spec

    def end(spec: object, outcome: RunOutcome, as_json: bool) -> None:
        assert outcome.report.result is TriggerResult.NOTHING

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rebuild, "one_table", spec_of)
        patch.setattr(rebuild, "open_driver", driver_of)
        patch.setattr(rebuild, "end_run", end)
        return CliRunner().invoke(app, ["rebuild", "model", *options], input=answer), driver


def said(result: Result) -> str:
    return " ".join(result.stdout.split())


def test_it_shows_what_a_rebuild_takes_and_asks() -> None:
    result, driver = call(published("sync"), answer="n\n")
    assert (result.exit_code, driver.ran) == (1, [])
    text = said(result)
    assert 'rebuild recordReader.prop.delimiter: not set → ";"' in text
    assert "outdated 4 of 4 segments were built under revision 1 (now 2)" in text
    assert "this run builds again: 3 files of 9 B with 4 rows" in text
    assert "→ a new session builds 3 files of 9 B (3 of them again)" in text
    assert "again 3 files, 9 B: the same content under a changed table spec" in text
    assert " r A 2 B " in text
    assert "Build these files of model again?" in text


def test_it_runs_the_plan_that_it_has_shown() -> None:
    table = published("sync")
    shown = plan_of(table, RebuildRequest("A")).planned.plan_basis.hash
    for options, answer in ((["--yes"], None), ([], "y\n"), (["--plan", shown], None)):
        result, driver = call(table, "--files", "A", *options, answer=answer)
        assert result.exit_code == 0, result.output
        assert driver.ran == [(shown, RebuildRequest("A"))]


def test_the_last_line_of_a_dry_run_runs_exactly_that() -> None:
    result, driver = call(published("sync"), "--files", "[AB]", "--dry-run")
    assert (result.exit_code, driver.ran) == (0, [])
    assert "pinot-assets rebuild model --files '[AB]' --plan " in result.stdout


def test_a_dry_run_for_programs_has_everything() -> None:
    table = published("append")
    remove("A")(table)
    result, _ = call(table, "--dry-run", "--json")
    values = cast("dict[str, dict[str, object]]", json.loads(result.stdout))["tableSpec"]
    (change,) = cast("list[dict[str, object]]", values["changes"])
    assert (change["setting"], change["verdict"]) == ("recordReader.prop.delimiter", "rebuild")
    assert cast("dict[str, object]", values["outdated"])["files"] == 2
    assert cast("dict[str, object]", values["sourceGone"])["uris"] == [table.source.uri_of("A")]
    assert values["rebuilds"] == [table.source.uri_of("B"), table.source.uri_of("C")]


def test_with_json_it_asks_nothing() -> None:
    result, _ = call(published("sync"), "--json")
    assert result.exit_code == 1
    assert "asks no question" in str(result.exception)


def test_nothing_to_build_again() -> None:
    table = make_table("sync")
    table.source.write("A", b"A1")
    table.start(run)
    for options, text in (
        ((), "no published file would be"),
        (("--files", "A"), "no published file of that pattern"),
    ):
        result, driver = call(table, *options)
        assert (result.exit_code, driver.ran) == (0, [])
        assert text in said(result)


def test_nothing_can_be_built_again() -> None:
    table = published("append")
    for name in "ABC":
        remove(name)(table)
    result, _ = call(table)
    assert result.exit_code == 0
    assert "nothing can be built again: 4 of 4 segments were built under revision 1" in said(result)


def test_what_is_half_way_comes_first() -> None:
    table = lived("sync", "a start landed late")
    change_spec(table)
    result, driver = call(table)
    assert (result.exit_code, driver.ran) == (2, [])
    assert "Run model first" in said(result)
