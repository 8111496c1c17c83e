"""Segments and their lineage as values: which segments queries see, and what prevents a new entry.

Pure. Source: docs/design/lineage.md#the-node-in-zookeeper, #visibility and #startreplacesegments
(`SegmentLineageUtils`, `PinotHelixResourceManager`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from pinot_assets.core.json_object import JsonMapping

Replicas = Mapping[str, Mapping[str, str]]
"""Segment → server instance → Helix state (`ONLINE`, `OFFLINE`, `ERROR`, …)."""


@dataclass(frozen=True, slots=True)
class SegmentMetadata:
    """A segment as Pinot's ZooKeeper metadata shows it.

    :ivar crc: Pinot's CRC, with which servers compare their copy.
    :ivar total_docs: rows according to the pushed metadata.
    :ivar custom: the custom map (`pinotAssets.session`, …).
    :ivar download_url: where servers download it.
    :ivar start_ms: smallest time value, None without an interval.
    :ivar end_ms: largest time value, None without an interval.
    """

    segment: str
    crc: int
    total_docs: int
    custom: Mapping[str, str]
    download_url: str
    start_ms: int | None
    end_ms: int | None


class LineageState(Enum):
    """All states of Pinot's `LineageEntryState`."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    REVERTED = "REVERTED"


@dataclass(frozen=True, slots=True)
class LineageEntry:
    """Pinot's record of one replacement.

    :ivar id: Pinot's UUID for it.
    :ivar segments_from: sources, hidden once COMPLETED.
    :ivar segments_to: outputs, hidden unless COMPLETED.
    :ivar timestamp_ms: time of the last write of the state (there is no heartbeat).
    :ivar completes_itself: a controller may complete it as soon as its outputs are online (after 1.5.1).
    """

    id: str
    segments_from: frozenset[str]
    segments_to: frozenset[str]
    state: LineageState
    timestamp_ms: int
    completes_itself: bool = False

    @property
    def hidden(self) -> frozenset[str]:
        """Return the names that this entry hides."""
        return self.segments_from if self.state is LineageState.COMPLETED else self.segments_to

    @property
    def locked(self) -> frozenset[str]:
        """Return the names that exclusive delete keeps from being deleted while the entry is as it is."""
        if self.state is LineageState.IN_PROGRESS:
            return self.segments_from | self.segments_to
        return self.segments_from if self.state is LineageState.COMPLETED else frozenset()

    def has_names(self, segments_from: Collection[str], segments_to: Collection[str]) -> bool:
        """Whether the entry has exactly these names."""
        return self.segments_from == frozenset(segments_from) and self.segments_to == frozenset(segments_to)

    def overlaps(self, segments_from: Collection[str], segments_to: Collection[str]) -> bool:
        """Whether one of these sources is a source of the entry, or one of the outputs its output."""
        return not (self.segments_from.isdisjoint(segments_from) and self.segments_to.isdisjoint(segments_to))


