"""`pinot-assets tables`: list and check table specs, apply them to Pinot, and print their JSON Schema."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pinot_assets.cli.options import AsJson, any_tables, table_names, warn_of
from pinot_assets.cli.program import error_values
from pinot_assets.cli.progress import EVERY_S
from pinot_assets.cli.result_table import ResultColumn, layout
from pinot_assets.cli.terminal import new_console, notes_to_stderr, show_answer, show_json, unanswered
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.text import plural
from pinot_assets.errors import SpecError
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.settings.environment import DEFAULT_TABLES, TABLES, load_settings
from pinot_assets.table_spec.changes.spec_changes import Verdict
from pinot_assets.table_spec.tables.apply import (
    ApplyOutcome,
    ApplyPlan,
    Change,
    apply_each,
    check_each,
    exit_code_of,
    plan_each,
)
from pinot_assets.table_spec.tables.load import check_named
from pinot_assets.table_spec.tables.reload import AT_A_TIME, Progress
from pinot_assets.table_spec.tables.specs import NO_SPECS, AnyTableSpec, LeftOut, RealtimeTableSpec
from pinot_assets.table_spec.yaml.document import Note, Problem, canonical_json

app = typer.Typer(help="Table specs: list them, check them, apply them to Pinot.", no_args_is_help=True)

SpecsOption = Annotated[
    Path, typer.Option("--tables", envvar=TABLES, metavar="FOLDER", help="Directory of the table specs.")
]
DEFAULT_FOLDER = Path(DEFAULT_TABLES)


@app.command()
def validate(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATHS",
            help="Tables, or files, or folders of files; all of the directory if none is given.",
            autocompletion=table_names,
        ),
    ] = None,
    tables: SpecsOption = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Show every problem and every note of all table specs.

    Exits 1 with problems, or without specs.
    """
    specs, problems, notes = check_named(paths or (), tables)
    if not specs and not problems:
        raise SpecError(f"there is no *.yaml in {tables}", hint=NO_SPECS)
    show_answer(as_json, findings_values(specs, problems, notes), _findings(specs, problems, notes))
    raise typer.Exit(ExitCode.ERROR if problems else ExitCode.DONE)


