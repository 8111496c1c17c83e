"""Check the Pinot schema and table config of a spec; Pinot's own checks come in addition.

Only settings that this project relies on are checked, and mistakes that would otherwise show late. Whether
the segment writer can build what a spec asks for is checked when the spec is read, not in the first run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.pinot.table_config import setting
from pinot_assets.segment import SegmentSpec
from pinot_assets.segment.column.target import NEWEST, OLDEST
from pinot_assets.segment.column.unsupported import fix_of, is_true
from pinot_assets.table_spec.blocks.index_notes import tree_notes
from pinot_assets.table_spec.blocks.ingestion import TRANSFORMS
from pinot_assets.table_spec.blocks.key_notes import key_notes
from pinot_assets.table_spec.blocks.pinot_settings import TASKS, bearings
from pinot_assets.table_spec.blocks.realtime import FORMER_STREAM, STREAM_INGESTION, STREAMS
from pinot_assets.table_spec.yaml.document import DocumentNode, Note, Problem, did_you_mean
from pinot_assets.table_spec.yaml.values import AUTO

_BLANKS: Final = re.compile("[\t-\r\x1c-\x1f \u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]+")
"""Java's `Character.isWhitespace`, which leaves out non-breaking spaces such as U+00A0."""


def has_blank(name: str) -> bool:
    """Whether Pinot refuses a column name because of a blank."""
    return _BLANKS.search(name) is not None


def without_blanks(name: str) -> str:
    """Return the name with `_` in place of blanks, which Pinot accepts."""
    return _BLANKS.sub("_", name).strip("_") or "column"


FIELD_KINDS: Final = {
    "dimensionFieldSpecs": "DIMENSION",
    "metricFieldSpecs": "METRIC",
    "dateTimeFieldSpecs": "DATE_TIME",
    "complexFieldSpecs": "COMPLEX",
}
DATA_TYPES: Final = (
    *("INT", "LONG", "FLOAT", "DOUBLE", "BIG_DECIMAL", "BOOLEAN", "TIMESTAMP", "STRING", "JSON", "BYTES"),
    *("UUID", "MAP", "LIST", "STRUCT", "OPEN_STRUCT"),
)
"""All types of Pinot; the segment writer decides which of them it can write."""
OFFLINE_SUFFIX: Final = "_OFFLINE"
REALTIME_SUFFIX: Final = "_REALTIME"
FILE_INGESTION_TASK: Final = "FileIngestionTask"

_COLUMN_LIST: Final = re.compile(r"sortedColumn|.*Columns", re.DOTALL)
_NUMBERS: Final = (
    ("segmentsConfig", "replication"),
    ("segmentsConfig", "replicasPerPartition"),
    ("segmentsConfig", "retentionTimeValue"),
)
"""Pinot reads these as numbers, and takes texts for them."""
_WHOLE: Final = re.compile(r"[+-]?[0-9]+|")  # an empty text is none
NAMES: Final = "use letters, digits, _ and -, and not __cp, which marks the segments of pinot-assets"
"""Which names a table may have, as the fix of a problem."""


def raw_table_name(name: str) -> str:
    """`flights_OFFLINE`, `flights_REALTIME` → `flights`."""
    return name.removesuffix(OFFLINE_SUFFIX).removesuffix(REALTIME_SUFFIX)


def field_specs(schema: DocumentNode) -> Iterator[tuple[str, DocumentNode]]:
    """Yield every well-formed field spec of a schema with its kind (`DIMENSION`, …)."""
    for group, kind in FIELD_KINDS.items():
        for place in schema.items(group):
            if isinstance(setting(place.value, "name"), str):
                yield kind, place


def nullable_columns(schema: DocumentNode, table: DocumentNode) -> frozenset[str]:
    """Columns whose segments record which rows are null: all of them if the table has `nullHandlingEnabled`;
    if the schema has `enableColumnBasedNullHandling`, only those without `notNull`."""
    by_column = is_true(schema.mapping.get("enableColumnBasedNullHandling"))
    of_table = is_true(setting(table.value, "tableIndexConfig", "nullHandlingEnabled"))
    return frozenset(
        place.mapping["name"]
        for _, place in field_specs(schema)
        if (not is_true(place.mapping.get("notNull")) if by_column else of_table)
    )


def schema_problems(schema: DocumentNode) -> list[Problem]:
    """Return the problems of the schema itself."""
    if not isinstance(schema.value, dict):
        return [schema.problem("is not a mapping", "paste the Pinot schema as it is")]
    return [*_schema_shape(schema), *_fields(schema)]


