"""`pinot-assets realtime restart-from`, `pauseless`, `rebalance`, `drill`: operations beyond a repair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated, NoReturn

import typer
from rich.markup import escape
from rich.text import Text

from pinot_assets.cli.options import AsJson, DryRun, realtime_table
from pinot_assets.cli.realtime.table import RUN, RealtimeTableName, open_work, tell
from pinot_assets.cli.terminal import new_console, notes_to_stderr, show_answer, show_json
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.interrupts import saying
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError, SpecDrift
from pinot_assets.realtime.health.metrics import peer_downloads
from pinot_assets.realtime.model.settings import table_settings
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.operations import restart
from pinot_assets.realtime.operations.drill import Drill, Lengths, drill_values, runs
from pinot_assets.realtime.operations.pauseless import (
    Do,
    DrainMemory,
    Goal,
    PauselessChange,
    may_pause,
    next_action,
)
from pinot_assets.realtime.operations.rebalance import End, Rebalance, preview_rebalance
from pinot_assets.realtime.operations.rebalance_plan import Preview, RebalancePlan, Request
from pinot_assets.realtime.operations.table_operation import TableOperation
from pinot_assets.realtime.preflight.judge import before_drain
from pinot_assets.settings.environment import tables_directory

# --- restart-from ---------------------------------------------------------------------------------


def restart_from(
    table: RealtimeTableName,
    segments: Annotated[
        list[str], typer.Argument(help="Names of lost segments, in full.", metavar="SEGMENT")
    ],
    dry_run: DryRun = False,
    confirm: Annotated[
        str,
        typer.Option(
            "--confirm",
            metavar="TABLE",
            help="The table's name once more, to confirm that these segments are deleted.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Delete lost segments of TABLE and all later ones of their partitions; consume them again in order.

    For dedup and partial upsert tables, for which Pinot itself consumes nothing again. Pauses the table,
    deletes, resumes. Continues an interrupted restart. Exits 2 when it is not done.
    """
    deleted: Sequence[str] = ()
    with notes_to_stderr(as_json), open_work(table) as work:
        planned = _plan_restart(work, segments)
        code = ExitCode.REFUSED if planned.refusals else ExitCode.DONE
        if not dry_run and not planned.refusals:
            deleted, code = _restart(work, segments, confirm)
    if as_json:
        values = {
            "delete": [segment.name for segment in planned.going],
            "refused": list(planned.refusals),
            "lostAllTheSame": list(planned.warnings),
            "deleted": list(deleted),
        }
        show_json(values)
    raise typer.Exit(code)


def _plan_restart(work: TableOperation, segments: Sequence[str]) -> restart.RestartPlan:
    """Show the restart plan and return it."""
    out = new_console()
    state, marks = work.read(), restart.recalled_restart(work.recall(restart.SUBJECT), work.table).marks
    planned = restart.plan_restart(state, segments)
    if marks:
        planned = restart.RestartPlan(restart.left_of(state, marks), (), ())
        out.print("[yellow]continuing an interrupted restart[/]")
    for segment in planned.going:
        out.print(f"[red]delete[/] {escape(segment.name)}")
    for refusal in planned.refusals:
        out.print(f"[red]refused[/]: {escape(refusal)}")
    for warning in planned.warnings:
        out.print(f"[yellow]lost all the same[/]: {escape(warning)}")
    return planned


def _restart(work: TableOperation, segments: Sequence[str], confirm: str) -> tuple[Sequence[str], ExitCode]:
    """Return the segments that were deleted, and the exit code."""
    raw = work.table.removesuffix("_REALTIME")
    if confirm.removesuffix("_REALTIME") != raw:
        new_console().print(f"nothing was done; to do it, add [bold]--confirm {escape(raw)}[/]")
        return (), ExitCode.REFUSED
    with work.hold(f"{RUN} restart-from") as lease:
        deleted = restart.Restart(work.pinot, work.read, lease, tell).run(segments)
    new_console().print(f"[green]read again from the stream[/]: {plural(len(deleted), 'segment')} deleted")
    return deleted, ExitCode.DONE


# --- pauseless ------------------------------------------------------------------------------------

pauseless = typer.Typer(
    no_args_is_help=True, help="Turn pauseless consumption on or off; the table is drained first."
)
Patience = Annotated[
    int,
    typer.Option(
        "--minutes",
        min=1,
        metavar="MINUTES",
        help="The most minutes that it takes. Run it again to continue.",
    ),
]


@pauseless.command()
def enable(
    table: RealtimeTableName, dry_run: DryRun = False, minutes: Patience = 60, as_json: AsJson = False
) -> None:
    """Turn pauseless consumption of TABLE on.

    Runs the preflight; pauses the table, so that no commit is done half in one way, half in the other;
    changes the table config; watches the first commits. Exits 0 when each partition has committed in the
    new way, 2 when not.
    """
    if dry_run:
        _show_change(table, Goal.ON, as_json)
    _change(table, Goal.ON, minutes, as_json)


