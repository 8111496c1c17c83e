"""`pinot-assets init`, `tables init` and `tables import`: write table specs.

They write a spec from a sample of files, an example to start from, or a spec from a Pinot config or job spec.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.text import Text

from pinot_assets.authoring.importing.block import Secrets, block_of, imported_spec
from pinot_assets.authoring.importing.relative_path import with_absolute_path
from pinot_assets.authoring.importing.settings_found import (
    Disposition,
    ImportNote,
    each_once,
    in_job,
    in_table,
    table_and_schema,
)
from pinot_assets.authoring.starter import BROKERS, TableType, keep_out_of_git, local_staging, starting_spec
from pinot_assets.cli.commands.tables import DEFAULT_FOLDER, SpecsOption, app, findings_values, open_pinot
from pinot_assets.cli.options import AsJson, TablesOption
from pinot_assets.cli.program import error_values
from pinot_assets.cli.terminal import command_line, show_answer
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.core.untrusted import read_json, typed
from pinot_assets.errors import PinotAssetsError, SourceError, SpecError, TypedWrong
from pinot_assets.ingest.contract.sql_extra import INSTALL_SQL, lacks_pandas
from pinot_assets.pinot.query_text import needs_quotes
from pinot_assets.settings.environment import tables_directory
from pinot_assets.source.settings import is_reference, referenced
from pinot_assets.table_spec import AnyTableSpec, Note, Problem, TableSpec
from pinot_assets.table_spec.blocks.pinot_json import NAMES, raw_table_name, usable_name
from pinot_assets.table_spec.tables.editor_schema import editor_schema
from pinot_assets.table_spec.tables.load import check_files, load_table, write_new_spec
from pinot_assets.table_spec.yaml.document import parse_document, read_spec_bytes
from pinot_assets.table_spec.yaml.policy_file import policy_of
from pinot_assets.table_spec.yaml.values import is_secret_key, is_secret_value, variable_for

if TYPE_CHECKING:
    from pinot_assets.authoring.infer.draft import Draft

_COLOURS = {
    Disposition.CARRIED: "green",
    Disposition.CHANGED: "yellow",
    Disposition.DROPPED: "magenta",
    Disposition.ADDED: "cyan",
    Disposition.TO_DO: "red",
}

# --- from a sample of files -----------------------------------------------------------------------


def init(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES",
            help="Some of the table's files, or their folder: a path, s3://…, gs://…, abfss://…",
        ),
    ],
    name: Annotated[
        str,
        typer.Option(
            "--name",
            metavar="TABLE",
            help="Name of the table (default: the name of the folder, or of the file).",
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The file to write (default: <tables>/<name>.yaml)."),
    ] = None,
    tables: TablesOption = None,
    props: Annotated[
        list[str] | None,
        typer.Option(
            "--prop",
            metavar="KEY=VALUE",
            help="How to reach a bucket: region=eu-west-1, secretKey='${TABLE_SECRET_KEY}'.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the spec of a table for FILES: columns, types, time column and keys, as a sample shows them.

    Looks at the first rows of a few of the files (csv, json, parquet, avro, orc; compressed or not).
    Comments in the spec show what was seen and what is guessed. A file that exists is not changed, and
    neither is any other table; nothing is changed in Pinot. Exits 1 when the files cannot be read.
    """
    from pinot_assets.authoring.infer.draft import (  # imports Arrow's readers: few commands need them
        draft,
        trouble,
    )
    from pinot_assets.authoring.infer.sample import find_sample

    settings = _settings(props or ())
    table = _usable(name) if name else _name_of(files[0])
    target = out or (tables or tables_directory()) / f"{table}.yaml"
    if target.exists():
        raise SpecError(f"{target} exists already", hint="give --name or --out, or edit that file")
    sample = find_sample(files, settings, Path.cwd(), policy_of(target.parent))
    made = draft(table, sample, settings, target)
    spec = _written(target, made.text)
    if spec.staging_uri() == (staging := local_staging(table, target)).as_uri():
        keep_out_of_git(staging)
    doubts = {**made.doubts, **made.unlike, **trouble(spec, sample, settings)}
    if spec.ingestion.transforms and lacks_pandas():
        doubts["transforms"] = f"they need {INSTALL_SQL}: pandas is missing on this machine"
    if needs_quotes(table):
        doubts["the name"] = _in_quotes(table)
    lines = _draft_lines(table, target, made, doubts)
    show_answer(as_json, _draft_values(table, target, made, doubts), lines)


