"""`pinot-assets run`: publish a table's changed files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, NoReturn

import typer
from rich.markup import escape

from pinot_assets.audit.checks import Finding
from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.first_query import FirstQuery, first_query
from pinot_assets.cli.options import AsJson, TableName, TablesOption, one_table
from pinot_assets.cli.terminal import command_line, new_console, show_json
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.text import plural
from pinot_assets.session.values.outcome import RunOutcome
from pinot_assets.settings.environment import load_settings
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.table_spec import TableSpec

SHOWN = 10
"""The most names shown of files that a run left out, and of files that failed so far."""
FILES_BUILT = "files_built"
"""The check that fails where files failed, each of which the end of a run names."""


def run(
    table: TableName,
    tables: TablesOption = None,
    plan: Annotated[
        str | None, typer.Option("--plan", help="Do only what this plan showed (see `plan`).", metavar="HASH")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show each check, also those that passed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Publish the files of TABLE: build what changed, audit it, and switch to it at one instant.

    Exits 0 when it has switched, when there was nothing to do and when it waits for an upload. Exits 2 when
    files failed or the gate stayed shut: queries still see what they saw before (with a plain push, the
    files that did not fail are published). Exits 1 on any other error. With --plan it exits 2, without
    having done anything, when a run would now do something else than that plan showed.
    """
    spec = one_table(table, tables)
    with open_driver(spec, "run") as driver:
        # An empty hash, from a shell variable that is not set, must not run without a plan.
        report = driver.trigger() if plan is None else driver.trigger_planned(plan)
        outcome = driver.gate_and_publish(report, checks_shown(verbose, as_json))
    end_run(spec, outcome, as_json)


def checks_shown(verbose: bool, as_json: bool) -> Callable[[Iterable[Finding]], None]:
    """Return what shows the findings of the audit before the switch."""
    if as_json:
        return lambda _: None
    return _show_each if verbose else _show_checks


def end_run(spec: TableSpec, outcome: RunOutcome, as_json: bool) -> NoReturn:
    """Show how a run ended, and end the command with its exit code."""
    rows = first_query(spec.name, load_settings().pinot.controller_url)
    if as_json:
        show_json(
            {"table": spec.name_with_type, **outcome.values, "query": rows.sql, "console": rows.console}
        )
    else:
        _show_end(spec.name, outcome, rows)
    raise typer.Exit(outcome.exit_code)


def _show_each(findings: Iterable[Finding]) -> None:
    for finding in findings:
        mark = finding.pick("[green]✓[/]", "[yellow]![/]", "[red]✗[/]")
        new_console().print(f"{mark} {escape(finding.name)}: {escape(finding.message)}")


def _show_checks(findings: Iterable[Finding]) -> None:
    """Show the checks that did not pass, and how many did. The end of the run names each failed file."""
    checks = [finding for finding in findings if finding.passed or finding.name != FILES_BUILT]
    _show_each(finding for finding in checks if not finding.passed)
    passed = sum(finding.passed for finding in checks)
    if checks and passed == len(checks):
        new_console().print(f"[green]✓[/] {plural(passed, 'check')} passed")
    elif checks:
        new_console().print(f"{passed:,} of {plural(len(checks), 'check')} passed")


def _show_end(table: str, outcome: RunOutcome, rows: FirstQuery) -> None:
    out, err, report = new_console(), new_console(stderr=True), outcome.report
    if outcome.findings:
        out.print(escape(report.work))
    else:
        out.print(escape(report.summary))
    for failure in outcome.failed[:SHOWN]:
        err.print(f"[red]✗[/] {escape(f'{failure.uri}: {failure.code}: {failure.reason}')}")
    if len(outcome.failed) > SHOWN:
        err.print(f"  and {len(outcome.failed) - SHOWN:,} more; --json lists all")
    if (snapshot := outcome.snapshot) is not None:
        out.print(f"[green]switched[/]: {escape(published_text(snapshot))}")
    if outcome.left_out:
        err.print(f"[red]{plural(len(outcome.left_out), 'file')} failed[/]; the others are published")
    if (refusal := outcome.refusal) is not None:
        # A check that blocks, and a file that failed, is the reason, and is shown already.
        is_shown = any(finding.blocks for finding in outcome.findings)
        why = "" if is_shown or refusal.why is None else f": {refusal.why}"
        err.print(f"[red]not switched[/], queries still see the former state: {escape(refusal.what + why)}")
        if refusal.hint is not None:
            err.print(f"  → {escape(refusal.hint)}")
    if outcome.snapshot is not None:
        out.print(command_line(rows.command))
        out.print(f"  {escape(rows.console)}")
    if outcome.exit_code is not ExitCode.DONE:
        err.print(command_line(f"pinot-assets run {table}"))


def published_text(snapshot: Snapshot) -> str:
    """Return what queries see of a snapshot: `2 files, 3 segments, 4 rows are visible`."""
    files, segments = plural(len(snapshot.ledger), "file"), plural(len(snapshot.segments), "segment")
    return f"{files}, {segments}, {plural(snapshot.rows, 'row')} are visible"
