"""A run that does something with published files because a person asks for it: show its plan, ask, do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

import typer
from rich.markup import escape

from pinot_assets.cli.commands.plan import report_lines
from pinot_assets.cli.terminal import new_console, show_answer
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.session.asked_run import is_asked_in
from pinot_assets.session.decide.run_decision import PlannedAction
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.plan_report import PlanReport, headline, plan_values
from pinot_assets.session.values.outdated import Request

_NOT_NOW: Final = (PlannedAction.FINISH, PlannedAction.END, PlannedAction.WAITING)
"""What a run would do first, before it looks at published files."""

PlanHash = Annotated[
    str | None, typer.Option("--plan", help="Do only what this plan showed (see --dry-run).", metavar="HASH")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show each check, also those that passed.")]


@dataclass(frozen=True)
class AskedRun:
    """What a person asks for.

    :ivar question: asked before it is done.
    :ivar why_not: why a plan does not, as a sentence.
    :ivar done: `built again`.
    """

    request: Request
    question: str
    why_not: Callable[[PlanReport], str]
    done: str


def agreed_plan(driver: Driver, asked: AskedRun, *, dry_run: bool, yes: bool, as_json: bool) -> str:
    """Show what a run would do, ask, and return the hash of its plan; end the command if nothing is to do."""
    planned = driver.plan(asked.request)
    if dry_run:
        show_answer(as_json, plan_values(planned), report_lines(planned))
        raise typer.Exit(ExitCode.DONE)
    if not is_asked_in(planned, asked.request):
        table, is_late = planned.planned.table, planned.decision.step in _NOT_NOW
        why = asked.why_not(planned)
        if is_late:
            why = f"nothing is {asked.done} now: a run {headline(planned)}. Run {table} first"
        values = {"table": f"{table}_OFFLINE", "result": "NOTHING", "summary": why}
        show_answer(as_json, values, [escape(why)])
        raise typer.Exit(ExitCode.REFUSED if is_late else ExitCode.DONE)
    if not yes:  # then it is not for a program, which cannot answer
        for line in report_lines(planned):
            new_console().print(line)
        typer.confirm(asked.question, abort=True)
    return planned.planned.plan_basis.hash
