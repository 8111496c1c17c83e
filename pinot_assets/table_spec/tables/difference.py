"""Find where Pinot's stored schema and table config differ from a spec.

Pinot does not store exactly what it is given: it fills in defaults, drops values that equal a default,
rewrites deprecated keys and turns some numbers into texts. Each version does this differently. So only three
things count: what the spec says and Pinot lacks or holds differently; columns that only Pinot has; and
settings that only Pinot has and that shape segments or queries. What a newer Pinot adds by itself is no
difference.

Source: Schema, FieldSpec and TableConfig of pinot-spi, 0.11.0 and 1.5.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pinot_assets.core.json_object import JsonMapping, JsonObject, JsonValue
from pinot_assets.pinot.table_config import setting
from pinot_assets.table_spec.blocks.pinot_json import FIELD_KINDS, raw_table_name, without_file_ingestion
from pinot_assets.table_spec.blocks.realtime import FORMER_STREAM, STREAMS, TABLE_PATHS
from pinot_assets.table_spec.yaml.document import canonical_json
from pinot_assets.table_spec.yaml.values import has_reference, is_secret_key

_HIDDEN: Final = "(hidden)"
_ELEMENT_KEYS: Final = ("name", "columnName")
"""A list of objects that all have one of these keys is compared by that key, in any order."""

_ANY_CASE: Final = frozenset(
    (
        *("tableType", "dataType", "fieldType", "segmentIngestionType", "segmentIngestionFrequency"),
        *("loadMode", "timeType", "retentionTimeUnit", "encodingType", "indexType", "compressionCodec"),
    )
)
"""Enumerations that some versions of Pinot write in upper case: their case is ignored."""

_WATCHED: Final = {
    "tableIndexConfig": re.compile(r".*Columns|sortedColumn|starTreeIndexConfigs|segmentPartitionConfig"),
    "ingestionConfig": re.compile(r"transformConfigs|filterConfig|complexTypeConfig|aggregationConfigs"),
    "segmentsConfig": re.compile(r"timeColumnName|retentionTime(?:Unit|Value)"),
}
"""Settings that only a user makes: it is a difference if Pinot alone has one."""

_WATCHED_REALTIME: Final = {TABLE_PATHS["disasterRecoveryMode"]: "DEFAULT"} | {
    TABLE_PATHS[key]: None for key in ("peerSegmentDownloadScheme", "pauselessConsumptionEnabled")
}
"""Such settings of REALTIME tables, each with the value that Pinot writes by itself, which does not count."""

_OF_BUILDER: Final = frozenset(
    f"table.ingestionConfig.{key}"
    for key in ("continueOnError", "rowTimeValueCheck", "segmentTimeValueCheck")
)
"""Settings that only the builder of segments reads, which is pinot-assets for an OFFLINE table. Pinot before
0.12 does not know them and leaves them out."""

_FIELD_DEFAULTS: Final = {
    "singleValueField": True,
    "notNull": False,
    "allowTrailingZeros": False,
    "maxLength": 512,
}
"""Defaults of a field spec; Pinot leaves these keys out."""

_METRIC_NULLS: Final = {"INT": 0, "LONG": 0, "FLOAT": 0, "DOUBLE": 0, "BIG_DECIMAL": 0, "BYTES": ""}
_DIMENSION_NULLS: Final = {
    "INT": -(2**31),
    "LONG": -(2**63),
    "FLOAT": "-Infinity",
    "DOUBLE": "-Infinity",
    "BIG_DECIMAL": 0,
    "BOOLEAN": False,
    "TIMESTAMP": 0,
    "STRING": "null",
    "JSON": "null",
    "BYTES": "",
}


@dataclass(frozen=True, slots=True)
class SpecDifference:
    """One place where Pinot does not hold what the spec says.

    :ivar path: dotted path, beginning with `schema` or `table`.
    :ivar in_spec: the spec's value, None where it has none.
    :ivar in_pinot: Pinot's value, None if it has none.
    """

    path: str
    in_spec: JsonValue
    in_pinot: JsonValue

    def __str__(self) -> str:
        shown = ["nothing" if v is None else canonical_json(v) for v in (self.in_spec, self.in_pinot)]
        return f"{self.path}: wanted {shown[0]}, found {shown[1]}"


def diff_json(in_spec: JsonValue, in_pinot: JsonValue, path: str = "") -> list[SpecDifference]:
    """Return where `in_pinot` lacks or contradicts `in_spec`; extra keys of `in_pinot` do not count.

    These count as equal: numbers, booleans and their texts (`1`, `"1"`); an empty value, false, null and a
    missing value; a reference to the environment and any value that Pinot has there.

    :param path: path of both values, used in the result.
    """
    return list(_differences(in_spec, in_pinot, path))


def diff_schema(in_spec: JsonMapping, in_pinot: JsonMapping) -> list[SpecDifference]:
    """Compare two Pinot schemas by column; columns that only `in_pinot` has are differences."""
    ours, theirs = _columns(in_spec), _columns(in_pinot)
    result = diff_json({k: v for k, v in in_spec.items() if k not in FIELD_KINDS}, in_pinot, "schema")
    for name in sorted({*ours, *(name for name in theirs if not name.startswith("$"))}):
        path = f"schema.columns.{name}"
        if name in ours and name in theirs:
            result += diff_json(_field(*ours[name]), _field(*theirs[name]), path)
        else:
            result.append(SpecDifference(path, ours.get(name, (None,))[0], theirs.get(name, (None,))[0]))
    return result


def diff_table(in_spec: JsonMapping, in_pinot: JsonMapping) -> list[SpecDifference]:
    """Compare two Pinot table configs; the module docstring says what counts."""
    ours, theirs = _modern(in_spec), _modern(in_pinot)
    found = diff_json(ours, theirs, "table")
    if str(ours.get("tableType")).upper() == "OFFLINE":
        found = [one for one in found if one.in_pinot is not None or one.path not in _OF_BUILDER]
    return [*found, *_surplus_settings(ours, theirs)]


def _differences(in_spec: JsonValue, in_pinot: JsonValue, path: str) -> Iterator[SpecDifference]:
    if isinstance(in_spec, Mapping) and isinstance(in_pinot, Mapping | None):
        for name, value in in_spec.items():
            yield from _differences(value, (in_pinot or {}).get(name), f"{path}.{name}" if path else name)
    elif (ours := _by_name(in_spec)) is not None and (theirs := _by_name(in_pinot)) is not None:
        yield from _differences(ours, theirs, path)
        for name in theirs.keys() - ours.keys():
            yield SpecDifference(f"{path}.{name}", None, theirs[name])
    elif isinstance(in_spec, list) and isinstance(in_pinot, list) and len(in_spec) == len(in_pinot):
        for position, (one, other) in enumerate(zip(in_spec, in_pinot, strict=True)):
            yield from _differences(one, other, f"{path}[{position}]")
    elif not _same(in_spec, in_pinot, _key_of(path)):
        yield SpecDifference(path, _without_secrets(in_spec, path), _without_secrets(in_pinot, path))


def _without_secrets(value: JsonValue, path: str) -> JsonValue:
    """Hide secrets: Pinot's API shows table configs with the variables of its own environment filled in."""
    if isinstance(value, Mapping):
        return {name: _without_secrets(inner, f"{path}.{name}") for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_secrets(inner, f"{path}[{place}]") for place, inner in enumerate(value)]
    return _HIDDEN if value is not None and is_secret_key(_key_of(path)) else value


