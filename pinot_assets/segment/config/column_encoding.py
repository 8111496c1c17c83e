"""The columns of a Pinot schema (`Schema`, `FieldSpec`), and how the table config wants each stored.

Settings of an encoding (docs/design/segment-format.md#s6-2, #s6-3 and #s7) come from several places; which
of them applies is Pinot's choice (`DictionaryIndexType`, `ForwardIndexType`). An encoding that the oldest
server cannot read is refused here (docs/design/segment-format.md#s11).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.segment.column.target import Target
from pinot_assets.segment.column.types import (
    DEFAULT_MAX_LENGTH,
    METRIC_TYPES,
    UNSAFE_VALUE,
    Codec,
    Column,
    DataType,
    Default,
    Encoding,
    FieldType,
    Optimize,
    RawFormat,
    TooLong,
    implicit_default,
    parse_default,
)
from pinot_assets.segment.column.unsupported import Feature, Findings, is_true, java_int, number

_LISTS = {
    "dimensionFieldSpecs": FieldType.DIMENSION,
    "metricFieldSpecs": FieldType.METRIC,
    "dateTimeFieldSpecs": FieldType.DATE_TIME,
}
_ONLY_SINGLE = {DataType.JSON, DataType.BIG_DECIMAL}  # `PinotDataType` has no arrays of them
_UNSAFE_NAME = re.compile(r"^[#!]|[,\x00-\x1f\x7f\U00010000-\U0010ffff]|\$\{|^$")
_MAX_INT = 2**31 - 1
_DATA_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP])?B?", re.IGNORECASE | re.ASCII)
_UNREADABLE = ("DELTA", "DELTADELTA")
_FORWARD_KEYS = {
    "compressionCodec",
    "chunkCompressionType",
    "dictIdCompressionType",
    "deriveNumDocsPerChunk",
    "rawIndexWriterVersion",
    "targetMaxChunkSize",
    "targetDocsPerChunk",
}
_DICTIONARY_LISTS = (
    "noDictionaryColumns",
    "noDictionaryConfig",
    "onHeapDictionaryColumns",
    "varLengthDictionaryColumns",
)
_DICTIONARY_KEYS = {"disabled", "onHeap", "useVarLengthDictionary", "intern"}


def read_columns(schema: JsonMapping, null_handling: bool, findings: Findings) -> list[Column]:
    """Return all columns that can be written; refuse the others and say why.

    :param null_handling: the table's `nullHandlingEnabled`; `enableColumnBasedNullHandling` of the schema
        overrides it.
    """
    by_column = is_true(schema.get("enableColumnBasedNullHandling"))
    columns: list[Column] = []
    for key, field_type in _LISTS.items():
        for given in schema.get(key) or []:
            problems = _problems(given, field_type)
            for feature, what in problems:
                findings.refuse(f"column {given.get('name')}", feature, what)
            if not problems:
                nullable = not is_true(given.get("notNull")) if by_column else null_handling
                columns.append(_column(given, field_type, nullable))
    for given in schema.get("complexFieldSpecs") or []:
        findings.refuse(f"column {given.get('name')}", Feature.NEEDS_BUILDER, "complex field")
    if schema.get("timeFieldSpec"):
        findings.refuse("timeFieldSpec", Feature.OLD_FIELDS, "a field of the old form")
    names = Counter(column.name for column in columns)
    for name in sorted(name for name, count in names.items() if count > 1):
        findings.refuse(f"column {name}", Feature.COLUMN_INVALID, "defined twice")
    if not any(map(schema.get, (*_LISTS, "complexFieldSpecs", "timeFieldSpec"))):
        findings.refuse("the schema", Feature.COLUMN_INVALID, "no columns")
    return columns


def _problems(field: JsonMapping, field_type: FieldType) -> list[tuple[Feature, str]]:
    """Return why one field cannot be written; empty if it can."""
    wrong: list[tuple[object, Feature, str]] = [
        (_UNSAFE_NAME.search(str(field.get("name") or "")), Feature.COLUMN_NAME, "unsafe name"),
        (field.get("transformFunction"), Feature.INGESTION, "transformFunction"),
        (field.get("virtualColumnProvider"), Feature.OLD_FIELDS, "virtualColumnProvider"),
    ]
    if (data_type := DataType.__members__.get(str(field.get("dataType")))) is None:
        wrong.append((True, Feature.NEEDS_BUILDER, f"data type {field.get('dataType')}"))
    elif field_type is FieldType.METRIC and data_type not in METRIC_TYPES:
        wrong.append((True, Feature.COLUMN_INVALID, f"a metric of type {data_type}"))
    else:
        wrong += _problems_of_type(field, field_type, data_type)
    return [(feature, what) for is_wrong, feature, what in wrong if is_wrong]


def _problems_of_type(
    field: JsonMapping, field_type: FieldType, data_type: DataType
) -> list[tuple[object, Feature, str]]:
    """Return the checks of a field that depend on its type: whether each failed, and what is wrong."""
    invalid, default = Feature.COLUMN_INVALID, field.get("defaultNullValue")
    is_multi_value = not is_true(field.get("singleValueField", True))
    has_format = field.get("format") or data_type is DataType.TIMESTAMP
    has_unsafe_text = UNSAFE_VALUE.search(f"{field.get('format')}{field.get('granularity')}")
    strategy = field.get("maxLengthExceedStrategy")
    wrong_default = ""
    try:
        _default(field, data_type, field_type)
    except ValueError as error:
        wrong_default = f"defaultNullValue {default!r} ({error})"
    return [
        (
            is_multi_value and (data_type in _ONLY_SINGLE or field_type is not FieldType.DIMENSION),
            invalid,
            f"multi-value {field_type} of type {data_type}",
        ),
        (is_true(field.get("allowTrailingZeros")), Feature.TRAILING_ZEROS, "allowTrailingZeros"),
        (field_type is FieldType.DATE_TIME and not has_format, invalid, "no date-time format"),
        (has_unsafe_text, Feature.COLUMN_NAME, "unsafe format or granularity"),
        (
            str(strategy or "NO_ACTION") not in TooLong.__members__,
            invalid,
            f"maxLengthExceedStrategy {strategy}",
        ),
        (_max_length(field) is None, invalid, f"maxLength {field.get('maxLength')}"),
        (wrong_default, Feature.DEFAULT_VALUE, wrong_default),
    ]


def _column(field: JsonMapping, field_type: FieldType, nullable: bool) -> Column:
    data_type = DataType[field["dataType"]]
    strategy = field.get("maxLengthExceedStrategy")
    is_date = field_type is FieldType.DATE_TIME
    return Column(
        name=field["name"],
        data_type=data_type,
        field_type=field_type,
        default=_default(field, data_type, field_type),
        nullable=nullable,
        single_value=is_true(field.get("singleValueField", True)),
        max_length=_max_length(field) or 0,
        strategy=None if strategy is None else TooLong[strategy],
        format=_format(field, data_type) if is_date else None,
        granularity=str(field.get("granularity", "")) if is_date else None,
    )


def _default(field: JsonMapping, data_type: DataType, field_type: FieldType) -> Default:
    """Return the value that replaces a null.

    :raises ValueError: see `parse_default`.
    """
    given = field.get("defaultNullValue")
    return implicit_default(data_type, field_type) if given is None else parse_default(data_type, given)


def _max_length(field: JsonMapping) -> int | None:
    """Return the length of the longest value; None if the setting is no valid length."""
    given = field.get("maxLength")
    length = DEFAULT_MAX_LENGTH if given is None else java_int(given)
    return None if length is None or length < 0 else length


def _format(field: JsonMapping, data_type: DataType) -> str:
    """Return a date-time format as `metadata.properties` shows it (docs/design/segment-format.md#s4-3)."""
    text = str(field.get("format"))
    return "TIMESTAMP" if data_type is DataType.TIMESTAMP or text.endswith(":TIMESTAMP") else text


class ColumnSettings:
    """A table config's settings of one column, from the three places where Pinot reads them.

    :ivar indexing: `tableIndexConfig`.
    :ivar entry: the column's entry of `fieldConfigList`.
    :ivar nested: the entry's `indexes`.
    :ivar types: the entry's index types, in capitals.
    """

    def __init__(self, column: Column, config: JsonMapping, findings: Findings) -> None:
        self.column = column
        self.findings = findings
        self.indexing: JsonMapping = config.get("tableIndexConfig") or {}
        entries = config.get("fieldConfigList") or []
        self.entry: JsonMapping = next((one for one in entries if one.get("name") == column.name), {})
        nested = self.entry.get("indexes") or {}
        self.nested = {key: value for key, value in nested.items() if value is not None}
        kinds = (*(self.entry.get("indexTypes") or ()), self.entry.get("indexType"))
        self.types = {str(kind).upper() for kind in kinds if kind}

    def refuse(self, feature: Feature, what: str) -> None:
        """Note that a setting of this column cannot be honoured."""
        self.findings.refuse(f"column {self.column.name}", feature, what)

    def is_listed(self, key: str) -> bool:
        """Whether a list, or an object, of `tableIndexConfig` names the column."""
        return self.column.name in (self.indexing.get(key) or ())

    def is_nested(self, key: str) -> bool:
        """Whether `indexes` of the column's entry has an index that is not disabled."""
        return key in self.nested and not is_true(self.nested[key].get("disabled"))

    def has_index(self, key: str) -> bool:
        """Whether any of the three places configures the index."""
        lists = (f"{key}IndexColumns", f"{key}IndexConfigs")
        return any(map(self.is_listed, lists)) or key.upper() in self.types or self.is_nested(key)


def read_encoding(given: ColumnSettings, target: Target, inverted: bool) -> Encoding:
    """Return one column's encoding; refuse the settings that cannot be honoured.

    :param target: the format of the segments.
    :param inverted: whether an inverted index is written, which needs a dictionary.
    """
    column, entry = given.column, given.entry
    wish = _dictionary(given, target)
    raw, without, optimize = wish.raw_forward, wish.without, None
    if not (inverted or (target.shared_dictionary and any(map(given.has_index, ("fst", "ifst"))))):
        optimize, always = _optimize(given)
        without = without or always
    elif target.shared_dictionary:
        without = False
    elif without:
        given.refuse(
            Feature.ENCODING_TOO_NEW,
            "an inverted index without dictionary, which servers take since 1.6 only",
        )
    raw = raw or without
    settings = _forward(given, target)
    codec_name = settings.get("compressionCodec") or settings.get("chunkCompressionType")
    codec_name = str(codec_name or settings.get("dictIdCompressionType") or "")
    raw_format = RawFormat()
    if raw or optimize:
        raw_format = _raw_format(given, settings, codec_name, target)
        hides = is_true((entry.get("properties") or {}).get("noRawDataForTextIndex"))
        # A text index may keep values out of the forward index; the writer does not imitate that.
        if hides or given.nested.get("text", {}).get("rawValue") is not None:
            given.refuse(Feature.NEEDS_BUILDER, "noRawDataForTextIndex")
    if without or (optimize and (column.is_fixed_width or optimize.cardinality_ratio is not None)):
        for key in ("fst", "ifst", "vector", *(() if column.is_fixed_width else ("range",))):
            if given.has_index(key):
                given.refuse(Feature.INDEX_NEEDS_DICTIONARY, f"{key} index without dictionary")
    wants_entries = codec_name == "MV_ENTRY_DICT" and not column.single_value and not raw
    if wants_entries and not target.entry_dictionary:
        given.refuse(Feature.ENCODING_TOO_NEW, "codec MV_ENTRY_DICT, which servers read since 1.5 only")
    by_type = is_true(given.indexing.get("optimizeDictionaryType")) and column.data_type.is_text
    return Encoding(
        has_dictionary=not without,
        optimize=optimize,
        variable_length=wish.variable_length or (by_type and not target.exact_lengths),
        entry_dictionary=wants_entries,
        raw=raw_format,
        raw_forward=raw and not without,
        by_length=by_type and target.exact_lengths,
    )


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a table config says about one column's dictionary.

    :ivar without: whether it has none.
    :ivar raw_forward: whether the forward index holds values, not ids, even if there is a dictionary.
    :ivar variable_length: whether a dictionary of variable width is asked for.
    """

    without: bool
    raw_forward: bool
    variable_length: bool


def _dictionary(given: ColumnSettings, target: Target) -> _Wish:
    listed = set(filter(given.is_listed, _DICTIONARY_LISTS))
    named = not listed.isdisjoint(("noDictionaryColumns", "noDictionaryConfig"))
    raw = named or str(given.entry.get("encodingType") or "").upper() == "RAW"
    # A server of 1.6 asks the other list only if none of the first two names the column.
    variable_length = "varLengthDictionaryColumns" in listed and not (named and target.shared_dictionary)
    without = raw
    if (settings := given.nested.get("dictionary")) is not None:
        for key in settings.keys() - _DICTIONARY_KEYS:
            given.refuse(Feature.NEEDS_BUILDER, f"indexes.dictionary.{key}")
        if listed or (raw and not target.shared_dictionary):
            given.refuse(Feature.ENCODING_INVALID, "a dictionary configured in two ways")
        without = is_true(settings.get("disabled"))
        variable_length = variable_length or is_true(settings.get("useVarLengthDictionary"))
    return _Wish(without, raw, variable_length)


def _optimize(given: ColumnSettings) -> tuple[Optimize | None, bool]:
    """Return when the values decide, None if never; and whether the column is raw whatever they are."""
    column, indexing = given.column, given.indexing
    if not is_true(indexing.get("optimizeDictionary")):
        metrics = is_true(indexing.get("optimizeDictionaryForMetrics"))
        if not metrics or column.field_type is not FieldType.METRIC:
            return None, False
    elif given.has_index("json") or given.has_index("text"):
        return None, True
    if not column.single_value:
        return None, False
    keys = [f"noDictionary{what}RatioThreshold" for what in ("Size", "Cardinality")]
    size, distinct = (number(indexing.get(key)) for key in keys)
    for key, value in zip(keys, (size, distinct), strict=True):
        if value is None and indexing.get(key) is not None:
            given.refuse(Feature.ENCODING_INVALID, f"{key} {indexing[key]}")
    return Optimize(0.85 if size is None else size, distinct), False


def _forward(given: ColumnSettings, target: Target) -> JsonMapping:
    """Return the settings of the forward index, under the names of the newer spelling."""
    properties = given.entry.get("properties") or {}
    if given.entry.get("codecSpec"):
        given.refuse(Feature.NEEDS_BUILDER, "codecSpec")
    legacy = {
        "compressionCodec": given.entry.get("compressionCodec"),
        "rawIndexWriterVersion": properties.get("rawIndexWriterVersion"),
        "deriveNumDocsPerChunk": properties.get("deriveNumDocsPerChunkForRawIndex"),
    }
    if is_true(properties.get("forwardIndexDisabled")):
        given.refuse(Feature.NEEDS_BUILDER, "forwardIndexDisabled")
        return legacy
    settings: JsonMapping | None = given.nested.get("forward")
    if settings is None:
        return legacy
    if is_true(settings.get("disabled")):
        given.refuse(Feature.NEEDS_BUILDER, "indexes.forward.disabled")
    known = {*_FORWARD_KEYS, "disabled", "configs"}
    encoding = settings.get("encodingType")
    if encoding == "DICTIONARY" or (target.shared_dictionary and encoding == given.entry.get("encodingType")):
        known.add("encodingType")
    for key in sorted({key for key, value in settings.items() if value is not None} - known):
        given.refuse(Feature.NEEDS_BUILDER, f"indexes.forward.{key}")
    changed = legacy["compressionCodec"] or is_true(legacy["deriveNumDocsPerChunk"])
    if changed or str(legacy["rawIndexWriterVersion"] or 4) != "4":
        given.refuse(Feature.ENCODING_INVALID, "a forward index configured in two ways")
    return settings


def _raw_format(given: ColumnSettings, settings: JsonMapping, codec_name: str, target: Target) -> RawFormat:
    """Return how the column's raw forward index is written."""
    column = given.column
    codec = Codec.PASS_THROUGH if column.field_type is FieldType.METRIC else Codec.LZ4
    if codec_name in Codec.__members__:
        codec = Codec[codec_name]
    elif codec_name:
        feature = Feature.CODEC_UNREADABLE if codec_name in _UNREADABLE else Feature.NEEDS_BUILDER
        given.refuse(feature, f"codec {codec_name} without dictionary")
    if codec is Codec.GZIP and not target.gzip:
        given.refuse(Feature.ENCODING_TOO_NEW, "codec GZIP, which servers read since 1.2 only")
    version = _version(given, settings.get("rawIndexWriterVersion"), target)
    derive = is_true(settings.get("deriveNumDocsPerChunk"))
    target_bytes, docs = _data_size(settings.get("targetMaxChunkSize")), settings.get("targetDocsPerChunk")
    target_docs = 1000 if docs is None else java_int(docs)
    if target_bytes is None:
        given.refuse(Feature.ENCODING_INVALID, f"targetMaxChunkSize {settings['targetMaxChunkSize']}")
    counts_docs = (column.is_fixed_width and column.single_value) or (version < 4 and not derive)
    lowest, highest = (1, _MAX_INT // 16) if counts_docs else (-_MAX_INT, _MAX_INT)
    if target_docs is None or not lowest <= target_docs <= highest:
        given.refuse(Feature.ENCODING_INVALID, f"targetDocsPerChunk {docs}")
        target_docs = lowest
    return RawFormat(codec, version, derive, target_bytes or 1, target_docs)


def _version(given: ColumnSettings, asked: object, target: Target) -> int:
    """Return the file version that Pinot writes for the version that the setting names."""
    column = given.column
    is_fixed = column.is_fixed_width and column.single_value
    has_old_multi_value = not target.raw_multi_value_4 and not column.single_value
    if asked is None:
        return 2 if has_old_multi_value else 4
    highest = 5 if is_fixed and not target.raw_6 else 6
    if not re.fullmatch("[2-6]", str(asked)) or int(str(asked)) > highest:
        given.refuse(Feature.ENCODING_INVALID, f"rawIndexWriterVersion {asked}")
        return 4
    version = int(str(asked))
    if (version == 6 and not target.raw_6) or (version == 5 and not column.is_fixed_width):
        version = 4
    if version == 5 and not target.raw_5:
        what = "rawIndexWriterVersion 5, which servers read since 1.3 only"
        given.refuse(Feature.ENCODING_TOO_NEW, what)
    if version == 4 and has_old_multi_value:
        what = "multi-value rawIndexWriterVersion 4, which servers read since 1.1 only"
        given.refuse(Feature.ENCODING_TOO_NEW, what)
    return version


def _data_size(text: object) -> int | None:
    """Return the bytes of a size such as 512K (`DataSizeUtils`), None if it is not a size."""
    match = _DATA_SIZE.fullmatch("1M" if text is None else str(text))
    if match is None:
        return None
    size = int(float(match[1]) * 1024 ** (" KMGTP".index(match[2].upper()) if match[2] else 0))
    return size if size <= _MAX_INT else None
