"""`pinot-assets rebuild`: build published files again after the table spec was changed."""

from __future__ import annotations

from typing import Annotated

import typer

from pinot_assets.cli.commands.asked_run import AskedRun, PlanHash, Verbose, agreed_plan
from pinot_assets.cli.commands.run import checks_shown, end_run
from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import AsJson, DryRun, TableName, TablesOption, Yes, one_table
from pinot_assets.cli.terminal import unanswered
from pinot_assets.session.asked_run import run_asked
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.values.outdated import RebuildRequest


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
    plan: PlanHash = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    verbose: Verbose = False,
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
    question = f"Build these files of {table} again?"
    asked = AskedRun(request, question, _why_not, "built again")
    with open_driver(spec, "rebuild") as driver:
        if plan is None:
            plan = agreed_plan(driver, asked, dry_run=dry_run, yes=yes, as_json=as_json)
        outcome = run_asked(driver, plan, request, checks_shown(verbose, as_json))
    end_run(spec, outcome, as_json)


def _why_not(planned: PlanReport) -> str:
    if planned.need.gone.older:
        return f"nothing can be built again: {planned.need.gone}, and the source does not have their files"
    named = " of that pattern" if planned.request != RebuildRequest() else ""
    return f"nothing to build again: no published file{named} would be built otherwise"
