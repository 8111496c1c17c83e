"""`pinot-assets tables`: check the table specs, apply them to Pinot, help editors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pinot_assets.authoring.starter import BROKERS, TableType, starting_spec
from pinot_assets.cli.commands.import_tables import add_import_command
from pinot_assets.cli.completion import table_names
from pinot_assets.cli.options import AsJson, new_console, refuse_to_ask, show_json, stdout_to_stderr
from pinot_assets.cli.table_selection import any_tables
from pinot_assets.cli.tables_rendering import fates_values, findings_values, kind_of
from pinot_assets.cli.terminal import Terminal
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.errors import SpecError
from pinot_assets.pinot.api import PinotClient
from pinot_assets.table_spec.blocks.pinot_json import NAMES, usable_name
from pinot_assets.table_spec.tables.apply import (
    ApplyOutcome,
    ApplyPlan,
    apply_each,
    check_each,
    exit_code_of,
    plan_each,
)
from pinot_assets.table_spec.tables.editor_schema import editor_schema
from pinot_assets.table_spec.tables.load import NO_DIRECTORY, check_named, write_new_spec
from pinot_assets.table_spec.tables.specs import AnyTableSpec, LeftOut
from pinot_assets.table_spec.yaml.document import Note, Problem, canonical_json

OpenStore = Callable[[], AbstractContextManager[PinotClient]]
"""Opens the connection to Pinot, only when a command needs it."""
Gate = Callable[[ApplyPlan], None]
"""Looks whether a change may be made, tells what it found, and raises where it may not."""

TablesOption = Annotated[
    Path, typer.Option("--tables", envvar="PINOT_ASSETS_TABLES", help="Directory of the table specs.")
]
_DEFAULT_TABLES = Path("tables")


def tables_app(open_store: OpenStore, realtime_gate: Gate) -> typer.Typer:
    """The `tables` commands.

    Errors of this project leave the commands as they are, for the caller to show.

    :param open_store: how to reach Pinot.
    :param realtime_gate: asked before the config of a REALTIME table is changed.
    """
    app = typer.Typer(help="Table specs: check them, apply them to Pinot.", no_args_is_help=True)

    @app.command()
    def validate(
        paths: Annotated[
            list[str] | None,
            typer.Argument(
                help="Tables, or files, or folders of files; all of the directory if none is given.",
                autocompletion=table_names,
            ),
        ] = None,
        tables: TablesOption = _DEFAULT_TABLES,
        as_json: AsJson = False,
    ) -> None:
        """Show every problem and every note of all table specs; exits 1 with problems, or without specs."""
        specs, problems, notes = check_named(paths or (), tables)
        if not specs and not problems:
            raise SpecError(f"there is no *.yaml in {tables}", hint=NO_DIRECTORY)
        if as_json:
            show_json(findings_values(specs, problems, notes))
            raise typer.Exit(ExitCode.ERROR if problems else ExitCode.DONE)
        console = new_console()
        _show_findings(console, problems, notes)
        _show_specs(console, specs)
        if problems:
            raise typer.Exit(ExitCode.ERROR)

    @app.command()
    def apply(
        names: Annotated[
            list[str] | None,
            typer.Argument(help="Tables; all of them if none is given.", autocompletion=table_names),
        ] = None,
        tables: TablesOption = _DEFAULT_TABLES,
        yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Create or update schema and table in Pinot, after showing what would change, and asking.

        Pinot is asked first whether it would take schema and table; of what it refuses nothing is created.
        What it cannot take back is said with the difference. A table that cannot be applied, or whose spec is
        wrong, keeps no other from its turn: at the end each is named with its reason.

        With --json nobody is asked: add --yes or --dry-run. The config of a REALTIME table passes `realtime
        preflight` first: where that refuses, nothing of it is changed. Exits 0 when Pinot holds what the
        specs say (or would, with --dry-run), 1 when a table is left out or the answer is no, 2 when only a
        preflight refuses.
        """
        if as_json:
            refuse_to_ask(yes or dry_run)
        chosen = any_tables(names or [], tables).unless_empty()
        with open_store() as store, stdout_to_stderr() if as_json else nullcontext():
            console = new_console()
            fates = plan_each(chosen.specs, store)
            for fate in fates:
                if fate.plan is not None:
                    _show_plan(console, fate.plan)
            fates = check_each(fates, store, realtime_gate)
            if not dry_run and any(fate.due for fate in fates):
                if not yes:
                    show_failures(fates, chosen.left_out)
                    if not typer.confirm("Apply?"):
                        raise typer.Exit(ExitCode.ERROR)
                fates = apply_each(fates, store)
            for fate in fates:
                if fate.applied:
                    console.print(Text(f"applied {fate.name}", style="green"))
        if len(fates) == 1 and not chosen.left_out and fates[0].error is not None:
            raise fates[0].error
        if as_json:
            show_json(fates_values(fates, chosen.left_out))
        else:
            show_failures(fates, chosen.left_out)
        raise typer.Exit(exit_code_of(fates, chosen.left_out))

    @app.command()
    def init(
        name: Annotated[str, typer.Argument(help="Of the new table.", metavar="TABLE")],
        table_type: Annotated[
            TableType, typer.Option(help="What feeds it: files, or a stream.", case_sensitive=False)
        ] = TableType.OFFLINE,
        brokers: Annotated[str, typer.Option(help="Kafka of a REALTIME table, host:port.")] = BROKERS,
        tables: TablesOption = _DEFAULT_TABLES,
        as_json: AsJson = False,
    ) -> None:
        """Write a table spec to start from, with comments, as TABLE.yaml; changes nothing in Pinot.

        As it stands, the table has one text column, and a REALTIME one a time. A file that is there is
        left alone. Exits 0; 1 when the file is there, or would keep another table from being used.
        """
        if not usable_name(name):
            raise SpecError(f"{name!r} is not a usable table name", hint=NAMES)
        file = tables / f"{name}.yaml"
        if file.exists():
            raise SpecError(f"{file} is there already", hint="give another name, or edit that file")
        write_new_spec(file, starting_spec(table_type, name, brokers))
        if as_json:
            show_json({"table": name, "file": file})
            return
        console = new_console()
        console.print(Text.assemble(("wrote ", "green"), str(file)))
        console.print("edit it, then `pinot-assets tables validate` and `pinot-assets tables apply`")

    add_import_command(app, open_store)

    @app.command("json-schema")
    def json_schema() -> None:
        """Print the JSON Schema for editors. Exits 0."""
        sys.stdout.write(editor_schema())

    return app


