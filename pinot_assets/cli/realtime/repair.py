"""`pinot-assets realtime repair`: plan and do repairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.options import AsJson
from pinot_assets.cli.realtime.table import RUN, DeepStore, RealtimeTableName, open_work, tell
from pinot_assets.cli.terminal import show_answer
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.errors import SessionError
from pinot_assets.realtime.operations.table_operation import TableOperation
from pinot_assets.realtime.repair.apply import StepOutcome, preview_repair
from pinot_assets.realtime.repair.model import (
    SUBJECT,
    USUAL_LIMITS,
    RepairLimits,
    RepairPlan,
    Step,
    manual,
    pinot_call,
)
from pinot_assets.session.values.state import utc_iso


def repair(
    table: RealtimeTableName,
    apply: Annotated[
        bool, typer.Option("--apply/--plan", help="Do what can be done; without this, only show it.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="NUMBER", help="Steps at once.")
    ] = USUAL_LIMITS.steps,
    upload_gb: Annotated[
        float,
        typer.Option(
            "--upload-gb",
            min=0.001,
            metavar="GB",
            help="The most gigabytes that are uploaded at the same time.",
        ),
    ] = USUAL_LIMITS.upload_bytes / 1024**3,
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds", min=1, metavar="NUMBER", help="The most plans that are executed, one after the other."
        ),
    ] = 20,
    as_json: AsJson = False,
    deep_store: DeepStore = None,
) -> None:
    """Repair TABLE: upload, finish, reset, re-ingest, resume; each step is read back.

    Without --apply it shows the plan, and changes nothing. Exits 0 when nothing is left to repair, 2 when
    something waits, is refused, or needs a person.
    """
    limits = RepairLimits(steps=limit, upload_bytes=int(upload_gb * 1024**3))
    plan, outcomes = RepairPlan(), list[StepOutcome]()
    with open_work(table, deep_store) as work:
        if apply:
            with work.hold(f"{RUN} repair") as lease:
                for latest, done in work.repair(lease, limits).rounds(rounds):
                    plan = latest
                    outcomes += done
        else:
            plan = preview_repair(work.read(), _remembered(work), limits)
    hint = ["nothing was done; to do it, add [bold]--apply[/]"] if plan.steps and not apply else []
    values = {
        "done": [{"step": str(one.step), "result": one.result, "text": one.text} for one in outcomes],
        "steps": [_step_values(step) for step in plan.steps],
        "advice": [_step_values(step) for step in plan.advice],
        "refusals": [asdict(refusal) for refusal in plan.refusals],
        "waiting": [{**asdict(waiting), "until": utc_iso(waiting.until_ms)} for waiting in plan.waiting],
    }
    show_answer(as_json, values, (*_outcome_lines(outcomes), *plan_lines(plan), *hint))
    raise typer.Exit(ExitCode.DONE if plan.all_well else ExitCode.REFUSED)


def _remembered(work: TableOperation) -> str:
    """Return the memory of earlier repairs; empty if ZooKeeper fails, because the plan is only shown."""
    try:
        return work.recall(SUBJECT)
    except SessionError as error:
        tell(f"the memory of what was tried before cannot be read: {error.what}")
        return ""


def plan_lines(plan: RepairPlan) -> Iterator[str]:
    """Yield the plan for the terminal, with all details of each step."""
    if plan.all_well:
        yield "[green]nothing to repair[/]"
    for step in plan.steps:
        yield from _step_lines("[bold cyan]step[/]", step)
    for step in plan.advice:
        yield from _step_lines("[bold magenta]for a person[/]", step)
    for refusal in plan.refusals:
        yield f"[red]not repaired[/] {escape(refusal.subject)}: {escape(refusal.why)}"
        yield f"      → {escape(refusal.remedy)}"
    for waiting in plan.waiting:
        yield f"[yellow]waits[/] {escape(waiting.subject)}: {escape(waiting.why)}"


def _step_lines(mark: str, step: Step) -> Iterator[str]:
    said = manual(step)
    yield f"{mark} {escape(str(step))}: {escape(step.why)}"
    for label, text in (
        ("by", pinot_call(step)),
        ("only if", said.precondition),
        ("effect", said.effect),
        ("seen by", said.verified_by),
        ("if not", said.if_it_fails),
    ):
        yield f"      [dim]{label:<8}[/]{escape(text)}"


def _outcome_lines(outcomes: Iterable[StepOutcome]) -> Iterator[str]:
    for outcome in outcomes:
        mark = "[green]✓[/]" if outcome.helped else "[red]✗[/]"
        text = f": {outcome.text}" if outcome.text else ""
        yield f"{mark} {escape(str(outcome.step))}: {outcome.result}{escape(text)}"


def _step_values(step: Step) -> dict[str, object]:
    return {**asdict(step), "call": pinot_call(step), **asdict(manual(step))}