def schema_notes(schema: DocumentNode) -> list[Note]:
    """Return notes about a schema, a mapping: columns whose names differ only in upper and lower case."""
    first: dict[str, str] = {}
    notes: list[Note] = []
    for _, place in field_specs(schema):
        name = place.mapping["name"]
        other = first.setdefault(name.lower(), name)
        if other != name:
            text = (
                f"column {name} differs from {other} only in upper and lower case, which Pinot's "
                "brokers do not distinguish (their setting enable.case.insensitive, on by "
                "default): queries find one of the two; give one of them another name"
            )
            notes.append(place.note(text))
    return notes


def table_problems(table: DocumentNode) -> list[Problem]:
    """Return the problems of the config of an OFFLINE table itself."""
    if not isinstance(table.value, dict):
        return [table.problem("is not a mapping", "paste the Pinot table config as it is")]
    settings = (table.at(*b.path).problem(b.text, b.fix) for b in bearings(table.value) if b.fix)
    return [*_table_name(table), *_is_offline(table), *_table_shape(table), *settings]


def realtime_table_problems(table: DocumentNode) -> list[Problem]:
    """Return the problems of the config of a REALTIME table itself."""
    if not isinstance(table.value, dict):
        return [table.problem("is not a mapping", "paste the Pinot table config as it is")]
    return [*_table_name(table), *_is_realtime(table), *_table_shape(table), *_stream_shape(table)]


def agreement_problems(schema: DocumentNode, table: DocumentNode) -> list[Problem]:
    """Return the problems where schema and table config, both mappings, do not fit together."""
    return [*_same_name(schema, table), *_columns_exist(schema, table)]


def table_notes(table: DocumentNode) -> list[Note]:
    """Return notes about settings of the table config that are accepted but worth knowing."""
    accepted = [table.at(*b.path).note(b.text) for b in bearings(table.mapping) if b.fix is None]
    return [*accepted, *key_notes(table), *tree_notes(table)]


def without_file_ingestion(table: JsonObject) -> JsonObject:
    """Return the table config without FileIngestionTask, which open-source Pinot does not know."""
    by_type = setting(table, *TASKS)
    if not isinstance(by_type, dict) or FILE_INGESTION_TASK not in by_type:
        return table
    task = table["task"]
    others = {k: v for k, v in by_type.items() if k != FILE_INGESTION_TASK}
    rest = {k: v for k, v in table.items() if k != "task"}
    if others or len(task) > 1:
        rest["task"] = {**task, "taskTypeConfigsMap": others}
    return rest


def _schema_shape(schema: DocumentNode) -> Iterator[Problem]:
    if not isinstance(schema.mapping.get("schemaName"), str):
        yield schema.problem("schemaName is missing", "write schemaName: <table name>")
    for group in FIELD_KINDS:
        specs = schema.mapping.get(group)
        if specs is not None and not isinstance(specs, list):
            yield schema.at(group).problem("is not a list")
    if "timeFieldSpec" in schema.mapping:
        reason = "is an old form that pinot-assets does not write, and Pinot after 1.5.1 refuses the schema"
        yield schema.at("timeFieldSpec").problem(reason, "write a dateTimeFieldSpecs entry")
    if not any(True for _ in field_specs(schema)):
        yield schema.problem("has no columns", "write dimensionFieldSpecs")


def _fields(schema: DocumentNode) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for group in FIELD_KINDS:
        for place in schema.items(group):
            name, line = setting(place.value, "name"), place.document.line(place.path)
            if not isinstance(name, str) or not name:
                yield place.problem("has no name", "write name: <column>")
                continue
            if name in first:
                yield place.problem(f"column {name} is there twice, first in line {first[name]}")
            first.setdefault(name, line)
            if has_blank(name):
                fix = (
                    f"name it {without_blanks(name)}; docs/tables.md, Names of columns, shows how it is read"
                )
                reason = f"column {name} has a blank in its name, and Pinot refuses the schema"
                yield place.problem(reason, fix)
            data_type, types = place.mapping.get("dataType"), f"one of {', '.join(DATA_TYPES)}"
            if not isinstance(data_type, str):
                yield place.problem(f"column {name} has no dataType", types)
            elif data_type not in DATA_TYPES:
                fix = did_you_mean(data_type, DATA_TYPES) or types
                yield place.at("dataType").problem(f"column {name} has an unknown type", fix)
            for key in ("format", "granularity") if group == "dateTimeFieldSpecs" else ():
                if not isinstance(place.mapping.get(key), str):
                    yield place.problem(f"column {name} has no {key}")


