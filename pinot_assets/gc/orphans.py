"""What of a table nothing needs any more, decided from values alone.

What may go is only what is provably ours, by its name, and what provably nobody can come back to: neither
queries, nor an entry of Pinot's lineage, nor the open session, nor a kept snapshot. What the session machine
sweeps by itself (`session/close.py`, `Lease.prune`, `session/rollback/retention.py`) is decided as
it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pinot_assets.health.leftovers import SEGMENTS, unreferenced
from pinot_assets.pinot.lineage import Lineage, LineageState
from pinot_assets.session.detect.paged_listing import KEPT_S
from pinot_assets.session.recover.interrupted import unknown_of
from pinot_assets.session.stores.lease import KEPT_SESSIONS
from pinot_assets.session.stores.listing_parts import PART_KEY
from pinot_assets.session.stores.staging import Reach
from pinot_assets.session.stores.stored_snapshots import SnapshotHeader
from pinot_assets.session.values.state import Session, is_ours
from pinot_assets.snapshot.fingerprint import Fingerprint

_TAR = re.compile(r"segments/(?P<segment>[^/]+?)(?:\.metadata)?\.tar\.gz")
_ROWS = re.compile(r"snapshots/[0-9]+-[0-9a-f]{64}\.parquet")
_SESSION = re.compile(r"sessions/(?P<id>(?P<node>cp[0-9]+)-[0-9a-f]{6})/.+")
_PROBE = re.compile(r"\.pinot-assets-probe-[0-9a-f]{32}")


class OrphanKind(StrEnum):
    """What an orphan is, in the order in which they go."""

    STRAY = "visible segment"
    SEGMENT = "hidden segment"
    SHADOW = "shadow table"
    NODE = "session node"
    SNAPSHOT = "snapshot"
    ROWS = "rows of a snapshot"
    TAR = "staged tar"
    SESSION = "session object"
    LISTING = "part of a listing"
    PROBE = "probe"
    TABLE = "nodes of a table"


IN_STAGING = frozenset(
    (
        OrphanKind.SNAPSHOT,
        OrphanKind.ROWS,
        OrphanKind.TAR,
        OrphanKind.SESSION,
        OrphanKind.LISTING,
        OrphanKind.PROBE,
    )
)
"""Objects of the staging area; their names are their keys."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """Something that nothing needs.

    :ivar name: of a segment, a node, or an object's key.
    :ivar why: nothing needs it.
    :ivar size: bytes; None where it is not known.
    :ivar age_ms: how long it has been there; None where the session machine itself takes it away at its next
        turn, however young it is.
    """

    kind: OrphanKind
    name: str
    why: str
    size: int | None = None
    age_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What decides over one table.

    :ivar nodes: session nodes in ZooKeeper, oldest first.
    :ivar session: the open one.
    :ivar hold: key of what a rollback holds back, "" for nothing.
    :ivar ledger: segments of the current snapshot; None where ZooKeeper knows of none.
    :ivar kept: what the snapshots that stay need; None where nobody knows that, or whose it is: nothing of
        the staging area goes then.
    :ivar expired: snapshots that go.
    :ivar segments: all names in Pinot's table.
    :ivar shadow: name of the shadow table, or of its schema alone, that an audit left in Pinot, "" for none.
    :ivar staged: every object of the staging area.
    :ivar now_ms: by the clock of the staging area.
    :ivar here_ms: by this machine's, for what Pinot's controller stamped: it does not tell its time.
    """

    table: str
    nodes: Sequence[str]
    session: Session | None
    hold: str
    ledger: frozenset[str] | None
    kept: Reach | None
    expired: Sequence[SnapshotHeader]
    segments: frozenset[str]
    lineage: Lineage
    shadow: str
    staged: Mapping[str, Fingerprint]
    now_ms: int
    here_ms: int


def orphans(facts: TableFacts) -> Iterator[Orphan]:
    """All of them, however young, in the order in which they may go."""
    if facts.ledger is not None:
        if facts.session is None:  # an open one is settled by the next trigger, which then sweeps
            yield from _strays(facts, facts.ledger)
        if facts.kept is not None:
            yield from _hidden(facts, facts.ledger | facts.kept.segments)
    if facts.shadow:
        yield Orphan(OrphanKind.SHADOW, facts.shadow, "an audit left it: the next trigger deletes it")
    yield from _nodes(facts)
    if facts.kept is not None:
        yield from _snapshots(facts, facts.kept)
        yield from _tars(facts, facts.kept)
        yield from _session_objects(facts, facts.kept)
        yield from _listings(facts)
        for key in filter(_PROBE.fullmatch, facts.staged):
            yield _object(facts, OrphanKind.PROBE, key, "left by a probe of the store that died")