def _key_of(path: str) -> str:
    """The last step of a path; for a stream setting, whose name has dots, the whole name."""
    return path.rpartition("]." if ".streamConfigMaps[" in path else ".")[2]


def _same(in_spec: JsonValue, in_pinot: JsonValue, key: str) -> bool:
    if _is_nothing(in_spec) and _is_nothing(in_pinot):
        return True
    if isinstance(in_spec, str) and has_reference(in_spec):
        return in_pinot is not None  # Pinot's API shows table configs with its own environment filled in
    if isinstance(in_spec, dict | list) or isinstance(in_pinot, dict | list) or in_pinot is None:
        return bool(in_spec == in_pinot)
    one, other = _text(in_spec), _text(in_pinot)
    return one == other or (key in _ANY_CASE and one.lower() == other.lower())


def _is_nothing(value: JsonValue) -> bool:
    return value is None or value is False or value == "" or value == [] or value == {}


def _text(value: JsonValue) -> str:
    """The same text for `1`, `1.0` and `"1"`, and for `true` and `"true"`."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if re.fullmatch(r"[-+]?[0-9]+(\.0*)?", text):
        return str(int(text.split(".")[0]))
    is_number = re.fullmatch(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", text)
    return repr(float(text)) if is_number else text


def _by_name(value: JsonValue) -> JsonObject | None:
    """A list of objects as a mapping by their names; None for any other value, or if a name is missing."""
    if not isinstance(value, list) or not value:
        return None
    for key in _ELEMENT_KEYS:
        names = [element.get(key) if isinstance(element, Mapping) else None for element in value]
        if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return {str(name): element for name, element in zip(names, value, strict=True)}
    return None


# --- schemas -------------------------------------------------------------------------------------


def _columns(schema: JsonMapping) -> dict[str, tuple[JsonMapping, str]]:
    """Field specs and their kinds by column."""
    return {
        spec["name"]: (spec, kind) for group, kind in FIELD_KINDS.items() for spec in schema.get(group) or ()
    }


def _field(spec: JsonMapping, kind: str) -> JsonObject:
    """A field spec with its defaults written out."""
    data_type = str(spec.get("dataType")).upper()
    nulls = _METRIC_NULLS if kind == "METRIC" else _DIMENSION_NULLS
    null = spec.get("defaultNullValue")
    null = nulls.get(data_type) if null is None else null
    field = {**_FIELD_DEFAULTS, **spec, "fieldType": kind}
    if data_type == "TIMESTAMP":
        field.pop("format", None)  # 1.5 always writes TIMESTAMP, 0.11 keeps what was written
        null = null if null is None else _epoch_ms(str(null))
    elif data_type == "BOOLEAN":
        null = str(null).lower() in ("true", "1")
    elif null is not None:
        null = _text(null)
    return {**field, "defaultNullValue": null}


def _epoch_ms(text: str) -> str:
    """Milliseconds of a timestamp, read as UTC; the text itself if it is no timestamp.

    The controller prints in its own time zone; if that is not UTC, the spec has to use the same zone.
    """
    if re.fullmatch(r"-?[0-9]+", text):
        return str(int(text))
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return text
    return str((moment.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(milliseconds=1))


# --- table configs -------------------------------------------------------------------------------


def _modern(config: JsonMapping) -> JsonObject:
    """The table config with its raw name, without StarTree's task, and with old push settings moved."""
    table = without_file_ingestion(dict(config))
    table["tableName"] = raw_table_name(str(table.get("tableName")))
    segments = dict(table.get("segmentsConfig") or {})
    segments.pop("schemaName", None)  # the table's own name: `pinot_json` checks that in the spec
    batch = dict((table.get("ingestionConfig") or {}).get("batchIngestionConfig") or {})
    for what in ("Type", "Frequency"):
        if (legacy := segments.pop(f"segmentPush{what}", None)) is not None:
            batch.setdefault(f"segmentIngestion{what}", legacy)
    table["segmentsConfig"] = segments
    if batch:
        table["ingestionConfig"] = {**(table.get("ingestionConfig") or {}), "batchIngestionConfig": batch}
    return _with_one_place_for_streams(table)


