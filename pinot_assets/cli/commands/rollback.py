"""`pinot-assets snapshots`, `rollback` and `resume`: the kept snapshots of a table, and the ways to them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import (
    AsJson,
    DryRun,
    Newest,
    TableName,
    TablesOption,
    Yes,
    kept_snapshots,
    one_table,
)
from pinot_assets.cli.terminal import new_console, refuse_to_ask, show_answer, show_json
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import plural
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.rollback_preview import preview, rollback_way_text
from pinot_assets.session.rollback.rollback_options import RollbackPlan
from pinot_assets.session.values.state import utc_text


def snapshots(
    table: TableName,
    tables: TablesOption = None,
    newest: Newest = 20,
    as_json: AsJson = False,
) -> None:
    """List the kept snapshots of TABLE, newest first, and how each can be reached.

    `revert` undoes the newest switch at once, as long as Pinot keeps what it replaced; `re-publish`
    pushes a snapshot's staged segments again. Changes nothing and takes no lease. Exits 0.
    """
    with open_driver(one_table(table, tables), "snapshots") as driver:
        ways = driver.rollback_plans(newest)
    lines = map(escape, _listed(ways)) if ways else [f"{table} has never been published"]
    show_answer(as_json, [_values(way) for way in ways], lines)


def rollback(
    table: TableName,
    tables: TablesOption = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="Number or session of a kept snapshot; else the one before.",
            metavar="SEQ",
            autocompletion=kept_snapshots,
        ),
    ] = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Take TABLE back to a kept snapshot, at one instant: the one before, or any that `snapshots` lists.

    Shows first what it would do, and asks (with --json it cannot: add --yes or --dry-run). What is taken
    back stays out until `pinot-assets resume`, or until its files change again. Exits 0 when every
    broker counts the rows of that snapshot, 2 when one does not, 1 on any other error.
    """
    if as_json:
        refuse_to_ask(yes or dry_run)
    console = new_console()
    with open_driver(one_table(table, tables), "rollback") as driver:
        way = driver.rollback_plan(to)
        if as_json:
            _roll_back_silently(driver, to, way, dry_run)
            return
        for label, text in preview(way, time.time_ns() // 1_000_000):
            console.print(f"[bold]{label:<8}[/] {escape(text)}")
        if dry_run:
            return
        if way.way is not None and not yes:
            typer.confirm(f"Take {table} back?", abort=True)
        snapshot = driver.rollback(to, way)
        counted = driver.count(snapshot)
    console.print(
        f"[green]rolled back[/]: {plural(len(snapshot.ledger), 'file')}, "
        f"{plural(snapshot.rows, 'row')} are visible. "
        f"What was taken back is held; let it in again with `pinot-assets resume {table}`"
    )
    for answer in counted:
        mark = "[green]✓[/]" if answer.matches else "[red]✗[/]"
        console.print(f"  {mark} {escape(str(answer))}")
    if not all(answer.matches for answer in counted):
        raise typer.Exit(ExitCode.REFUSED)


def resume(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """Let in again what a rollback of TABLE holds back. Exits 0, also when nothing was held."""
    with open_driver(one_table(table, tables), "resume") as driver:
        held = driver.resume()
    line = f"the next run of {table} brings it in again" if held else f"{table} holds nothing back"
    show_answer(as_json, {"table": table, "letIn": held}, [line])


def _roll_back_silently(driver: Driver, to: str, way: RollbackPlan, dry_run: bool) -> None:
    """As the command does, for other programs.

    :raises typer.Exit: a broker does not count the rows of the snapshot.
    """
    values: JsonObject = {
        "current": _values(replace(way, target=way.current)),
        "target": _values(way),
        "drops": {"session": way.drops.id, "files": dict(way.drops.counts)} if way.drops else None,
    }
    if dry_run:
        show_json(values | {"rolledBack": False})
        return
    counted = driver.count(driver.rollback(to, way))
    brokers = [asdict(answer) | {"right": answer.matches} for answer in counted]
    show_json(values | {"rolledBack": True, "brokers": brokers})
    if not all(answer.matches for answer in counted):
        raise typer.Exit(ExitCode.REFUSED)


def _listed(ways: tuple[RollbackPlan, ...]) -> Iterator[str]:
    rows = [("seq", "session", "mode", "published", "files", "rows", "reached by")]
    for way in ways:
        snapshot = way.target.snapshot
        when = utc_text(snapshot.published_ms)
        counts = str(len(snapshot.ledger)), f"{snapshot.rows:,}"
        rows.append(
            (str(snapshot.seq), snapshot.session, str(snapshot.mode), when, *counts, rollback_way_text(way))
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _values(way: RollbackPlan) -> dict[str, object]:
    snapshot = way.target.snapshot
    return {
        "seq": snapshot.seq,
        "session": snapshot.session,
        "mode": snapshot.mode,
        "at": utc_text(snapshot.published_ms),
        "files": len(snapshot.ledger),
        "segments": len(snapshot.segments),
        "rows": snapshot.rows,
        "current": way.current.ref == way.target.ref,
        "way": way.way,
        "until": utc_text(way.until_ms) if way.until_ms is not None else None,
        "whyNot": way.why_not if way.way is None else None,
    }
