"""Propose a table for a sample's columns: types, roles, time, keys; each guess with its reason."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Final

from pinot_assets.authoring.infer.column import (
    FRACTIONS,
    INTEGERS,
    NUMBERS,
    PARTS,
    SampledColumn,
    ValueKind,
    together,
)
from pinot_assets.authoring.infer.csv_shape import pinot_names
from pinot_assets.core.text import plural
from pinot_assets.segment.column.target import OLDEST
from pinot_assets.segment.column.types import FieldType
from pinot_assets.segment.config.transforms import spark_name
from pinot_assets.segment.functions.time_format import VALID_FROM_MS, VALID_TO_MS
from pinot_assets.table_spec.blocks.pinot_json import schema_problems, writer_findings
from pinot_assets.table_spec.yaml.document import DocumentNode, parse_document

GROUPS: Final = {
    FieldType.DIMENSION: "dimensionFieldSpecs",
    FieldType.METRIC: "metricFieldSpecs",
    FieldType.DATE_TIME: "dateTimeFieldSpecs",
}
"""The keys of a schema that list its columns."""


_FAR: Final = "some values are before 1971 or after 2070"
_NO_TIME: Final = (
    f"{_FAR}, which Pinot does not accept as a table's time, so there is no timeColumnName: without "
    "one, neither retention nor pruning by time works. If you set it, set "
    "ingestionConfig.segmentTimeValueCheck to false"
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TIME_WORDS: Final = _words(
    """
    at created date datetime day event hour millis minute modified month ms published received sec second
    seconds sent time timestamp ts updated when
    """
)
_FIRST_TIMES: Final = ("event", "time", "timestamp", "ts", "datetime", "created", "at", "date", "day")
"""Of several times, the table's is the one whose name has the first of these words."""
_MEASURES: Final = _words(
    """
    amount bytes clicks cost count delay discount distance duration fare fee height impressions latency
    length measure num price qty quantity revenue score size sum tax tip total value views volume weight width
    """
)
_PLACES: Final = frozenset(("lat", "latitude", "lng", "lon", "long", "longitude"))
_IDS: Final = frozenset(("code", "id", "key", "no", "nr", "number", "uuid", "zip"))
_CODES: Final = _words("code fax gtin iban mobile phone plz postal postcode ssn telephone tel zip zipcode")
"""Words in names of columns whose digits are no numbers: a value with a leading zero may come later."""
_KEYS: Final = INTEGERS | {ValueKind.STRING}
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SPAN: Final = ((1000, "SECONDS"), (1, "MILLISECONDS"))
_GRAIN: Final = (("SSS", "MILLISECONDS"), ("s", "SECONDS"), ("m", "MINUTES"), ("H", "HOURS"))


