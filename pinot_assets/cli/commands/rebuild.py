"""`pinot-assets rebuild`: build published files again after the table spec was changed."""

from __future__ import annotations

from typing import Annotated, Final

import typer
from rich.markup import escape

from pinot_assets.cli.commands.plan import report_lines
from pinot_assets.cli.commands.run import checks_shown, end_run
from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import AsJson, DryRun, TableName, TablesOption, Yes, one_table
from pinot_assets.cli.terminal import new_console, show_answer, unanswered
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonObject
from pinot_assets.session.decide.run_decision import PlannedAction
from pinot_assets.session.plan_report.plan_report import PlanReport, headline, plan_values
from pinot_assets.session.values.outdated import RebuildRequest

_NOT_NOW: Final = (PlannedAction.FINISH, PlannedAction.END, PlannedAction.WAITING)
"""What a run would do first, before it looks for files to build again."""


def rebuild(
    table: TableName,
    tables: TablesOption = None,
    files: Annotated[
        str,
        typer.Option(
            "--files",
            help="Only files of this pattern, like 'day=2026-01-*/*.parquet'; also those for which a reload "
            "would do, and those of releases that did not store what built a file.",
            metavar="GLOB",
        ),
    ] = "",
    plan: Annotated[
        str | None,
        typer.Option("--plan", help="Do only what this plan showed (see --dry-run).", metavar="HASH"),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show each check, also those that passed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Build published files of TABLE again that its changed spec would build otherwise.

    A rebuild is a run: it publishes what changed in the source, too, passes the gate, and switches at one
    instant; a rollback leads back. Files that are not in the source as they were published stay as they are.

    Shows first what it would do, and asks; with --yes it does neither. With --json it cannot ask: add --yes,
    --plan or --dry-run. Exits as `run` does; 0 when there was nothing to build again.
    """
    if as_json and not (yes or dry_run or plan is not None):
        raise unanswered()
    spec, request = one_table(table, tables), RebuildRequest(files)
    with open_driver(spec, "rebuild") as driver:
        if plan is None:
            planned = driver.plan(request)
            if dry_run:
                show_answer(as_json, plan_values(planned), report_lines(planned))
                return
            if not planned.rebuilds:
                show_answer(as_json, _nothing(planned), [escape(_why_nothing(planned))])
                raise typer.Exit(_code_of(planned))
            if not yes:  # then it is not for a program: see above
                for line in report_lines(planned):
                    new_console().print(line)
                typer.confirm(f"Build these files of {table} again?", abort=True)
            plan = planned.planned.plan_basis.hash
        report = driver.trigger_planned(plan, request)
        outcome = driver.gate_and_publish(report, checks_shown(verbose, as_json))
    end_run(spec, outcome, as_json)


def _nothing(planned: PlanReport) -> JsonObject:
    return {
        "table": f"{planned.planned.table}_OFFLINE",
        "result": "NOTHING",
        "summary": _why_nothing(planned),
    }


def _why_nothing(planned: PlanReport) -> str:
    table = planned.planned.table
    if planned.decision.step in _NOT_NOW:
        return f"nothing is built again now: a run {headline(planned)}. Run {table} first"
    if planned.need.gone.older:
        return f"nothing can be built again: {planned.need.gone}, and the source does not have their files"
    named = " of that pattern" if planned.rebuild is not None and planned.rebuild.files else ""
    return f"nothing to build again: no published file{named} would be built otherwise"


def _code_of(planned: PlanReport) -> ExitCode:
    return ExitCode.REFUSED if planned.decision.step in _NOT_NOW else ExitCode.DONE
