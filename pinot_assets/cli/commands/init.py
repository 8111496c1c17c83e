"""`pinot-assets init`: a table spec from a sample of its files."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.options import AsJson, TablesOption, new_console
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SourceError, SpecError, TypedWrong
from pinot_assets.settings.environment import tables_directory
from pinot_assets.source.settings import is_reference
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.blocks.pinot_json import NAMES, usable_name
from pinot_assets.table_spec.tables.load import load_table, write_new_spec
from pinot_assets.table_spec.yaml.policy_file import policy_of
from pinot_assets.table_spec.yaml.values import is_secret_key, is_secret_value, variable_for

if TYPE_CHECKING:
    from pinot_assets.authoring.infer.draft import Draft

Places = Annotated[
    list[str],
    typer.Argument(help="Some of the table's files, or their folder: a path, s3://…, gs://…, abfss://…"),
]
Name = Annotated[
    str, typer.Option("--name", help="Of the table; else it is called as the folder, or the file.")
]
Out = Annotated[Path | None, typer.Option("--out", help="The file to write (default: <tables>/<name>.yaml).")]
Props = Annotated[
    list[str] | None,
    typer.Option("--prop", help="How to reach a bucket: region=eu-west-1, secretKey='${TABLE_SECRET_KEY}'."),
]


def add_init_command(app: typer.Typer) -> None:
    """Add the command to the program."""

    @app.command()
    def init(
        files: Places,
        name: Name = "",
        out: Out = None,
        tables: TablesOption = None,
        props: Props = None,
        as_json: AsJson = False,
    ) -> None:
        """Write the spec of a table for FILES: columns, types, time column and keys, as a sample shows them.

        Looks at the first rows of a few of the files (csv, json, parquet, avro, orc; packed or not). Comments
        in the spec tell what was seen and what is guessed. A file that is there is left alone, and so is
        every other table; nothing is changed in Pinot. Exits 1 when the files cannot be read.
        """
        from pinot_assets.authoring.infer.draft import (  # Arrow's readers, which few commands need
            draft,
            trouble,
        )
        from pinot_assets.authoring.infer.sample import find_sample

        settings = _settings(props or ())
        table = _usable(name) if name else _name_of(files[0])
        target = out or (tables or tables_directory()) / f"{table}.yaml"
        if target.exists():
            raise SpecError(f"{target} is there already", hint="give --name or --out, or edit that file")
        sample = find_sample(files, settings, Path.cwd(), policy_of(target.parent))
        made = draft(table, sample, settings, target)
        spec = _written(target, made.text)
        doubts = {**made.doubts, **made.unlike, **trouble(spec, sample, settings)}
        if as_json:
            typer.echo(json.dumps(_values(table, target, made, doubts), indent=2))
        else:
            _show(table, target, made, doubts)


def _settings(options: Sequence[str]) -> dict[str, str]:
    """Settings by their names.

    :raises TypedWrong: one is not name=value.
    :raises SourceError: one is a secret that does not lie in the environment.
    """
    found = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise TypedWrong(f"--prop {name} is not understood", hint="write name=value")
        if not is_reference(value) and (is_secret_key(name) or is_secret_value(value)):
            hint = f"put it into the environment, and write --prop '{name}=${{{variable_for(name)}}}'"
            raise SourceError(f"--prop {name} holds a literal secret", hint=hint)
        found[name] = value
    return found


def _usable(name: str) -> str:
    if not usable_name(name):
        raise SpecError(f"{name!r} is not a usable table name", hint=NAMES)
    return name


def _name_of(place: str) -> str:
    """What a table of these files could be called.

    :raises SpecError: nothing usable is left of the name.
    """
    name = place.rstrip("/").rpartition("/")[2] if "://" in place else Path(place).resolve().name
    found = re.sub(r"[^A-Za-z0-9_-]+", "_", name.split(".")[0]).strip("_-")
    if not usable_name(found):
        raise SpecError(f"{place} gives the table no usable name", hint="give --name")
    return found


def _written(target: Path, text: str) -> TableSpec:
    """The spec, in its file.

    :raises SpecError: it cannot be written, or could not be loaded: then there is no file.
    """
    _write(target, text)
    try:
        return load_table(target)
    except SpecError as error:
        target.unlink(missing_ok=True)
        raise SpecError(
            "no usable table spec could be made of these files, and none is written",
            why=error.what,
            hint="do what stands behind the arrow, leave such columns out of the files, or write the spec by "
            "hand: docs/tables.md",
        ) from error


def _write(target: Path, text: str) -> None:
    """:raises SpecError: it cannot be written, or would take another table with it."""
    try:
        write_new_spec(target, text)
    except OSError as error:
        raise SpecError(
            f"{target} cannot be written", why=error.strerror, hint="name another place with --out"
        ) from error


def _values(table: str, target: Path, made: Draft, doubts: Mapping[str, str]) -> JsonObject:
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
                "seen": field.seen,
                "why": field.why or None,
            }
            for field in made.proposal.fields
        ],
        "timeColumn": made.proposal.time or None,
        "keyCandidates": list(made.proposal.keys),
        "leftOut": dict(made.proposal.left_out),
        "doubts": dict(doubts),
    }


def _show(table: str, target: Path, made: Draft, doubts: Mapping[str, str]) -> None:
    out = new_console()
    out.print(f"looked at {escape(made.sampled)}: {made.input_format}")
    for field in made.proposal.fields:
        role = field.role.value.lower().replace("_", "-")
        many = ", several a row" if field.multi else ""
        out.print(
            f"  [bold]{escape(field.name)}[/]: {field.data_type}, {role}{many}  [dim]{escape(field.seen)}[/]"
        )
    for column, why in made.proposal.left_out.items():
        out.print(f"  [yellow]left out[/] {escape(column)}: {escape(why)}")
    out.print(f"time column: {escape(made.proposal.time or 'none found')}")
    out.print(f"may be keys: {escape(', '.join(made.proposal.keys) or 'none found')}")
    for file, why in doubts.items():
        out.print(f"[yellow]look at[/] {escape(file)}: {escape(why)}")
    out.print(f"[green]wrote[/] {escape(str(target))}")
    found = escape(table + _tables_option(target))
    out.print(
        f"look through it, then `pinot-assets tables apply {found}` makes the table, "
        f"and `pinot-assets run {found}` fills it"
    )


def _tables_option(target: Path) -> str:
    """What the next commands need to find a spec that lies elsewhere."""
    folder = target.parent
    return "" if folder.resolve() == tables_directory() else f" --tables {shlex.quote(str(folder))}"
