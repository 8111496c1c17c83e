"""Which indexes a table config asks for: written into the segment, or left to the server.

The rule is that of Pinot's own builder, as far as an index is written here at all: bloom filters always,
inverted indexes of `invertedIndexColumns` only with `createInvertedIndexDuringSegmentGeneration`, those of
`fieldConfigList` always (`SegmentGeneratorConfig`). Every other index is built by the server that loads the
segment (docs/design/segment-format.md#s10).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.segment.column.support import Feature, Findings, is_true, java_int, number
from pinot_assets.segment.column.types import DataType
from pinot_assets.segment.config.columns import ColumnSettings

_SERVER_BUILT_LISTS = {
    "rangeIndexColumns": "range index",
    "jsonIndexColumns": "JSON index",
    "jsonIndexConfigs": "JSON index",
}
_SERVER_BUILT = {
    "range": "range index",
    "text": "text index",
    "fst": "FST index",
    "ifst": "FST index",
    "h3": "H3 index",
    "json": "JSON index",
    "vector": "vector index",
}
_OWN_INDEXES = {"inverted", "bloom", "dictionary", "forward"}
_NO_INDEXES = {"INVERTED", "SORTED", "TIMESTAMP"}  # read above, or of no concern to a segment's buffers
BUILD_INVERTED = "generate.inverted.index.before.push"
"""Key of the table config's `metadata.customConfigs`: deprecated, and still obeyed."""


DEFAULT_FPP: Final = 0.05


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """How large a bloom filter may be.

    :ivar fpp: share of values it wrongly reports as present.
    :ivar max_bytes: largest size, which may cost a higher share; 0 for no limit.
    """

    fpp: float = DEFAULT_FPP
    max_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Indexes:
    """The indexes of one column that are written into the segment.

    :ivar inverted: whether there is an inverted index; a sorted column has none in any case.
    :ivar bloom: its bloom filter, if it has one.
    """

    inverted: bool = False
    bloom: BloomFilter | None = None


def read_indexes(
    config: JsonMapping, columns: Iterable[ColumnSettings], findings: Findings
) -> dict[str, Indexes]:
    """The indexes to write of each column that has some; notes say what the server builds.

    :param columns: those of the schema; settings of other columns are ignored, as Pinot does.
    """
    indexing = config.get("tableIndexConfig") or {}
    _star_tree(indexing, findings)
    if indexing.get("multiColumnTextIndexConfig"):
        findings.notes.append("the server builds the multi-column text index when it loads the segment")
    custom = (config.get("metadata") or {}).get("customConfigs") or {}
    at_build = is_true(indexing.get("createInvertedIndexDuringSegmentGeneration")) or is_true(
        custom.get(BUILD_INVERTED)
    )
    found: dict[str, Indexes] = {}
    for given in columns:
        listed = given.is_listed("invertedIndexColumns")
        inverted = _is_wanted(given, "inverted", listed or "INVERTED" in given.types)
        by_server = inverted and listed and not at_build
        indexes = Indexes(inverted and not by_server, _bloom(given))
        if indexes != Indexes():
            found[given.column.name] = indexes
        findings.notes += [
            f"column {given.column.name}: the server builds the {what} when it loads the segment"
            for what in sorted({*_others(given), *(["inverted index"] if by_server else [])})
        ]
    return found


def _star_tree(indexing: JsonMapping, findings: Findings) -> None:
    for key in ("starTreeIndexConfigs", "enableDefaultStarTree"):
        value = indexing.get(key)
        if is_true(value) or (value and not isinstance(value, (str, bool))):
            if is_true(indexing.get("enableDynamicStarTreeCreation")):
                findings.notes.append("the server builds the star-tree index when it loads the segment")
            else:
                findings.refuse(f"tableIndexConfig.{key}", Feature.STAR_TREE_AT_BUILD, "star-tree index")
            return


def _is_wanted(given: ColumnSettings, key: str, elsewhere: bool) -> bool:
    """Whether an index is asked for, in `indexes` or elsewhere."""
    if key in given.nested and elsewhere:
        given.refuse(Feature.INDEX_INVALID, f"indexes.{key} beside another declaration")
    return given.is_nested(key) if key in given.nested else elsewhere


def _bloom(given: ColumnSettings) -> BloomFilter | None:
    settings = (given.indexing.get("bloomFilterConfigs") or {}).get(given.column.name)
    if not _is_wanted(given, "bloom", given.is_listed("bloomFilterColumns") or settings is not None):
        return None
    settings = given.nested.get("bloom", settings) or {}
    if is_true(settings.get("disabled")):
        return None
    share, limit = settings.get("fpp") or DEFAULT_FPP, settings.get("maxSizeInBytes") or 0
    fpp, size = number(share), java_int(limit)
    if given.column.data_type is DataType.BOOLEAN or fpp is None or not 0 < fpp < 1 or size is None:
        of_size = "" if size is not None else f" and maxSizeInBytes {limit}"
        given.refuse(Feature.INDEX_INVALID, f"bloom filter with fpp {share}{of_size}")
        return None
    return BloomFilter(fpp, size)


def _others(given: ColumnSettings) -> set[str]:
    """What the server builds; every index that is not known is refused."""
    found = {what for key, what in _SERVER_BUILT_LISTS.items() if given.is_listed(key)}
    if given.entry.get("timestampConfig") and given.column.nullable:
        given.refuse(Feature.TIMESTAMP_INDEX_OF_NULLS, "timestamp index (timestampConfig)")
    elif given.entry.get("timestampConfig"):
        found.add("timestamp index")
    asked = [(kind.lower(), f"index type {kind}") for kind in sorted(given.types - _NO_INDEXES)]
    nested = sorted(filter(given.is_nested, given.nested.keys() - _OWN_INDEXES))
    for key, shown in (*asked, *((key, f"indexes.{key}") for key in nested)):
        if key in _SERVER_BUILT:
            found.add(_SERVER_BUILT[key])
        else:
            given.refuse(Feature.NEEDS_BUILDER, shown)
    return found
