"""`pinot-assets run` and `plan`: publish a table's changed files, and show what a run would do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer
from rich.markup import escape
from rich.text import Text

from pinot_assets.audit.checks import Finding
from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import AsJson, TableName, TablesOption, one_table
from pinot_assets.cli.terminal import new_console, show_answer, show_json
from pinot_assets.core.text import plural
from pinot_assets.session.decide.run_decision import PlannedAction
from pinot_assets.session.driver import RunOutcome
from pinot_assets.session.plan_report import rendering
from pinot_assets.session.plan_report.plan_report import PlanReport, headline, plan_values

SHOWN = 10
"""The most names shown of files that a run left out."""
STYLES = {"+": "green", "~": "yellow", "-": "red", "=": "dim", "h": "magenta", "…": "cyan"}
"""Colours of the marks before files."""
LABEL = 13


def run(
    table: TableName,
    tables: TablesOption = None,
    plan: Annotated[
        str | None, typer.Option("--plan", help="Only what this plan showed (see `plan`).", metavar="HASH")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring TABLE up to its files: build what changed, gate it, switch to it at one instant.

    Exits 0 when it has switched, when there was nothing to do and when it waits for an upload, 2 when files
    failed or the gate stayed shut (queries still see the former state; with a plain push, the files that did
    not fail are published), 1 on any other error. With --plan it exits 2, and has done nothing, when a run
    would do something else by now than that plan showed.
    """
    spec = one_table(table, tables)
    with open_driver(spec, "run") as driver:
        # An empty hash, from a shell variable that is not set, must not run without a plan.
        report = driver.trigger() if plan is None else driver.trigger_planned(plan)
        if not as_json:
            new_console().print(escape(report.summary))
        outcome = driver.gate_and_publish(report, (lambda _: None) if as_json else _show_finding)
    if as_json:
        show_json({"table": spec.name_with_type, **outcome.values})
    else:
        _show_end(outcome)
    raise typer.Exit(outcome.exit_code)


def _show_finding(finding: Finding) -> None:
    mark = finding.pick("[green]✓[/]", "[yellow]![/]", "[red]✗[/]")
    new_console().print(f"  {mark} {escape(finding.name)}: {escape(finding.message)}")


def _show_end(outcome: RunOutcome) -> None:
    err = new_console(stderr=True)
    if outcome.refusal is not None:
        err.print(
            f"[red]not switched[/]: {escape(str(outcome.refusal))}\n  queries still see the former state"
        )
    if (snapshot := outcome.snapshot) is not None:
        new_console().print(
            f"[green]switched[/]: {plural(len(snapshot.ledger), 'file')}, "
            f"{plural(len(snapshot.segments), 'segment')}, {plural(snapshot.rows, 'row')} are visible"
        )
    if outcome.left_out:
        err.print(f"[red]{plural(len(outcome.left_out), 'file')} failed[/]; the others are published")
    for failure in outcome.left_out[:SHOWN]:
        err.print(f"  {escape(failure.uri)}: {escape(failure.reason)}")


# --- plan ----------------------------------------------------------------------------------------


def plan(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """Show what a run of TABLE would do now: files, segments, rows, room, and what cannot be undone.

    Changes nothing and takes no lease. The decisions are those of the run itself. The last line runs
    exactly this: `run --plan` refuses, with exit code 2, when something that the plan rests on has
    changed. The first 8 digits of the hash are enough; all of them let the refusal say what changed.
    Exits 0.
    """
    with open_driver(one_table(table, tables), "plan") as driver:
        planned = driver.plan()
    show_answer(as_json, plan_values(planned), report_lines(planned))


def report_lines(plan: PlanReport) -> Iterator[Text]:
    """Yield the plan report, line by line."""
    planned = plan.planned
    yield Text.from_markup(
        f"[bold]{escape(planned.table)}[/]  {planned.mode.lower()}, {planned.push.lower()} push  "
        f"[dim]plan {planned.plan_basis.hash}[/]"
    )
    quiet = plan.decision.step in (PlannedAction.NOTHING, PlannedAction.HELD)
    yield Text(f"→ {headline(plan)}", "dim" if quiet else "bold green")
    yield from _section("files", rendering.file_counts(plan))
    files = list(rendering.file_lines(plan))
    width = max((len(uri) for _, uri, _ in files), default=0)
    for mark, uri, text in files:
        yield Text.assemble(
            "  ", (mark.ljust(2), STYLES.get(mark, "")), uri.ljust(width), "  ", (text, "dim")
        )
    for title, part in rendering.SECTIONS.items():
        yield from _section(title, part(plan))
    yield from _modes(plan)
    yield Text()
    yield Text.assemble("exactly this: ", (rendering.command(plan), "bold"))


def _section(title: str, lines: Iterable[rendering.Line]) -> Iterator[Text]:
    for number, line in enumerate(lines):
        if number == 0:
            yield Text()
            yield Text(title, "bold cyan")
        style = "yellow" if line.warns else ""
        yield Text.assemble("  ", (line.label.ljust(LABEL), "bold"), (line.text, style))


def _modes(plan: PlanReport) -> Iterator[Text]:
    rows = [("mode", "would build", "would remove", ""), *rendering.mode_lines(plan)]
    if len(rows) == 1:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield Text()
    yield Text("each mode, with this source", "bold cyan")
    for number, row in enumerate(rows):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield Text(f"  {cells}", "dim" if number == 0 else "")