def usable_name(name: str) -> bool:
    """Whether a table may have this raw name.

    `__cp` marks our segments, a dot is Pinot's database separator, a comma joins lineage lists.
    """
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name) is not None and "__cp" not in name


def _table_name(table: DocumentNode) -> Iterator[Problem]:
    name = table.mapping.get("tableName")
    if not isinstance(name, str) or not name:
        yield table.problem("tableName is missing", "write tableName: <name>")
    elif not usable_name(raw_table_name(name)):
        yield table.at("tableName").problem("is not a usable table name", NAMES)


def _is_offline(table: DocumentNode) -> Iterator[Problem]:
    kind = str(table.mapping.get("tableType")).upper()
    if kind != "OFFLINE":
        reason = "tableType is not OFFLINE"
        if kind == "REALTIME":
            reason = "REALTIME tables cannot be pushed to consistently: consuming segments cannot be replaced"
        fix = "write tableType: OFFLINE, or realtime: in place of fileIngestion:"
        yield _type_place(table).problem(reason, fix)
    if str(table.mapping.get("isDimTable")).lower() == "true":
        reason = "dimension tables are not supported: servers load all their segments, lineage or not"
        yield table.at("isDimTable").problem(reason, "remove isDimTable")


def _is_realtime(table: DocumentNode) -> Iterator[Problem]:
    if str(table.mapping.get("tableType")).upper() != "REALTIME":
        fix = "write tableType: REALTIME, or fileIngestion: in place of realtime:"
        yield _type_place(table).problem("tableType is not REALTIME", fix)
    if not isinstance(setting(table.value, "segmentsConfig", "timeColumnName"), str):
        yield table.at("segmentsConfig").problem(
            "timeColumnName is missing, and Pinot needs it in a REALTIME table",
            "write timeColumnName: <column of dateTimeFieldSpecs>",
        )


def _type_place(table: DocumentNode) -> DocumentNode:
    return table.at("tableType") if "tableType" in table.mapping else table


def _table_shape(table: DocumentNode) -> Iterator[Problem]:
    for key in ("segmentsConfig", "tenants", "tableIndexConfig", "metadata"):
        if (value := table.mapping.get(key)) is None:
            yield table.problem(f"{key} is missing, and Pinot needs it", f"write {key}: {{}}")
        elif not isinstance(value, dict):
            yield table.at(key).problem("is not a mapping")
    for path in _NUMBERS:
        value = setting(table.value, *path)
        if value is not None and not _WHOLE.fullmatch(str(value)):
            yield table.at(*path).problem("is not a whole number", f"write {path[-1]} in digits only")
    index = setting(table.value, "tableIndexConfig")
    for key, value in index.items() if isinstance(index, dict) else ():
        if _COLUMN_LIST.fullmatch(key) and value is not None and not isinstance(value, list):
            place = table.at("tableIndexConfig", key)
            listed = value if isinstance(value, str) else "column, …"
            yield place.problem("is not a list of columns", f"write {key}: [{listed}]")


def _stream_shape(table: DocumentNode) -> Iterator[Problem]:
    for path in (STREAM_INGESTION[:1], STREAM_INGESTION, FORMER_STREAM):
        value = setting(table.value, *path)
        if value is not None and not isinstance(value, dict):
            yield table.at(*path).problem("is not a mapping")
    streams = setting(table.value, *STREAMS)
    if streams is not None and not (isinstance(streams, list) and all(isinstance(s, dict) for s in streams)):
        yield table.at(*STREAMS).problem("is not a list of mappings", "write - streamType: kafka, …")


def _same_name(schema: DocumentNode, table: DocumentNode) -> Iterator[Problem]:
    schema_name, table_name = schema.mapping.get("schemaName"), table.mapping.get("tableName")
    if not isinstance(schema_name, str) or not isinstance(table_name, str):
        return
    raw = raw_table_name(table_name)
    if schema_name != raw:
        reason = f"is not the table's name, {raw}, by which Pinot finds a schema"
        yield schema.at("schemaName").problem(reason, f"schemaName: {raw}")
    other = setting(table.value, "segmentsConfig", "schemaName")
    if isinstance(other, str) and other != raw:
        reason = f"is not the table's name, {raw}"
        yield table.at("segmentsConfig", "schemaName").problem(reason, "remove it")


