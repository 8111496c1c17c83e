"""What the writer refuses in a schema and a table config, and why.

`tools.docs.formats_page` lists everything that may be asked for, refused or not, for docs/guides/formats.md.
For every line of it, a unit test has a schema or table config and checks that the writer behaves as the line
says.

JSON of a schema or table config is read as Pinot's own classes read it. `check_shape` first checks the parts
that other code reads without checks; numbers are checked where they are used.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, TypeAlias

from pinot_assets.core.json_object import JsonMapping

_NEEDS_BUILDER = "NEEDS_JVM_BUILDER"


class Feature(Enum):
    """Something that a schema or table config may ask for, and the writer refuses.

    :ivar reason: why it is refused.
    :ivar code: the fixed name of the refusal.
    """

    def __init__(self, reason: str, code: str) -> None:
        self.reason = reason
        self.code = code

    COLUMN_INVALID = ("Pinot has no such columns", "COLUMN_INVALID")
    DEFAULT_VALUE = (
        "Pinot would not accept it, or its meaning depends on the server's time zone",
        "DEFAULT_VALUE_INVALID",
    )
    TRAILING_ZEROS = ("equal numbers of different scale have no certain order", "BIG_DECIMAL_SCALE_AMBIGUOUS")
    NEEDS_BUILDER = ("only Pinot's own builder writes it", _NEEDS_BUILDER)
    OLD_FIELDS = ("pinot-assets does not write old forms", _NEEDS_BUILDER)
    COLUMN_NAME = ("servers would read something else", "COLUMN_NAME_UNSAFE")
    CODEC_UNREADABLE = ("Pinot 1.5.1 does not read back what it wrote", "CODEC_UNREADABLE_IN_1_5_1")
    ENCODING_INVALID = ("Pinot does not accept it", "ENCODING_INVALID")
    ENCODING_TOO_NEW = ("the oldest server that must read the segments cannot", "SERVER_TOO_OLD")
    INDEX_INVALID = ("Pinot does not accept it", "INDEX_INVALID")
    STAR_TREE_AT_BUILD = (
        "only Pinot's own builder writes it, unless enableDynamicStarTreeCreation leaves it to the server",
        "STAR_TREE_NEEDS_JVM",
    )
    INDEX_NEEDS_DICTIONARY = (
        "the server cannot build it and does not load the segment",
        "INDEX_NEEDS_DICTIONARY",
    )
    TIMESTAMP_INDEX_OF_NULLS = (
        "the server derives its columns without their nulls",
        "TIMESTAMP_INDEX_LOSES_NULLS",
    )
    SORTED_COLUMN_INVALID = ("Pinot does not accept it", "SORTED_COLUMN_INVALID")
    PARTITIONS_INVALID = (
        "no partition, or one that a server computes differently",
        "PARTITION_COLUMN_INVALID",
    )
    TIME_FORMAT_OTHER = ("they cannot be read exactly as Pinot reads them", "TIME_FORMAT_UNSUPPORTED")
    TIME_COLUMN = ("Pinot does not accept it", "TIME_COLUMN_INVALID")
    TRANSFORM_OTHER = (
        "nothing in Spark SQL is certain to do the same: write transforms and filter in fileIngestion",
        "TRANSFORM_NOT_TRANSLATED",
    )
    GROOVY = (
        "Spark SQL cannot do what a script does: write transforms and filter in fileIngestion",
        "GROOVY_REFUSED",
    )
    TRANSFORM_REFERENCE = (
        "Pinot and Spark would replace it by a variable of the environment, which must not become table data",
        "REFERENCE_REFUSED",
    )
    TRANSFORM_INVALID = ("Pinot does not accept it", "TRANSFORM_INVALID")
    INGESTION = ("it changes rows while they are read", "INGESTION_TRANSFORM_NEEDS_JVM")
    UPSERT = ("the segments of such a table are not files that can be replaced", "UPSERT_UNSUPPORTED")
    CONFIG_SHAPE = ("Pinot does not accept it", "CONFIG_INVALID")
    NULL_BACKFILL = (
        "a reload would make null of each value that equals the column's default",
        "NULL_BACKFILL_LOSES_VALUES",
    )
    OLD_SERVER = ("0.11 is the oldest server that was tested", "SERVER_TOO_OLD")


FIXES: Final = {
    Feature.STAR_TREE_AT_BUILD.code: "write enableDynamicStarTreeCreation: true in tableIndexConfig, so that "
    "the server builds the trees when it loads a segment",
    Feature.NULL_BACKFILL.code: 'write writeFor: "1.6" in fileIngestion, once every server has 1.6',
    Feature.TRANSFORM_OTHER.code: "write transforms and filter in fileIngestion",
    Feature.GROOVY.code: "write transforms and filter in fileIngestion",
}
"""What makes the table work without the refused feature, by the code of the refusal."""


NAME_OUTSIDE_ASCII: Final = "a name outside ASCII for a server before 1.5"
"""Why a column's name is refused that servers since 1.5 accept (`Target.any_column_name`)."""


