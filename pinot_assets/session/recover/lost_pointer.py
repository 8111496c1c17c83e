"""Catch up: move a stale pointer to what queries see. Rebuild: make the ledger of a lost pointer again from
visible segments and kept snapshots (rule R18).

A pointer that was never set means an empty ledger only if no segment of ours is visible. If some are, they
decide: the newest kept snapshot with exactly these segments becomes the ledger. If there is none, the custom
map of each visible segment says which version of which file it holds; kept snapshots and receipts add to it.
Some facts can be lost, and a note reports them: the content hash of a file without receipt, files without
rows, and what a rollback held back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pinot_assets.core.stored_format import FIRST, WITH_PACKS
from pinot_assets.core.text import plural
from pinot_assets.errors import SessionError
from pinot_assets.ingest.contract.task_outputs import version_from_text
from pinot_assets.pinot.lineage import LineageState, SegmentMetadata
from pinot_assets.session.context.context import TriggerContext, beyond_all
from pinot_assets.session.lineage.stale_pointer import Behind, number_of, refusal, staleness
from pinot_assets.session.recover.lost_packs import files_of_packs, joined_packs, pack_read_back, packs_in
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.session_store import KEPT_SESSIONS
from pinot_assets.session.stores.staging import Staging, kept_receipts, staged
from pinot_assets.session.stores.stored_snapshots import (
    StoredSnapshot,
    outlines,
    read_snapshots,
    segments_of,
    snapshot_refs,
)
from pinot_assets.session.values.hold import still_held
from pinot_assets.session.values.state import (
    Mode,
    ObjectRef,
    Outcome,
    Pointer,
    Session,
    ended,
    is_fresh,
    new_session_id,
    ours_of,
)
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.packs import PublishedPack
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output, Receipt
from pinot_assets.snapshot.recipes import StoredRecipe, in_use, merged_recipes

REBUILT = "REBUILT"
"""Mode of a snapshot that `rebuild` made and no session published."""


def rebuild_if_lost(context: TriggerContext) -> Snapshot | None:
    """Rebuild the ledger if the pointer was lost; return the current snapshot, None if nothing is published.

    :raises SnapshotCorrupt: the pointer names an object that is missing.
    :raises SessionError: the custom map of a visible segment of ours does not say what it holds.
    """
    if is_fresh(context.lease.pointer) and ours_of(context.table, context.pinot.all_segments(context.table)):
        close_lost_entries(context)
        if visible := ours_of(context.table, context.pinot.visible_segments(context.table)):
            _rebuild(context, visible, "ZooKeeper has no record of the table (lost, or deleted by `forget`)")
    return context.current_snapshot()


def rebuild(context: TriggerContext) -> Snapshot | None:
    """Rebuild the ledger from what queries see, whatever the pointer says. A person decides this when the
    pointer is stale or the objects that it names are lost.

    The open session is dropped, and what it staged in Pinot is reverted. Queries see no change.

    :returns: the ledger.
    :raises SessionError: the custom map of a visible segment of ours does not say what it holds.
    """
    close_lost_entries(context)
    visible = ours_of(context.table, context.pinot.visible_segments(context.table))
    _rebuild(context, visible, "as requested")
    return context.current_snapshot()


def close_lost_entries(context: TriggerContext) -> None:
    """Revert what a lost session had staged, since no driver will end it (I14).

    Before that, show published segments again that a delayed start hides: a revert would delete them (R1).
    """
    completed = context.pinot.lineage(context.table).in_state(LineageState.COMPLETED)
    published = {name for entry in completed for name in entry.segments_to}
    for _, names in segments_of(context.staging, snapshot_refs(context.staging)):
        published |= names
    context.switcher().undo_delayed_starts(published)
    for entry in context.pinot.lineage(context.table).in_state(LineageState.IN_PROGRESS):
        if entry.segments_to and ours_of(context.table, entry.segments_to) == entry.segments_to:
            context.switcher().revert_entry(entry.id)
            context.note(f"reverted lineage entry {entry.id}: its session is lost")


def _rebuild(context: TriggerContext, visible: frozenset[str], why: str) -> None:
    """:param why: the reason for the rebuild, as the beginning of a note."""
    staging, seq = context.staging, beyond_all(context)
    ours = {"", context.clients.store.owner()}  # other clusters may use this staging area, too
    kept = [k for k in outlines(staging, snapshot_refs(staging)) if k.snapshot.owner in ours]
    refs = [k.ref for k in kept]
    exactly = next((ref for ref, names in segments_of(staging, refs) if names == visible), None)
    if (same := next((k for k in kept if k.ref == exactly), None)) is not None:
        hold = hold_of_last_rollback(context, kept, staging.snapshot(same.ref))
        _point_to(context, same.ref, seq, hold, same.snapshot.format)
        context.note(
            f"{why}: queries see exactly snapshot {same.snapshot.session}, "
            "which is the ledger again" + _held_again(hold)
        )
        return
    crcs = context.pinot.segment_crcs(context.table)
    known, packed, recipes = _known(read_snapshots(staging, refs), crcs)
    names = sorted(visible - known.keys() - packed.keys())
    told = {name: context.pinot.segment_metadata(context.table, name) for name in names}
    for name, metadata in told.items():
        if (pack := pack_read_back(metadata)) is not None:
            packed[name] = pack, _output(staging, metadata, None)
    of_packs = joined_packs(packed[name] for name in sorted(visible & packed.keys()))
    in_packs, packs = files_of_packs(context, of_packs)
    files = _in_order([*_files(context, visible - packed.keys(), known, told), *in_packs])
    snapshot = Snapshot(
        seq=seq,
        table=context.spec.name_with_type,
        session=new_session_id(seq),
        mode=REBUILT,
        lineage_entry_id="",
        parent=None,
        listing_digest="",
        config_fingerprint=context.fingerprint,
        published_ms=context.clients.now_ms(),
        files=files,
        owner=context.clients.store.owner(),
        # No kept snapshot, and no pack, shows another format.
        format=max((k.snapshot.format for k in kept), default=WITH_PACKS if packs else FIRST),
        asked_by=context.asked_by,
        recipes=in_use(recipes, {f.revision for f in files} | {pack.revision for pack in packs}),
        packs=packs,
    )
    hold = hold_of_last_rollback(context, kept, snapshot)
    _point_to(context, staging.put_snapshot(snapshot), seq + 1, hold, snapshot.format)
    unknown = sum(not f.sha256 for f in files)
    context.note(
        (
            f"{why}: the ledger is made again from {plural(len(visible), 'visible segment')} "
            f"({plural(len(files), 'file')}; the content hash of {unknown} is unknown: a file that is "
            "only touched counts as rewritten). Files without rows are read once more"
        )
        + _held_again(hold)
    )


def _point_to(
    context: TriggerContext, ref: SnapshotRef, seq: int, hold: ObjectRef | None, number: int
) -> None:
    before = context.lease.pointer
    pointer = replace(
        before,
        active_session="",
        current_snapshot=ref,
        next_seq=seq,
        hold=hold,
        format=max(number, before.format),
    )
    if (session := context.active_session()) is not None:
        session = ended(session, Outcome.CLEARED, context.clients.now_ms())
    context.lease.write(pointer=pointer, session=session)


def _held_again(hold: ObjectRef | None) -> str:
    return "; what the last rollback held back is held again until `resume`" if hold else ""


def hold_of_last_rollback(
    context: TriggerContext, kept: Iterable[StoredSnapshot], now: Snapshot
) -> ObjectRef | None:
    """Store the last rollback's hold again, without what is visible now; return its name. Perhaps a `resume`
    ended that hold since: a person can repeat `resume`, but cannot as easily undo a file that comes back."""
    newest = next((k.snapshot for k in kept if k.snapshot.mode == Mode.ROLLBACK), None)
    # A swap table is held as a whole, but only while it still shows what the rollback brought back.
    if newest is None or (context.mode is Mode.SWAP and newest.seq != now.seq):
        return None
    staging, folder = context.staging, f"sessions/{newest.session}"
    holds = [info for info in staged(staging, folder) if info.key.startswith(f"{folder}/hold-")]
    if not holds:
        return None
    last = max(holds, key=lambda info: info.fingerprint.mtime_us).key
    ref = ObjectRef(last, last.removeprefix(f"{folder}/hold-").removesuffix(".json"))
    hold = still_held(staging.hold(ref), now)
    return staging.put_hold(newest.session, hold) if not hold.is_empty or context.mode is Mode.SWAP else None


# --- file by file ----------------------------------------------------------------------------------


def _known(
    kept: Iterable[StoredSnapshot], crcs: Mapping[str, int]
) -> tuple[
    dict[str, tuple[PublishedFile, Output]],
    dict[str, tuple[PublishedPack, Output]],
    tuple[StoredRecipe, ...],
]:
    """Return file and output, and pack and output, by name, of segments with the CRC that Pinot has, and what
    built files; the newest snapshot wins."""
    known: dict[str, tuple[PublishedFile, Output]] = {}
    packed: dict[str, tuple[PublishedPack, Output]] = {}
    recipes: tuple[StoredRecipe, ...] = ()
    for one in kept:
        recipes = merged_recipes(recipes, one.snapshot.recipes)
        for file in one.snapshot.files:
            for output in file.outputs:
                if crcs.get(output.segment) == output.crc:
                    known.setdefault(output.segment, (file, output))
        packed = dict(packs_in(one.snapshot, crcs)) | packed
    return known, packed, recipes


def _files(
    context: TriggerContext,
    visible: frozenset[str],
    known: Mapping[str, tuple[PublishedFile, Output]],
    told: Mapping[str, SegmentMetadata],
) -> list[PublishedFile]:
    """Return one published file for each version of a file.

    :param told: what Pinot says of the segments that are not known.
    """
    files: dict[tuple[str, str, str], PublishedFile] = {}
    for name in sorted(visible):
        file, output = known.get(name) or _read_back(context, told[name])
        key = file.session, file.uri, file.version
        files.setdefault(key, replace(file, rows=0, outputs=()))
        there = files[key]
        files[key] = replace(there, rows=there.rows + output.rows, outputs=(*there.outputs, output))
    return [*files.values()]


def _in_order(files: Iterable[PublishedFile]) -> tuple[PublishedFile, ...]:
    """Return the files, oldest session first."""
    return tuple(sorted(files, key=lambda f: (_seq(f.session), f.uri)))


def _seq(session: str) -> int:
    return int(session.removeprefix("cp").partition("-")[0])


def _read_back(context: TriggerContext, metadata: SegmentMetadata) -> tuple[PublishedFile, Output]:
    """Return file and output of one segment, from its custom map and from the file's receipt if kept."""
    try:
        uri, session = metadata.custom["pinotAssets.file"], metadata.custom["pinotAssets.session"]
        read = version_from_text(metadata.custom["pinotAssets.version"])
        _seq(session)
    except (KeyError, ValueError) as error:
        raise SessionError(
            f"the visible segment {metadata.segment} of {context.table} does not name its file",
            why=f"ZooKeeper remembers no snapshot, and the segment's custom map cannot be read: {error!r}",
            hint=f"restore {context.clients.store.path}, or delete this project's segments and ingest again",
        ) from error
    receipt = kept_receipts(context.staging, session, {uri: read.token}).get(uri)
    return PublishedFile(
        uri=uri,
        fingerprint=read,
        sha256=receipt.sha256 if receipt else "",
        rows=0,
        bad_rows=receipt.bad_rows if receipt else 0,
        session=session,
        outputs=(),
        version=read.token,
        seconds=receipt.seconds if receipt else 0.0,
    ), _output(context.staging, metadata, receipt)


