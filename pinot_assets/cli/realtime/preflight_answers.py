"""Answers of the preflight as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from pinot_assets.core.check_result import CheckResult
from pinot_assets.core.json_object import JsonObject
from pinot_assets.realtime.preflight.facts import Facts
from pinot_assets.realtime.preflight.judge import summary, verdict


def show(console: Console, facts: Facts, answers: Iterable[CheckResult]) -> None:
    """One line for each rule, and its fix below."""
    found = list(answers)
    aims = ", ".join(sorted(facts.aims)) or "neither bypass nor pauseless"
    console.print(
        f"[bold]{escape(facts.table)}[/] for {aims}, Pinot {facts.cluster.version or 'of no version'}"
    )
    for answer in found:
        mark = answer.pick("[green]✓[/]", "[yellow]![/]", "[red]✗[/]")
        console.print(f"  {mark} {answer.name}: {escape(answer.message)}")
        if answer.next_step:
            console.print(f"      [green]→ {escape(answer.next_step)}[/]")
    console.print(summary(found))


def values(facts: Facts, answers: Iterable[CheckResult]) -> JsonObject:
    """The same for other programs."""
    found = list(answers)
    return {
        "table": facts.table,
        "for": sorted(facts.aims),
        "version": facts.cluster.version,
        "refused": any(answer.blocks for answer in found),
        "answers": [_values(answer) for answer in found],
    }


def _values(answer: CheckResult) -> dict[str, str | None]:
    return {
        "rule": answer.name,
        "verdict": verdict(answer),
        "reason": answer.message,
        "fix": answer.next_step or None,
    }
