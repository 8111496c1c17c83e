"""What a table config asks of a segment beside encodings, indexes, partitions and sort order.

A setting is honoured, of no concern to a segment, or refused because the segment would differ from what
Pinot would build.
"""

from __future__ import annotations

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.segment.column.json_values import is_true
from pinot_assets.segment.column.support import Feature
from pinot_assets.segment.config.transforms import read_transforms

_INGESTION = (
    "complexTypeConfig",
    "enrichmentConfigs",
    "schemaConformingTransformerConfig",
    "schemaConformingTransformerV2Config",
    "aggregationConfigs",
)


def check_table_config(config: JsonMapping) -> tuple[list[str], list[str]]:
    """Problems and notes of a table config."""
    problems, notes = _indexing(config.get("tableIndexConfig") or {})
    found, told = _ingestion(config.get("ingestionConfig") or {})
    problems += found
    notes += told
    problems += read_transforms(config).problems
    for key in ("upsertConfig", "dedupConfig"):
        section = config.get(key) or {}
        if section and str(section.get("mode", "")).upper() != "NONE":
            problems.append(Feature.UPSERT.refusal(key, "upsert or dedup"))
    return problems, notes


def _indexing(indexing: JsonMapping) -> tuple[list[str], list[str]]:
    problems: list[str] = []
    if is_true(indexing.get("aggregateMetrics")):
        problems.append(Feature.INGESTION.refusal("tableIndexConfig.aggregateMetrics", "aggregated rows"))
    version = indexing.get("segmentFormatVersion")
    if version and str(version).lower() != "v3":
        where = "tableIndexConfig.segmentFormatVersion"
        problems.append(Feature.SEGMENT_FORMAT.refusal(where, f"segment format {version}"))
    if is_true(indexing.get("optimizeNoDictStatsCollection")):
        return problems, ["optimizeNoDictStatsCollection: cardinalities are exact"]
    return problems, []


def _ingestion(ingestion: JsonMapping) -> tuple[list[str], list[str]]:
    problems = [
        Feature.INGESTION.refusal(f"ingestionConfig.{key}", "rows that are changed while they are read")
        for key in _INGESTION
        if ingestion.get(key)
    ]
    if is_true(ingestion.get("rowTimeValueCheck")):
        problems.append(
            Feature.INGESTION.refusal("ingestionConfig.rowTimeValueCheck", "rows that are dropped")
        )
    if is_true(ingestion.get("continueOnError")):
        return problems, [
            "ingestionConfig.continueOnError: a value that does not fit its column fails the file"
        ]
    return problems, []
