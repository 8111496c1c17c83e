"""`pinot-assets tables import`: a table spec from a Pinot table config, or from an ingestion job's spec."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from pinot_assets.authoring.importing.block import Secrets, block_of, spec_text
from pinot_assets.authoring.importing.notes import Disposition, ImportNote, each_once
from pinot_assets.authoring.importing.settings_found import in_job, in_table, table_and_schema
from pinot_assets.cli.options import AsJson, new_console, show_json
from pinot_assets.cli.tables_rendering import findings_values
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.untrusted import read_json
from pinot_assets.errors import SpecError
from pinot_assets.pinot.api import PinotClient
from pinot_assets.settings.environment import tables_directory
from pinot_assets.source.settings import referenced
from pinot_assets.table_spec.blocks.pinot_json import NAMES, raw_table_name, usable_name
from pinot_assets.table_spec.tables.load import check_files, write_new_spec
from pinot_assets.table_spec.yaml.document import parse_document, read_spec_bytes

OpenStore = Callable[[], AbstractContextManager[PinotClient]]
_COLOURS = {
    Disposition.CARRIED: "green",
    Disposition.CHANGED: "yellow",
    Disposition.DROPPED: "magenta",
    Disposition.ADDED: "cyan",
    Disposition.TO_DO: "red",
}

Config = Annotated[
    Path | None,
    typer.Argument(help="JSON of the table config, of {OFFLINE: …}, or of TableConfigs.", metavar="CONFIG"),
]
Schema = Annotated[Path | None, typer.Option("--schema", help="JSON of the schema, if it is not beside it.")]
FromController = Annotated[
    str,
    typer.Option("--from-controller", help="Ask Pinot for this table's config and schema.", metavar="TABLE"),
]
JobSpec = Annotated[
    Path | None, typer.Option("--job-spec", help="YAML of LaunchDataIngestionJob: what is taken over.")
]
Out = Annotated[
    Path | None, typer.Option("--out", help="The file to write (default: <tables>/<table>.yaml).")
]


def add_import_command(app: typer.Typer, open_store: OpenStore) -> None:
    """Add the command to the group `tables`.

    :param open_store: how to reach Pinot.
    """

    @app.command("import")
    def import_(
        config: Config = None,
        schema: Schema = None,
        from_controller: FromController = "",
        job_spec: JobSpec = None,
        out: Out = None,
        tables: Annotated[Path | None, typer.Option("--tables", help="Directory of the table specs.")] = None,
        as_json: AsJson = False,
    ) -> None:
        """Write a table spec from a table config with FileIngestionTask or SegmentGenerationAndPushTask.

        Tells of each key whether it was carried, changed, dropped or added, and why. Secrets are never
        written: references to the environment stand in their place. A file that is there is left alone,
        and so is every other table; Pinot is only read. Exits 0; 1 when the spec that was written still has
        problems, which are told.
        """
        told: list[ImportNote] = []
        document, held = _read(config, schema, from_controller, open_store, told)
        found = in_job(_yaml(job_spec), document, told) if job_spec else in_table(document, told)
        secrets = Secrets(told, referenced(json.dumps([found.settings, found.table, held])))
        block = block_of(found, told, secrets)
        table = secrets.taken_out(found.table, "table")
        name = raw_table_name(str(table.get("tableName")))
        if not usable_name(name):
            raise SpecError(f"{name!r} is not a usable table name", hint=NAMES)
        target = out or (tables or tables_directory()) / f"{name}.yaml"
        held = secrets.taken_out(held, "schema")
        told = each_once(told)
        text = spec_text(f"{found.kind} of {name}", held, table, block, told)
        _write(target, text)
        specs, problems, notes = check_files([target])
        if as_json:
            lines = [{"fate": line.fate, "key": line.key, "why": line.why} for line in told]
            show_json(
                {"file": target, "from": found.kind, "keys": lines, **findings_values(specs, problems, notes)}
            )
        else:
            _show(target, told, secrets.variables, [str(problem) for problem in problems])
        raise typer.Exit(ExitCode.ERROR if problems else ExitCode.DONE)


def _read(
    config: Path | None,
    schema: Path | None,
    from_controller: str,
    open_store: OpenStore,
    told: list[ImportNote],
) -> tuple[JsonObject, JsonObject]:
    """Table config and schema.

    :raises SpecError: one is missing, or cannot be read.
    """
    if (config is None) is not bool(from_controller):
        raise SpecError("which table config?", hint="name its file, or --from-controller TABLE")
    if config is not None:
        document, held = table_and_schema(_json(config), told)
    else:
        document, held = _held(raw_table_name(from_controller), open_store)
    held = held if schema is None else _json(schema)
    if not isinstance(held, dict):
        raise SpecError("there is no schema", hint="name its file with --schema")
    return document, held


def _held(name: str, open_store: OpenStore) -> tuple[JsonObject, JsonObject | None]:
    with open_store() as pinot:
        config, schema = pinot.get_table_config(name), pinot.get_schema(name)
    if config is None:
        raise SpecError(f"Pinot has no OFFLINE table {name}")
    return config, schema


def _json(file: Path) -> Any:
    try:
        return read_json(_text(file))
    except ValueError as error:
        raise SpecError(f"{file} is no JSON that can be read", why=str(error)) from None


def _yaml(file: Path) -> Any:
    # The spec loader's reader, not PyYAML's own: its errors quote the line, which may hold a password.
    document, problems = parse_document(_text(file), file, "name the job spec that the ingestion job takes")
    if document is None or problems:
        raise SpecError(f"{file} cannot be read as YAML", why="; ".join(map(str, problems)))
    return document.value


def _text(file: Path) -> str:
    try:
        return read_spec_bytes(file).decode()
    except OSError as error:
        raise SpecError(f"{file} cannot be read", why=error.strerror) from None
    except UnicodeDecodeError:
        raise SpecError(f"{file} cannot be read", why="it is no UTF-8 text") from None


def _write(target: Path, text: str) -> None:
    """:raises SpecError: it cannot be written, is there, or would take another table with it."""
    try:
        write_new_spec(target, text)
    except FileExistsError:
        raise SpecError(f"{target} is there already", hint="give --out, or edit that file") from None
    except OSError as error:
        raise SpecError(f"{target} cannot be written", why=error.strerror, hint="give --out") from error


def _show(target: Path, told: list[ImportNote], variables: Sequence[str], problems: list[str]) -> None:
    out = new_console()
    for line in told:
        why = f": {escape(line.why)}" if line.why else ""
        out.print(f"[{_COLOURS[line.fate]}]{line.fate:<8}[/] {escape(line.key)}{why}")
    out.print(f"[green]wrote[/] {escape(str(target))}")
    if variables:
        out.print(
            f"[yellow]set[/] {', '.join(variables)} in the environment, here and where Spark's executors run"
        )
    for problem in problems:
        out.print(f"[red]problem[/] {escape(problem)}")
    if not problems:
        out.print(
            "look through it, then `pinot-assets tables apply --dry-run` shows what it would change in Pinot"
        )
