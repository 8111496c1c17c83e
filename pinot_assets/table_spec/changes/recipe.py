"""What built a segment, as the user's table spec says it: its recipe.

A recipe has two parts. `read` decides which rows a file gives and which values they have. `write` decides how
a segment stores them, and which indexes servers build for it. Both hold only what the user said: a value that
equals a default is left out, so that a new default is no change. The version of the writer and the oldest
server (`writeFor`) are stored beside a recipe: they are no change of the user's.

Settings of one column are under `columns`, by column and by the name under which people know the setting. A
setting has the same name wherever the table config has it: `indexes.inverted` in `fieldConfigList` is
`invertedIndexColumns` here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from pinot_assets.core.json_object import JsonMapping, JsonObject, JsonValue
from pinot_assets.segment.column.target import NEWEST
from pinot_assets.segment.column.types import DEFAULT_MAX_LENGTH, Column, FieldType, implicit_default
from pinot_assets.segment.column.unsupported import Findings, is_true
from pinot_assets.segment.config.column_encoding import ColumnSettings, read_columns
from pinot_assets.segment.config.segment_spec import BUILD_INVERTED, DEFAULT_FPP
from pinot_assets.segment.values.cells import CellSettings, cell_kind_by
from pinot_assets.segment.values.partition import Partitioning, read_partitionings
from pinot_assets.table_spec.blocks.ingestion import DEFAULT_MAX_ROWS, FileIngestion
from pinot_assets.table_spec.blocks.layout import PARTITION, PROVENANCE, TIME_SLICE, LayoutSettings
from pinot_assets.table_spec.yaml.document import canonical_json

COLUMNS: Final = "columns"
"""Key of both parts: the settings of each column, by its name."""
READER: Final = "recordReader.prop."
"""Prefix of the settings of the csv reader."""
TRANSFORM_CONFIGS: Final = "transformConfigs"
"""Pinot's own functions; those of columns that the schema lacks are beside `columns`."""
_CSV: Final = {
    "delimiter": ",",
    "quoteCharacter": '"',
    "fileFormat": "default",
    "nullStringValue": "",
    "multiValueDelimiter": ";",
    "multiValueDelimiterEnabled": "true",
    "skipHeader": "false",
}
"""What the csv reader does without a setting (`CsvSettings`)."""
_NO_PROVENANCE: Final[Mapping[str, str]] = {}
INPUT: Final = "inputDirURI"
AT_BUILD: Final = "createInvertedIndexDuringSegmentGeneration"

INDEXES: Final = {
    "inverted": "invertedIndexColumns",
    "range": "rangeIndexColumns",
    "bloom": "bloomFilterColumns",
    "json": "jsonIndexColumns",
    **{key: f"indexes.{key}" for key in ("text", "fst", "ifst", "h3", "vector")},
}
"""Pinot's names of indexes → the settings by which people know them."""

_INDEX_CONFIGS: Final = {"bloom": "bloomFilterConfigs", "json": "jsonIndexConfigs"}
_INDEX_DEFAULTS: Final[dict[str, JsonObject]] = {
    "bloom": {"fpp": DEFAULT_FPP, "maxSizeInBytes": 0, "loadOnHeap": False},
    "json": {
        "maxLevels": -1,
        "maxValueLength": 0,
        **dict.fromkeys(("excludeArray", "disableCrossArrayUnnest", "skipInvalidJson"), False),
    },
}
_FORWARD: Final = {
    "rawIndexWriterVersion": "rawIndexWriterVersion",
    "deriveNumDocsPerChunk": "deriveNumDocsPerChunkForRawIndex",
    "targetMaxChunkSize": "targetMaxChunkSize",
    "targetDocsPerChunk": "targetDocsPerChunk",
}
"""Settings of a forward index → the same in `properties`, the older place."""

