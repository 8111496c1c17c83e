"""What a table of the in-memory Pinot holds, and the rules of its lineage.

Functions from what there is to what becomes of it. Source: docs/design/lineage.md#visibility,
#startreplacesegments and #retention-and-clean-up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from fakes.pinot.releases import Dialect

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import SwitchConflict
from pinot_assets.pinot import Lineage, LineageEntry, LineageState, SegmentMetadata
from pinot_assets.pinot.held_segment import HeldSegment
from pinot_assets.pinot.lineage import why_not_start
from pinot_assets.pinot.table_config import period_ms, setting
from pinot_assets.snapshot.receipt import Output

SERVERS = ("Server_127.0.0.1_7051", "Server_127.0.0.1_7052")
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

Entries = dict[str, LineageEntry]


@dataclass
class FakeTable:
    """One table.

    :ivar loading: segment → looks until it is ONLINE.
    :ivar broken: (segment, server) that are in ERROR.
    :ivar has_node: whether a lineage was ever written; the first write checks no version.
    :ivar ending: entries whose end waits in the controller → their outputs as it will write them.
    :ivar routing: broker → what it routes to.
    :ivar held: segment → what its servers hold of it.
    :ivar stuck: segments that no server reloads.
    :ivar fixed_boundary_ms: the time boundary that somebody set by hand.
    """

    config: JsonObject
    segments: dict[str, Output] = field(default_factory=dict)
    metadata: dict[str, SegmentMetadata] = field(default_factory=dict)
    loading: Counter[str] = field(default_factory=Counter)
    broken: set[tuple[str, str]] = field(default_factory=set)
    entries: Entries = field(default_factory=dict)
    has_node: bool = False
    ending: dict[str, frozenset[str]] = field(default_factory=dict)
    routing: dict[str, frozenset[str]] = field(default_factory=dict)
    held: dict[str, HeldSegment] = field(default_factory=dict)
    stuck: set[str] = field(default_factory=set)
    fixed_boundary_ms: int | None = None

    @property
    def lineage(self) -> Lineage:
        return Lineage(tuple(sorted(self.entries.values(), key=lambda entry: entry.timestamp_ms)))

    @property
    def visible(self) -> frozenset[str]:
        return frozenset(self.lineage.visible(self.segments))

    def state(self, segment: str, server: str) -> str:
        if (segment, server) in self.broken:
            return "ERROR"
        return "OFFLINE" if self.loading[segment] else "ONLINE"

    def is_online(self, segment: str) -> bool:
        return segment in self.segments and any(self.state(segment, s) == "ONLINE" for s in SERVERS)

    @property
    def keeps_two_snapshots(self) -> bool:
        batch = self.config.get("ingestionConfig", {}).get("batchIngestionConfig", {})
        return str(batch.get("segmentIngestionType", "APPEND")).upper() == "REFRESH"


def give_way_to_nobody(
    table: FakeTable, segments_from: Collection[str], segments_to: Collection[str], now_ms: int
) -> tuple[Entries, set[str]]:
    """The entries as they are.

    :raises SwitchConflict: one of them overlaps.
    """
    if table.lineage.overlapping(segments_from, segments_to):
        raise refused_start(table, segments_from, segments_to)
    return dict(table.entries), set()


def give_way_to_force(
    table: FakeTable, segments_from: Collection[str], segments_to: Collection[str], now_ms: int
) -> tuple[Entries, set[str]]:
    """The entries after forceCleanup, and the segments that it deletes.

    COMPLETED entries are not asked whether they overlap, and the outputs of REVERTED ones are deleted even
    where the new start takes the same names.
    """
    entries, doomed = dict(table.entries), set[str]()
    for entry in table.entries.values():
        if entry.state is LineageState.REVERTED:
            doomed |= entry.segments_to
        elif entry.state is LineageState.COMPLETED:
            if table.keeps_two_snapshots and entry.segments_to == frozenset(segments_from):
                doomed |= entry.segments_from
        elif entry.overlaps(segments_from, segments_to):
            rest = entry.segments_to - set(segments_to)
            del entries[entry.id]
            if rest:
                entries[entry.id] = replace(
                    entry, segments_to=rest, state=LineageState.REVERTED, timestamp_ms=now_ms
                )
            doomed |= rest
    return entries, doomed


def refused_start(
    table: FakeTable, segments_from: Collection[str], segments_to: Collection[str]
) -> SwitchConflict:
    """The refusal, with the reasons that the port finds."""
    reasons = why_not_start(table.lineage, table.visible, segments_from, segments_to)
    return SwitchConflict("the start was refused", why="; ".join(reasons))


def replaced_kept_ms(table: FakeTable, dialect: Dialect) -> int:
    """For how long retention keeps what a switch replaced."""
    named = period_ms(setting(table.config, "segmentsConfig", "replacedSegmentsRetentionPeriod"))
    if dialect.append_keeps_hours and named is not None:
        return named
    return DAY_MS if table.keeps_two_snapshots else dialect.append_keeps_hours * HOUR_MS


def after_retention(table: FakeTable, now_ms: int, dialect: Dialect) -> tuple[Entries, set[str]]:
    """What one pass of Pinot's retention makes of the lineage, and the segments that it deletes.

    An entry goes only in a pass that finds its segments gone: first the segments, the entry in a later one.
    """
    kept_ms = replaced_kept_ms(table, dialect)
    entries, doomed = dict(table.entries), set[str]()
    for entry in table.entries.values():
        age_ms = now_ms - entry.timestamp_ms
        if entry.state is LineageState.IN_PROGRESS and age_ms <= DAY_MS:
            continue
        completed = entry.state is LineageState.COMPLETED
        left = (entry.segments_from if completed else entry.segments_to) & table.segments.keys()
        if not left:
            del entries[entry.id]
        elif not completed or age_ms > kept_ms or not kept_ms:
            doomed |= left
    return entries, doomed


def without(table: FakeTable, names: Collection[str]) -> None:
    """Delete segments from the table, those that are there."""
    for name in names:
        table.segments.pop(name, None)
        table.metadata.pop(name, None)


def raw_name(config: JsonMapping) -> str:
    """The table's name without its type."""
    return str(config["tableName"]).removesuffix("_OFFLINE")
