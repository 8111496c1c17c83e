"""All that users hold on to, in sections of plain names."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import dagster as dg
from fakes.monitoring.catalogue import FAMILIES
from fakes.project import ROOT
from typer.main import get_command

import pinot_assets
from pinot_assets import components
from pinot_assets.cli.main import app
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.health import CHECKS
from pinot_assets.realtime.health.all_checks import CHECKS as OF_STREAMS
from pinot_assets.realtime.lease import OperationsStore
from pinot_assets.realtime.preflight.judge import RULES, RULES_OF_CHANGE
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.stored_snapshots import mark_of
from pinot_assets.settings.variables import VARIABLES
from pinot_assets.table_spec.tables.editor_schema import editor_schema
from surface.compare import together
from surface.dagster_names import dagster_names
from surface.json_keys import text_of
from surface.json_output import dagster_metadata, json_output, notices
from tools.docs import error_codes
from tools.docs.cli_page import commands
from tools.docs.formats_page import FormatLine

SNAPSHOT = ROOT / "tests" / "public_surface.json"
RELEASED = Path(__file__).parent / "released"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
Surface = dict[str, list[str]]


def written() -> Surface:
    """The committed list."""
    return _read(SNAPSHOT)


def released() -> dict[str, Surface]:
    """The list of each release, which is never written again."""
    return {path.stem: _read(path) for path in sorted(RELEASED.glob("*.json"))}


def now() -> Surface:
    """What the code has. An import or a target that was ever listed counts as long as it is there."""
    known = together(written() if SNAPSHOT.exists() else {}, *released().values())
    return together(surface(known))


def _read(path: Path) -> Surface:
    found: Surface = json.loads(path.read_text(encoding="utf-8"))
    return found


def surface(known: Mapping[str, Iterable[str]]) -> Surface:
    """What the code has now, section by section, sorted.

    :param known: what was listed already: an import or a target stays one when no page names it any more.
    """
    sections = {
        "imports": imports(known.get("imports", ())),
        "components": component_fields(),
        "dagster": dagster_names(),
        "dagster metadata": dagster_metadata(),
        "webhook": notices(),
        "metrics": (f"{family.name}{{{','.join(family.labels)}}}" for family in FAMILIES),
        "variables": (variable.name for group in VARIABLES.values() for variable in group),
        "commands": command_words(),
        "json": json_output(),
        "exit codes": (f"{code.value} {code.name}" for code in ExitCode),
        "errors": error_codes.CLASSES,
        "codes of files": error_codes.CODES,
        "codes of refused features": (feature.code for feature in FormatLine if feature.code),
        "checks of the gate": gate_checks(),
        "health checks": (check.name for check in (*CHECKS, *OF_STREAMS)),
        "preflight rules": (rule.name for rule in (*RULES, *RULES_OF_CHANGE)),
        "keys of a table spec": spec_keys(),
        "make": make_targets(known.get("make", ())),
        "stored": stored(),
    }
    return {section: sorted(set(names)) for section, names in sections.items()}


def imports(known: Iterable[str]) -> Iterator[str]:
    """What pages import or name of the package, and what `pinot_assets` offers, with its parameters."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = {*re.findall(r"\bpinot_assets(?:\.[A-Za-z_]\w*)+", text), *(k for k in known if "(" not in k)}
    imported = r"^\s*from (pinot_assets[\w.]*) import \(?([\w\s,]+)"
    for module, names in re.findall(imported, text, re.MULTILINE):
        taken = (name.split()[0] for name in names.split(",") if name.strip())
        named |= {f"{module}.{name}" for name in taken}
    yield from (name for name in named if _is_there(name))
    for name in pinot_assets.__all__:
        yield f"pinot_assets.{name}"
        for parameter in inspect.signature(getattr(pinot_assets, name)).parameters:
            yield f"pinot_assets.{name}({parameter})"


def _is_there(name: str) -> bool:
    parent, _, last = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(parent), last) or bool(importlib.import_module(name))
    except ImportError:
        return False