def fix_of(reason: str) -> str | None:
    """Return what makes the table work without a refused feature; None if nothing is known.

    :param reason: of a refusal, with its code and why, as `Findings.refuse` makes it.
    """
    if NAME_OUTSIDE_ASCII in reason:
        # Other names with the same code are accepted by no release.
        return 'write writeFor: "1.5" in fileIngestion, once every server has 1.5, or rename the column'
    return next((fix for code, fix in FIXES.items() if f"({code}: " in reason), None)


class Findings:
    """What a schema and a table config ask for that is refused, or left to the server; for people.

    :ivar problems: what is refused.
    :ivar notes: what is accepted, but left to the server or not imitated.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.notes: list[str] = []

    def refuse(self, where: str, feature: Feature, what: str) -> None:
        """Note a problem: where something is asked for, and what."""
        self.problems.append(f"{where}: {what} ({feature.code}: {feature.reason})")


def is_true(value: object) -> bool:
    """Whether a JSON switch is on, as Jackson reads it: the text "true" counts, too."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


def number(value: object) -> float | None:
    """Return a number as Jackson reads a double, from text, too; None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        parsed = float(value)
    except (ValueError, OverflowError):
        return None
    return parsed if math.isfinite(parsed) else None


def java_int(value: object) -> int | None:
    """Return a number as Jackson reads an int, from digits in a text, too; None if it is not one."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,10}", value.strip()):
        value = int(value)
    if type(value) is not int or not -(2**31) <= value < 2**31:
        return None
    return value


Shape: TypeAlias = "str | dict[str, Shape] | list[Shape]"

_TEXT, _TEXTS, _COLUMNS = "a text", "a list of texts", "an object of objects"
_KINDS: Final[dict[str, Callable[[object], bool]]] = {
    _TEXT: lambda value: isinstance(value, str),
    _TEXTS: lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    _COLUMNS: lambda value: (
        isinstance(value, Mapping) and all(one is None or isinstance(one, Mapping) for one in value.values())
    ),
}
_FIELDS: Final[Shape] = [{"name": _TEXT, "dataType": _TEXT}]
_SCHEMA: Final[Shape] = {
    "dimensionFieldSpecs": _FIELDS,
    "metricFieldSpecs": _FIELDS,
    "dateTimeFieldSpecs": _FIELDS,
    "complexFieldSpecs": [{}],
}
_TABLE: Final[Shape] = {
    "segmentsConfig": {"timeColumnName": _TEXT},
    "metadata": {"customConfigs": {}},
    "ingestionConfig": {},
    "tableIndexConfig": {
        **dict.fromkeys(
            (
                "bloomFilterColumns",
                "invertedIndexColumns",
                "jsonIndexColumns",
                "noDictionaryColumns",
                "onHeapDictionaryColumns",
                "rangeIndexColumns",
                "sortedColumn",
                "varLengthDictionaryColumns",
            ),
            _TEXTS,
        ),
        "bloomFilterConfigs": _COLUMNS,
        "jsonIndexConfigs": _COLUMNS,
        "noDictionaryConfig": {},
        "segmentPartitionConfig": {"columnPartitionMap": _COLUMNS},
    },
    "fieldConfigList": [
        {"name": _TEXT, "indexType": _TEXT, "indexTypes": _TEXTS, "indexes": _COLUMNS, "properties": {}}
    ],
}


def check_shape(schema: JsonMapping, table_config: JsonMapping, findings: Findings) -> None:
    """Refuse a value of another kind than Pinot has there, and columns twice in `fieldConfigList`."""
    _check(schema, _SCHEMA, "", findings)
    _check(table_config, _TABLE, "", findings)
    if not findings.problems:
        names = Counter(entry.get("name") for entry in table_config.get("fieldConfigList") or [])
        for name in sorted(str(name) for name, count in names.items() if count > 1):
            findings.refuse(f"column {name}", Feature.CONFIG_SHAPE, "two entries in fieldConfigList")


def _check(value: object, shape: Shape, where: str, findings: Findings) -> None:
    if value is None:
        return
    if isinstance(shape, str):
        kind, fits = shape, _KINDS[shape](value)
    elif isinstance(shape, list):
        kind, fits = "a list", isinstance(value, list) and None not in value
        for one in value if isinstance(value, list) and fits else ():
            _check(one, shape[0], where, findings)
    else:
        kind, fits = "an object", isinstance(value, Mapping)
        if isinstance(value, Mapping):
            for key, inner in shape.items():
                _check(value.get(key), inner, f"{where}.{key}".removeprefix("."), findings)
    if not fits:
        findings.refuse(where or "the file", Feature.CONFIG_SHAPE, f"{value!r} is not {kind}")
