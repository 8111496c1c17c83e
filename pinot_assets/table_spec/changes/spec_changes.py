"""What the difference of two recipes means for published segments.

A change does nothing to them, or their servers carry it out when they reload the segments, or only a rebuild
from the source files does, or it is refused. What a reload does depends on the release; the oldest server
decides. Sources: `SegmentPreProcessor`, `ForwardIndexHandler` and `BaseDefaultColumnHandler` of
pinot-segment-local, `Schema.isBackwardCompatibleWith` of pinot-spi, 0.11.0 and 1.5.1. The list of changes in
tests/oracle compares every verdict with Pinot's own answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.core.untrusted import whole_number
from pinot_assets.table_spec.blocks.layout import PARTITION, PROVENANCE, TIME_SLICE
from pinot_assets.table_spec.changes.recipe import (
    AT_BUILD,
    COLUMNS,
    INDEXES,
    INPUT,
    READER,
    TRANSFORM_CONFIGS,
    Recipe,
)
from pinot_assets.table_spec.yaml.document import canonical_json


class Verdict(StrEnum):
    """What a change needs, from the least to the most."""

    NOTHING = "nothing"
    """Published segments stay as they are, and answer as the spec says."""
    RELOAD = "reload"
    """Servers carry it out when they reload the segments."""
    REBUILD = "rebuild"
    """Segments have to be built anew from their source files."""
    REFUSED = "refused"
    """Pinot does not accept it, or queries would fail while segments of before and of now are there."""


_ORDER: Final = (Verdict.NOTHING, Verdict.RELOAD, Verdict.REBUILD, Verdict.REFUSED)


@dataclass(frozen=True, slots=True)
class SpecChange:
    """One setting that differs between two recipes.

    :ivar column: name of the column, "" for a setting of the whole table.
    :ivar setting: the setting, by the name that people know: `filter`, `invertedIndexColumns`, `dataType`.
    :ivar before: its value when the segment was built; None if it was not set.
    :ivar now: its value in the spec; None if it is not set.
    :ivar verdict: what carries the change out.
    :ivar why: the reason, one sentence without its full stop.
    """

    column: str
    setting: str
    before: JsonValue
    now: JsonValue
    verdict: Verdict
    why: str

    def __str__(self) -> str:
        where = f"{self.setting} of {self.column}" if self.column else self.setting
        values = ("not set" if value is None else canonical_json(value) for value in (self.before, self.now))
        return f"{where}: {' → '.join(values)}: {self.why}"


def spec_changes(before: Recipe, now: Recipe, oldest_server: str = "0.11") -> tuple[SpecChange, ...]:
    """Return every change from one recipe to another, those of the whole table first, then by column.

    :param oldest_server: the oldest server that holds the segments, `major.minor`: the spec's `writeFor`.
    """
    major, minor = (whole_number(part) or 0 for part in (*oldest_server.split("."), "0")[:2])
    tables = _TableSettings({**before.read, **before.write}, {**now.read, **now.write}, (major, minor))
    was, is_ = _columns(before), _columns(now)
    found = [*_of_table(tables)]
    for name in sorted(was.keys() | is_.keys()):
        found += _of_column(_Pair(name, was.get(name), is_.get(name), tables))
    return tuple(_joined(found, len(was.keys() & is_.keys())))


def worst_verdict(changes: Iterable[SpecChange]) -> Verdict:
    """Return the verdict that covers all changes; NOTHING without any."""
    return max((change.verdict for change in changes), key=_ORDER.index, default=Verdict.NOTHING)


def needs_one_switch(changes: Iterable[SpecChange]) -> bool:
    """Whether queries would fail over segments of before and of now together, so that all of them have to be
    published in one switch: Pinot combines values of two types on a broker, but not on one server."""
    return any(change.setting == "dataType" for change in changes)


COLUMN: Final = "column"
"""The setting of a change that adds or removes a whole column."""

_NO_FORWARD_CHANGES: Final = (1, 1)
"""Servers before this release do not rewrite a forward index when they reload a segment."""
_REREAD_INDEXES: Final = (1, 5)
"""Servers since this release compare some settings of the indexes that they hold."""
_RAW_INVERTED: Final = (1, 5)
"""Servers since this release build inverted indexes of columns without dictionary."""
_NUMBERS: Final = frozenset(("INT", "LONG", "FLOAT", "DOUBLE"))
"""Types whose values Pinot combines in one query: `DataSchema.ColumnDataType.isCompatible`."""

_Reason = tuple[Verdict, str]


@dataclass(frozen=True, slots=True)
class _TableSettings:
    """The settings of the whole table, before and now."""

    before: JsonObject
    now: JsonObject
    server: tuple[int, int]

    @property
    def rewrites_forward(self) -> bool:
        return self.server >= _NO_FORWARD_CHANGES

    def is_sorted_by(self, column: str) -> bool:
        """Whether segments of before and of now are sorted by the column."""
        return all((one.get("sortedColumn") or [""])[0] == column for one in (self.before, self.now))


@dataclass(frozen=True, slots=True)
class _Pair:
    """The settings of one column, before and now; None without the column."""

    name: str
    before: JsonObject | None
    now: JsonObject | None
    tables: _TableSettings

    def both(self, setting: str) -> tuple[JsonValue, JsonValue]:
        return (self.before or {}).get(setting), (self.now or {}).get(setting)


def _columns(recipe: Recipe) -> dict[str, JsonObject]:
    read, write = recipe.read[COLUMNS], recipe.write[COLUMNS]
    return {name: {**values, **write.get(name, {})} for name, values in read.items()}


def _of_table(tables: _TableSettings) -> Iterator[SpecChange]:
    for setting in _differing(tables.before, tables.now):
        before, now = tables.before.get(setting), tables.now.get(setting)
        if setting == TRANSFORM_CONFIGS:  # of columns that the schema lacks
            for column in _differing(before or {}, now or {}):
                was, is_ = ((one or {}).get(column) for one in (before, now))
                yield SpecChange(column, setting, was, is_, *_VALUES)
        else:
            reason = _TABLE_RULES.get(setting) or (_VALUES if setting.startswith(READER) else _STORED)
            yield SpecChange("", setting, before, now, *(reason(tables) if callable(reason) else reason))


def _of_column(pair: _Pair) -> Iterator[SpecChange]:
    if pair.before is None or pair.now is None:
        was, is_ = pair.both("dataType")
        yield SpecChange(pair.name, COLUMN, was, is_, *(_added(pair) if pair.before is None else _REMOVED))
        return
    for setting in _differing(pair.before, pair.now):
        reason = _COLUMN_RULES.get(setting, _STORED)
        yield SpecChange(
            pair.name, setting, *pair.both(setting), *(reason(pair) if callable(reason) else reason)
        )


def _differing(before: Mapping[str, JsonValue], now: Mapping[str, JsonValue]) -> list[str]:
    keys = {*before, *now} - {COLUMNS}
    return sorted(key for key in keys if before.get(key) != now.get(key))


def _joined(changes: list[SpecChange], columns: int) -> Iterator[SpecChange]:
    """Yield the changes; null handling that changes in all columns is one change of the table."""
    of_nulls = [change for change in changes if change.setting == _NULLS]
    joins = columns > 1 and len(of_nulls) == columns and len({change.now for change in of_nulls}) == 1
    if joins:
        one = of_nulls[0]
        yield SpecChange("", one.setting, one.before, one.now, one.verdict, one.why)
    yield from (change for change in changes if not (joins and change.setting == _NULLS))


# --- reasons -------------------------------------------------------------------------------------

_NULLS: Final = "nullHandlingEnabled"
_VALUES: Final = (
    Verdict.REBUILD,
    "published rows have the values of before until their files are read again",
)
_ROWS: Final = (
    Verdict.REBUILD,
    "published segments have the rows of before until their files are read again",
)
_STORED: Final = (Verdict.REBUILD, "servers do not change this in a segment: it is written when it is built")
_SAME_ROWS: Final = (Verdict.REBUILD, "published segments keep their rows until their files are read again")
_LATER_FILES: Final = (Verdict.NOTHING, "it decides what happens to files that are read from now on")
_LATER_SEGMENTS: Final = (Verdict.NOTHING, "it applies to segments that are built from now on")
_SERVERS: Final = (Verdict.RELOAD, "servers carry it out when they reload the segments")
_ONE_OR_SEVERAL: Final = (
    Verdict.REFUSED,
    "one query cannot combine segments with one value a row and with several: add a new column",
)
_REMOVED: Final = (
    Verdict.REFUSED,
    "Pinot never removes a column from a schema, and published segments still have it",
)


def _added(pair: _Pair) -> _Reason:
    if (pair.now or {}).keys() & {"transforms", TRANSFORM_CONFIGS, PROVENANCE}:
        return Verdict.REBUILD, "its values are computed from the source files"
    return (
        Verdict.RELOAD,
        "queries that name it leave out published segments that servers have not reloaded; after that it "
        "has its default null value there, and a rebuild reads the values that the files have",
    )


def _data_type(pair: _Pair) -> _Reason:
    before, now = pair.both("dataType")
    if {before, now} <= _NUMBERS:
        return _VALUES
    return (
        Verdict.REFUSED,
        f"one query cannot combine segments with {before} and with {now}: add a new column",
    )


def _length(pair: _Pair) -> _Reason:
    if (pair.now or {})["dataType"] in ("STRING", "BYTES", "JSON"):
        return _VALUES
    return Verdict.NOTHING, "values of this type have no length"


def _format(pair: _Pair) -> _Reason:
    if pair.name in (pair.tables.before.get("timeColumnName"), pair.tables.now.get("timeColumnName")):
        return Verdict.REBUILD, "the time range of a segment is computed when it is built"
    return Verdict.NOTHING, "it describes the values, which stay as they are"


def _dictionary(pair: _Pair) -> _Reason:
    if not pair.tables.rewrites_forward:
        return Verdict.REBUILD, "servers before 1.1 do not add or remove a dictionary"
    if pair.both("noDictionaryColumns")[1]:
        needing = [name for name in ("inverted", "fst", "ifst") if pair.both(INDEXES[name])[0] is not None]
        if needing or pair.tables.is_sorted_by(pair.name):
            what = f"the {needing[0]} index of" if needing else "segments that are sorted by"
            return Verdict.REBUILD, f"servers keep the dictionary for {what} the column"
    return _SERVERS


def _codec(pair: _Pair) -> _Reason:
    was_raw, is_raw = pair.both("noDictionaryColumns")
    if was_raw != is_raw:
        return Verdict.NOTHING, "the column gets another forward index anyway"
    before, now = pair.both("compressionCodec")
    if not is_raw and "MV_ENTRY_DICT" not in (before, now):
        return Verdict.NOTHING, "a column with a dictionary is not compressed"
    if not pair.tables.rewrites_forward:
        return Verdict.REBUILD, "servers before 1.1 do not compress a column anew"
    if is_raw and now is None:
        return Verdict.REBUILD, "servers do not return to the default compression"
    return _SERVERS


def _raw_format(pair: _Pair) -> _Reason:
    if any(pair.both("noDictionaryColumns")):
        return _STORED
    return Verdict.NOTHING, "a column with a dictionary has no such chunks"


def _index(key: str) -> Callable[[_Pair], _Reason]:
    """Return the rule of one kind of index."""

    def rule(pair: _Pair) -> _Reason:
        before, now = pair.both(INDEXES[key])
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            if pair.tables.server >= _REREAD_INDEXES:
                if key == "h3":
                    return _SERVERS
                if key == "text" and _differing(before, now) == ["storeInSegmentFile"]:
                    return _LOST_INDEX
            return Verdict.REBUILD, "servers keep the index that a segment has, with the settings of before"
        if key in ("inverted", "range") and pair.tables.is_sorted_by(pair.name):
            return Verdict.NOTHING, "segments that are sorted by the column need no index of it"
        if now is not None and (reason := _without_dictionary(key, pair)):
            return reason
        return Verdict.RELOAD, f"servers {'build' if before is None else 'remove'} the index when they reload"

    return rule


_LOST_INDEX: Final = (
    Verdict.REFUSED,
    "servers since 1.5 lose the index when they load a segment that has it in the other form: remove the "
    "index and apply that, then add it with the new setting",
)


def _without_dictionary(key: str, pair: _Pair) -> _Reason | None:
    """Return why an index is not simply built, if the column has no dictionary in published segments."""
    was_raw, is_raw = pair.both("noDictionaryColumns")
    server = pair.tables.server
    if key == "inverted" and is_raw and server < _RAW_INVERTED:
        return Verdict.NOTHING, "servers before 1.5 build no inverted index of a column without dictionary"
    if not was_raw or pair.tables.rewrites_forward or key not in ("inverted", "fst", "ifst"):
        return None
    if key == "inverted":
        return Verdict.REBUILD, "published segments have no dictionary of the column, which the index needs"
    return (
        Verdict.REFUSED,
        "servers before 1.1 fail to load published segments, which have no dictionary of the column: add the "
        "index after a rebuild",
    )


def _star_tree(tables: _TableSettings) -> _Reason:
    if tables.now.get("enableDynamicStarTreeCreation"):
        return _SERVERS
    return Verdict.REBUILD, "servers remove star-trees only while enableDynamicStarTreeCreation is on"


def _optimize(setting: str) -> Callable[[_TableSettings], _Reason]:
    """Return the rule of one switch by which values decide about dictionaries."""

    def rule(tables: _TableSettings) -> _Reason:
        if tables.now.get(setting) or not tables.rewrites_forward:
            return _BY_VALUES
        return Verdict.RELOAD, "servers add the dictionaries that are missing when they reload the segments"

    return rule


_BY_VALUES: Final = (
    Verdict.REBUILD,
    "the values of a segment decide about its dictionaries when it is built",
)


_Rule = _Reason | Callable[[_Pair], _Reason]
_TableRule = _Reason | Callable[[_TableSettings], _Reason]

_COLUMN_RULES: Final[dict[str, _Rule]] = {
    "dataType": _data_type,
    "singleValueField": _ONE_OR_SEVERAL,
    "fieldType": _VALUES,
    "defaultNullValue": _VALUES,
    "transforms": _VALUES,
    TRANSFORM_CONFIGS: _VALUES,
    PROVENANCE: _VALUES,
    INPUT: (Verdict.REBUILD, "published rows have paths below the folder of before"),
    "maxLength": _length,
    "maxLengthExceedStrategy": _length,
    "format": _format,
    "granularity": (Verdict.NOTHING, "it describes the values, which stay as they are"),
    _NULLS: (Verdict.REBUILD, "which values are null is recorded when a segment is built"),
    "noDictionaryColumns": _dictionary,
    "onHeapDictionaryColumns": (Verdict.RELOAD, "servers read it when they load a segment"),
    "indexes.dictionary.intern": (Verdict.RELOAD, "servers read it when they load a segment"),
    "tierOverwrites": (Verdict.RELOAD, "servers read it when they load a segment"),
    "compressionCodec": _codec,
    **dict.fromkeys(
        ("rawIndexWriterVersion", "deriveNumDocsPerChunk", "targetMaxChunkSize", "targetDocsPerChunk"),
        _raw_format,
    ),
    "segmentPartitionConfig": (Verdict.REBUILD, "the partitions of a segment are computed when it is built"),
    "timestampConfig": _SERVERS,
    **{setting: _index(key) for key, setting in INDEXES.items()},
}
_TABLE_RULES: Final[dict[str, _TableRule]] = {
    "inputFormat": (Verdict.NOTHING, "published files were read in the format that they have"),
    "engine": (Verdict.NOTHING, "both engines read the same values"),
    "filter": _ROWS,
    "filterConfig": _ROWS,
    "onMissingColumn": _LATER_FILES,
    "onBadRow": _LATER_FILES,
    "maxBadRows": _LATER_FILES,
    "segmentTimeValueCheck": _LATER_FILES,
    "timeColumnName": (Verdict.REBUILD, "the time range of a segment is computed when it is built"),
    "maxNumRecordsPerSegment": _LATER_SEGMENTS,
    "desiredSegmentSize": _LATER_SEGMENTS,
    **dict.fromkeys((PARTITION, TIME_SLICE), _SAME_ROWS),
    "sortedColumn": (Verdict.REBUILD, "rows are sorted when a segment is built"),
    "starTreeIndexConfigs": _star_tree,
    "enableDefaultStarTree": _star_tree,
    "enableDynamicStarTreeCreation": (
        Verdict.NOTHING,
        "it says that servers build and remove star-trees when they reload",
    ),
    "multiColumnTextIndexConfig": _SERVERS,
    "columnMinMaxValueGeneratorMode": (Verdict.NOTHING, "segments have the least and greatest values anyway"),
    "rangeIndexVersion": (Verdict.REBUILD, "servers keep the range index that a segment has"),
    AT_BUILD: _LATER_SEGMENTS,
    **{key: _optimize(key) for key in ("optimizeDictionary", "optimizeDictionaryForMetrics")},
    "optimizeDictionaryType": _BY_VALUES,
    **dict.fromkeys(("noDictionarySizeRatioThreshold", "noDictionaryCardinalityRatioThreshold"), _BY_VALUES),
}
