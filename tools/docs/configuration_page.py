"""Generate docs/reference/configuration.md from the models and from the list of variables.

`python -m tools.docs.configuration_page > docs/reference/configuration.md` writes the page; a test compares
the page with it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import Final, get_args

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from pinot_assets.core.json_object import JsonObject
from pinot_assets.settings.cluster_fields import Variable
from pinot_assets.settings.variables import VARIABLES
from pinot_assets.table_spec.blocks.audit import CHECK_KINDS, Assertion, Replicas
from pinot_assets.table_spec.blocks.dagster import DagsterSettings
from pinot_assets.table_spec.blocks.ingestion import FAMILIES, UNUSED_KEYS, FileIngestion
from pinot_assets.table_spec.blocks.layout import LayoutSettings
from pinot_assets.table_spec.blocks.realtime import RealtimeBlock
from pinot_assets.table_spec.tables.editor_schema import described_schema
from pinot_assets.table_spec.yaml.values import Size

_UNITS: Final = {"Sec": "seconds", "Seconds": "seconds", "Hours": "hours", "Days": "days"}
"""The unit of a number, by a word in its key."""
KINDS: Final = {
    "_flag": "`true` or `false`",
    "_whole": "whole number",
    "_referring": "text",
    "_pattern": "`glob:…` or `regex:…`",
    "_size": "size: `500m`, `1g`",
    "_period": "period: `6h`, `1d12h`",
    "_bad_row_limit": "number, or `…%`",
    "_server": "version",
    "_quartz": "Quartz cron",
    "_timezone": "IANA time zone",
    "_file_name": "file name",
    "_partition_group": "`directory`, `regex:…`, `hash:…`",
}
"""The type of value that a reader of `pinot_assets/table_spec/yaml/values.py` accepts, by its name."""
_WORDS: Final = {"object": "mapping", "array": "list", "number": "number", "string": "text"}


def spec_reference() -> str:
    """Return the reference of all blocks of a table spec, one section of Markdown each."""
    audit = [_table(kind) for kind in (Assertion, *CHECK_KINDS, Replicas)]
    unused = "\n".join(f"| `{key}` | {why} |" for key, why in UNUSED_KEYS.items())
    return "\n\n".join(
        (
            f"### fileIngestion\n\n{_table(FileIngestion)}",
            "Accepted without effect, because StarTree's blocks have them:\n\n"
            f"| key | why |\n|---|---|\n{unused}",
            f"### realtime\n\n{_table(RealtimeBlock)}",
            "### audit\n\nA list; each item is of one of these kinds.\n\n" + "\n\n".join(audit),
            f"### layout\n\n{_table(LayoutSettings)}",
            f"### dagster\n\n{_table(DagsterSettings)}",
        )
    )


def _table(model: type[BaseModel]) -> str:
    schema = described_schema(model)
    lines = [schema["description"].partition("\n\n")[0], "", *HEAD]
    for name, field in model.model_fields.items():
        key = field.alias or name
        said = schema["properties"][key]
        shown, kind = (f"{key}.*", "text") if key in FAMILIES else (key, _kind(field, said))
        meaning = cell(said["description"])
        lines.append(f"| `{shown}` | {kind} | {_unit(key, field)} | {_default(field)} | {meaning} |")
    return "\n".join(lines)


HEAD: Final = ("| name | type | unit | default | meaning |", "|---|---|---|---|---|")
"""Header of every table in the reference."""


def cell(text: str) -> str:
    """Escape a text, so that Markdown shows it unchanged and in one cell."""
    return re.sub(r"[*|]", r"\\\g<0>", text).replace("<", "&lt;")


def _kind(field: FieldInfo, said: JsonObject) -> str:
    for validator in _validators(field):
        if validator.__name__ in KINDS:
            return KINDS[validator.__name__]
    shapes = [said, *said.get("anyOf", ())]
    words = dict.fromkeys(str(word) for shape in shapes for word in shape.get("enum", ()))
    if words:
        exact = [word for word in words if not {word.lower(), word.upper()} & (words.keys() - {word})]
        return ", ".join(f"`{word}`" for word in exact or _as_written(field))
    if any("const" in shape for shape in shapes):
        return f"`{said['const']}`"
    types = [shape["type"] for shape in shapes if "type" in shape]
    first = types[0] if isinstance(types[0], str) else types[0][0]
    return _WORDS[first]


def _as_written(field: FieldInfo) -> Iterator[str]:
    """Yield the words of each `Literal` in the annotation, at any depth."""
    waiting = [field.annotation]
    while waiting:
        inner = get_args(waiting.pop(0))
        yield from (word for word in inner if isinstance(word, str))
        waiting += [part for part in inner if not isinstance(part, str)]


def _validators(field: FieldInfo) -> Iterator[Callable[..., object]]:
    waiting: list[object] = [*field.metadata, field.annotation]
    while waiting:
        part = waiting.pop(0)
        if isinstance(part, BeforeValidator):
            yield part.func
        waiting += [*get_args(part), *getattr(part, "__metadata__", ())]


def _unit(key: str, field: FieldInfo) -> str:
    size = {v.func for v in get_args(Size) if isinstance(v, BeforeValidator)}
    if size & set(_validators(field)):
        return "bytes; k, m, g, t are powers of 1024"
    return next((_UNITS[word] for word in re.findall(r"[A-Z][a-z]+", key) if word in _UNITS), "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ("", {}, ()):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


_TOP: Final = """\
<!-- python -m tools.docs.configuration_page > docs/reference/configuration.md -->
# Configuration reference

Every setting with its type, unit, default and meaning, generated from the code that reads it. [Table
specs](../tables.md) and [deploying](../deploy.md) explain how they work together.

## Table specs

One YAML file is one table: `schema` (or `schemaFile`) and `table` (or `tableFile`) are Pinot's own JSON, and
pinot-assets defines the blocks below. `pinot-assets tables json-schema` prints the same for editors, which
then complete keys.
"""

_ENVIRONMENT: Final = """\
## Environment

Variables are read where they are used, and never stored; the UI, logs and errors show no secret. A table
spec's settings of its own stores (`input.fs.prop.*`, `output.fs.prop.*`) have priority over all variables.
Besides them, each cloud's own chain of credentials is used: AWS' (`AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_PROFILE`, a role), Google's
(`GOOGLE_APPLICATION_CREDENTIALS`, …), Azure's (`AZURE_STORAGE_ACCOUNT_KEY`, …),
on each machine, executors included. A spec refers to your own variables as `${NAME}`: only those that
begin with `TABLE_`, unless [the policy](../security.md#what-a-table-spec-may-reach) allows others.
"""


def configuration_page() -> str:
    """Return the whole page, ending in a newline."""
    sections = [_TOP, spec_reference() + "\n", _ENVIRONMENT]
    sections += [f"### {title}\n\n{_variables(variables)}\n" for title, variables in VARIABLES.items()]
    return "\n".join(sections)


def _variables(variables: tuple[Variable, ...]) -> str:
    rows = [f"| `{v.name}` | {v.kind} | {v.unit} | {v.default or '–'} | {v.meaning} |" for v in variables]
    return "\n".join((*HEAD, *rows))


if __name__ == "__main__":
    sys.stdout.write(configuration_page())
