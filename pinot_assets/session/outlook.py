"""A forecast in numbers: files, segments, rows, bytes, room, and what the way back would be.

What is not known before files are read is an estimate from the ledger, or not known: never a guess that looks
like a count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from pinot_assets.errors import PinotAssetsError
from pinot_assets.pinot import versions
from pinot_assets.pinot.table_config import is_refresh
from pinot_assets.session import plan as planning
from pinot_assets.session.amount import Amount, at_least, of_files
from pinot_assets.session.forecast import NEW_SESSION, Forecast, Step, forecast
from pinot_assets.session.ideal_state import IdealState, ideal_state
from pinot_assets.session.lineage_room import beside, names_at_least, znode_bytes
from pinot_assets.session.model import Mode, Owner, PushKind
from pinot_assets.session.plan import Changes, Row
from pinot_assets.session.receipt import Output
from pinot_assets.session.room import bytes_before, generation_before, replication_of
from pinot_assets.session.room_after import RoomAfter, room_after
from pinot_assets.session.run import Run
from pinot_assets.session.staging import Switch
from pinot_assets.session.way_back import revert_until_ms
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.source.fingerprint import Fingerprint
from pinot_assets.source.listed_files import columns_of


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of the source beside the ledger.

    :ivar kind: `new`, `rewritten`, `deleted`, or `touched` (another fingerprint, the same content).
    :ivar before: the version that is published, None where none is.
    :ivar after: the version that is listed, None where none is.
    :ivar held: whether a rollback holds it back.
    """

    kind: str
    uri: str
    before: Fingerprint | None
    after: Fingerprint | None
    held: bool = False


@dataclass(frozen=True, slots=True)
class Sums:
    """Of rows, or of bytes of one replica.

    :ivar now: what the ledger knows of; segments of others come on top.
    :ivar after: once it is done.
    """

    now: int
    removed: Amount
    added: Amount
    after: Amount


@dataclass(frozen=True, slots=True)
class ModeOutlook:
    """What a session of one mode would do with the same source.

    :ivar builds: files.
    :ivar build_bytes: their size.
    :ivar removes: segments.
    :ivar why_not: why the table cannot have that mode as it is; "" where it can.
    """

    mode: Mode
    builds: int
    build_bytes: int
    removes: int
    why_not: str


@dataclass(frozen=True, slots=True)
class Doomed:
    """What a forced start deletes for good: the segments of the snapshot before the present one.

    :ivar at_start: before anything is pushed (`rollbackWindow: pinotDefault`), else right before the end.
    """

    segments: tuple[str, ...]
    bytes: int
    at_start: bool


@dataclass(frozen=True, slots=True)
class Switching:
    """What one switch takes and leaves.

    :ivar added: names of new segments, at least; those of files that are not built yet as far as they can be
        told.
    :ivar unread: whether there are such files: each may become more segments, or none.
    :ivar lineage_bytes: the node with the new entry, `entry_bytes` of it for that.
    :ivar revert_ms: for how long after the switch a revert leads back, 0 for not at all.
    """

    added: tuple[str, ...]
    unread: bool
    rows: Sums
    bytes: Sums
    room: RoomAfter
    lineage_bytes: int
    entry_bytes: int
    ideal_state: IdealState
    doomed: Doomed
    revert_ms: int


@dataclass(frozen=True, slots=True)
class Outlook:
    """See the module docstring.

    :ivar listed: files that match, ready or not.
    :ivar build: files that would be built; `kept` are built already.
    :ivar build_bytes: size of the files to build.
    :ivar switching: None where nothing would be switched.
    :ivar retries: how many retries the open session has had, and how many it may have.
    :ivar holder: who has the lease now: a run would be refused until that lets go.
    :ivar revert_until_ms: until when a revert leads back from the present snapshot to the one before.
    """

    forecast: Forecast
    listed: int
    files: tuple[FileChange, ...]
    build: tuple[Row, ...]
    kept: int
    build_bytes: int
    modes: tuple[ModeOutlook, ...]
    switching: Switching | None
    retries: tuple[int, int]
    holder: Owner | None
    revert_until_ms: int | None
    now_ms: int

    def of_kind(self, kind: str) -> list[FileChange]:
        """The changes of that kind that count: what is held back does not."""
        return [change for change in self.files if change.kind == kind and not change.held]

    @property
    def held(self) -> list[FileChange]:
        """What a rollback holds back."""
        return [change for change in self.files if change.held]


def outlook(run: Run) -> Outlook:
    """Read, decide and add up; writes nothing.

    :param run: one that only reads.
    :raises PinotAssetsError: as `forecast`.
    """
    seen = forecast(run)
    build = seen.plan.to_build if seen.plan is not None else ()
    found = seen.looked.found if seen.looked is not None else None
    return Outlook(
        forecast=seen,
        listed=len(found.listed.files) if found is not None else 0,
        files=tuple(_files(seen)),
        build=build,
        kept=len(seen.plan.done) if seen.plan is not None else 0,
        build_bytes=sum(row.planned.size for row in build),
        modes=tuple(_modes(run, seen)),
        switching=_switching(run, seen) if seen.plan is not None else None,
        retries=(seen.session.retry_count if seen.session else 0, run.spec.ingestion.retries),
        holder=run.edges.store.holder(),
        revert_until_ms=_revert_until_ms(run, seen.current),
        now_ms=run.edges.now_ms(),
    )