def _settings(options: Sequence[str]) -> dict[str, str]:
    """Return the settings of the options `--prop`, by name.

    :raises TypedWrong: an option is not name=value.
    :raises SourceError: a value is a secret itself and not a reference to the environment.
    """
    settings = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise TypedWrong(f"--prop {name} is not understood", hint="write name=value")
        if not is_reference(value) and (is_secret_key(name) or is_secret_value(value)):
            hint = f"set it in the environment, and write --prop '{name}=${{{variable_for(name)}}}'"
            raise SourceError(f"--prop {name} holds a literal secret", hint=hint)
        settings[name] = value
    return settings


def _usable(name: str) -> str:
    if not usable_name(name):
        raise SpecError(f"{name!r} cannot be the name of a table", hint=NAMES)
    return name


def _in_quotes(table: str) -> str:
    return f'queries have to quote it: SELECT * FROM "{table}"; another name needs no quotes'


def _name_of(place: str) -> str:
    """Return a table name derived from the place of the files.

    :raises SpecError: the place gives no usable name.
    """
    name = place.rstrip("/").rpartition("/")[2] if "://" in place else Path(place).resolve().name
    letters = unicodedata.normalize("NFKD", name.split(".")[0])  # ü becomes u and its dots
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    table = re.sub(r"[^A-Za-z0-9_-]+", "_", plain).strip("_-")
    if not usable_name(table):
        raise SpecError(f"{place} gives the table no name that it can have", hint="give --name")
    return table


def _written(target: Path, text: str) -> TableSpec:
    """Write the spec to its file and load it.

    :raises SpecError: it cannot be written, or cannot be loaded; then the file is deleted again.
    """
    _write(target, text, "name another file with --out")
    try:
        return load_table(target)
    except SpecError as error:
        target.unlink(missing_ok=True)
        raise SpecError(
            "these files give no table spec that works, so none is written",
            why=error.what,
            hint="do what each problem says after its arrow, leave such columns out of the files, or "
            "write the spec by hand: docs/tables.md",
        ) from error


def _write(target: Path, text: str, way_out: str) -> None:
    """:raises SpecError: the file cannot be written, exists, or would make another table unusable."""
    try:
        write_new_spec(target, text)
    except OSError as error:
        if isinstance(error, FileExistsError) and target.exists():  # else a file is in the place of a folder
            raise SpecError(f"{target} exists already", hint="give --out, or edit that file") from None
        raise SpecError(f"{target} cannot be written", why=error.strerror, hint=way_out) from error


def _draft_values(table: str, target: Path, made: Draft, doubts: Mapping[str, str]) -> JsonObject:
    return {
        "table": table,
        "file": str(target),
        "sampled": made.sampled,
        "inputFormat": made.input_format,
        "columns": [
            {
                "name": field.name,
                "role": field.role.value,
                "dataType": field.data_type,
                "multiValue": field.multi,
                "format": field.format or None,
                "seen": field.summary,
                "why": field.why or None,
            }
            for field in made.proposal.fields
        ],
        "timeColumn": made.proposal.time or None,
        "keyCandidates": list(made.proposal.keys),
        "leftOut": dict(made.proposal.left_out),
        "doubts": dict(doubts),
    }


def _draft_lines(table: str, target: Path, made: Draft, doubts: Mapping[str, str]) -> Iterator[str | Text]:
    yield f"looked at {escape(made.sampled)}: {made.input_format}"
    for field in made.proposal.fields:
        role = field.role.value.lower().replace("_", "-")
        role += ", several a row" if field.multi else ""
        yield f"  [bold]{escape(field.name)}[/]: {field.data_type}, {role}  [dim]{escape(field.summary)}[/]"
    for column, why in made.proposal.left_out.items():
        yield f"  [yellow]left out[/] {escape(column)}: {escape(why)}"
    yield f"time column: {escape(made.proposal.time or 'none found')}"
    yield f"may be keys: {escape(', '.join(made.proposal.keys) or 'none found')}"
    yield from (f"[yellow]check[/] {escape(file)}: {escape(why)}" for file, why in doubts.items())
    yield f"[green]wrote[/] {escape(str(target))}"
    folder = target.parent
    # The next commands need this option to find a spec outside the default directory.
    option = "" if folder.resolve() == tables_directory() else f" --tables {shlex.quote(str(folder))}"
    yield "read it through, then make the table and fill it:"
    yield command_line(f"pinot-assets tables apply {table}{option}")
    yield command_line(f"pinot-assets run {table}{option}")


# --- an example to start from ---------------------------------------------------------------------