_OF_TABLE: Final = (
    *("sortedColumn", "starTreeIndexConfigs", "enableDefaultStarTree", "enableDynamicStarTreeCreation"),
    *("optimizeDictionary", "optimizeDictionaryForMetrics", "optimizeDictionaryType"),
    *("noDictionarySizeRatioThreshold", "noDictionaryCardinalityRatioThreshold"),
    *("multiColumnTextIndexConfig", "columnMinMaxValueGeneratorMode", "rangeIndexVersion", AT_BUILD),
)
"""Keys of `tableIndexConfig` that are not about one column."""
_FILLED_IN: Final = {"rangeIndexVersion": (2,), "noDictionarySizeRatioThreshold": (0.85, 0)}
"""Values that Pinot fills in, the ratio of 0 up to 0.11: it means no ratio there."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What built a segment, as canonical JSON values.

    :ivar read: what decides rows and values.
    :ivar write: what decides how they are stored, and the indexes.
    """

    read: JsonObject
    write: JsonObject

    @property
    def read_fingerprint(self) -> str:
        """The SHA-256 of `read`, 64 hex digits: equal if files give the same rows."""
        return _fingerprint(self.read)

    @property
    def write_fingerprint(self) -> str:
        """The SHA-256 of `write`, 64 hex digits: equal if rows are stored in the same way."""
        return _fingerprint(self.write)


class OfOfflineTable(Protocol):
    """What a recipe needs of a `TableSpec`, which a module of this folder cannot import."""

    @property
    def schema_json(self) -> JsonObject:
        """The Pinot schema."""

    @property
    def table_json(self) -> JsonObject:
        """The table config."""

    @property
    def ingestion(self) -> FileIngestion:
        """How files become segments."""

    @property
    def layout(self) -> LayoutSettings:
        """How the rows of files lie in segments."""

    def input_uri(self) -> str:
        """The URI of the input directory."""


def recipe_of(spec: OfOfflineTable) -> Recipe:
    """Return the recipe of a checked `TableSpec`."""
    cells = spec.layout.cells
    return recipe_from(spec.schema_json, spec.table_json, spec.ingestion, provenance_of(spec), cells)


def provenance_of(spec: OfOfflineTable) -> dict[str, str]:
    """Return the column with the paths of files, if there is one, and the folder that they are below.

    :raises SpecError: there is such a column, and the folder refers to a variable that is not set.
    """
    column = spec.layout.provenance_column
    return {column: spec.input_uri()} if column else {}


def recipe_from(
    schema: JsonMapping,
    table_config: JsonMapping,
    ingestion: FileIngestion,
    provenance: Mapping[str, str] = _NO_PROVENANCE,
    cells: CellSettings | None = None,
) -> Recipe:
    """Return the recipe of the parts of a spec.

    :param schema: a Pinot schema that the segment writer accepts.
    :param table_config: a Pinot table config that the segment writer accepts.
    :param provenance: from `provenance_of`.
    :param cells: what decides which rows may share a segment.
    """
    indexing = table_config.get("tableIndexConfig") or {}
    ignored = Findings()  # a checked spec has none
    columns = read_columns(schema, is_true(indexing.get("nullHandlingEnabled")), ignored)
    partitionings = read_partitionings(indexing, columns, NEWEST, ignored)
    stored = {
        column.name: _stored(ColumnSettings(column, table_config, ignored), partitionings.get(column.name))
        for column in columns
    }
    write = {COLUMNS: stored} | _of_table(table_config) | _row_limits(ingestion)
    if cells is not None:
        write |= _said({PARTITION: cells.partition or None, TIME_SLICE: cells.time_slice})
    return Recipe(_read(columns, table_config, ingestion, provenance), write)


def cell_kind_of_recipe(write: JsonMapping) -> str:
    """Return the kind (`segment/values/cells.py`) of the cells that a recipe makes; "" for none.

    :param write: `Recipe.write`.
    """
    return cell_kind_by(write.get(TIME_SLICE, ""), _partitioned(write))


def partitions_of(write: JsonMapping) -> int:
    """Return into how many partitions a recipe divides rows; 1 if it does not.

    :param write: `Recipe.write`.
    """
    found = _partitioned(write)
    return found[-1] if found is not None else 1