def _output(staging: Staging, metadata: SegmentMetadata, receipt: Receipt | None) -> Output:
    for output in receipt.outputs if receipt else ():
        if (output.segment, output.crc) == (metadata.segment, metadata.crc):
            return output
    # The segment was renamed or has no receipt. Without size and hash, its tar is never published again.
    return Output(
        segment=metadata.segment,
        crc=metadata.crc,
        rows=metadata.total_docs,
        tar_uri=staging.store.uri_of(f"segments/{metadata.segment}.tar.gz"),
        tar_bytes=0,
        tar_sha256="",
        metadata_uri=staging.store.uri_of(f"segments/{metadata.segment}.metadata.tar.gz"),
        start_ms=metadata.start_ms,
        end_ms=metadata.end_ms,
    )


# --- a pointer that is behind -----------------------------------------------------------------------


def catch_up(context: TriggerContext) -> None:
    """Repair a pointer from a restored backup, before a step decides anything by it.

    If queries see a newer snapshot, that becomes the ledger. If Pinot was restored as well, the ledger stays,
    and the next session gets a number above all that were given.

    :raises SessionError: queries see neither the pointer's nor a newer snapshot; it says what to do.
    """
    if behind := catch_up_or_ask(context):
        raise refusal(context.table, context.lease.pointer, behind.unknown, behind.newer)