def _files(seen: Forecast) -> Iterator[FileChange]:
    changes = seen.looked.changes if seen.looked is not None else None
    if changes is None or not changes.any:
        return
    ledger = seen.current.ledger if seen.current is not None else {}

    def published(uri: str) -> Fingerprint | None:
        return ledger[uri].fingerprint if uri in ledger else None

    for kind, files in (("new", changes.new), ("rewritten", changes.rewritten)):
        for file in files:
            held = seen.hold.holds(file)
            yield FileChange(kind, file.uri, published(file.uri), file.fingerprint, held)
    for uri in changes.deleted:
        yield FileChange("deleted", uri, published(uri), None, uri in seen.hold.removals)
    for uri, now in changes.touched.items():
        yield FileChange("touched", uri, published(uri), now)


def _modes(run: Run, seen: Forecast) -> Iterator[ModeOutlook]:
    if seen.free is None:
        return
    refresh = is_refresh(run.table_config)
    for mode in (Mode.APPEND, Mode.SYNC, Mode.SWAP):
        needs = mode is not Mode.APPEND and not refresh
        why_not = "needs segmentIngestionType: REFRESH" if needs else ""
        yield ModeOutlook(mode, *_work(mode, seen.free, seen.current, seen.visible), why_not)


def _work(
    mode: Mode, changes: Changes, current: Snapshot | None, visible: frozenset[str]
) -> tuple[int, int, int]:
    """Files to build, their bytes, and segments that go: of a new session."""
    work = planning.work_of(mode, changes)
    if mode is Mode.SWAP:  # every file and every segment: no plan of a million rows for three numbers
        return len(work), pc.sum(columns_of(work).column("size")).as_py() or 0, len(visible)
    plan = planning.as_built(planning.new_plan(NEW_SESSION, mode, changes))
    size = sum(row.planned.size for row in plan.rows)
    return len(plan.rows), size, len(planning.segments_from(plan, current, visible))


def _revert_until_ms(run: Run, current: Snapshot | None) -> int | None:
    if current is None or current.parent is None:
        return None
    try:
        before = run.edges.staging.snapshot(current.parent)
    except PinotAssetsError:
        return None
    return revert_until_ms(run.spec, run.edges.pinot, current, before, run.edges.now_ms())


# --- one switch ------------------------------------------------------------------------------------


def _switching(run: Run, seen: Forecast) -> Switching:
    plan = seen.plan
    assert plan is not None
    built = [o for receipt in (seen.receipts or {}).values() for o in receipt.outputs]
    unread = [row for row in plan.to_build if row.planned.size]
    added = (*(o.segment for o in built), *names_at_least(run.spec.name, plan, unread))
    present = run.edges.pinot.all_segments(run.spec.name)
    doomed = _doomed(run, seen)
    rows, size = _sums(seen, built, unread)
    pushed = size.added.plus(-sum(o.loaded_bytes for o in built if o.segment in present))
    removed = size.removed.total or 0
    freed = doomed.bytes if doomed.at_start else 0
    kept, ours = beside(run.switcher.lineage, seen.segments_from, added)
    node = znode_bytes(run.spec.name, [*kept, ours])
    return Switching(
        added=added,
        unread=bool(unread),
        rows=rows,
        bytes=size,
        room=room_after(run, pushed, freed, removed + doomed.bytes - freed),
        lineage_bytes=node,
        entry_bytes=node - znode_bytes(run.spec.name, kept),
        ideal_state=ideal_state(
            run.spec.name,
            present.difference(doomed.segments).union(added),
            _servers(run),
            replication_of(run.table_config),
        ),
        doomed=doomed,
        revert_ms=_revert_ms(run, seen, added),
    )


def _sums(seen: Forecast, built: list[Output], unread: list[Row]) -> tuple[Sums, Sums]:
    """Rows and bytes."""
    known: Mapping[str, Output] = seen.current.segments if seen.current is not None else {}
    gone = [known[name] for name in seen.segments_from if name in known]
    # Segments of others, which a swap replaces too: what they hold stands nowhere here.
    foreign = len(gone) < len(seen.segments_from)
    source = sum(f.fingerprint.size for f in seen.current.files) if seen.current is not None else 0
    to_read = sum(row.planned.size for row in unread)

    def sums(now: int, removed: int, added: int) -> Sums:
        per_byte = now / source if now and source else None
        come = of_files(added, to_read, len(unread), per_byte)
        # Nothing that is visible stays of a swap.
        after = come if seen.mode is Mode.SWAP else come.plus(now - removed)
        return Sums(now, at_least(removed) if foreign else Amount(removed), come, after)

    loaded = sum(o.loaded_bytes for o in known.values())
    return (
        sums(sum(o.rows for o in known.values()), sum(o.rows for o in gone), sum(o.rows for o in built)),
        sums(loaded, sum(o.loaded_bytes for o in gone), sum(o.loaded_bytes for o in built)),
    )


def _doomed(run: Run, seen: Forecast) -> Doomed:
    at_start = run.switcher.starts_forced
    if seen.push is PushKind.PLAIN:  # entries of one file each
        return Doomed((), 0, at_start)
    switch = Switch(0, seen.segments_from, ())
    return Doomed(tuple(sorted(generation_before(run, switch))), bytes_before(run, switch), at_start)


def _servers(run: Run) -> tuple[str, ...]:
    """The table's, or as many of usual names as it has replicas, where Pinot does not say."""
    try:
        return tuple(run.edges.pinot.table_servers(run.spec.name))
    except PinotAssetsError:
        return tuple(f"Server_pinot-server-{n}_8098" for n in range(replication_of(run.table_config)))


def _revert_ms(run: Run, seen: Forecast, added: tuple[str, ...]) -> int:
    no_entry = seen.push is PushKind.PLAIN or not (added or seen.segments_from)
    if no_entry or seen.current is None or seen.step is Step.FINISH:
        return 0
    # As `way_back`: one that replaced nothing has nothing that Pinot could delete.
    if not seen.segments_from:
        return versions.RENEWAL_MS
    return versions.way_back_ms(run.pinot_version, run.table_config)
