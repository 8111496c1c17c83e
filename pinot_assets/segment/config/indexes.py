"""Which indexes a table config asks for: written into the segment, or left to the server.

The rule is that of Pinot's own builder, as far as an index is written here at all: bloom filters always,
inverted indexes of `invertedIndexColumns` only with `createInvertedIndexDuringSegmentGeneration`, those of
`fieldConfigList` always (`SegmentGeneratorConfig`). Every other index is built by the server that loads the
segment (docs/design/segment-format.md#s10).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.segment.column.json_values import is_true, java_int, number
from pinot_assets.segment.column.support import Feature
from pinot_assets.segment.column.types import DataType

if TYPE_CHECKING:
    from pinot_assets.segment.column.fields import Column

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
_NO_INDEXES = {"SORTED", "TIMESTAMP"}  # index types that say nothing about a segment's buffers
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
    config: JsonMapping, columns: Iterable[Column]
) -> tuple[dict[str, Indexes], list[str], list[str]]:
    """The indexes to write of each column that has some, problems, and notes on what the server builds.

    :param columns: the schema's columns; settings of other columns are ignored, as Pinot does.
    """
    indexing = config.get("tableIndexConfig") or {}
    found: dict[str, Indexes] = {}
    problems, notes = _star_tree(indexing)
    if indexing.get("multiColumnTextIndexConfig"):
        notes.append("the server builds the multi-column text index when it loads the segment")
    entries = {entry.get("name"): entry for entry in config.get("fieldConfigList") or []}
    for column in columns:
        read = _Reader(column, config, entries.get(column.name) or {})
        indexes = Indexes(read.inverted(), read.bloom())
        if indexes != Indexes():
            found[column.name] = indexes
        read.others()
        problems += read.problems
        notes += [
            f"column {column.name}: the server builds the {what} when it loads the segment"
            for what in sorted(read.server_built)
        ]
    return found, problems, notes


def _star_tree(indexing: JsonMapping) -> tuple[list[str], list[str]]:
    key = next(
        (k for k in ("starTreeIndexConfigs", "enableDefaultStarTree") if _is_set(indexing.get(k))), None
    )
    if key is None:
        return [], []
    if is_true(indexing.get("enableDynamicStarTreeCreation")):
        return [], ["the server builds the star-tree index when it loads the segment"]
    return [Feature.STAR_TREE_AT_BUILD.refusal(f"tableIndexConfig.{key}", "star-tree index")], []


def _is_set(value: object) -> bool:
    return is_true(value) or (bool(value) and not isinstance(value, (str, bool)))


class _Reader:
    """Reads what one column is given, in the three places where Pinot takes it from."""

    def __init__(self, column: Column, config: JsonMapping, entry: JsonMapping) -> None:
        self.problems: list[str] = []
        self.server_built: set[str] = set()
        self._column = column
        self._indexing: JsonMapping = config.get("tableIndexConfig") or {}
        self._custom: JsonMapping = (config.get("metadata") or {}).get("customConfigs") or {}
        nested = entry.get("indexes") or {}
        self._nested = {key: value for key, value in nested.items() if value is not None}
        self._has_timestamp_index = bool(entry.get("timestampConfig"))
        self._types = {
            str(kind).upper() for kind in (*(entry.get("indexTypes") or ()), entry.get("indexType")) if kind
        }

    def inverted(self) -> bool:
        """Whether the inverted index is written."""
        listed = self._column.name in (self._indexing.get("invertedIndexColumns") or ())
        if not self._is_wanted("inverted", listed or "INVERTED" in self._types):
            return False
        at_build = is_true(self._indexing.get("createInvertedIndexDuringSegmentGeneration")) or is_true(
            self._custom.get(BUILD_INVERTED)
        )
        if listed and not at_build:
            self.server_built.add("inverted index")
            return False
        return True

    def bloom(self) -> BloomFilter | None:
        """The bloom filter."""
        settings = (self._indexing.get("bloomFilterConfigs") or {}).get(self._column.name)
        listed = self._column.name in (self._indexing.get("bloomFilterColumns") or ())
        if not self._is_wanted("bloom", listed or settings is not None):
            return None
        settings = self._nested.get("bloom", settings) or {}
        if is_true(settings.get("disabled")):
            return None
        share, limit = settings.get("fpp") or DEFAULT_FPP, settings.get("maxSizeInBytes") or 0
        fpp, size = number(share), java_int(limit)
        if self._column.data_type is DataType.BOOLEAN or fpp is None or not 0 < fpp < 1 or size is None:
            of_size = "" if size is not None else f" and maxSizeInBytes {limit}"
            self._refuse(Feature.BLOOM_INVALID, f"bloom filter with fpp {share}{of_size}")
            return None
        return BloomFilter(fpp, size)

    def others(self) -> None:
        """Every index that is not written here."""
        if self._has_timestamp_index and self._column.nullable:
            self._refuse(Feature.TIMESTAMP_INDEX_OF_NULLS, "timestamp index (timestampConfig)")
        elif self._has_timestamp_index:
            self.server_built.add("timestamp index")
        for key, what in _SERVER_BUILT_LISTS.items():
            if self._column.name in (self._indexing.get(key) or ()):
                self.server_built.add(what)
        for kind in sorted(self._types - _NO_INDEXES - {"INVERTED"}):
            if kind.lower() in _SERVER_BUILT:
                self.server_built.add(_SERVER_BUILT[kind.lower()])
            else:
                self._refuse(Feature.OTHER_INDEX, f"index type {kind}")
        for key in sorted(self._nested.keys() - _OWN_INDEXES):
            if is_true(self._nested[key].get("disabled")):
                continue
            if key in _SERVER_BUILT:
                self.server_built.add(_SERVER_BUILT[key])
            else:
                self._refuse(Feature.OTHER_INDEX, f"indexes.{key}")

    def _is_wanted(self, key: str, elsewhere: bool) -> bool:
        """Whether an index is asked for, in `indexes` or elsewhere."""
        if key not in self._nested:
            return elsewhere
        if elsewhere:
            self._refuse(Feature.DECLARED_TWICE, f"indexes.{key} beside another declaration")
        return not is_true(self._nested[key].get("disabled"))

    def _refuse(self, feature: Feature, what: str) -> None:
        self.problems.append(feature.refusal(f"column {self._column.name}", what))
