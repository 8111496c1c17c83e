"""`pinot-assets compact`: merge the small segments of a table."""

from __future__ import annotations

from typing import Final

from pinot_assets.cli.commands.asked_run import AskedRun, PlanHash, Verbose, agreed_plan
from pinot_assets.cli.commands.run import checks_shown, end_run
from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import AsJson, DryRun, TableName, TablesOption, Yes, one_table
from pinot_assets.cli.terminal import unanswered
from pinot_assets.session.asked_run import run_asked, run_planned
from pinot_assets.session.values.outdated import CompactRequest

_NOTHING: Final = (
    "nothing to merge: no two packs of one cell fit into one within maxMergeBytes, and no file that belongs "
    "into packs has segments of its own"
)


def compact(
    table: TableName,
    tables: TablesOption = None,
    plan: PlanHash = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Merge the small segments of TABLE, so that it has fewer and larger ones.

    Needs `layout.pack`. Packs below the target are merged from their kept rows; no file of them is read.
    Published files that belong into packs, and have segments of their own, are read again. It goes in rounds
    of up to `maxMergeBytes`. Each round is a run: it publishes what changed in the source, too, passes the
    gate, and switches at one instant; a rollback leads back one round.

    Shows first what it would do, and asks; with --yes it does neither. With --plan it does one round. With
    --json it cannot ask: add --yes, --plan or --dry-run. Exits as `run` does; 0 when there was nothing to
    merge.
    """
    if as_json and not (yes or dry_run or plan is not None):
        raise unanswered()
    spec, request, is_one_round = one_table(table, tables), CompactRequest(), plan is not None
    question = f"Merge these segments of {table}?"
    asked = AskedRun(request, question, lambda _: _NOTHING, "merged")
    with open_driver(spec, "compact") as driver:
        if plan is None:
            plan = agreed_plan(driver, asked, dry_run=dry_run, yes=yes, as_json=as_json)
        run = run_planned if is_one_round else run_asked
        outcome = run(driver, plan, request, checks_shown(verbose, as_json))
    end_run(spec, outcome, as_json)