@dataclass(frozen=True, slots=True)
class Field:
    """One column of the table.

    :ivar data_type: Pinot's data type.
    :ivar summary: what the sample shows about it, for people.
    :ivar why: the reason, if the column is a guess; else empty.
    :ivar format: of a date-time column, with `granularity`; else empty.
    :ivar transform: Spark SQL that makes it from the file's column; empty if the readers do that.
    :ivar source: the file's column, if that has another name; else empty.
    :ivar doubt: what people should check; empty if there is nothing.
    :ivar odd_value: the value that the doubt is about. It may be private, so the spec does not have it.
    :ivar is_far: whether it is a time that cannot be the table's: some of it is before 1971 or after 2070.
    """

    name: str
    role: FieldType
    data_type: str
    summary: str
    multi: bool = False
    why: str = ""
    format: str = ""
    granularity: str = ""
    transform: str = ""
    source: str = ""
    doubt: str = ""
    odd_value: str = ""
    is_far: bool = False

    @property
    def spec(self) -> dict[str, str | bool]:
        """The column as Pinot's schema has it, in one of `GROUPS`."""
        many: dict[str, str | bool] = {"singleValueField": False} if self.multi else {}
        times = {"format": self.format, "granularity": self.granularity} if self.format else {}
        return {"name": self.name, "dataType": self.data_type, **many, **times}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed table for the sample.

    :ivar fields: in the order of the files' columns.
    :ivar time: name of the primary time column; empty if there is none.
    :ivar keys: columns whose values are unique in the sample, except times.
    :ivar left_out: columns that a table of this project cannot have, and why.
    :ivar has_nulls: whether some values are missing.
    """

    fields: tuple[Field, ...]
    time: str
    keys: tuple[str, ...]
    left_out: Mapping[str, str]
    has_nulls: bool

    def of(self, role: FieldType) -> tuple[Field, ...]:
        """The columns of one role."""
        return tuple(field for field in self.fields if field.role is role)


def propose(columns: Mapping[str, SampledColumn]) -> Proposal:
    """Propose a table of these columns.

    :param columns: by name, in the order of the files.
    """
    called = pinot_names(columns)
    proposed = {name: _field(called[name], name, column) for name, column in columns.items()}
    left_out = {name: why for name, column in columns.items() if (why := _why_not(proposed[name], column))}
    fields = tuple(field for name, field in proposed.items() if name not in left_out)
    kept = {field.name: columns[name] for name, field in proposed.items() if name not in left_out}
    times = {field.name: field for field in fields if field.role is FieldType.DATE_TIME}
    in_every_row = {name: field for name, field in times.items() if not kept[name].nulls}
    # Of two with the same rank, the first one.
    time = min((name for name, field in in_every_row.items() if not field.is_far), key=_rank, default="")
    if not time:
        fields = tuple(replace(f, doubt=_NO_TIME) if f.name in in_every_row else f for f in fields)
    may_be_keys = (name for name, column in kept.items() if column.unique and column.kind in _KEYS)
    return Proposal(
        fields=fields,
        time=time,
        keys=tuple(name for name in may_be_keys if name not in times),
        left_out=left_out,
        has_nulls=any(column.nulls for column in kept.values()),
    )


def _why_not(field: Field, column: SampledColumn) -> str:
    """Return why a table cannot have the column, or the loader would refuse it; empty if it can."""
    if column.kind is ValueKind.UNKNOWN or (column.kind is ValueKind.DATE and column.multi):
        return "Pinot has no type for it"
    schema = {"schemaName": "t", GROUPS[field.role]: [field.spec]}
    table = {"tableName": "t", "tableType": "OFFLINE", "segmentsConfig": {}, "tableIndexConfig": {}}
    document, problems = parse_document(json.dumps({"schema": schema, "table": table}), Path("t.json"))
    if document is not None:
        part = DocumentNode(document, ("schema",))
        problems = [*problems, *schema_problems(part)]
        if not problems:
            problems = writer_findings(part, DocumentNode(document, ("table",)), _WRITE_FOR)[0]
    return "; ".join(problem.reason for problem in problems)


_WRITE_FOR: Final = OLDEST.release
"""A proposal fits every server."""


def _field(name: str, source: str, column: SampledColumn) -> Field:
    """:param source: name of the column in the files."""
    field = _told_far(_time(name, source, column), column) or _plain(name, column)
    if name == source:
        return field
    return replace(field, source=source, transform=field.transform or spark_name(source))


def _plain(name: str, column: SampledColumn) -> Field:
    kind, words, summary = column.kind, set(words_of(name)), described(column)
    role = FieldType.DIMENSION
    if kind is ValueKind.NOTHING:
        return Field(
            name, role, "STRING", summary, column.multi, "no file has a value, so the type is a guess"
        )
    if kind is ValueKind.NESTED:
        return Field(name, role, "JSON", summary, why="objects in the files")
    why = doubt = ""
    if kind in FRACTIONS and not column.multi and not words & (_PLACES | _IDS):
        role = FieldType.METRIC
    elif kind in INTEGERS and not column.multi and words & _MEASURES and not words & _IDS:
        role, why = FieldType.METRIC, "a metric, by its name"
    elif kind in INTEGERS and words & _CODES:
        doubt = "whole numbers so far; if these are codes, make it STRING: as a number 01234 is 1234"
    if column.multi:
        why = "several values in one row"
    if column.marked:
        marked = f"{plural(column.marked, 'cell')} of {column.rows:,} with {PARTS} between words"
        doubt = f"{marked}: " + ("read as several values" if column.multi else "read as one text")
    odd_value = ""
    if kind is ValueKind.STRING and (odd := _odd_ones(column)) is not None:
        doubt, odd_value = odd
    return Field(name, role, kind.value, summary, column.multi, why, doubt=doubt, odd_value=odd_value)


_FEW: Final = 3
_FEW_PERCENT: Final = 1
_ENOUGH: Final = 10
"""So many values of a kind, at least, make others odd ones."""


def _odd_ones(column: SampledColumn) -> tuple[str, str] | None:
    """Return why a column is STRING and the first value that made it so, if few values did; else None."""
    groups = Counter[str]()
    for kind, count in column.kinds.items():
        groups["NUMBER" if kind in NUMBERS else kind.value] += count
    if not groups:
        return None
    usual, most = groups.most_common(1)[0]
    every = groups.total()
    odd = every - most
    if usual == ValueKind.STRING or most < _ENOUGH or not 0 < odd <= max(_FEW, every * _FEW_PERCENT // 100):
        return None
    of_usual = [
        kind for kind in column.kinds if kind.value == usual or (usual == "NUMBER" and kind in NUMBERS)
    ]
    others = [example for kind, example in column.examples.items() if kind not in of_usual]
    first = min(others, key=lambda example: example.row)
    where = f"row {first.row:,}" + (f" of {first.file}" if first.file else "")
    return (
        f"STRING because of {plural(odd, 'value')} in {every:,}, first in {where}; "
        f"the others are {reduce(together, of_usual)}",
        first.text,
    )


def _time(name: str, source: str, column: SampledColumn) -> Field | None:
    """Return the column as a date-time one; None if it is none."""
    if column.multi:
        return None
    summary, words = described(column), set(words_of(name))
    is_named_so = bool(words & _TIME_WORDS) and not words & _IDS
    if column.kind is ValueKind.TIMESTAMP:
        return Field(
            name, FieldType.DATE_TIME, "TIMESTAMP", summary,
            why="times; UTC where no zone is named", format="TIMESTAMP", granularity="1:MILLISECONDS",
        )  # fmt: skip
    if column.kind is ValueKind.DATE:
        made = f"date_format({spark_name(source)}, 'yyyy-MM-dd')"
        return Field(
            name, FieldType.DATE_TIME, "STRING", summary, why=f"days, which transforms.{name} makes texts",
            format="1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd", granularity="1:DAYS", transform=made,
        )  # fmt: skip
    if column.patterns and column.kind is ValueKind.STRING:
        return _by_pattern(name, column, summary)
    if column.kind in INTEGERS and is_named_so:
        dated = _by_pattern(name, column, summary)
        # 1712010101 is seconds, but could be read as a time of day in the year 1712, too.
        return _epoch(name, column, summary) or dated if dated is None or _is_far(column) else dated
    return None


def _told_far(field: Field | None, column: SampledColumn) -> Field | None:
    """Mark a time column that Pinot would not accept as the table's time, and say why."""
    if field is None or "EPOCH" in field.format or not _is_far(column):
        return field  # numbers are only taken for times if they lie in the range
    return replace(field, is_far=True, why=f"{field.why}; {_FAR}, so it is not timeColumnName")