def _columns_exist(schema: DocumentNode, table: DocumentNode) -> Iterator[Problem]:
    kinds = {place.mapping["name"]: kind for kind, place in field_specs(schema)}
    time = table.at("segmentsConfig", "timeColumnName")
    time_column = setting(table.value, "segmentsConfig", "timeColumnName")
    index = setting(table.value, "tableIndexConfig")
    lists = [key for key in (index if isinstance(index, dict) else ()) if _COLUMN_LIST.fullmatch(key)]
    named = [(time, time_column)]
    named += [(place, place.value) for key in lists for place in table.items("tableIndexConfig", key)]
    for field in table.items("fieldConfigList"):
        named.append((field.at("name"), setting(field.value, "name")))
    for place, name in named:
        if isinstance(name, str) and name not in kinds and not name.startswith("$"):
            yield place.problem(f"column {name} is not in the schema", did_you_mean(name, kinds))
    if isinstance(time_column, str) and kinds.get(time_column, "DATE_TIME") != "DATE_TIME":
        yield time.problem(f"column {time_column} is not in the schema's dateTimeFieldSpecs")


def transform_problems(block: DocumentNode, schema: DocumentNode, transforms: Iterable[str]) -> list[Problem]:
    """Return a problem for each column that `transforms` makes and the table does not have."""
    columns = [place.mapping["name"] for _, place in field_specs(schema)]
    return [
        block.at(f"{TRANSFORMS}.{name}").problem("makes no column of the schema", did_you_mean(name, columns))
        for name in transforms
        if name not in columns
    ]


def writer_findings(
    schema: DocumentNode, table: DocumentNode, write_for: str
) -> tuple[list[Problem], list[Note]]:
    """Return what the segment writer refuses, and what it leaves to the server, at the column's line.

    With `auto` it is not known here which servers will read the segments: what only newer ones can read is a
    note.

    :param schema: a schema without problems of its own.
    :param table: a table config without problems of its own.
    :param write_for: a release, or `auto`.
    """
    if write_for != AUTO:
        return _writer_findings(schema, table, write_for)
    problems, notes = _writer_findings(schema, table, NEWEST.release)
    of_old, notes_of_old = _writer_findings(schema, table, OLDEST.release)
    if not of_old:
        return problems, notes_of_old
    always = {problem.reason for problem in problems}
    only_old = [one for one in of_old if one.reason not in always]
    text = "a run refuses this if one of the table's servers is too old: "
    return problems, [*notes, *(Note(one.file, one.line, one.key, text + one.reason) for one in only_old)]


def _writer_findings(
    schema: DocumentNode, table: DocumentNode, write_for: str
) -> tuple[list[Problem], list[Note]]:
    places = {place.mapping["name"]: place for _, place in field_specs(schema)}

    def place_of(text: str) -> DocumentNode:
        column = re.match(r"column (.*?):", text)
        return places.get(column.group(1), table) if column else _setting_place(table, text)

    try:
        spec = SegmentSpec.from_pinot(schema.mapping, table.mapping, write_for=write_for)
    except UnsupportedFeature as refused:
        reasons = (refused.why or refused.what).split("; ")
        return [place_of(reason).problem(reason, _fix_of(reason)) for reason in reasons], []
    except (AttributeError, KeyError, TypeError, ValueError):
        # A setting does not have the shape of Pinot's own class; Pinot's message says best which one it is.
        reason = "has a setting whose form is not Pinot's"
        return [table.problem(reason, "compare it with a table config that Pinot has accepted")], []
    return [], [place_of(text).note(text) for text in spec.notes]


def _fix_of(reason: str) -> str:
    """Return what to do about a refusal."""
    first = fix_of(reason)
    return f"{first}, or remove it" if first else "the segment writer cannot do this yet; remove it"


def _setting_place(table: DocumentNode, text: str) -> DocumentNode:
    """Return the place of the function or setting that a reason is about, else the table config."""
    if text.startswith("ingestionConfig.filterConfig:"):
        return table.at("ingestionConfig", "filterConfig", "filterFunction")
    if (made := re.match(r"ingestionConfig\.transformConfigs: column (.*?):", text)) is not None:
        for number, entry in enumerate(table.mapping["ingestionConfig"]["transformConfigs"]):
            if entry.get("columnName") == made[1]:
                return table.at("ingestionConfig", "transformConfigs", number, "transformFunction")
    named = re.match(r"(tableIndexConfig|ingestionConfig)\.(\w+): ", text)
    if named is None or setting(table.value, named[1], named[2]) is None:
        return table
    return table.at(named[1], named[2])
