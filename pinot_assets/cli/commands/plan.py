"""`pinot-assets plan`: show what a run would do, and change nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.text import Text

from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import AsJson, TableName, TablesOption, one_table
from pinot_assets.cli.terminal import command_line, show_answer, table_lines
from pinot_assets.session.decide.run_decision import PlannedAction
from pinot_assets.session.plan_report import rendering
from pinot_assets.session.plan_report.plan_report import PlanReport, headline, plan_values

STYLES: Final = {
    "+": "green",
    "~": "yellow",
    "-": "red",
    "=": "dim",
    "r": "blue",
    "h": "magenta",
    "…": "cyan",
}
"""Colours of the marks before files."""
LABEL: Final = 13


def plan(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """Show what a run of TABLE would do now: files, segments, rows, room, and what cannot be undone.

    Changes nothing and takes no lease. The decisions are those of the run itself. The last line is the
    command that runs exactly this plan: `run --plan` refuses, with exit code 2, when something has changed
    on which the plan depends. The first 8 digits of the hash are enough; with all digits, the refusal also
    shows what changed.

    Exits 0.
    """
    with open_driver(one_table(table, tables), "plan") as driver:
        planned = driver.plan()
    show_answer(as_json, plan_values(planned), report_lines(planned))


def report_lines(plan: PlanReport) -> Iterator[Text]:
    """Yield the plan report, line by line; it ends on what a run would do, and its command."""
    planned = plan.planned
    yield Text.assemble((planned.table, "bold"), f"  {planned.mode.lower()}, {planned.push.lower()} push")
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
    quiet = plan.decision.step in (PlannedAction.NOTHING, PlannedAction.HELD)
    yield Text(f"→ {headline(plan)}", "dim" if quiet else "bold green")
    yield Text("To run exactly this plan:")
    yield command_line(rendering.command(plan))


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
    yield Text()
    yield Text("each mode, with this source", "bold cyan")
    yield from (Text("  ").append_text(line) for line in table_lines(rows))