def show_failures(fates: Iterable[ApplyOutcome], left_out: Iterable[LeftOut]) -> None:
    """On standard error: each table that is not applied, and why."""
    err = Terminal(stderr=True, soft_wrap=True, highlight=False)
    for fate in fates:
        if fate.error is not None:
            err.print(f"[red]not applied[/]: {escape(f'{fate.table}: {fate.error}')}")
    for one in left_out:
        err.print(f"[red]not applied[/]: left out: {escape(one.in_one_line)}")


def _show_findings(console: Console, problems: Iterable[Problem], notes: Iterable[Note]) -> None:
    for problem in problems:
        line = Text.assemble((f"{problem.file}:{problem.line}: ", "bold"), ("problem ", "bold red"))
        line.append(f"{problem.key}: " if problem.key else "", "cyan").append(f"{problem.reason}.")
        if problem.fix:
            line.append(f"\n    → {problem.fix}", "green")
        console.print(line)
    for note in notes:
        line = Text.assemble((f"{note.file}:{note.line}: ", "bold"), ("note ", "yellow"))
        console.print(line.append(f"{note.key}: ", "cyan").append(f"{note.text}."))


def _show_specs(console: Console, specs: Iterable[AnyTableSpec]) -> None:
    for spec in specs:
        text = Text.assemble(("ok ", "bold green"), (spec.name, "bold"))
        console.print(text.append(f" ({spec.path}): {kind_of(spec)}"))


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
                    Text(_shown(difference.found), style="red"),
                    Text(_shown(difference.wanted), style="green"),
                )
            console.print(grid)
    for sentence in plan.lasting:
        console.print(Text.assemble(("cannot be taken back: ", "bold yellow"), sentence))


def _shown(value: object) -> str:
    return "–" if value is None else canonical_json(value)