def _partitioned(write: JsonMapping) -> tuple[str, str, tuple[tuple[str, str], ...], int] | None:
    """Return column, function, settings and count of the partitions that decide cells."""
    columns: Mapping[str, JsonMapping] = write.get(COLUMNS, {}) if write.get(PARTITION) else {}
    for name, stored in columns.items():
        if how := stored.get("segmentPartitionConfig"):
            settings = tuple(how.get("functionConfig", {}).items())
            return name, how["functionName"], settings, how["numPartitions"]
    return None


def _fingerprint(part: JsonObject) -> str:
    return hashlib.sha256(canonical_json(part).encode()).hexdigest()


def _read(
    columns: Iterable[Column],
    table_config: JsonMapping,
    ingestion: FileIngestion,
    provenance: Mapping[str, str],
) -> JsonObject:
    of_pinot = table_config.get("ingestionConfig") or {}
    functions = {
        entry["columnName"]: str(entry["transformFunction"]).strip()
        for entry in of_pinot.get("transformConfigs") or ()
    }
    by_column = {
        column.name: _values(column)
        | _said(
            {
                "transforms": ingestion.transforms.get(column.name, "").strip(),
                TRANSFORM_CONFIGS: functions.pop(column.name, None),
                # The path is relative to that folder, so another one gives other values.
                PROVENANCE: column.name in provenance or None,
                INPUT: provenance.get(column.name),
            }
        )
        for column in columns
    }
    limit = ingestion.bad_row_limit
    check_time = of_pinot.get("segmentTimeValueCheck")
    return {COLUMNS: by_column} | _said(
        {
            "inputFormat": ingestion.input_format,
            **_reader(ingestion),
            "filter": ingestion.filter.strip(),
            "filterConfig": str((of_pinot.get("filterConfig") or {}).get("filterFunction") or "").strip(),
            TRANSFORM_CONFIGS: functions,
            "engine": None if ingestion.engine == "arrow" else ingestion.engine,
            "onMissingColumn": None if ingestion.on_missing_column == "null" else ingestion.on_missing_column,
            "onBadRow": limit and ingestion.on_bad_row,
            "maxBadRows": None if limit == FileIngestion.model_fields["max_bad_rows"].default else limit,
            "timeColumnName": (table_config.get("segmentsConfig") or {}).get("timeColumnName"),
            "segmentTimeValueCheck": None if check_time is None or is_true(check_time) else False,
        }
    )


def _reader(ingestion: FileIngestion) -> JsonObject:
    """Return the settings of the csv reader that are not its own."""
    usual = dict(_CSV)
    if ingestion.reader.get("fileFormat", "").upper() == "TDF":
        del usual["fileFormat"], usual["delimiter"]
    return {
        f"{READER}{key}": value for key, value in ingestion.reader.items() if usual.get(key) != value.lower()
    }


def _values(column: Column) -> JsonObject:
    """Return what the schema says about the values of one column."""
    kind, default = column.field_type, column.default
    text = default.hex() if isinstance(default, bytes) else str(default)
    return {"dataType": str(column.data_type)} | _said(
        {
            "fieldType": None if kind is FieldType.DIMENSION else str(kind),
            "singleValueField": None if column.single_value else False,
            "defaultNullValue": None if default == implicit_default(column.data_type, kind) else text,
            "maxLength": None if column.max_length == DEFAULT_MAX_LENGTH else column.max_length,
            "maxLengthExceedStrategy": column.strategy and str(column.strategy),
            "format": column.format,
            "granularity": column.granularity,
        }
    )