@pauseless.command()
def disable(
    table: RealtimeTableName, dry_run: DryRun = False, minutes: Patience = 60, as_json: AsJson = False
) -> None:
    """Turn pauseless consumption of TABLE off, and finish every commit before.

    Repairs what is stuck; pauses the table; waits until nothing is COMMITTING and everything is in the deep
    store; changes the table config; watches the first commits. Exits as `enable` does.
    """
    if dry_run:
        _show_change(table, Goal.OFF, as_json)
    _change(table, Goal.OFF, minutes, as_json)


def _show_change(table: str, goal: Goal, as_json: bool) -> NoReturn:
    with open_work(table) as work:
        _agrees(work.table.removesuffix("_REALTIME"), goal)
        state = work.read()
        against, outline = before_drain(work.pinot)(state, goal), _outline(state, goal)
    steps = [Text.from_markup(line).plain for line in outline]
    values = {"table": work.table, "goal": goal, "refused": list(against), "steps": steps}
    show_answer(as_json, values, (*(f"[red]refused[/]: {escape(one)}" for one in against), *outline))
    raise typer.Exit(ExitCode.REFUSED if against else ExitCode.DONE)


def _change(table: str, goal: Goal, minutes: int, as_json: bool) -> NoReturn:
    with open_work(table) as work:
        _agrees(work.table.removesuffix("_REALTIME"), goal)
        preflight = before_drain(work.pinot)
        paused = f"{work.table} may be paused; run the same command again, and it continues from there"
        with work.hold(f"{RUN} pauseless {goal}") as lease, saying(paused):
            repair, patience_s = work.repair(lease), minutes * 60.0
            drain = PauselessChange(
                work.pinot, work.read, lease, tell, patience_s, repair=repair, preflight=preflight
            )
            last = drain.run(goal)
    done = last.do is Do.DONE
    end = {"table": work.table, "goal": goal, "done": done, "end": last.do, "why": last.why}
    show_answer(as_json, end, [f"[{'green' if done else 'red'}]{last.do}[/]: {escape(last.why)}"])
    raise typer.Exit(ExitCode.DONE if done else ExitCode.REFUSED)


def _agrees(raw: str, goal: Goal) -> None:
    """Check that the spec, if there is one, has the goal: otherwise the next `tables apply` would undo it.

    :raises SpecDrift: the spec has another value.
    :raises SpecError: the spec's file is wrong.
    """
    folder = tables_directory()
    spec = realtime_table(raw, folder) if folder.is_dir() else None
    if spec is not None and table_settings(spec.table_json).pauseless is not (goal is Goal.ON):
        raise SpecDrift(
            f"{spec.path} does not set pauseless consumption {goal}",
            hint=f"write pauselessConsumptionEnabled: {str(goal is Goal.ON).lower()} into it, and run it "
            "again",
        )


def _outline(state: RealtimeState, goal: Goal) -> tuple[str, ...]:
    """Return the steps of the drain as lines, from the step with which it begins."""
    first = next_action(state, DrainMemory(goal, cleared=True))
    if first.do is Do.DONE:
        return (f"[green]nothing to do[/]: {escape(first.why)}",)
    pause = (
        "pause until everything that is consumed is committed"
        if may_pause(state)
        else (
            "no pause, which Pinot refuses here (consistency mode RESTRICTED); each partition commits "
            "when its segment is full"
        )
    )
    return (
        f"first: {first.do}: {escape(first.why)}",
        f"then: {pause}",
        f"then: the table config, pauselessConsumptionEnabled {goal}; resume",
        "then: watch a commit of each partition",
    )


# --- rebalance ------------------------------------------------------------------------------------


def rebalance(
    table: RealtimeTableName,
    apply: Annotated[
        bool, typer.Option("--apply/--dry-run", help="Do it; without this, only show what would be done.")
    ] = False,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="One of Pinot's own parameters, name=value, such as minAvailableReplicas=1.",
        ),
    ] = None,
    upload_first: Annotated[
        bool,
        typer.Option(
            "--upload-first", help="With --apply: repair first, so that the deep store has all segments."
        ),
    ] = False,
    minutes: Annotated[
        int, typer.Option("--minutes", min=1, metavar="MINUTES", help="How long the rebalance is followed.")
    ] = 360,
    as_json: AsJson = False,
) -> None:
    """Rebalance TABLE, unless rows that only servers have could be lost.

    Runs Pinot's own pre-checks, and those of pinot-assets, which count only live copies. Changes nothing
    without --apply. Exits 0 when it is done or may be done, 2 when it is refused, has failed or has not
    ended.
    """
    request = _request(options or ())
    with open_work(table) as work:
        if not apply:
            previewed, judgement = preview_rebalance(work.pinot, work.read, work.table, request)
            show_answer(as_json, _rebalance_values(previewed, judgement), _lines(previewed, judgement))
            raise typer.Exit(ExitCode.REFUSED if judgement.refused else ExitCode.DONE)
        with work.hold(f"{RUN} rebalance") as lease:
            if upload_first:
                for _ in work.repair(lease).rounds(20):
                    pass
            report = Rebalance(work.pinot, work.read, lease, tell, minutes * 60.0).run(request)
    line = f"{report.end}: {escape(report.text)}" if report.text else str(report.end)
    show_answer(as_json, asdict(report), [line])
    raise typer.Exit(ExitCode.DONE if report.end in (End.DONE, End.NOTHING) else ExitCode.REFUSED)


