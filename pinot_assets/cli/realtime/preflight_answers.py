"""Answers of the preflight as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape

from pinot_assets.realtime.preflight.answer import Answer, Verdict
from pinot_assets.realtime.preflight.facts import Facts
from pinot_assets.realtime.preflight.judge import summary

_MARKS = {Verdict.PASS: "[green]✓[/]", Verdict.WARN: "[yellow]![/]", Verdict.REFUSE: "[red]✗[/]"}


def show(console: Console, facts: Facts, answers: Iterable[Answer]) -> None:
    """One line for each rule, and its fix below."""
    found = list(answers)
    aims = ", ".join(sorted(facts.aims)) or "neither bypass nor pauseless"
    console.print(
        f"[bold]{escape(facts.table)}[/] for {aims}, Pinot {facts.cluster.version or 'of no version'}"
    )
    for answer in found:
        console.print(f"  {_MARKS[answer.verdict]} {answer.rule}: {escape(answer.reason)}")
        if answer.fix is not None:
            console.print(f"      [green]→ {escape(answer.fix)}[/]")
    console.print(summary(found))


def values(facts: Facts, answers: Iterable[Answer]) -> dict[str, Any]:
    """The same for other programs."""
    found = list(answers)
    return {
        "table": facts.table,
        "for": sorted(facts.aims),
        "version": facts.cluster.version,
        "refused": any(answer.verdict is Verdict.REFUSE for answer in found),
        "answers": [answer.values() for answer in found],
    }
