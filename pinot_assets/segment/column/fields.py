"""The columns of a Pinot schema (`Schema`, `FieldSpec`), and which of them the writer can do."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.segment.column.encoding import Encoding
from pinot_assets.segment.column.json_values import is_true, java_int
from pinot_assets.segment.column.support import Feature, Problems, refusals
from pinot_assets.segment.column.text import UNSAFE_VALUE
from pinot_assets.segment.column.types import (
    METRIC_TYPES,
    STORAGE,
    DataType,
    Default,
    FieldType,
    implicit_default,
    parse_default,
)

DEFAULT_MAX_LENGTH = 512

_LISTS = {
    "dimensionFieldSpecs": FieldType.DIMENSION,
    "metricFieldSpecs": FieldType.METRIC,
    "dateTimeFieldSpecs": FieldType.DATE_TIME,
}
_ONLY_SINGLE = {DataType.JSON, DataType.BIG_DECIMAL}  # `PinotDataType` has no arrays of them
_UNSAFE_NAME = re.compile(r"^[#!]|[,\x00-\x1f\x7f\U00010000-\U0010ffff]|\$\{|^$")


class TooLong(StrEnum):
    """What becomes of a text or bytes beyond the maximum length (`MaxLengthExceedStrategy`)."""

    TRIM_LENGTH = "TRIM_LENGTH"
    SUBSTITUTE_DEFAULT_VALUE = "SUBSTITUTE_DEFAULT_VALUE"
    NO_ACTION = "NO_ACTION"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    :ivar default: what null becomes, in stored form (BOOLEAN 0 or 1, TIMESTAMP milliseconds).
    :ivar nullable: whether nulls are recorded in a null vector.
    :ivar single_value: whether a row has one value, not several.
    :ivar max_length: longest text kept, in UTF-16 units; of BYTES, in bytes.
    :ivar strategy: what becomes of a longer value; None when the schema does not say.
    :ivar format: format of a DATE_TIME field, as Pinot writes it.
    :ivar granularity: granularity of a DATE_TIME field.
    :ivar encoding: how the table config wants it stored.
    """

    name: str
    data_type: DataType
    field_type: FieldType
    default: Default
    nullable: bool
    single_value: bool = True
    max_length: int = DEFAULT_MAX_LENGTH
    strategy: TooLong | None = None
    format: str | None = None
    granularity: str | None = None
    encoding: Encoding = field(default_factory=Encoding)

    @property
    def is_fixed_width(self) -> bool:
        """Whether all its values take the same number of bytes."""
        return STORAGE[self.data_type].disk is not None

    @property
    def effective_strategy(self) -> TooLong:
        """The strategy that applies (`FieldSpec.getEffectiveMaxLengthExceedStrategy`)."""
        if self.strategy is not None:
            return self.strategy
        return TooLong.TRIM_LENGTH if self.data_type is DataType.STRING else TooLong.NO_ACTION


def read_columns(schema: JsonMapping, null_handling: bool) -> tuple[list[Column], list[str]]:
    """All columns that can be written, and what is wrong with the others.

    :param null_handling: the table's `nullHandlingEnabled`; `enableColumnBasedNullHandling` of the schema
        overrides it.
    """
    by_column = is_true(schema.get("enableColumnBasedNullHandling"))
    columns: list[Column] = []
    problems: list[str] = []
    for key, field_type in _LISTS.items():
        for given in schema.get(key) or []:
            nullable = not is_true(given.get("notNull")) if by_column else null_handling
            found = _problems(given, field_type)
            problems += refusals(f"column {given.get('name')}", found)
            if not found:
                columns.append(_column(given, field_type, nullable))
    for given in schema.get("complexFieldSpecs") or []:
        problems.append(Feature.OTHER_TYPE.refusal(f"column {given.get('name')}", "complex field"))
    if schema.get("timeFieldSpec"):
        problems.append(Feature.OLD_FIELDS.refusal("timeFieldSpec", "a field of the old form"))
    names = Counter(column.name for column in columns)
    for name in sorted(name for name, count in names.items() if count > 1):
        problems.append(Feature.COLUMN_INVALID.refusal(f"column {name}", "defined twice"))
    if not columns and not problems:
        problems.append(Feature.COLUMN_INVALID.refusal("the schema", "no columns"))
    return columns, problems


