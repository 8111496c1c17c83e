"""The jobs pinot_compact and pinot_rebuild: runs that people ask for, as the commands do it."""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Sequence
from typing import Final

import dagster as dg

from pinot_assets.assets.plan_page import lines_of
from pinot_assets.audit.checks import Finding
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.text import plural
from pinot_assets.session.asked_run import is_asked_in, run_asked
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.plan_report import headline
from pinot_assets.session.values.outdated import CompactRequest, RebuildRequest, Request

DRY_RUN: Final = dg.Field(bool, default_value=False, description="Only show in the log what would be done.")
COMPACT_CONFIG: Final = {"dry_run": DRY_RUN}
REBUILD_CONFIG: Final = {
    "files": dg.Field(
        str,
        default_value="",
        description="Only files of this pattern, like `day=2026-01-*/*.parquet`. If empty: all that the "
        "table spec would build differently.",
    ),
    "dry_run": DRY_RUN,
}


def act_compact(driver: Driver, config: JsonMapping, log: dg.DagsterLogManager) -> str:
    """Merge the small segments of the table, in rounds; return what happened."""
    return _act(driver, CompactRequest(), config, log)


def act_rebuild(driver: Driver, config: JsonMapping, log: dg.DagsterLogManager) -> str:
    """Build published files again that the table spec would build differently; return what happened."""
    return _act(driver, RebuildRequest(config["files"]), config, log)


def _act(driver: Driver, request: Request, config: JsonMapping, log: dg.DagsterLogManager) -> str:
    """Show the plan, and do it.

    :raises dagster.Failure: the run did not publish everything.
    """
    plan = driver.plan(request)
    for line in lines_of(plan):
        log.info(line)
    if not is_asked_in(plan, request):
        return f"nothing is done: a run {headline(plan)}"
    if config["dry_run"]:
        return "nothing was done: dry_run is set"

    def show(findings: Sequence[Finding]) -> None:
        for finding in findings:
            write = finding.pick(log.info, log.warning, log.error)
            write(f"{finding.name}: {finding.message}")

    outcome = run_asked(driver, plan.planned.plan_basis.hash, request, show)
    if outcome.exit_code is not ExitCode.DONE:
        why = str(outcome.refusal) if outcome.refusal is not None else outcome.report.summary
        raise dg.Failure(f"not everything was published: {why}", allow_retries=False)
    snapshot = outcome.snapshot
    if snapshot is None:
        return outcome.report.summary
    return f"queries see {plural(len(snapshot.segments), 'segment')}, {plural(snapshot.rows, 'row')} now"