def _stored(given: ColumnSettings, partitioning: Partitioning | None) -> JsonObject:
    """Return how one column is stored, and its indexes."""
    entry, properties = given.entry, given.entry.get("properties") or {}
    dictionary = given.nested.get("dictionary") or {}
    forward = given.nested.get("forward") or {}
    codecs = (forward.get(f"{kind}Type") for kind in ("chunkCompression", "dictIdCompression"))
    encoding = (entry.get("compressionCodec"), forward.get("compressionCodec"), *codecs)
    is_raw = (
        any(map(given.is_listed, ("noDictionaryColumns", "noDictionaryConfig")))
        or str(entry.get("encodingType") or "").upper() == "RAW"
        or is_true(dictionary.get("disabled"))
    )
    listed = {"onHeapDictionaryColumns": "onHeap", "varLengthDictionaryColumns": "useVarLengthDictionary"}
    indexes = {setting: _index(given, key, setting) for key, setting in INDEXES.items()}
    return _said(
        {
            "noDictionaryColumns": is_raw or None,
            **{
                key: given.is_listed(key) or is_true(dictionary.get(name)) or None
                for key, name in listed.items()
            },
            "indexes.dictionary.intern": dictionary.get("intern"),
            "compressionCodec": next(filter(None, encoding), None),
            **{key: _text(forward.get(key) or properties.get(older)) for key, older in _FORWARD.items()},
            "nullHandlingEnabled": given.column.nullable or None,
            "segmentPartitionConfig": partitioning and _partitions(partitioning),
            "timestampConfig": entry.get("timestampConfig"),
            "tierOverwrites": entry.get("tierOverwrites"),
        }
    ) | {setting: settings for setting, settings in indexes.items() if settings is not None}


def _index(given: ColumnSettings, key: str, setting: str) -> JsonObject | None:
    """Return the settings of one index of a column, None without the index."""
    configs = given.indexing.get(_INDEX_CONFIGS.get(key, "")) or {}
    settings: JsonMapping = {}
    if key in given.nested:
        settings = given.nested[key]
    elif given.column.name in configs:
        settings = configs[given.column.name] or {}
    elif not given.has_index(key) and not given.is_listed(setting):
        return None
    elif key == "text":
        properties = given.entry.get("properties") or {}  # the older place of the settings of a text index
        settings = {name: value for name, value in properties.items() if name not in _FORWARD.values()}
    if is_true(settings.get("disabled")):
        return None
    usual = {"disabled": False, **_INDEX_DEFAULTS.get(key, {})}
    return {name: value for name, value in _said(settings).items() if _switch(value) != usual.get(name)}


def _partitions(partitioning: Partitioning) -> JsonObject:
    return _said(
        {
            "functionName": str(partitioning.function),
            "numPartitions": partitioning.count,
            "functionConfig": dict(partitioning.config or ()),
        }
    )


def _of_table(table_config: JsonMapping) -> JsonObject:
    indexing = table_config.get("tableIndexConfig") or {}
    custom = (table_config.get("metadata") or {}).get("customConfigs") or {}
    settings = {key: _switch(indexing.get(key)) for key in _OF_TABLE}
    if is_true(custom.get(BUILD_INVERTED)):
        settings[AT_BUILD] = True
    if trees := indexing.get("starTreeIndexConfigs"):
        # Pinot fills in `maxLeafRecords: 0`, which means its default.
        settings["starTreeIndexConfigs"] = [
            _said({**tree, "maxLeafRecords": tree.get("maxLeafRecords") or None}) for tree in trees
        ]
    return {
        key: value
        for key, value in _said(settings).items()
        if value is not False and value not in _FILLED_IN.get(key, ())
    }


def _row_limits(ingestion: FileIngestion) -> JsonObject:
    rows = ingestion.max_rows_per_segment
    limit = None if rows == DEFAULT_MAX_ROWS else rows
    return _said({"maxNumRecordsPerSegment": limit, "desiredSegmentSize": ingestion.desired_segment_bytes})


def _said(values: Mapping[str, JsonValue]) -> JsonObject:
    """Return the values that say something: not None, and no empty text, list or object."""
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}


def _switch(value: JsonValue) -> JsonValue:
    """Return a switch as a boolean, whether the user wrote `true` or the text of it."""
    return value.lower() == "true" if isinstance(value, str) and value.lower() in ("true", "false") else value


def _text(value: JsonValue) -> str | None:
    return None if value is None else str(value)