def component_fields() -> Iterator[str]:
    """Components, what a `defs.yaml` says of them, and what the scaffolder may be told."""
    for name, kind in vars(components).items():
        if (
            isinstance(kind, type)
            and kind.__module__ == components.__name__
            and hasattr(kind, "model_fields")
        ):
            place = f"{components.__name__}.{name}"
            yield place if issubclass(kind, dg.Component) else f"{place} (scaffolding)"
            yield from (f"{place}.{field}" for field in kind.model_fields)


def command_words() -> Iterator[str]:
    """Each command, and behind it each of its arguments and options."""
    for path, command in commands(get_command(app)):
        name = " ".join(path)
        yield name
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                yield f"{name} {parameter.metavar or parameter.name.upper()}"
            else:
                yield from (f"{name} {word}" for word in (*parameter.opts, *parameter.secondary_opts))


def gate_checks() -> Iterator[str]:
    """Names of the gate's checks; `*` is a part that the table spec says."""
    folder = Path(pinot_assets.__file__).parent
    for path in (*sorted((folder / "audit").glob("*.py")), folder / "session" / "commit" / "gate.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or ast.unparse(call.func) not in ("Finding", "finding_of"):
                continue
            if isinstance(call.args[0], ast.Constant | ast.JoinedStr):
                yield text_of(call.args[0])


def spec_keys() -> Iterator[str]:
    """Keys of a table spec as editors know them; `block.key = word` where only some words are taken."""
    schema = json.loads(editor_schema())
    for name, part in schema["properties"].items():
        yield name
        if name not in ("schema", "table"):  # Pinot's own
            yield from _keys_in(part, name, schema)


def _keys_in(part: JsonObject, place: str, schema: JsonMapping) -> Iterator[str]:
    if "$ref" in part:
        referred: Any = schema
        for step in part["$ref"].removeprefix("#/").split("/"):
            referred = referred[step]
        yield from _keys_in(referred, place, schema)
    for key, inner in {**part.get("properties", {}), **part.get("patternProperties", {})}.items():
        yield f"{place}.{key}"
        yield from _keys_in(inner, f"{place}.{key}", schema)
    for inner in (
        *part.get("anyOf", ()),
        *part.get("oneOf", ()),
        *([part["items"]] if "items" in part else ()),
    ):
        yield from _keys_in(inner, place, schema)
    words = (*part.get("enum", ()), *([part["const"]] if "const" in part else ()))
    yield from (f"{place} = {word}" for word in words)


def make_targets(known: Iterable[str]) -> Iterator[str]:
    """Targets that the README names."""
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"(?:^make |`make |`)([a-z-]+)", readme, re.MULTILINE)
    yield from there & {*named, *known}


OBJECT = re.compile(r"(sessions|snapshots|segments|files|bad-rows|owners)/\S+")


def stored() -> Iterator[str]:
    """Nodes of ZooKeeper, and names of objects below a table's folder of the staging area."""
    path = SessionStore(cast(Any, None), "<cluster>", "<table>_OFFLINE").path
    yield from (path, f"{path}/lease", f"{path}/cp<n>")
    path = OperationsStore(cast(Any, None), "<cluster>", "<table>_REALTIME").path
    yield from (path, f"{path}/lease")
    yield f"owners/{mark_of('*')}".removeprefix("owners/")
    folder = Path(pinot_assets.__file__).parent
    stores = ("staging", "staged_files", "staged_receipts")
    for name in (*(f"session/stores/{store}.py" for store in stores), "ingest/contract/task_outputs.py"):
        tree = ast.parse((folder / name).read_text(encoding="utf-8"))
        put = [call for call in ast.walk(tree) if isinstance(call, ast.Call) and _is_put(call)]
        yield from (f"{text_of(call.args[0])}-*.{text_of(call.args[1])}" for call in put)
        stems = {id(call.args[0]) for call in put}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr) and id(node) not in stems and OBJECT.fullmatch(text_of(node)):
                yield text_of(node)


def _is_put(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "_put"
