"""Whose a table's folder of the staging area is.

Its path names the table and no cluster, so two clusters that were given one staging URI work in one folder.
What is deleted there is only what is provably of this cluster: a session leaves a mark of its cluster before
it stages anything, and a snapshot names the cluster that it was published to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pinot_assets.core.text import plural
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import came_from, snapshot_headers
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.source.file_table import ObjectInfo

MARKS = "owners"
"""Folder of the marks."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


def mark_of(owner: str) -> str:
    """Key of a cluster's mark."""
    return f"{MARKS}/{_UNSAFE.sub('_', owner)}"


def write_cluster_marker(context: TriggerContext) -> None:
    """Say that this cluster works here.

    :raises SourceError: the staging area does not take it.
    """
    owner = context.clients.store.owner()
    context.clients.staging.store.put_if_absent(mark_of(owner), owner.encode())


def why_not_ours(
    staging: Staging, owner: str, listed: Sequence[ObjectInfo], current: SnapshotRef | None
) -> str:
    """Why something of what lies there may be another cluster's; "" where all is provably this one's.

    Snapshots of releases that did not write down their cluster are its own if the current one leads back to
    them.

    :param owner: this cluster, as `SessionStore.owner` tells it.
    :param listed: at least the folders of marks and of snapshots.
    :param current: the table's current snapshot.
    :raises SnapshotCorrupt: a snapshot cannot be read, so nobody knows whose it is.
    """
    uri, marks = staging.store.uri, {i.key for i in listed if i.key.startswith(f"{MARKS}/")}
    if others := sorted(marks - {mark_of(owner)}):
        return (
            f"another cluster works in {uri}, too ({others[0]} is its mark): give each a staging area of its "
            "own, and delete the mark of one that is gone"
        )
    there = {header.ref: staging.outline(header.ref) for header in snapshot_headers(listed)}
    known = _led_back_to(there, current)
    strange = sorted(ref.key for ref, one in there.items() if one.owner != owner and ref not in known)
    if strange:
        return (
            f"not provably of this cluster: {plural(len(strange), 'snapshot')} in {uri}, first {strange[0]}; "
            "move away what nobody needs of them"
        )
    return ""


def _led_back_to(there: Mapping[SnapshotRef, Snapshot], current: SnapshotRef | None) -> set[SnapshotRef]:
    """Snapshots that this one came from, over its parent and over what rollbacks left."""
    found, open_ends = set[SnapshotRef](), [current]
    while open_ends:
        ref = open_ends.pop()
        if ref is None or ref in found or ref not in there:
            continue
        found.add(ref)
        open_ends += came_from(there[ref])
    return found
