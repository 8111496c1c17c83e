"""`pinot-assets realtime pauseless enable|disable`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.text import Text

from pinot_assets.cli.options import AsJson, new_console, show_json
from pinot_assets.cli.realtime.table import TableName
from pinot_assets.cli.realtime.work import RUN, DryRun, open_work, tell
from pinot_assets.cli.table_selection import realtime_table
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.interrupts import saying
from pinot_assets.errors import SpecDrift
from pinot_assets.realtime.model.settings import table_settings
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.operations.pauseless import (
    Do,
    DrainMemory,
    Goal,
    PauselessChange,
    may_pause,
    next_action,
)
from pinot_assets.realtime.preflight.judge import before_drain
from pinot_assets.settings.environment import tables_directory

Patience = Annotated[
    int, typer.Option("--minutes", min=1, help="How long it goes on; run it again to go on with it.")
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, help="Turn pauseless consumption on or off, drained first.")
    app.add_typer(group, name="pauseless")

    @group.command()
    def enable(
        table: TableName, dry_run: DryRun = False, minutes: Patience = 60, as_json: AsJson = False
    ) -> None:
        """Turn pauseless consumption of TABLE on.

        Preflight; a short pause, so that no commit is done half one way, half the other; the table config;
        then the first commits are watched. Exits 0 when each partition has committed the new way, 2 when not.
        """
        _change(table, Goal.ON, dry_run, minutes, as_json)

    @group.command()
    def disable(
        table: TableName, dry_run: DryRun = False, minutes: Patience = 60, as_json: AsJson = False
    ) -> None:
        """Turn pauseless consumption of TABLE off, without leaving a commit that nobody finishes.

        Finishes what is stuck; a short pause; waits until nothing is COMMITTING and everything is in the deep
        store; the table config; then the first commits are watched. Exits as `enable` does.
        """
        _change(table, Goal.OFF, dry_run, minutes, as_json)


def _change(table: str, goal: Goal, dry_run: bool, minutes: int, as_json: bool) -> None:
    with open_work(table) as work:
        _agrees(work.table.removesuffix("_REALTIME"), goal)
        preflight = before_drain(work.pinot)
        if dry_run:
            state = work.read()
            against = preflight(state, goal)
            if as_json:
                steps = [Text.from_markup(line).plain for line in _outline(state, goal)]
                show_json({"table": work.table, "goal": goal, "refused": list(against), "steps": steps})
                raise typer.Exit(ExitCode.REFUSED if against else ExitCode.DONE)
            for line in (*(f"[red]refused[/]: {escape(one)}" for one in against), *_outline(state, goal)):
                new_console().print(line)
            raise typer.Exit(ExitCode.REFUSED if against else ExitCode.DONE)
        with work.hold(f"{RUN} pauseless {goal}") as lease:
            repair = work.repair(lease)
            drain = PauselessChange(
                work.pinot, work.read, lease, tell, minutes * 60.0, repair=repair, preflight=preflight
            )
            paused = f"{work.table} may be paused, run the same command again: it goes on from there"
            with saying(paused):
                last = drain.run(goal)
    done = last.do is Do.DONE
    if as_json:
        show_json({"table": work.table, "goal": goal, "done": done, "end": last.do, "why": last.why})
    else:
        new_console().print(f"[{'green' if done else 'red'}]{last.do}[/]: {escape(last.why)}")
    if not done:
        raise typer.Exit(ExitCode.REFUSED)


def _agrees(raw: str, goal: Goal) -> None:
    """The spec first, where there is one: the next `tables apply` would take back what it does not say.

    :raises SpecDrift: it says otherwise.
    :raises SpecError: its file is wrong.
    """
    folder = tables_directory()
    spec = realtime_table(raw, folder) if folder.is_dir() else None
    if spec is not None and table_settings(spec.table_json).pauseless is not (goal is Goal.ON):
        raise SpecDrift(
            f"{spec.path} does not want pauseless consumption {goal}",
            hint=f"write pauselessConsumptionEnabled: {str(goal is Goal.ON).lower()} there, and run it again",
        )


def _outline(state: RealtimeState, goal: Goal) -> tuple[str, ...]:
    """The way, and where it begins."""
    first = next_action(state, DrainMemory(goal, cleared=True))
    if first.do is Do.DONE:
        return (f"[green]nothing to do[/]: {escape(first.why)}",)
    pause = (
        "pause, until all that is consumed is committed"
        if may_pause(state)
        else "no pause, which Pinot refuses here (consistency mode RESTRICTED); commits in their own time"
    )
    return (
        f"first: {first.do}: {escape(first.why)}",
        f"then: {pause}",
        f"then: the table config, pauselessConsumptionEnabled {goal}; resume",
        "then: watch a commit of each partition",
    )