@app.command("init")
def init_to_start_from(
    name: Annotated[str, typer.Argument(help="Of the new table.", metavar="TABLE")],
    table_type: Annotated[
        TableType,
        typer.Option(
            metavar="TYPE",
            help="Where its rows come from: OFFLINE of files, REALTIME of a stream.",
            case_sensitive=False,
        ),
    ] = TableType.OFFLINE,
    brokers: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Kafka of a REALTIME table, host:port.")
    ] = BROKERS,
    tables: SpecsOption = DEFAULT_FOLDER,
    as_json: AsJson = False,
) -> None:
    """Write a table spec to start from, with comments, as TABLE.yaml; changes nothing in Pinot.

    The table has one text column, and a REALTIME table also a time column, until you edit the file. A file
    that exists is not changed. Exits 0; 1 when the file exists, or would make another table unusable.
    """
    file = tables / f"{_usable(name)}.yaml"
    if file.exists():
        raise SpecError(f"{file} exists already", hint="give another name, or edit that file")
    staging = local_staging(name, file)
    beside = os.path.relpath(staging, file.parent.absolute())
    write_new_spec(file, starting_spec(table_type, name, brokers, beside))
    if table_type is TableType.OFFLINE:
        keep_out_of_git(staging)
    lines = (
        Text.assemble(("wrote ", "green"), str(file)),
        *([f"[yellow]check[/] the name: {escape(_in_quotes(name))}"] if needs_quotes(name) else ()),
        "edit it, then check it and make the table:",
        command_line("pinot-assets tables validate"),
        command_line("pinot-assets tables apply"),
    )
    show_answer(as_json, {"table": name, "file": file}, lines)


# --- from a table config, or from an ingestion job ------------------------------------------------


