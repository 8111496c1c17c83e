"""`pinot-assets forget`: delete all that is stored about a table, and leave the table in Pinot."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import AsJson, DryRun, TableName, TablesOption, Yes, one_table
from pinot_assets.cli.terminal import fields, new_console, show_answer, unanswered
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.text import plural, size
from pinot_assets.gc.forget import Forgotten, forget_plan
from pinot_assets.gc.forget import forget as forget_table
from pinot_assets.gc.forget_plan import ForgetPlan, forget_lines, forget_values
from pinot_assets.session.driver import Driver

SHOWN = 3
"""Maximum of objects that are named."""


def forget(
    table: TableName,
    tables: TablesOption = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Leave pinot-assets: delete all that it stores about TABLE. The table stays in Pinot as it is.

    Deletes the table's nodes in ZooKeeper and its objects in the staging area: snapshots, plans, receipts,
    rows put aside, staged tars. Segments, schema, table config and lineage stay in Pinot, so queries do not
    change. Source files stay, and staged tars from which Pinot's servers download segments.

    Shows first what it deletes and what stays, and asks (with --json it cannot: add --yes or --dry-run).
    Takes the lease of the table. Refuses while a session is open or a switch is not finished, and names the
    command to type. You can repeat it, and end it at any time: the next call deletes what is left.

    Exits 0, also when nothing is left; 2 when it refuses, or when something could not be deleted.
    """
    if as_json and not (yes or dry_run):
        raise unanswered()
    console = new_console()
    with open_driver(one_table(table, tables), "forget") as driver:
        plan = forget_plan(driver)
        shown = fields(((label, escape(text)) for label, text in forget_lines(plan)), 7)
        if dry_run:
            show_answer(as_json, forget_values(plan) | {"forgotten": False, "notRemoved": None}, shown)
            return
        for line in [] if as_json else shown:
            console.print(line)
        forgotten = Forgotten(plan, {}) if plan.is_empty else _forget(driver, plan, yes)
    values = forget_values(forgotten.plan) | {
        "forgotten": not forgotten.failed,
        "notRemoved": forgotten.failed,
    }
    show_answer(as_json, values, map(escape, _result_lines(forgotten)))
    raise typer.Exit(ExitCode.REFUSED if forgotten.failed else ExitCode.DONE)


def _forget(driver: Driver, plan: ForgetPlan, yes: bool) -> Forgotten:
    if not yes:
        typer.confirm(f"Delete all that pinot-assets stores about {plan.table}?", abort=True)
    console = new_console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_interactive) as progress:
        task = progress.add_task(plan.table, total=None)
        return forget_table(driver, lambda n, of: progress.update(task, completed=n, total=of))


def _result_lines(forgotten: Forgotten) -> Iterator[str]:
    plan, failed = forgotten.plan, forgotten.failed
    if plan.is_empty:
        yield f"nothing is left of {plan.table} to delete"
        return
    if failed:
        yield f"{plan.table} is not forgotten yet: {plural(len(failed), 'object')} could not be deleted"
        yield from (f"  {key}: {why}" for key, why in [*failed.items()][:SHOWN])
        yield "Correct the cause, then delete what is left:"
        yield f"  pinot-assets forget {plan.table}"
        return
    objects, bytes_ = sum(len(g.keys) for g in plan.removed), sum(g.size for g in plan.removed)
    yield (
        f"forgotten: {plural(len(plan.nodes), 'node')} of ZooKeeper and {plural(objects, 'object')} "
        f"({size(bytes_)}) of the staging area are deleted"
    )
