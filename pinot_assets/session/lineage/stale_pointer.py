"""Detect a stale pointer in ZooKeeper: one from a restored backup, older than what was published.

Pinot and the staging area then know of switches that the pointer does not. Their segments look like strays,
which no snapshot names, but must never be deleted. Each of three facts proves that a visible segment of ours
was published after the pointer: the pointer has not given the number of its session yet; a newer snapshot
names it; a completed lineage entry has it among its outputs.

Nothing here needs a lease or changes anything; `catch_up` acts on the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Final

from pinot_assets.core.text import plural
from pinot_assets.errors import PinotNotFound, SessionError
from pinot_assets.pinot.api import PinotClient
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.staging import Staging, staged
from pinot_assets.session.stores.stored_snapshots import SnapshotHeader, segments_of, snapshot_headers
from pinot_assets.session.values.state import Pointer, Session, ours_of, seq_of
from pinot_assets.snapshot.manifest import SnapshotRef

_NUMBER: Final = re.compile(r"snapshots/([0-9]+)-")


@dataclass(frozen=True, slots=True)
class Behind:
    """What was published after the pointer was written; all is empty if the pointer is not stale.

    :ivar newer: snapshots with a higher number than the pointer's snapshot, newest first.
    :ivar unknown: visible segments that were published after the pointer.
    :ivar live: the newer snapshot that queries see; None if they see none of them.
    """

    newer: tuple[SnapshotHeader, ...]
    unknown: frozenset[str] = frozenset()
    live: SnapshotRef | None = None


def staleness(table: str, clients: TableClients, pointer: Pointer, session: Session | None) -> Behind:
    """Find out whether, and by what, the pointer is stale.

    :param session: the pointer's open session.
    :raises SnapshotCorrupt: the open session's switch cannot be read, and visible segments may belong to it.
    """
    newer = newer_than(clients.staging, pointer)
    try:
        visible = ours_of(table, clients.pinot.visible_segments(table))
    except PinotNotFound:
        return Behind(newer)  # a deleted table shows nothing; callers that need it raise
    if not newer and not any(_is_numbered_later(name, pointer) for name in visible):
        return Behind(newer)
    known = _segments_of(clients.staging, pointer.current_snapshot)
    later = [*_later(table, clients, pointer, session, newer, changed=visible != known)]
    if (live := next((ref for ref, names in later if names == visible), None)) is not None:
        return Behind(newer, published(table, clients.pinot, clients.staging, pointer, visible - known), live)
    if session is not None and session.switch_object is not None:
        known |= frozenset(clients.staging.switch(session.switch_object).names_to)
    if session is not None:
        known |= _segments_of(clients.staging, session.target)  # a rollback's driver may have died at its end
    unknown = published(table, clients.pinot, clients.staging, pointer, visible - known)
    if unknown and later:
        # Pinot may have deleted some of them since, for example by time retention. This counts only if
        # queries see unknown segments: otherwise Pinot may have been restored and never had the others.
        there = clients.pinot.all_segments(table)
        live = next((ref for ref, names in later if names & there == visible), None)
    return Behind(newer, unknown, live)


def published(
    table: str, pinot: PinotClient, staging: Staging, pointer: Pointer, names: Set[str]
) -> frozenset[str]:
    """Return those of these visible segments of ours that were published, known to the pointer or not.

    This function alone decides what a trigger, `resolve_interrupted`, rollback and gc must not delete; the
    health checks use it, too.
    """
    if not names:
        return frozenset()
    completed = pinot.lineage(table).in_state(LineageState.COMPLETED)
    switched = frozenset[str]().union(*(entry.segments_to for entry in completed))
    proven = {name for name in names if name in switched or _is_numbered_later(name, pointer)}
    if len(proven) < len(names):
        newer = [header.ref for header in newer_than(staging, pointer)]
        proven |= names & frozenset[str]().union(*(segments for _, segments in segments_of(staging, newer)))
    return frozenset(proven)


def refuse_published(table: str, clients: TableClients, pointer: Pointer, names: Set[str]) -> None:
    """Refuse to delete segments that are visible and published and that the pointer does not know. Those of
    the pointer's snapshot may be deleted: a plain push does that.

    :raises SessionError: the pointer is stale; the error says what to do.
    """
    candidates = names & ours_of(table, clients.pinot.visible_segments(table)) if names else frozenset[str]()
    if candidates:
        candidates -= _segments_of(clients.staging, pointer.current_snapshot)
    if unknown := published(table, clients.pinot, clients.staging, pointer, candidates):
        raise refusal(table, pointer, unknown, newer_than(clients.staging, pointer))


def refusal(table: str, pointer: Pointer, unknown: Set[str], newer: Sequence[SnapshotHeader]) -> SessionError:
    """Return the error for a stale pointer when only a person can decide what is right."""
    ref = pointer.current_snapshot
    at = f"names snapshot {number_of(ref)}" if ref is not None else "names no snapshot"
    kept = "no kept snapshot is newer" if not newer else f"snapshot {newer[0].seq} is kept"
    ways = [
        "restore the newer backup of ZooKeeper or of the staging area, then run the table",
        f"`pinot-assets session rebuild {table}`: what queries see now stays, and becomes the ledger",
    ]
    if newer:
        ways.append(
            f"`pinot-assets rollback {table} --to {newer[0].seq}`: shows, asks, and switches to "
            "the newest kept snapshot; rows that it lacks are removed"
        )
    if ref is not None:
        ways.append(
            f"`pinot-assets rollback {table} --to {number_of(ref)}`: the same, to the snapshot "
            "that ZooKeeper names; rows that were published later are removed"
        )
    return SessionError(
        f"{table} is stopped: its pointer in ZooKeeper is older than what queries see",
        why=f"the pointer {at}; later sessions published {plural(len(unknown), 'visible segment')}, "
        f"first {min(unknown)}; {kept}, and none has exactly the segments that queries see. A "
        "backup seems to have been restored; queries see no change",
        hint="choose one:\n" + "\n".join(f"    - {way}" for way in ways),
    )


def number_of(ref: SnapshotRef | None) -> int:
    """Return the number of a snapshot, from its key; 0 for None."""
    match = _NUMBER.match(ref.key) if ref is not None else None
    return int(match[1]) if match else 0


def _later(
    table: str,
    clients: TableClients,
    pointer: Pointer,
    session: Session | None,
    newer: Iterable[SnapshotHeader],
    *,
    changed: bool,
) -> Iterator[tuple[SnapshotRef, frozenset[str]]]:
    """Yield the newer snapshots that were published to this cluster after the pointer was written.

    A snapshot with the open session's number may only mean that its driver died before its last transaction.
    The session's lineage entry in Pinot decides what became of it; once Pinot has forgotten the entry, the
    snapshot decides.

    :param changed: whether queries see anything else than the pointer's snapshot.
    :returns: each snapshot with the segments that it names.
    """
    entry = clients.pinot.lineage(table).get(session.lineage_entry_id) if session is not None else None
    is_resolved = not changed or (entry is not None and entry.state is not LineageState.IN_PROGRESS)
    own = session.seq if session is not None and not is_resolved else None
    refs = [header.ref for header in newer if header.seq >= pointer.next_seq or header.seq == own]
    owners = {"", clients.store.owner()}
    for ref, names in segments_of(clients.staging, refs):
        if clients.staging.outline(ref).owner in owners:
            yield ref, names


def newer_than(staging: Staging, pointer: Pointer) -> tuple[SnapshotHeader, ...]:
    """Return snapshots with a higher number than the pointer's, newest first. They are only listed: perhaps
    they cannot be read, or belong to another cluster."""
    since = number_of(pointer.current_snapshot)
    return tuple(header for header in snapshot_headers(staged(staging, "snapshots")) if header.seq > since)


def _is_numbered_later(name: str, pointer: Pointer) -> bool:
    return (seq_of(name) or 0) >= pointer.next_seq


def _segments_of(staging: Staging, ref: SnapshotRef | None) -> frozenset[str]:
    segments = segments_of(staging, [ref] if ref is not None else [])
    return next((names for _, names in segments), frozenset())