def _problems(field: JsonMapping, field_type: FieldType) -> Problems:
    """Why one field cannot be written; empty when it can."""
    found: Problems = []
    name, type_name = str(field.get("name") or ""), str(field.get("dataType"))
    if _UNSAFE_NAME.search(name):
        found.append((Feature.COLUMN_NAME, "unsafe name"))
    if field.get("transformFunction"):
        found.append((Feature.INGESTION, "transformFunction"))
    if field.get("virtualColumnProvider"):
        found.append((Feature.OLD_FIELDS, "virtualColumnProvider"))
    if type_name not in DataType.__members__:
        return [*found, (Feature.OTHER_TYPE, f"data type {type_name}")]
    data_type = DataType[type_name]
    if field_type is FieldType.METRIC and data_type not in METRIC_TYPES:
        return [*found, (Feature.COLUMN_INVALID, f"a metric of type {data_type}")]
    if not is_true(field.get("singleValueField", True)) and (
        data_type in _ONLY_SINGLE or field_type is not FieldType.DIMENSION
    ):
        found.append((Feature.COLUMN_INVALID, f"multi-value {field_type} of type {data_type}"))
    if is_true(field.get("allowTrailingZeros")):
        found.append((Feature.TRAILING_ZEROS, "allowTrailingZeros"))
    if field_type is FieldType.DATE_TIME and not (field.get("format") or data_type is DataType.TIMESTAMP):
        found.append((Feature.COLUMN_INVALID, "no date-time format"))
    if UNSAFE_VALUE.search(f"{field.get('format')}{field.get('granularity')}"):
        found.append((Feature.COLUMN_NAME, "unsafe format or granularity"))
    if str(field.get("maxLengthExceedStrategy") or "NO_ACTION") not in TooLong.__members__:
        found.append((Feature.COLUMN_INVALID, f"maxLengthExceedStrategy {field['maxLengthExceedStrategy']}"))
    if _max_length(field) is None:
        found.append((Feature.COLUMN_INVALID, f"maxLength {field['maxLength']}"))
    default = field.get("defaultNullValue")
    if default is not None:
        try:
            parse_default(data_type, default)
        except ValueError as error:
            found.append((Feature.DEFAULT_VALUE, f"defaultNullValue {default!r} ({error})"))
    return found


def _column(field: JsonMapping, field_type: FieldType, nullable: bool) -> Column:
    data_type = DataType[field["dataType"]]
    default = field.get("defaultNullValue")
    strategy = field.get("maxLengthExceedStrategy")
    is_date = field_type is FieldType.DATE_TIME
    return Column(
        name=field["name"],
        data_type=data_type,
        field_type=field_type,
        default=implicit_default(data_type, field_type)
        if default is None
        else parse_default(data_type, default),
        nullable=nullable,
        single_value=is_true(field.get("singleValueField", True)),
        max_length=_max_length(field) or 0,
        strategy=None if strategy is None else TooLong[strategy],
        format=_format(field, data_type) if is_date else None,
        granularity=str(field.get("granularity", "")) if is_date else None,
    )


def _max_length(field: JsonMapping) -> int | None:
    """The longest value; None if what is written is no length."""
    given = field.get("maxLength")
    length = DEFAULT_MAX_LENGTH if given is None else java_int(given)
    return None if length is None or length < 0 else length


def _format(field: JsonMapping, data_type: DataType) -> str:
    """A date-time format as `metadata.properties` shows it (docs/design/segment-format.md#s4-3)."""
    text = str(field.get("format"))
    return "TIMESTAMP" if data_type is DataType.TIMESTAMP or text.endswith(":TIMESTAMP") else text