@dataclass(frozen=True, slots=True)
class Lineage:
    """All entries of one table, oldest first."""

    entries: tuple[LineageEntry, ...] = ()

    @classmethod
    def from_json(cls, value: JsonMapping) -> Lineage:
        """Read the reply of `GET /segments/{table}/lineage`.

        :raises ValueError: an entry has an unknown state or is malformed.
        """
        try:
            entries = [
                LineageEntry(
                    id=entry_id,
                    segments_from=frozenset(entry["segmentsFrom"]),
                    segments_to=frozenset(entry["segmentsTo"]),
                    state=LineageState(entry["state"]),
                    timestamp_ms=int(entry["timestamp"]),
                    completes_itself=entry.get("autoCompleteLineageEntry") is True,
                )
                for entry_id, entry in value["lineageEntries"].items()
            ]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a lineage: {error!r}") from error
        return cls(tuple(sorted(entries, key=lambda entry: (entry.timestamp_ms, entry.id))))

    def __iter__(self) -> Iterator[LineageEntry]:
        return iter(self.entries)

    def get(self, entry_id: str) -> LineageEntry | None:
        """Return the entry of that id, None if Pinot has none (it never had, or has cleaned it up)."""
        return next((entry for entry in self.entries if entry.id == entry_id), None)

    def find(self, segments_from: Collection[str], segments_to: Collection[str]) -> tuple[LineageEntry, ...]:
        """Return the entries with exactly these names, in any state, oldest first."""
        return tuple(e for e in self.entries if e.has_names(segments_from, segments_to))

    def in_state(self, state: LineageState) -> tuple[LineageEntry, ...]:
        """Return the entries in that state, oldest first."""
        return tuple(entry for entry in self.entries if entry.state is state)

    def open_and_self_completing(self) -> tuple[LineageEntry, ...]:
        """Return the IN_PROGRESS entries that a controller may complete by itself, oldest first."""
        return tuple(e for e in self.in_state(LineageState.IN_PROGRESS) if e.completes_itself)

    def locked(self) -> frozenset[str]:
        """Return the names that exclusive delete keeps (docs/design/lineage.md#exclusive-delete)."""
        return frozenset[str]().union(*(entry.locked for entry in self.entries))

    def visible(self, segments: Iterable[str]) -> set[str]:
        """Return those of `segments` that no entry hides; a name that is in no entry is visible."""
        hidden = frozenset[str]().union(*(entry.hidden for entry in self.entries))
        return set(segments) - hidden

    def overlapping(
        self, segments_from: Collection[str], segments_to: Collection[str]
    ) -> tuple[LineageEntry, ...]:
        """Return the IN_PROGRESS and COMPLETED entries that make a start with these names fail."""
        return tuple(
            entry
            for entry in self.entries
            if entry.state is not LineageState.REVERTED and entry.overlaps(segments_from, segments_to)
        )

    def naming(self, names: Collection[str], state: LineageState) -> tuple[LineageEntry, ...]:
        """Return the entries in that state that have one of `names` as an output (rule R1)."""
        return tuple(e for e in self.in_state(state) if not e.segments_to.isdisjoint(names))


def why_not_start(
    lineage: Lineage, visible: Collection[str], segments_from: Collection[str], segments_to: Collection[str]
) -> list[str]:
    """Return what now prevents such a start, one text for each reason.

    Source: docs/design/lineage.md#startreplacesegments.
    """
    reasons = []
    if missing := sorted(set(segments_from) - set(visible)):
        reasons.append(f"sources that are missing or not visible: {_some(missing)}")
    if existing := sorted(set(segments_to) & set(visible)):
        reasons.append(f"outputs that are visible already: {_some(existing)}")
    for entry in lineage.overlapping(segments_from, segments_to):
        same = " with exactly these names" if entry.has_names(segments_from, segments_to) else ""
        reasons.append(f"entry {entry.id} ({entry.state.value}){same} overlaps")
    return reasons


def why_not_end(lineage: Lineage, segments: Collection[str], entry_id: str) -> list[str]:
    """Return what now prevents the end of the entry (docs/design/lineage.md#endreplacesegments)."""
    if (entry := lineage.get(entry_id)) is None:
        return [f"there is no entry {entry_id}"]
    if entry.state is not LineageState.IN_PROGRESS:
        return [f"the entry is {entry.state.value}"]
    missing = sorted(entry.segments_to - set(segments))
    return [f"outputs that are not in the table: {_some(missing)}"] if missing else []


def why_not_revert(lineage: Lineage, segments: Collection[str], entry_id: str) -> list[str]:
    """Return what now prevents a revert of the entry (docs/design/lineage.md#revertreplacesegments)."""
    if (entry := lineage.get(entry_id)) is None:
        return [f"there is no entry {entry_id}"]
    reasons = []
    if entry.state is not LineageState.COMPLETED:
        reasons.append(f"the entry is {entry.state.value}")
    elif missing := sorted(entry.segments_from - set(segments)):
        reasons.append(f"sources that are missing: {_some(missing)}")
    reasons += [
        f"entry {later.id} ({later.state.value}) builds on it"
        for later in lineage
        if later.state is not LineageState.REVERTED and not later.segments_from.isdisjoint(entry.segments_to)
    ]
    return reasons


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
