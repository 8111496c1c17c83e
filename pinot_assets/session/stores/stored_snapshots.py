"""The kept snapshots of a table (their header is in the staging area), and the clusters that they belong to.

A folder's path names the table and no cluster, so two clusters with the same staging URI work in the same
folder. Objects there are deleted only if they provably belong to this cluster: a session writes a cluster
marker before it stages anything, and a snapshot names the cluster that it was published to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, pairwise, starmap
from typing import TypeVar

from pinot_assets.core.stored_format import structured
from pinot_assets.core.text import plural
from pinot_assets.errors import RollbackRefused, SnapshotCorrupt
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.staging import Staging, staged
from pinot_assets.snapshot.manifest import LEFT, Snapshot, SnapshotRef
from pinot_assets.source.file_table import ObjectInfo

T = TypeVar("T")

_HEADER = re.compile(r"snapshots/(?P<seq>[0-9]+)-(?P<sha256>[0-9a-f]{64})\.json")


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot in the staging area."""

    ref: SnapshotRef
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """A snapshot as a listing shows it.

    :ivar stored_ms: when it was written, by the store's clock.
    """

    ref: SnapshotRef
    seq: int
    stored_ms: int


def snapshot_headers(listed: Iterable[ObjectInfo]) -> list[SnapshotHeader]:
    """Return the snapshots among these objects, newest first; of equal numbers, the last written one first.
    They are only listed: perhaps they cannot be read."""
    headers = (
        SnapshotHeader(SnapshotRef(m[0], m["sha256"]), int(m["seq"]), info.fingerprint.mtime_us // 1000)
        for info in listed
        if (m := _HEADER.fullmatch(info.key))
    )
    return sorted(headers, key=lambda header: (header.seq, header.stored_ms), reverse=True)


def snapshot_refs(staging: Staging) -> list[SnapshotRef]:
    """Return every snapshot in the staging area, newest first; perhaps it cannot be read."""
    return [header.ref for header in snapshot_headers(staged(staging, "snapshots"))]


def before(staging: Staging, snapshot: Snapshot) -> StoredSnapshot | None:
    """Return the parent of a snapshot; None if it has none or it is not kept any more (`retention.py`).

    :raises SnapshotCorrupt: the parent is kept and cannot be read.
    """
    ref = snapshot.parent
    if ref is None or staging.store.stat(ref.key) is None:
        return None
    return StoredSnapshot(ref, staging.snapshot(ref))


def revertible(
    staging: Staging, there: Sequence[SnapshotHeader], now_ms: int, window_ms: int
) -> Iterator[SnapshotRef]:
    """Yield the snapshots that one revert after the other could still reach.

    Go by number, since the parent of a rollback's snapshot is that of its target, not the one that it left.
    Go by parent, too, since a driver that died in its last step may have left one that never was current.

    :param there: all kept snapshots, newest first.
    :param window_ms: for how long after a switch a revert is possible.
    :raises SnapshotCorrupt: one of them cannot be read.
    """
    known = {header.ref for header in there}
    for newer, older in pairwise(there):
        snapshot = staging.outline(newer.ref)
        if now_ms - snapshot.published_ms > window_ms:
            return
        yield older.ref
        if snapshot.parent in known:
            yield snapshot.parent


def left_behind(snapshot: Snapshot) -> tuple[SnapshotRef, ...]:
    """What the last rollback left, if nothing was switched since: the snapshot that was the current one, and
    the newest that was made from the source."""
    left = (snapshot.audit[key] for key in LEFT if key in snapshot.audit)
    return tuple(structured(SnapshotRef, ref, "the name of a snapshot") for ref in left)


def read_snapshots(staging: Staging, refs: Iterable[SnapshotRef]) -> Iterator[StoredSnapshot]:
    """Yield these snapshots, without unreadable ones. Keep one at a time: each may have a million files."""
    return starmap(StoredSnapshot, _readable(refs, staging.snapshot))


def outlines(staging: Staging, refs: Iterable[SnapshotRef]) -> Iterator[StoredSnapshot]:
    """Yield these snapshots without their files; hundreds of them fit into memory."""
    return starmap(StoredSnapshot, _readable(refs, staging.outline))


def segments_of(
    staging: Staging, refs: Iterable[SnapshotRef]
) -> Iterator[tuple[SnapshotRef, frozenset[str]]]:
    """Yield each readable snapshot with the names of its segments."""
    return ((ref, reach.segments) for ref, reach in _readable(refs, staging.reach))


def _readable(
    refs: Iterable[SnapshotRef], read: Callable[[SnapshotRef], T]
) -> Iterator[tuple[SnapshotRef, T]]:
    for ref in refs:
        with suppress(SnapshotCorrupt):
            yield ref, read(ref)


def of_its_cluster(kept: Iterable[StoredSnapshot], current: Snapshot) -> Iterator[StoredSnapshot]:
    """Yield the snapshots that were not published to another cluster with the same staging area. Snapshots of
    releases that did not store the cluster count as this cluster's."""
    known = {"", current.owner}
    return (one for one in kept if not current.owner or one.snapshot.owner in known)


def snapshots_of(staging: Staging, current: StoredSnapshot) -> Iterator[StoredSnapshot]:
    """Yield the current snapshot and the kept ones before it, newest first, each read when it is needed.

    A driver that died before its last transaction may have left a snapshot that was never published. So of
    several with one number, only one is yielded: the one that a later snapshot names, else the last written.
    """
    yield current
    named = came_from(current.snapshot)
    older = (h for h in snapshot_headers(staged(staging, "snapshots")) if h.seq < current.snapshot.seq)
    for _, same in groupby(older, key=lambda header: header.seq):
        refs = sorted((header.ref for header in same), key=lambda ref: ref not in named)
        if (kept := next(of_its_cluster(read_snapshots(staging, refs), current.snapshot), None)) is not None:
            named |= came_from(kept.snapshot)
            yield kept


def came_from(snapshot: Snapshot) -> set[SnapshotRef]:
    """Return the snapshots that this one names: its parent, and those that its rollback names."""
    return {*left_behind(snapshot), *((snapshot.parent,) if snapshot.parent is not None else ())}


def find_target(staging: Staging, current: StoredSnapshot, name: str) -> StoredSnapshot:
    """Return the kept snapshot that somebody names.

    :param name: a number (`17`) or a session (`cp17-0a1b2c`); "" is the snapshot before the current one.
    :raises RollbackRefused: there is no such snapshot.
    :raises SnapshotCorrupt: it cannot be read.
    """
    table = current.snapshot.table.removesuffix("_OFFLINE")
    if not name:
        if (parent := before(staging, current.snapshot)) is None:
            first = current.snapshot.parent is None
            raise RollbackRefused(
                f"{table} is at its first snapshot" if first else f"{table} is at its oldest snapshot",
                why="there is none before it" if first else "the one before it is not kept any more",
                hint=None
                if first
                else f"`pinot-assets snapshots {table}` lists all that are kept; name one of them",
            )
        return parent
    seq = re.match(r"(?:cp)?([0-9]+)(?:-[0-9a-f]{6})?$", name)
    refs = [r for r in snapshot_refs(staging) if seq and r.key.startswith(f"snapshots/{seq[1]}-")]
    if len(refs) > 1:
        known = {kept.ref for kept in snapshots_of(staging, current)}
        refs.sort(key=lambda ref: ref not in known)
    there = (StoredSnapshot(ref, staging.snapshot(ref)) for ref in refs)
    for stored in of_its_cluster(there, current.snapshot):
        if "-" not in name or stored.snapshot.session == name:
            return stored
    raise RollbackRefused(
        f"{table} has no snapshot {name}",
        why=f"{staging.store.uri}/snapshots has none of that name",
        hint=f"`pinot-assets snapshots {table}` lists all that are kept",
    )


# --- whose they are --------------------------------------------------------------------------------

MARKS = "owners"
"""Folder of the cluster markers."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


def mark_of(owner: str) -> str:
    """Return the key of a cluster's marker."""
    return f"{MARKS}/{_UNSAFE.sub('_', owner)}"


def write_cluster_marker(clients: TableClients) -> None:
    """Write the marker that this cluster works in this staging area.

    :raises SourceError: the staging area does not accept it.
    """
    owner = clients.store.owner()
    clients.staging.store.put_if_absent(mark_of(owner), owner.encode())


def why_not_ours(
    staging: Staging, owner: str, listed: Sequence[ObjectInfo], current: SnapshotRef | None
) -> str:
    """Return why some objects may belong to another cluster; "" if all provably belong to this one.

    Snapshots of releases that did not store the cluster belong to this one if the current snapshot leads
    back to them.

    :param owner: this cluster, from `SessionStore.owner`.
    :param listed: at least the folders of cluster markers and of snapshots.
    :param current: the table's current snapshot.
    :raises SnapshotCorrupt: a snapshot cannot be read, so its cluster is unknown.
    """
    uri, marks = staging.store.uri, {i.key for i in listed if i.key.startswith(f"{MARKS}/")}
    if others := sorted(marks - {mark_of(owner)}):
        return (
            f"another cluster uses {uri}, too (its marker is {others[0]}): give each cluster its "
            "own staging area, and delete the marker of a cluster that no longer exists"
        )
    there = {header.ref: staging.outline(header.ref) for header in snapshot_headers(listed)}
    known = _led_back_to(there, current)
    if strange := sorted(ref.key for ref, one in there.items() if one.owner != owner and ref not in known):
        return (
            f"{plural(len(strange), 'snapshot')} in {uri} may belong to another cluster, first "
            f"{strange[0]}; move away what no cluster needs"
        )
    return ""


def _led_back_to(there: Mapping[SnapshotRef, Snapshot], current: SnapshotRef | None) -> set[SnapshotRef]:
    """Return this snapshot and all that it came from, by parents and by what rollbacks left."""
    ancestors, open_ends = set[SnapshotRef](), [current]
    while open_ends:
        ref = open_ends.pop()
        if ref is None or ref in ancestors or ref not in there:
            continue
        ancestors.add(ref)
        open_ends += came_from(there[ref])
    return ancestors