def adopted(
    table: str, clients: TableClients, pointer: Pointer, session: Session | None
) -> SnapshotRef | None:
    """Return the snapshot that would be the current one after `catch_up`; change nothing.

    :param session: the pointer's open session.
    :raises SessionError: as `catch_up`.
    """
    behind = staleness(table, clients, pointer, session) if not is_fresh(pointer) else Behind(())
    if behind.live is None and behind.unknown:
        raise refusal(table, pointer, behind.unknown, behind.newer)
    return behind.live or pointer.current_snapshot


def ledger_to_leave(
    table: str, clients: TableClients, pointer: Pointer, session: Session | None
) -> SnapshotRef | None:
    """As `adopted`, for a rollback to a snapshot that a person named: unknown segments do not stop that."""
    live = staleness(table, clients, pointer, session).live if not is_fresh(pointer) else None
    return live or pointer.current_snapshot


def catch_up_or_ask(context: TriggerContext) -> Behind | None:
    """As `catch_up`, but if only a person can choose what is right, return the choices and raise nothing.

    A rollback to a snapshot that a person named uses this: that snapshot is the choice.

    :returns: None if there is nothing to choose.
    """
    pointer = context.lease.pointer
    if is_fresh(pointer):
        return None  # `rebuild_if_lost` handles that
    session = context.active_session()
    behind = staleness(context.table, context.clients, pointer, session)
    if behind.live is not None:
        _adopt(context, session, StoredSnapshot(behind.live, context.staging.snapshot(behind.live)))
        return None
    _go_beyond(context, session, behind)
    return behind if behind.unknown else None


