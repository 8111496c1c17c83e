"""What must not be left: processes, handles, temporary folders, ZNodes, staged objects, segments."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median

import psutil
from soak.table import TABLE, SoakTable
from soak.watched import marked
from soak.world import MOST

from pinot_assets.core.files import temporary_folder
from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.stores.session_store import KEPT_SESSIONS
from pinot_assets.session.stores.stored_snapshots import snapshot_refs

GONE_S = 60.0
"""Within which all that the watch started must have ended."""


GROWTH = 0.6
"""Handles a run; less is connections that come and go."""
LEFT_BY_ONE = 2 * MOST
"""Staged objects that one death, or one trouble, may leave until gc: two tars of each file that was built."""


def of_handles(samples: Sequence[int]) -> Iterator[str]:
    """The watch's open handles after each of some runs: a leak is a trend, whatever comes and goes beside it.

    The trend is the median growth over all pairs of samples (Theil and Sen): one high count makes none.
    """
    if len(samples) > 3 and growth(samples) > GROWTH:
        yield f"handles of the watch: {', '.join(map(str, samples))} after one run after the other"


def growth(samples: Sequence[int]) -> float:
    """Of one sample over the one before, as the median of all pairs has it."""
    pairs = combinations(enumerate(samples), 2)
    return median((later - earlier) / (at - before) for (before, earlier), (at, later) in pairs)


def handles(process: psutil.Process) -> Counter[str]:
    """How many a process has open of each kind."""
    counts = Counter[str]()
    for entry in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(OSError):
            counts[os.readlink(entry).partition(":")[0]] += 1
    return counts


def of_running(table: SoakTable, family: set[int]) -> Iterator[str]:
    """Processes of former watches, while the present one runs."""
    for process in marked(table.home):
        if process.pid not in family and time.time() - process.create_time() > GONE_S:
            yield f"process {process.pid}, of a watch that was killed: {' '.join(process.cmdline())[:200]}"


def of_ended(table: SoakTable) -> Iterator[str]:
    """All that is left once the watch has ended."""
    end = time.monotonic() + GONE_S
    while (left := marked(table.home)) and time.monotonic() < end:
        time.sleep(0.5)
    for process in left:
        yield f"process {process.pid}: {' '.join(process.cmdline())[:200]}"
    with temporary_folder("next", table.temporary):  # what was killed is cleared up by the next one
        pass
    yield from (f"temporary {path.name}" for path in sorted(table.temporary.iterdir()))
    yield from _of_nodes(table)
    yield from _of_staging(table)
    yield from _of_segments(table)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a finished table may keep staged (docs/guides/gc.md), besides the mark of its cluster.

    :ivar snapshots: objects of the kept snapshots: their headers and their rows.
    :ivar segments: names of the segments of kept snapshots.
    :ivar sessions: ids of sessions that a kept snapshot comes from or has a file of, or that have a node.
    """

    snapshots: Collection[str]
    segments: Collection[str]
    sessions: Collection[str]

    def strays(self, keys: Iterable[str]) -> set[str]:
        """Those of the staged objects that nothing needs."""
        return {key for key in keys if not self._needs(key)}

    def _needs(self, key: str) -> bool:
        folder, _, name = key.partition("/")
        match folder:
            case "owners":
                return True
            case "snapshots":
                return key in self.snapshots
            case "segments":
                return name.removesuffix(".tar.gz").removesuffix(".metadata") in self.segments
            case "sessions":
                return name.partition("/")[0] in self.sessions
        return False


def strays_of(table: SoakTable) -> set[str]:
    """Staged objects that nothing needs, now."""
    staging, snapshots, headers = table.staging, table.snapshots(), set[str]()
    for ref in snapshot_refs(staging):
        headers |= {ref.key, str(staging.header(ref)["files"]["key"])}
    files = [file for snapshot in snapshots for file in snapshot.files]
    kept = Kept(
        snapshots=headers,
        segments={segment for snapshot in snapshots for segment in snapshot.segments},
        sessions={snapshot.session for snapshot in snapshots}
        | {file.session for file in files}
        | {session.id for session in table.sessions.sessions()},
    )
    return kept.strays(info.key for info in staging.store.list())


def of_deaths(strays: Collection[str], disturbances: int) -> Iterator[str]:
    """Before gc: no more than so many deaths and troubles can leave."""
    if len(strays) > LEFT_BY_ONE * disturbances:
        yield f"{len(strays)} staged objects that nothing needs, such as {min(strays)}"


def of_calm(before: Collection[str], strays: Collection[str]) -> Iterator[str]:
    """Before gc: runs that nothing disturbs leave nothing.

    :param before: all that was staged before these runs.
    """
    for key in sorted(set(strays) - set(before)):
        yield f"staged {key}: a run that nothing disturbed left it"


def _of_nodes(table: SoakTable) -> Iterator[str]:
    store = table.sessions
    if holder := store.holder():
        yield f"the lease is held by {holder}"
    if active := store.pointer().active_session:
        yield f"session {active} is open"
    nodes = store.session_nodes()
    if len(nodes) > KEPT_SESSIONS:
        yield f"nodes of {len(nodes)} sessions: {', '.join(nodes)}"
    others = set(table.zookeeper.get_children(store.path)) - set(nodes) - {"lease"}
    yield from (f"node {name} below the pointer" for name in sorted(others))


def _of_staging(table: SoakTable) -> Iterator[str]:
    code, said = table.call("gc", TABLE, "--apply", "--grace-hours", "0", "--json", "--tables", "tables")
    if code:
        yield f"gc ended with {code}: {said[:500]}"
    code, said = table.call("gc", TABLE, "--grace-hours", "0", "--json", "--tables", "tables")
    try:
        left = [orphan["name"] for answer in json.loads(said) for orphan in answer["orphans"]]
    except (ValueError, KeyError, TypeError):
        yield f"gc says no JSON ({code}): {said[:500]}"
        return
    yield from (f"staged {name}: gc leaves it" for name in left)
    snapshots = table.snapshots()
    named = {segment for snapshot in snapshots for segment in snapshot.segments}
    for info in table.staging.store.list():
        if info.key.startswith("segments/"):
            segment = info.key.removeprefix("segments/").removesuffix(".tar.gz").removesuffix(".metadata")
            if segment not in named:
                yield f"staged {info.key}: no snapshot names it"
    uploads = table.bucket.list_multipart_uploads(Bucket="soak-staging").get("Uploads", [])
    yield from (f"unfinished upload of {upload['Key']}" for upload in uploads)


def _of_segments(table: SoakTable) -> Iterator[str]:
    with HttpPinotClient(PinotConnection(table.stack.controller_url)) as pinot:
        visible, lineage = pinot.visible_segments(TABLE), pinot.lineage(TABLE)
        replaced = {name for e in lineage.in_state(LineageState.COMPLETED) for name in e.segments_from}
        yield from (f"segment {s} in Pinot" for s in sorted(pinot.all_segments(TABLE) - visible - replaced))
        for entry in lineage.in_state(LineageState.IN_PROGRESS):
            yield f"lineage entry {entry.id} in progress"
    ledger = set(table.snapshots()[-1].segments)
    yield from (f"segment {name} is visible, and the ledger lacks it" for name in sorted(visible - ledger))
    yield from (f"segment {name} of the ledger is not visible" for name in sorted(ledger - visible))