def _request(options: Sequence[str]) -> Request:
    """:raises PinotAssetsError: an option cannot be read, may not be set, or does not exist in Pinot."""
    values = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or name in ("dryRun", "preChecks", "type"):
            raise PinotAssetsError(f"--option {option} is not understood", hint="write name=value")
        values[name] = value
    try:
        return Request.of(**values)
    except ValueError as error:
        raise PinotAssetsError("the options of the rebalance cannot be read", why=str(error)) from None


def _lines(previewed: Preview, judgement: RebalancePlan) -> Iterator[str]:
    yield f"Pinot's dry run: {escape(previewed.status)}; {plural(len(judgement.moves), 'segment')} would move"
    for name, (status, message) in previewed.checks.items():
        if status == "PASS":
            yield f"[green]pass  [/] {escape(name)}: {escape(message)}"
    for one in judgement.objections:
        yield f"{'[red]REFUSE' if one.blocks else '[yellow]warn  '}[/] {one.name}: {escape(one.message)}"
        yield f"       → {escape(one.next_step)}"
    if judgement.upload_first:
        lacking = f"{len(judgement.upload_first):,} of them are not in the deep store"
        yield f"{lacking}: --upload-first uploads them"
    if judgement.moves and not judgement.refused:
        yield "nothing was done; to do it, add [bold]--apply[/]"


def _rebalance_values(previewed: Preview, judgement: RebalancePlan) -> dict[str, object]:
    return {
        "status": previewed.status,
        "preChecks": {name: list(check) for name, check in previewed.checks.items()},
        "moves": {
            m.segment.name: {"before": sorted(m.before), "after": sorted(m.after)} for m in judgement.moves
        },
        "objections": [
            {"name": one.name, "why": one.message, "remedy": one.next_step, "refuses": one.blocks}
            for one in judgement.objections
        ],
        "uploadFirst": list(judgement.upload_first),
        "refused": judgement.refused,
    }


# --- drill ----------------------------------------------------------------------------------------


def drill(
    table: RealtimeTableName,
    break_command: Annotated[
        str, typer.Option("--break", metavar="COMMAND", help="Command that makes the deep store unwritable.")
    ],
    mend_command: Annotated[
        str, typer.Option("--mend", metavar="COMMAND", help="Command that undoes it; run whatever happens.")
    ],
    test_table: Annotated[
        str,
        typer.Option(
            "--yes-this-is-a-test-table",
            metavar="TABLE",
            help="The table's name once more, to confirm that its deep store is made unwritable.",
        ),
    ],
    load_from_peers: Annotated[
        str,
        typer.Option(
            "--load-from-peers",
            metavar="COMMAND",
            help="Command after which a server loads segments from other servers.",
        ),
    ] = "",
    exporters: Annotated[
        list[str] | None,
        typer.Option(
            "--exporter",
            metavar="URL",
            help="http://host:port of a server's JMX exporter, which counts what peers send.",
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            min=1,
            metavar="SECONDS",
            help="How long the table is watched, before the outage and in it.",
        ),
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Make the deep store of a TEST table unwritable for a while, and show the effect.

    Consumption must continue at its rate (keep a backlog waiting), past two commits of each partition.
    Afterwards the segments that only servers have are uploaded. Other tables that share the deep store lose
    it, too. Exits 2 when a finding of the drill failed.
    """
    with open_work(table) as work:
        if test_table.removesuffix("_REALTIME") != work.table.removesuffix("_REALTIME"):
            raise PinotAssetsError(
                f"the drill on {work.table} was not started",
                why=f"--yes-this-is-a-test-table names {test_table or 'no table'}",
                hint="repeat the table's name there, if it is a table that may break",
            )
        broker = work.pinot.brokers_of(work.table)[0]
        with work.hold(f"{RUN} drill") as lease:
            observations = Drill(
                work.read,
                runs(break_command),
                runs(mend_command),
                lambda: work.pinot.answered_rows(broker, work.table),
                work.repair(lease),
                runs(load_from_peers) if load_from_peers else None,
                lambda: peer_downloads(exporters or (), work.table),
                lengths=Lengths(before=seconds, outage=seconds),
                tell=tell,
            ).run()
    marks = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[dim]·[/]"}
    lines = (f"{marks[finding.passed]} {finding.name}: {escape(finding.text)}" for finding in observations)
    show_answer(as_json, drill_values(observations), lines)
    raise typer.Exit(ExitCode.REFUSED if any(one.passed is False for one in observations) else ExitCode.DONE)
