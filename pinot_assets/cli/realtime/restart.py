"""`pinot-assets realtime restart-from`: what no repair does by itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.options import AsJson, new_console, show_json, stdout_to_stderr
from pinot_assets.cli.realtime.table import TableName
from pinot_assets.cli.realtime.work import RUN, DryRun, open_work, tell
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.text import plural
from pinot_assets.realtime.operations.restart import (
    SUBJECT,
    Restart,
    RestartPlan,
    left_of,
    recalled,
    restart_from,
)

Segments = Annotated[
    list[str], typer.Argument(help="Lost segments, by their whole names.", metavar="SEGMENT")
]
Confirm = Annotated[
    str, typer.Option("--confirm", help="The table's name once more: yes, delete these segments.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(name="restart-from")
    def restart_from_(
        table: TableName,
        segments: Segments,
        dry_run: DryRun = False,
        confirm: Confirm = "",
        as_json: AsJson = False,
    ) -> None:
        """Delete lost segments of TABLE and all later ones of their partitions; read them again in order.

        For dedup and partial upsert tables, of which Pinot reads nothing again by itself. Pauses the table,
        deletes, resumes. An interrupted one is gone on with. Exits 2 when it is not done.
        """
        with stdout_to_stderr() if as_json else nullcontext():
            found, deleted, code = _restart(table, segments, dry_run, confirm)
        if as_json:
            show_json(_values(found, deleted))
        raise typer.Exit(code)


def _restart(
    table: str, segments: Sequence[str], dry_run: bool, confirm: str
) -> tuple[RestartPlan, Sequence[str], ExitCode]:
    """What goes, what was deleted of it, and how that ended."""
    with open_work(table) as work:
        state, marks = work.read(), recalled(work.recall(SUBJECT), work.table).marks
        found = restart_from(state, segments)
        if marks:
            found = RestartPlan(left_of(state, marks), (), ())
            new_console().print("[yellow]an interrupted restart is gone on with[/]")
        _show(found)
        raw = work.table.removesuffix("_REALTIME")
        if dry_run or found.refusals:
            return found, (), ExitCode.REFUSED if found.refusals else ExitCode.DONE
        if confirm.removesuffix("_REALTIME") != raw:
            new_console().print(f"nothing was done; to do it, add [bold]--confirm {escape(raw)}[/]")
            return found, (), ExitCode.REFUSED
        with work.hold(f"{RUN} restart-from") as lease:
            deleted = Restart(work.pinot, work.read, lease, tell).run(segments)
    new_console().print(f"[green]read again from the stream[/]: {plural(len(deleted), 'segment')} deleted")
    return found, deleted, ExitCode.DONE


def _values(found: RestartPlan, deleted: Sequence[str]) -> dict[str, object]:
    return {
        "delete": [segment.name for segment in found.going],
        "refused": list(found.refusals),
        "lostAllTheSame": list(found.warnings),
        "deleted": list(deleted),
    }


def _show(found: RestartPlan) -> None:
    out = new_console()
    for segment in found.going:
        out.print(f"[red]delete[/] {escape(segment.name)}")
    for refusal in found.refusals:
        out.print(f"[red]refused[/]: {escape(refusal)}")
    for warning in found.warnings:
        out.print(f"[yellow]lost all the same[/]: {escape(warning)}")