def _with_one_place_for_streams(table: JsonObject) -> JsonObject:
    section, key = FORMER_STREAM
    index = dict(table.get(section) or {})
    if not (stream := index.pop(key, None)):
        return table
    outer, inner, streams = STREAMS
    ingestion = dict(table.get(outer) or {})
    ingestion[inner] = {**(ingestion.get(inner) or {}), streams: [stream]}
    return {**table, section: index, outer: ingestion}


def _surplus_settings(ours: JsonMapping, theirs: JsonMapping) -> Iterator[SpecDifference]:
    for section, watched in _WATCHED.items():
        said = ours.get(section) or {}
        for key, value in (theirs.get(section) or {}).items():
            if watched.fullmatch(key) and _is_nothing(said.get(key)) and not _is_nothing(value):
                yield SpecDifference(f"table.{section}.{key}", None, value)
    for path, usual in _WATCHED_REALTIME.items() if theirs.get("tableType") == "REALTIME" else ():
        value = setting(theirs, *path)
        if _is_nothing(setting(ours, *path)) and not _is_nothing(value) and value != usual:
            yield SpecDifference(".".join(("table", *path)), None, value)
    if not ours.get("fieldConfigList") and theirs.get("fieldConfigList"):
        yield SpecDifference("table.fieldConfigList", None, theirs["fieldConfigList"])