def _adopt(context: TriggerContext, session: Session | None, newest: StoredSnapshot) -> None:
    before, staging = context.lease.pointer, context.staging
    kept = [*outlines(staging, snapshot_refs(staging))]
    pointer = replace(
        before,
        format=max(before.format, newest.snapshot.format),
        active_session="",
        next_seq=beyond_all(context),
        history=tuple(context.clients.store.session_nodes()[-KEPT_SESSIONS:]),
        current_snapshot=newest.ref,
        hold=_hold(context, kept, newest.snapshot),
    )
    closed = _closed(context, session, kept) if session is not None else None
    context.lease.write(pointer=pointer, session=closed)
    close_lost_entries(context)
    was = f"snapshot {number_of(before.current_snapshot)}" if before.current_snapshot else "no snapshot"
    context.note(
        f"the pointer in ZooKeeper was older than what queries see (it named {was}): they see "
        f"exactly snapshot {newest.snapshot.session}, which is the ledger now; the next session "
        f"is cp{pointer.next_seq}"
    )


def _hold(context: TriggerContext, kept: Iterable[StoredSnapshot], now: Snapshot) -> ObjectRef | None:
    """Return the hold after catching up: of a rollback newer than the pointer, else the pointer's hold."""
    before, kept = context.lease.pointer, [*kept]
    since = number_of(before.current_snapshot)
    if any(k.snapshot.mode == Mode.ROLLBACK and k.snapshot.seq > since for k in kept):
        return hold_of_last_rollback(context, kept, now)
    if before.hold is None or context.mode is Mode.SWAP:
        return None  # a swap table that was published since is free again
    hold = still_held(context.hold(), now)
    return None if hold.is_empty else context.staging.put_hold(now.session, hold)


def _closed(context: TriggerContext, session: Session, kept: Iterable[StoredSnapshot]) -> Session:
    """Return the pointer's open session, closed: PUBLISHED if its snapshot is kept, else CLEARED."""
    if (own := next((k.snapshot for k in kept if k.snapshot.session == session.id), None)) is not None:
        published = replace(session, lineage_entry_id=own.lineage_entry_id, last_error="")
        return ended(published, Outcome.PUBLISHED, own.published_ms)
    lost = replace(session, last_error="a later session has published; this one is from a restored backup")
    return ended(lost, Outcome.CLEARED, context.clients.now_ms())


def _go_beyond(context: TriggerContext, session: Session | None, behind: Behind) -> None:
    """Raise `next_seq` above all numbers given, and take a session that is over off the pointer."""
    pointer = context.lease.pointer
    nodes = context.clients.store.session_nodes()
    given = [header.seq for header in behind.newer] + [int(node[2:]) for node in nodes]
    active = session.node if session is not None else ""
    if max(given, default=0) < pointer.next_seq and pointer.active_session == active:
        return
    ahead = replace(pointer, next_seq=beyond_all(context), active_session=active)
    context.lease.write(pointer=ahead)
    if behind.newer and not behind.unknown and behind.newer[0].seq >= pointer.next_seq:
        newest = behind.newer[0].seq
        context.note(
            f"the staging area has snapshot {newest}, which queries do not see: backups of "
            "ZooKeeper and Pinot seem to have been restored. Sessions continue from snapshot "
            f"{number_of(pointer.current_snapshot)} with number {ahead.next_seq}; `pinot-assets "
            f"rollback {context.table} --to {newest}` would publish that snapshot again without "
            "building its files"
        )
