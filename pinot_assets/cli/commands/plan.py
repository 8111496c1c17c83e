"""`pinot-assets plan`: what a run of a table would do, before anything happens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import typer
from rich.markup import escape
from rich.text import Text

from pinot_assets.cli.options import AsJson, TableName, TablesOption, new_console
from pinot_assets.session.decide.decision import PlannedAction
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.plan_report import PlanReport, headline, values
from pinot_assets.session.plan_report.rendering import (
    SECTIONS,
    Line,
    command,
    file_counts,
    file_lines,
    mode_lines,
)
from pinot_assets.table_spec import TableSpec

STYLES = {"+": "green", "~": "yellow", "-": "red", "=": "dim", "h": "magenta", "…": "cyan"}
"""Of the marks before files."""
LABEL = 13


def add_plan_command(
    app: typer.Typer,
    spec_of: Callable[[str, Path | None], TableSpec],
    driver_of: Callable[[TableSpec, str], AbstractContextManager[Driver]],
) -> None:
    """Add the command to the program.

    :param spec_of: finds a table spec by name and directory.
    :param driver_of: opens a driver for a command.
    """

    @app.command()
    def plan(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
        """Show what a run of TABLE would do now: files, segments, rows, room, and what cannot be undone.

        Changes nothing and takes no lease. The decisions are those of the run itself. The last line runs
        exactly this: `run --plan` refuses, with exit code 2, when something that the plan rests on has
        changed. The first 8 digits of the hash are enough; all of them let the refusal say what changed.
        Exits 0.
        """
        with driver_of(spec_of(table, tables), "plan") as driver:
            found = driver.plan()
        if as_json:
            typer.echo(json.dumps(values(found), indent=2))
            return
        console = new_console()
        for line in shown(found):
            console.print(line)


def shown(plan: PlanReport) -> Iterator[Text]:
    """The plan, line by line."""
    planned = plan.planned
    yield Text.from_markup(
        f"[bold]{escape(planned.table)}[/]  {planned.mode.lower()}, {planned.push.lower()} push  "
        f"[dim]plan {planned.plan_basis.hash}[/]"
    )
    quiet = plan.decision.step in (PlannedAction.NOTHING, PlannedAction.HELD)
    yield Text(f"→ {headline(plan)}", "dim" if quiet else "bold green")
    yield from _section("files", file_counts(plan))
    files = list(file_lines(plan))
    width = max((len(uri) for _, uri, _ in files), default=0)
    for mark, uri, text in files:
        yield Text.assemble(
            "  ", (mark.ljust(2), STYLES.get(mark, "")), uri.ljust(width), "  ", (text, "dim")
        )
    for title, part in SECTIONS.items():
        yield from _section(title, part(plan))
    yield from _modes(plan)
    yield Text()
    yield Text.assemble("exactly this: ", (command(plan), "bold"))


def _section(title: str, lines: Iterable[Line]) -> Iterator[Text]:
    for number, line in enumerate(lines):
        if number == 0:
            yield Text()
            yield Text(title, "bold cyan")
        style = "yellow" if line.warns else ""
        yield Text.assemble("  ", (line.label.ljust(LABEL), "bold"), (line.text, style))


def _modes(plan: PlanReport) -> Iterator[Text]:
    rows = [("mode", "would build", "would remove", ""), *mode_lines(plan)]
    if len(rows) == 1:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield Text()
    yield Text("each mode, with this source", "bold cyan")
    for number, row in enumerate(rows):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield Text(f"  {cells}", "dim" if number == 0 else "")
