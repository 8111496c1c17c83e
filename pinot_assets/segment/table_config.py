"""What a table config asks of a segment beyond dictionary, forward index and null vector.

Three answers: refused (the segment would differ from what Pinot would build), left to the server (it builds
the index when it loads the segment, spec section 10), or of no concern to a segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pinot_assets.segment.fields import Column

_REFUSED_INDEXING = {
    "noDictionaryColumns": "no dictionary",
    "noDictionaryConfig": "no dictionary",
    "varLengthDictionaryColumns": "variable-length dictionary",
}
_REFUSED_SWITCHES = (
    "optimizeDictionary",
    "optimizeDictionaryForMetrics",
    "optimizeDictionaryType",
    "aggregateMetrics",
)
_REFUSED_INGESTION = (
    "transformConfigs",
    "filterConfig",
    "complexTypeConfig",
    "enrichmentConfigs",
    "schemaConformingTransformerConfig",
    "schemaConformingTransformerV2Config",
    "aggregationConfigs",
)
_SERVER_BUILT = {
    "invertedIndexColumns": "inverted index",
    "rangeIndexColumns": "range index",
    "bloomFilterColumns": "bloom filter",
    "bloomFilterConfigs": "bloom filter",
    "jsonIndexColumns": "JSON index",
    "jsonIndexConfigs": "JSON index",
}
_SERVER_BUILT_TYPES = {
    "INVERTED": "inverted index",
    "RANGE": "range index",
    "TEXT": "text index",
    "FST": "FST index",
    "IFST": "FST index",
    "H3": "H3 index",
    "JSON": "JSON index",
    "VECTOR": "vector index",
}
_SERVER_BUILT_KEYS = {
    "inverted": "inverted index",
    "range": "range index",
    "bloom": "bloom filter",
    "text": "text index",
    "fst": "FST index",
    "ifst": "FST index",
    "h3": "H3 index",
    "json": "JSON index",
    "vector": "vector index",
}
_REFUSED_PROPERTIES = ("forwardIndexDisabled", "useVarLengthDictionary", "rawIndexWriterVersion")


def is_true(value: object) -> bool:
    """A JSON switch as Jackson reads it: the text "true" counts."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


def check_table_config(config: Mapping[str, Any], columns: Iterable[Column]) -> tuple[list[str], list[str]]:
    """Problems and notes of a table config.

    :param columns: the schema's columns; settings of other columns are ignored, as Pinot does.
    """
    names = {column.name for column in columns}
    indexing = config.get("tableIndexConfig") or {}
    problems, notes = _indexing(indexing)
    for entry in config.get("fieldConfigList") or []:
        if entry.get("name") in names or entry.get("timestampConfig"):
            found, told = _field_config(entry)
            problems += [f"column {entry.get('name')}: {problem}" for problem in found]
            notes += [f"column {entry.get('name')}: {note}" for note in told]
    ingestion = config.get("ingestionConfig") or {}
    problems += [f"ingestionConfig.{key}" for key in _REFUSED_INGESTION if ingestion.get(key)]
    if is_true(ingestion.get("rowTimeValueCheck")):
        problems.append("ingestionConfig.rowTimeValueCheck")
    if is_true(ingestion.get("continueOnError")):
        notes.append("ingestionConfig.continueOnError: a value that does not fit its column fails the file")
    for key in ("upsertConfig", "dedupConfig"):
        section = config.get(key) or {}
        if section and str(section.get("mode", "")).upper() != "NONE":
            problems.append(key)
    return problems, list(dict.fromkeys(notes))


def _indexing(indexing: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    problems = [
        f"column {name}: {what} ({key})"
        for key, what in _REFUSED_INDEXING.items()
        for name in indexing.get(key) or ()
    ]
    problems += [f"tableIndexConfig.{key}" for key in _REFUSED_SWITCHES if is_true(indexing.get(key))]
    partitions = (indexing.get("segmentPartitionConfig") or {}).get("columnPartitionMap") or {}
    problems += [f"column {name}: partition metadata (segmentPartitionConfig)" for name in partitions]
    version = indexing.get("segmentFormatVersion")
    if version and str(version).lower() != "v3":
        problems.append(f"tableIndexConfig.segmentFormatVersion {version}")
    notes = [
        f"column {name}: the server builds the {what} when it loads the segment"
        for key, what in _SERVER_BUILT.items()
        for name in indexing.get(key) or ()
    ]
    if indexing.get("multiColumnTextIndexConfig"):
        notes.append("the server builds the multi-column text index when it loads the segment")
    if indexing.get("starTreeIndexConfigs") or is_true(indexing.get("enableDefaultStarTree")):
        if is_true(indexing.get("enableDynamicStarTreeCreation")):
            notes.append("the server builds the star-tree index when it loads the segment")
        else:
            problems.append("tableIndexConfig.starTreeIndexConfigs without enableDynamicStarTreeCreation")
    if indexing.get("sortedColumn"):
        notes.append("sortedColumn: rows stay in file order; a column that is sorted gets the sorted index")
    if is_true(indexing.get("optimizeNoDictStatsCollection")):
        notes.append("optimizeNoDictStatsCollection: cardinalities are exact")
    return problems, notes


def _field_config(entry: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Problems and notes of one entry of `fieldConfigList`."""
    problems: list[str] = []
    if str(entry.get("encodingType") or "DICTIONARY").upper() != "DICTIONARY":
        problems.append(f"encodingType {entry['encodingType']}")
    if entry.get("compressionCodec"):
        problems.append(f"compressionCodec {entry['compressionCodec']}")
    if entry.get("timestampConfig"):
        problems.append("timestamp index (timestampConfig)")
    properties = entry.get("properties") or {}
    problems += [
        f"properties.{key}" for key in _REFUSED_PROPERTIES if str(properties.get(key, "false")) != "false"
    ]
    kinds = {str(kind).upper() for kind in (*(entry.get("indexTypes") or ()), entry.get("indexType")) if kind}
    built = {_SERVER_BUILT_TYPES[kind] for kind in kinds & _SERVER_BUILT_TYPES.keys()}
    problems += [
        f"index type {kind}" for kind in sorted(kinds - _SERVER_BUILT_TYPES.keys() - {"SORTED", "TIMESTAMP"})
    ]
    for key, value in (entry.get("indexes") or {}).items():
        if isinstance(value, Mapping) and is_true(value.get("disabled")) and key in _SERVER_BUILT_KEYS:
            continue
        if key in _SERVER_BUILT_KEYS:
            built.add(_SERVER_BUILT_KEYS[key])
        elif value and not _is_default(key, value):
            problems.append(f"indexes.{key}")
    return problems, [f"the server builds the {what} when it loads the segment" for what in sorted(built)]


def _is_default(index: str, value: Mapping[str, Any]) -> bool:
    """Whether settings of the dictionary or forward index change nothing in the bytes."""
    harmless = (
        {"onHeap", "intern"} if index == "dictionary" else {"encodingType"} if index == "forward" else set()
    )
    wanted = {key: setting for key, setting in value.items() if setting not in (None, False, "DICTIONARY")}
    return index in ("dictionary", "forward") and wanted.keys() <= harmless and "RAW" not in wanted.values()