@app.command("import")
def import_(
    configs: Annotated[
        list[Path] | None,
        typer.Argument(
            help="JSON of the table config, of {OFFLINE: …}, or of TableConfigs; several are several tables.",
            metavar="CONFIG",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", metavar="FILE", help="JSON of the schema, if it is not beside it."),
    ] = None,
    from_controller: Annotated[
        list[str] | None,
        typer.Option(
            "--from-controller",
            help="Ask Pinot for this table's config and schema; may be given several times.",
            metavar="TABLE",
        ),
    ] = None,
    job_spec: Annotated[
        Path | None,
        typer.Option(
            "--job-spec",
            metavar="FILE",
            help="YAML of the LaunchDataIngestionJob from which the ingestion is imported.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The file to write (default: <tables>/<table>.yaml)."),
    ] = None,
    tables: Annotated[
        Path | None, typer.Option("--tables", metavar="FOLDER", help="Directory of the table specs.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a table spec from a table config with FileIngestionTask or SegmentGenerationAndPushTask.

    Shows for each key whether it was kept, changed, dropped or added, and why. Secrets are never written:
    the spec refers to the environment instead. A file that exists is not changed, and neither is any other
    table; Pinot is only read. Of several tables, one that cannot be imported stops no other: it is named
    with its reason. Exits 0; 1 when a table was not imported, or a spec that was written still has problems,
    which are shown.
    """
    sources: list[Path | str] = [*(configs or ()), *(from_controller or ())]
    if not sources or (configs and from_controller):
        raise SpecError(
            "it is not clear which table config to import", hint="name its file, or --from-controller TABLE"
        )
    folder = tables or tables_directory()
    if len(sources) == 1:
        imported = _import_one(sources[0], schema, job_spec, out, folder)
        show_answer(as_json, _import_values(imported), _import_lines(imported))
        raise typer.Exit(ExitCode.ERROR if imported.problems else ExitCode.DONE)
    if schema or job_spec or out:
        raise SpecError(
            "--schema, --job-spec and --out belong to one table, and several are named",
            hint="import the tables that need them on their own",
        )
    each = [_tried(source, folder) for source in sources]
    lines = chain.from_iterable(map(_lines_of_many, each))
    show_answer(as_json, [*map(_values_of_many, each)], lines)
    is_done = all(isinstance(one, _Imported) and not one.problems for one in each)
    raise typer.Exit(ExitCode.DONE if is_done else ExitCode.ERROR)


@dataclass(frozen=True, slots=True)
class _Imported:
    """A spec that was written.

    :ivar kind: from which ingestion.
    :ivar variables: the environment variables to set.
    :ivar specs: with `problems` and `notes`, what a check of the file finds.
    """

    target: Path
    kind: str
    key_notes: list[ImportNote]
    variables: Sequence[str]
    specs: Sequence[AnyTableSpec]
    problems: Sequence[Problem]
    notes: Sequence[Note]


@dataclass(frozen=True, slots=True)
class _NotImported:
    """One of several tables that could not be imported."""

    source: Path | str
    error: PinotAssetsError


def _tried(source: Path | str, folder: Path) -> _Imported | _NotImported:
    try:
        return _import_one(source, None, None, None, folder)
    except PinotAssetsError as error:
        return _NotImported(source, error)


def _import_values(one: _Imported) -> JsonObject:
    keys = [{"fate": line.fate, "key": line.key, "why": line.why} for line in one.key_notes]
    found = findings_values(one.specs, one.problems, one.notes)
    return {"file": one.target, "from": one.kind, "keys": keys, **found}


def _values_of_many(one: _Imported | _NotImported) -> JsonObject:
    if isinstance(one, _NotImported):
        return {"config": str(one.source), **error_values(one.error)}
    return _import_values(one)


def _lines_of_many(one: _Imported | _NotImported) -> Iterator[str]:
    if isinstance(one, _Imported):
        yield from _import_lines(one)
    else:
        yield f"[red]not imported[/] {escape(f'{one.source}: {one.error}')}"


def _import_one(
    source: Path | str, schema: Path | None, job_spec: Path | None, out: Path | None, folder: Path
) -> _Imported:
    """Import one table.

    :param source: the file of its config, or the name under which Pinot has it.
    """
    key_notes: list[ImportNote] = []
    document, held = _read(source, schema, key_notes)
    if job_spec is None:
        imported = in_table(document, key_notes)
    else:
        imported = in_job(_yaml(job_spec), document, key_notes)
        imported = with_absolute_path(imported, job_spec, Path.cwd(), key_notes)
    secrets = Secrets(key_notes, referenced(json.dumps([imported.settings, imported.table, held])))
    block = block_of(imported, key_notes, secrets)
    table = typed(secrets.taken_out(imported.table, "table"), dict)
    name = _usable(raw_table_name(str(table.get("tableName"))))
    target = out or folder / f"{name}.yaml"
    held = typed(secrets.taken_out(held, "schema"), dict)
    key_notes = each_once(key_notes)
    _write(target, imported_spec(f"{imported.kind} of {name}", held, table, block, key_notes), "give --out")
    return _Imported(target, imported.kind, key_notes, secrets.variables, *check_files([target]))


def _read(
    source: Path | str, schema: Path | None, key_notes: list[ImportNote]
) -> tuple[JsonObject, JsonObject]:
    """Return table config and schema.

    :raises SpecError: one of them is missing, or cannot be read.
    """
    if isinstance(source, Path):
        document, held = table_and_schema(_json(source), key_notes)
    else:
        table = raw_table_name(source)
        with open_pinot() as pinot:
            taken, held = pinot.get_table_config(table), pinot.get_schema(table)
        if taken is None:
            raise SpecError(f"Pinot has no OFFLINE table {table}")
        document = taken
    found = held if schema is None else _json(schema)
    if not isinstance(found, dict):
        raise SpecError("there is no schema", hint="name its file with --schema")
    return document, found


def _json(file: Path) -> JsonValue:
    try:
        return read_json(_text(file))
    except ValueError as error:
        raise SpecError(f"{file} cannot be read as JSON", why=str(error)) from None


def _yaml(file: Path) -> JsonValue:
    # The spec loader's reader, because PyYAML's errors quote the line, which may contain a password.
    document, problems = parse_document(_text(file), file, "name the job spec that the ingestion job reads")
    if document is None or problems:
        raise SpecError(f"{file} cannot be read as YAML", why="; ".join(map(str, problems)))
    return document.value


def _text(file: Path) -> str:
    try:
        return read_spec_bytes(file).decode()
    except OSError as error:
        raise SpecError(f"{file} cannot be read", why=error.strerror) from None
    except UnicodeDecodeError:
        raise SpecError(f"{file} cannot be read", why="it is not UTF-8 text") from None


def _import_lines(one: _Imported) -> Iterator[str]:
    for line in one.key_notes:
        why = f": {escape(line.why)}" if line.why else ""
        yield f"[{_COLOURS[line.fate]}]{line.fate:<8}[/] {escape(line.key)}{why}"
    yield f"[green]wrote[/] {escape(str(one.target))}"
    if one.variables:
        yield (
            f"[yellow]set[/] {', '.join(one.variables)} in the environment, here and where Spark's executors "
            "run"
        )
    yield from (f"[red]problem[/] {escape(str(problem))}" for problem in one.problems)
    if not one.problems:
        yield (
            "read it through, then `pinot-assets tables apply --dry-run` shows what it would change in Pinot"
        )


@app.command("json-schema")
def json_schema() -> None:
    """Print the JSON Schema for editors.

    Exits 0.
    """
    sys.stdout.write(editor_schema())
