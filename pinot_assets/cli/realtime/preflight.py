"""`pinot-assets realtime preflight`, and the gate before `tables apply`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.options import AsJson, TablesOption, realtime_table
from pinot_assets.cli.realtime.table import RealtimeTableName, find_table
from pinot_assets.cli.terminal import new_console, show_answer
from pinot_assets.core.check_result import CheckResult
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import SpecError
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.preflight.facts import Aim, Facts
from pinot_assets.realtime.preflight.gather import gather
from pinot_assets.realtime.preflight.judge import judge_change, recap, refuse_unless_safe, run_rules, verdict
from pinot_assets.settings.environment import load_settings, tables_directory
from pinot_assets.table_spec.tables.apply import ApplyPlan


def preflight(
    table: RealtimeTableName,
    aim: Annotated[
        Aim | None,
        typer.Option(
            "--for",
            metavar="FEATURE",
            help="What you want to turn on, bypass or pauseless; without it, what the config turns on.",
        ),
    ] = None,
    tables: TablesOption = None,
    as_json: AsJson = False,
) -> None:
    """Check whether bypass or pauseless consumption of TABLE would work; changes nothing.

    Judges the table spec if there is one, else the table config in Pinot. Compares it with the cluster's
    settings, the times of earlier commits and the retention of the stream. Exits 2 where a rule refuses.
    `tables apply` and `realtime pauseless enable` check the same rules first.
    """
    with RealtimePinot(load_settings().pinot) as pinot:
        facts = gather(pinot, table, _config(pinot, table, tables), aim)
    answers = run_rules(facts)
    refused = any(answer.blocks for answer in answers)
    values = {
        "table": facts.table,
        "for": sorted(facts.aims),
        "version": facts.cluster.version,
        "refused": refused,
        "answers": [answer_values(answer) for answer in answers],
    }
    show_answer(as_json, values, _lines(facts, answers))
    raise typer.Exit(ExitCode.REFUSED if refused else ExitCode.DONE)


def gate(plan: ApplyPlan) -> None:
    """Check a change of a REALTIME table before `tables apply` makes it, and show the answers.

    :raises PreflightRefused: a rule refuses.
    """
    spec = plan.spec
    with RealtimePinot(load_settings().pinot) as pinot:
        facts = gather(pinot, spec.name, spec.table_json)
    answers = judge_change(facts)
    for line in _lines(facts, answers):
        new_console().print(line)
    refuse_unless_safe(facts.table, answers)


def _config(pinot: RealtimePinot, table: str, directory: Path | None) -> JsonMapping:
    """Return the table config of the spec, or Pinot's if there is no spec.

    :raises PinotNotFound: neither exists.
    :raises SpecError: the table's own spec is wrong.
    """
    folder = directory or tables_directory()
    raw = table.removesuffix("_REALTIME")
    spec = realtime_table(raw, folder) if directory or folder.is_dir() else None
    if spec is not None:
        return spec.table_json
    if (held := pinot.table_config(find_table(pinot, table))) is None:
        raise SpecError(f"{table} was deleted meanwhile")
    return held


def _lines(facts: Facts, answers: Sequence[CheckResult]) -> Iterator[str]:
    """Yield one line for each rule, and its fix below it."""
    aims = ", ".join(sorted(facts.aims)) or "neither bypass nor pauseless"
    yield f"[bold]{escape(facts.table)}[/] for {aims}, Pinot {facts.cluster.version or 'of no version'}"
    for answer in answers:
        mark = answer.pick("[green]✓[/]", "[yellow]![/]", "[red]✗[/]")
        yield f"  {mark} {answer.name}: {escape(answer.message)}"
        if answer.next_step:
            yield f"      [green]→ {escape(answer.next_step)}[/]"
    yield recap(answers)


def answer_values(answer: CheckResult) -> dict[str, str | None]:
    """Return a rule's answer as JSON, for other programs."""
    return {
        "rule": answer.name,
        "verdict": verdict(answer),
        "reason": answer.message,
        "fix": answer.next_step or None,
    }