@app.command()
def apply(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAMES", help="Tables; all of them if none is given.", autocompletion=table_names
        ),
    ] = None,
    tables: SpecsOption = DEFAULT_FOLDER,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create or update schema and table in Pinot, after showing what would change, and asking.

    Asks Pinot first whether it would accept schema and table; if it refuses one, nothing is created. The
    difference also names what cannot be undone. A table that cannot be applied, or whose spec is wrong,
    stops no other table: at the end each is named with its reason.

    Published segments change only when servers load them again. So segments whose servers lack an index or a
    column are reloaded, at most eight at a time, until every server has them; what needs a rebuild is named,
    and what published segments do not allow is refused.

    With --json the command asks no question: add --yes or --dry-run. The config of a REALTIME table passes
    `realtime preflight` first: where that refuses, nothing of the table is changed. Exits 0 when Pinot has
    what the specs say (or would have, with --dry-run), 1 when a table is left out or the answer is no, 2
    when only a preflight refuses.
    """
    if as_json and not (yes or dry_run):
        raise unanswered()
    chosen = any_tables(names or [], tables).unless_empty()
    if not chosen.specs:
        raise SpecError(f"there is no *.yaml in {tables}", hint=NO_SPECS)
    with open_pinot() as store, notes_to_stderr(as_json):
        console = new_console()
        fates = plan_each(chosen.specs, store)
        show_plans(console, fates)
        fates = check_each(fates, store, _gate)
        if not dry_run and any(fate.due for fate in fates):
            if not yes:
                show_failures(fates, chosen.left_out)
                if not typer.confirm("Apply?"):
                    raise typer.Exit(ExitCode.ERROR)
            fates = apply_each(fates, store, reload_lines(new_console(stderr=True)))
        show_applied(console, fates)
    if len(fates) == 1 and not chosen.left_out and fates[0].error is not None:
        raise fates[0].error
    if as_json:
        left_out = [
            {"table": one.name, "file": one.file, "applied": False, **error_values(one.error)}
            for one in chosen.left_out
        ]
        show_json([*map(_outcome_values, fates), *left_out])
    else:
        show_failures(fates, chosen.left_out)
    raise typer.Exit(exit_code_of(fates, chosen.left_out))


@app.command("list")
def list_tables(tables: SpecsOption = DEFAULT_FOLDER, as_json: AsJson = False) -> None:
    """List the tables of the directory: type, mode, source as it is written, spec file, schedule.

    Reads only the table specs, not Pinot or a source. Exits 0; 1 where a spec is wrong, which is listed as
    broken.
    """
    chosen = any_tables([], tables)
    rows = sorted(
        [*map(_listed, chosen.specs), *map(_listed_broken, chosen.left_out)],
        key=lambda row: str(row["table"]),
    )
    if as_json:
        show_json(rows)
    else:
        _show_list(rows)
        warn_of(chosen.left_out)
    raise typer.Exit(ExitCode.ERROR if chosen.left_out else ExitCode.DONE)


_LISTED: Final = ("table", "type", "mode", "source", "file", "schedule")
"""Fields of a listed table that people are shown."""


def _show_list(rows: Sequence[JsonMapping]) -> None:
    console = new_console()
    table = layout(
        [*map(ResultColumn, _LISTED)],
        [[str(row.get(name) or "") for name in _LISTED] for row in rows],
        console.width if console.is_terminal else None,
    )
    console.print(table.head, style="bold", markup=False)
    for line in table.lines:
        console.print(line, markup=False)


def _listed(spec: AnyTableSpec) -> JsonObject:
    """Return a table as JSON; its source is as the file has it, so that no variable is filled in."""
    if isinstance(spec, RealtimeTableSpec):
        mode, source, schedule, zone = None, _topics(spec), None, None
    else:
        mode, source = spec.mode, spec.ingestion.input_dir_uri
        schedule = spec.ingestion.schedule
        zone = spec.ingestion.schedule_timezone if schedule else None
    return {
        "table": spec.name,
        "type": spec.kind.removeprefix("_"),
        "mode": mode,
        "source": source,
        "file": str(spec.path),
        "schedule": schedule,
        "timezone": zone,
    }


def _topics(spec: RealtimeTableSpec) -> str:
    # Imported here: many installations have no REALTIME table.
    from pinot_assets.realtime.model.settings import table_settings

    kinds = [(stream, stream.get("streamType", "")) for stream in table_settings(spec.table_json).streams]
    return ", ".join(f"{kind}: {stream.get(f'stream.{kind}.topic.name', '')}" for stream, kind in kinds)


def _listed_broken(one: LeftOut) -> JsonObject:
    return {"table": one.name, "type": "broken", "file": str(one.file), **error_values(one.error)}


def open_pinot() -> HttpPinotClient:
    """Return a client of Pinot; called only when a command needs Pinot."""
    return HttpPinotClient(load_settings().pinot)


def _gate(plan: ApplyPlan) -> None:
    """Check whether a change is allowed, show the findings, and raise an error if it is not."""
    # Imported here: few commands change a REALTIME table.
    from pinot_assets.cli.realtime.preflight import gate

    gate(plan)


def show_failures(fates: Iterable[ApplyOutcome], left_out: Iterable[LeftOut]) -> None:
    """Print each table that was not applied, and why, on standard error."""
    err = new_console(stderr=True)
    for fate in fates:
        if fate.error is not None:
            err.print(f"[red]not applied[/]: {escape(f'{fate.table}: {fate.error}')}")
    for one in left_out:
        err.print(f"[red]not applied[/]: left out: {escape(one.in_one_line)}")


def _findings(
    specs: Iterable[AnyTableSpec], problems: Iterable[Problem], notes: Iterable[Note]
) -> Iterator[Text]:
    for problem in problems:
        label = "problem " if problem.key else "problem: "  # the reason of a whole file has no subject
        line = Text.assemble((f"{problem.file}:{problem.line}: ", "bold"), (label, "bold red"))
        line.append(f"{problem.key}: " if problem.key else "", "cyan").append(f"{problem.reason}.")
        if problem.fix:
            line.append(f"\n    → {problem.fix}", "green")
        yield line
    for note in notes:
        line = Text.assemble((f"{note.file}:{note.line}: ", "bold"), ("note ", "yellow"))
        yield line.append(f"{note.key}: ", "cyan").append(f"{note.text}.")
    for spec in specs:
        text = Text.assemble(("ok ", "bold green"), (spec.name, "bold"))
        yield text.append(f" ({spec.path}): {kind_of(spec)}")


def show_plans(console: Console, fates: Iterable[ApplyOutcome]) -> None:
    """Print what applying each table would make or change in Pinot, and what cannot be taken back."""
    for fate in fates:
        if fate.plan is not None:
            _show_plan(console, fate.plan)


def reload_lines(console: Console) -> Callable[[str], Progress]:
    """Return what prints how far the reloads of a table are: a line every ten seconds, and one at the end."""

    def of_table(table: str) -> Progress:
        said = time.monotonic()

        def progress(done: int, of: int) -> None:
            nonlocal said
            if done == of or time.monotonic() - said >= EVERY_S:
                said = time.monotonic()
                console.print(Text(f"{table}: servers have reloaded {done:,} of {plural(of, 'segment')}"))

        return progress

    return of_table


def show_applied(console: Console, fates: Iterable[ApplyOutcome]) -> None:
    """Print the name of each table that was applied."""
    for fate in fates:
        if fate.applied:
            console.print(Text(f"applied {fate.name}", style="green"))


def _show_plan(console: Console, plan: ApplyPlan) -> None:
    for what, name, change in (
        ("schema", plan.spec.name, plan.schema),
        ("table", plan.spec.name_with_type, plan.table),
    ):
        verb = {"create": "will be created", "update": "will be updated", "keep": "is up to date"}[
            change.action
        ]
        console.print(Text.assemble(f"{what} ", (name, "bold"), f" {verb}"))
        if change.differences:
            grid = Table("setting", "in Pinot", "in the spec", box=None, padding=(0, 2))
            for difference in change.differences:
                grid.add_row(
                    Text(difference.path),
                    Text(_shown(difference.in_pinot), style="red"),
                    Text(_shown(difference.in_spec), style="green"),
                )
            console.print(grid)
    for one in plan.changes:
        if one.verdict in (Verdict.REBUILD, Verdict.REFUSED):
            console.print(Text.assemble((f"{one.verdict}: ", "bold yellow"), str(one)))
    if plan.reload.segments:
        why = f": {', '.join(plan.reload.reasons)}" if plan.reload.reasons else ""
        console.print(Text(f"{plan.reload} will be reloaded, at most {AT_A_TIME} at a time{why}"))
    for sentence in plan.warnings:
        console.print(Text.assemble(("meanwhile: ", "bold yellow"), sentence))
    for sentence in plan.lasting:
        console.print(Text.assemble(("cannot be undone: ", "bold yellow"), sentence))


def _shown(value: object) -> str:
    return "–" if value is None else canonical_json(value)


# --- for other programs --------------------------------------------------------------------------


def findings_values(
    specs: Iterable[AnyTableSpec], problems: Iterable[Problem], notes: Iterable[Note]
) -> JsonObject:
    """Return the problems and notes of `validate` as JSON, each with file name, line and key."""
    return {
        "problems": [asdict(problem) for problem in problems],
        "notes": [asdict(note) for note in notes],
        "tables": [
            {"table": spec.name_with_type, "file": spec.path, "kind": kind_of(spec)} for spec in specs
        ],
    }


def _outcome_values(outcome: ApplyOutcome) -> JsonObject:
    """Return what `apply` would change and the result as JSON; for a failed table also the error."""
    values: JsonObject = {"table": outcome.table}
    if (plan := outcome.plan) is not None:
        values = {
            "table": plan.spec.name_with_type,
            "schema": _change_values(plan.schema),
            "config": _change_values(plan.table),
            "changes": [asdict(change) for change in plan.changes],
            "reload": {
                "segments": len(plan.reload.segments),
                "of": plan.reload.of,
                "reasons": list(plan.reload.reasons),
            },
            "meanwhile": list(plan.warnings),
            "cannotBeTakenBack": list(plan.lasting),
        }
    error = {} if outcome.error is None else error_values(outcome.error)
    return {**values, "applied": outcome.applied, **error}


def kind_of(spec: AnyTableSpec) -> str:
    """Return a few words about where the rows of a table come from."""
    if isinstance(spec, RealtimeTableSpec):
        return "REALTIME"
    return f"{spec.mode}, {spec.ingestion.input_format}"


def _change_values(change: Change) -> JsonObject:
    return {
        "action": change.action,
        "differences": [
            {"path": d.path, "inPinot": d.in_pinot, "inSpec": d.in_spec} for d in change.differences
        ],
    }