def _strays(facts: TableFacts, ledger: frozenset[str]) -> Iterator[Orphan]:
    for name in sorted(unknown_of(facts.table, facts.lineage.visible(facts.segments), ledger)):
        yield Orphan(
            OrphanKind.STRAY, name, "queries see it, and no snapshot knows it: the next trigger deletes it"
        )


def _hidden(facts: TableFacts, needed: frozenset[str]) -> Iterator[Orphan]:
    """Of switches that were taken back. Pinot deletes them by itself; where it does not, nobody else does."""
    for entry in facts.lineage:
        if entry.state is not LineageState.REVERTED:
            needed |= entry.segments_from | entry.segments_to
    seen = set[str]()
    for entry in facts.lineage.in_state(LineageState.REVERTED):
        for name in sorted((entry.segments_to & facts.segments) - needed - seen):
            if is_ours(facts.table, name) and not _of_open_session(facts, name):
                seen.add(name)
                age_ms = facts.here_ms - entry.timestamp_ms
                why = f"its switch was taken back (lineage entry {entry.id})"
                yield Orphan(OrphanKind.SEGMENT, name, why, age_ms=age_ms)


def _of_open_session(facts: TableFacts, segment: str) -> bool:
    return facts.session is not None and segment.startswith(f"{facts.table}__{facts.session.id}_")


def _nodes(facts: TableFacts) -> Iterator[Orphan]:
    """As `Lease.prune`."""
    active = facts.session.node if facts.session is not None else ""
    for node in facts.nodes[:-KEPT_SESSIONS]:
        if node != active:
            yield Orphan(OrphanKind.NODE, node, f"beyond the {KEPT_SESSIONS} newest sessions, which are kept")


def _snapshots(facts: TableFacts, kept: Reach) -> Iterator[Orphan]:
    going = {header.ref.key for header in facts.expired}
    for key in sorted(going):
        yield _object(
            facts, OrphanKind.SNAPSHOT, key, "older than what the table keeps, and no way back needs it"
        )
    for key in sorted(filter(_ROWS.fullmatch, facts.staged)):
        if key not in kept.objects:
            yield _object(facts, OrphanKind.ROWS, key, "no kept snapshot names them")


def _tars(facts: TableFacts, kept: Reach) -> Iterator[Orphan]:
    sizes = {key: version.size for key, version in facts.staged.items() if key.startswith(SEGMENTS)}
    open_session = facts.session.id if facts.session is not None else ""
    for key in unreferenced(facts.table, sizes, kept.segments, open_session).keys:
        match = _TAR.fullmatch(key)
        if match and is_ours(facts.table, match["segment"]):
            yield _object(facts, OrphanKind.TAR, key, "no kept snapshot and no open session names it")


def _session_objects(facts: TableFacts, kept: Reach) -> Iterator[Orphan]:
    """Plans and receipts of sessions that ZooKeeper has forgotten and no kept snapshot comes from."""
    nodes = {*facts.nodes[-KEPT_SESSIONS:], *([facts.session.node] if facts.session is not None else [])}
    for key in sorted(facts.staged):
        match = _SESSION.fullmatch(key)
        if match is None or match["node"] in nodes or match["id"] in kept.sessions:
            continue
        if not facts.hold.startswith(f"sessions/{match['id']}/"):
            yield _object(
                facts, OrphanKind.SESSION, key, f"no kept snapshot comes from session {match['id']}"
            )


def _listings(facts: TableFacts) -> Iterator[Orphan]:
    """Once the youngest is a day old: until then the sensor's cursor, unseen from here, may lead to all, and
    the next sweep begins by taking away what others left."""
    keys = sorted(filter(PART_KEY.fullmatch, facts.staged))
    newest_us = max((facts.staged[key].mtime_us for key in keys), default=0)
    if facts.now_ms - newest_us // 1000 >= KEPT_S * 1000:
        for key in keys:
            yield _object(facts, OrphanKind.LISTING, key, "no sweep of the files sensor went on for a day")


def _object(facts: TableFacts, kind: OrphanKind, key: str, why: str) -> Orphan:
    version = facts.staged[key]
    return Orphan(kind, key, why, version.size, facts.now_ms - version.mtime_us // 1000)