def _is_far(column: SampledColumn) -> bool:
    if column.earliest is None or column.latest is None:
        return False
    return column.earliest < VALID_FROM_MS or column.latest > VALID_TO_MS


def _by_pattern(name: str, column: SampledColumn, summary: str) -> Field | None:
    fitting = column.patterns or frozenset()
    if column.kind in INTEGERS:
        fitting = frozenset(pattern for pattern in fitting if len(pattern) >= len("yyyyMMdd"))
    # A year alone is a number, or the beginning of anything.
    fitting -= {"yyyy"}
    if not fitting:
        return None
    pattern = max(sorted(fitting), key=len)
    grain = next((unit for mark, unit in _GRAIN if mark in pattern), "DAYS")
    zone = ", read as UTC: they name no zone" if "H" in pattern and "Z" not in pattern else ""
    return Field(
        name, FieldType.DATE_TIME, column.kind.value, summary, why=f"dates written {pattern}{zone}",
        format=f"1:{grain}:SIMPLE_DATE_FORMAT:{pattern}", granularity=f"1:{grain}",
    )  # fmt: skip


def _epoch(name: str, column: SampledColumn, summary: str) -> Field | None:
    if column.low is None or column.high is None:
        return None
    for unit_ms, unit in _SPAN:
        if column.low * unit_ms >= VALID_FROM_MS and column.high * unit_ms < VALID_TO_MS:
            return Field(
                name, FieldType.DATE_TIME, "LONG", summary,
                why=f"by its name and size, {unit.lower()} since 1970",
                format=f"1:{unit}:EPOCH", granularity=f"1:{unit}",
            )  # fmt: skip
    return None


def described(column: SampledColumn) -> str:
    """Describe a column of the sample: `4 values in 10,000 rows`. It shows no texts: they may be private."""
    rows = plural(column.rows, "row")
    if column.nulls == column.rows:
        return f"no value in {rows}"
    nulls = f", {column.nulls:,} of them empty" if column.nulls else ""
    if not column.values:
        return f"{rows}{nulls}"
    span = "" if column.low is None or column.kind not in NUMBERS else f", {column.low} to {column.high}"
    return f"{plural(len(column.values), 'value')} in {rows}{nulls}{span}"


def words_of(name: str) -> list[str]:
    """The words of a column's name: `eventTime_ms` has `event`, `time`, `ms`."""
    return [word.lower() for word in _WORD.findall(name)]


def _rank(name: str) -> int:
    ranks = (_FIRST_TIMES.index(word) for word in words_of(name) if word in _FIRST_TIMES)
    return min(ranks, default=len(_FIRST_TIMES))
