"""What `forget` deletes of a table, and what stays: read, decided and told; nothing is changed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import counted, plural, size
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import ForgetRefused, PinotNotFound, SnapshotCorrupt
from pinot_assets.gc.bad_rows import is_bad_rows
from pinot_assets.gc.staged_names import PACK_OBJECT, PROBE, SESSION_OBJECT, SNAPSHOT_OBJECT, staged_segment
from pinot_assets.pinot.lineage import Lineage, LineageState
from pinot_assets.pinot.shadow_table import left_shadow
from pinot_assets.session.detect.listing import PART_KEY
from pinot_assets.session.lineage.stale_pointer import published
from pinot_assets.session.recover.interrupted import unknown_of
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.staged_files import THREADS, tar_keys
from pinot_assets.session.stores.staging import staged
from pinot_assets.session.stores.stored_snapshots import (
    SnapshotHeader,
    mark_of,
    snapshot_headers,
    why_not_ours,
)
from pinot_assets.session.values.state import Mode, Pointer, Session, State, ours_of
from pinot_assets.source.file_table import ObjectInfo
from pinot_assets.table_spec import TableSpec


class StagedKind(StrEnum):
    """What an object of the staging area is, in the order in which they are deleted."""

    SNAPSHOT = "snapshot or its rows"
    SESSION = "plan, receipt or other object of a session"
    BAD_ROWS = "rows put aside"
    TAR = "staged tar"
    PACK = "member list of a pack, or rows for packs"
    LISTING = "part of a listing"
    PROBE = "probe"
    MARK = "marker of the cluster"


class WhyKept(StrEnum):
    """Why an object of the staging area stays."""

    DOWNLOADED = "segments in Pinot are downloaded from there"
    STRANGE = "pinot-assets gives no such name"
    OTHERS = "it may belong to another cluster"


@dataclass(frozen=True, slots=True)
class StagedGroup:
    """Objects of the staging area of which one thing is said.

    :ivar what: what they are, or why they stay.
    :ivar keys: sorted.
    :ivar size: their bytes.
    """

    what: StagedKind | WhyKept
    keys: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What `forget` deletes of a table, and what stays.

    :ivar table: raw name.
    :ivar mode: mode of the table spec.
    :ivar uri: the table's folder of the staging area.
    :ivar nodes: names of the table's nodes in ZooKeeper, the pointer first.
    :ivar shadow: name of the shadow table that an audit left in Pinot, "" for none.
    :ivar removed: objects of the staging area to delete, in this order.
    :ivar headers: the kept snapshots to delete, oldest first.
    :ivar kept: objects of the staging area that stay.
    :ivar segments: number of segments in Pinot; None if Pinot has no such table.
    :ivar ours: number of visible segments that this project published.
    :ivar entries: number of lineage entries in Pinot.
    :ivar holds: whether a rollback holds something back.
    :ivar notes: what could not be judged, and why.
    """

    table: str
    mode: str
    uri: str
    nodes: tuple[str, ...]
    shadow: str
    removed: tuple[StagedGroup, ...]
    headers: tuple[SnapshotHeader, ...]
    kept: tuple[StagedGroup, ...]
    segments: int | None
    ours: int
    entries: int
    holds: bool
    notes: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to delete."""
        return not (self.nodes or self.shadow or self.removed)


def look_at_table(spec: TableSpec, clients: TableClients, pointer: Pointer) -> ForgetPlan:
    """Find out what is stored about a table, what of it `forget` deletes, and what stays.

    :param pointer: the pointer as it is now; under the lease, the owner's.
    :raises ForgetRefused: a session or a replacement of ours is open, or queries see segments of ours that no
        snapshot knows.
    """
    table, staging = spec.name, clients.staging
    _refuse_open(table, clients.store.active_session(pointer))
    segments, lineage = _in_pinot(table, clients)
    visible = lineage.visible(segments or ())
    _refuse_unfinished(table, lineage)
    notes = [*_stray_notes(table, clients, pointer, visible)]
    listed = [*staged(staging, "")]
    if why := _why_others(clients, listed, pointer):
        notes.append(f"all that is staged is kept: {why}")
        kinds: dict[str, StagedKind | WhyKept] = {info.key: WhyKept.OTHERS for info in listed}
    else:
        mark = mark_of(clients.store.owner())
        kinds = {info.key: _kind_of(table, info.key, mark) for info in listed}
        kinds |= dict.fromkeys(
            _downloaded(table, clients, listed, segments or frozenset()), WhyKept.DOWNLOADED
        )
    groups = _grouped(listed, kinds)
    has_nodes = clients.store.pointer_written_ms() is not None
    return ForgetPlan(
        table=table,
        mode=spec.mode,
        uri=staging.store.uri,
        nodes=("pointer", *clients.store.session_nodes()) if has_nodes else (),
        shadow=left_shadow(clients.pinot, table),
        removed=tuple(group for group in groups if isinstance(group.what, StagedKind)),
        headers=() if why else tuple(reversed(snapshot_headers(listed))),
        kept=tuple(group for group in groups if isinstance(group.what, WhyKept)),
        segments=None if segments is None else len(segments),
        ours=len(ours_of(table, visible)),
        entries=len(lineage.entries),
        holds=pointer.hold is not None,
        notes=tuple(notes),
    )


# --- what stops it -----------------------------------------------------------------------------------


def _refuse_open(table: str, session: Session | None) -> None:
    if session is None:
        return
    if session.mode is Mode.ROLLBACK:
        what, drop = f"rollback {session.id} is not finished", "gives it up"
    elif session.state is State.SWITCH:
        what, drop = f"the switch of session {session.id} is not finished", "drops the session"
    else:
        what, drop = f"session {session.id} is open ({session.state})", "drops it with what it built"
    raise ForgetRefused(
        f"{table} is not forgotten",
        why=f"{what}; nothing was removed",
        hint=f"finish or drop it first, then type `pinot-assets forget {table}` again:\n"
        f"    pinot-assets run {table}            (finishes it)\n"
        f"    pinot-assets session clear {table}  ({drop})",
    )


def _refuse_unfinished(table: str, lineage: Lineage) -> None:
    """Refuse while an entry of ours is IN_PROGRESS: it hides segments, and nothing would end or revert it."""
    for entry in lineage.in_state(LineageState.IN_PROGRESS):
        if ours_of(table, entry.segments_from | entry.segments_to):
            raise ForgetRefused(
                f"{table} is not forgotten",
                why=f"lineage entry {entry.id} has segments of pinot-assets and is not ended; "
                "nothing was removed",
                hint=f"a run settles it, then type `pinot-assets forget {table}` again:\n"
                f"    pinot-assets run {table}",
            )


def _stray_notes(table: str, clients: TableClients, pointer: Pointer, visible: Set[str]) -> Iterator[str]:
    """Refuse if queries see strays: nothing would delete them any more. Yield why that is not known."""
    if pointer.current_snapshot is None:
        return  # what is visible is all there is: an earlier `forget` ended here, or the pointer was lost
    try:
        unknown = unknown_of(table, visible, clients.staging.reach(pointer.current_snapshot).segments)
    except SnapshotCorrupt as error:
        yield f"whether all visible segments were published is not known: {error.reason}"
        return
    if strays := unknown - published(table, clients.pinot, clients.staging, pointer, unknown):
        raise ForgetRefused(
            f"{table} is not forgotten",
            why=f"queries see {plural(len(strays), 'segment')} in no snapshot, first {min(strays)}; "
            "nothing was removed",
            hint=f"a run deletes them, then type `pinot-assets forget {table}` again:\n"
            f"    pinot-assets run {table}",
        )


# --- what is there -----------------------------------------------------------------------------------


def _in_pinot(table: str, clients: TableClients) -> tuple[frozenset[str] | None, Lineage]:
    """Return segments and lineage in Pinot; None and no entry if Pinot has no such table."""
    try:
        segments = clients.pinot.all_segments(table)
        return segments, clients.pinot.lineage(table)  # after the segments: each is seen with its entry
    except PinotNotFound:
        return None, Lineage()


def _why_others(clients: TableClients, listed: Sequence[ObjectInfo], pointer: Pointer) -> str:
    """Return why the objects may belong to another cluster, "" if all provably belong to this one."""
    try:
        return why_not_ours(clients.staging, clients.store.owner(), listed, pointer.current_snapshot)
    except SnapshotCorrupt as error:
        return f"a snapshot cannot be read, so its cluster is not known: {error.reason}"


def _downloaded(
    table: str, clients: TableClients, listed: Iterable[ObjectInfo], segments: Set[str]
) -> frozenset[str]:
    """Return the keys of staged tars from which servers download segments of the table.

    Pinot copies each tar into its deep store when it is pushed (docs/guides/push.md). So there are none,
    unless somebody pushed a staged tar again without that copy.
    """
    names = sorted({staged_segment(table, info.key) for info in listed} & segments)

    def url_of(name: str) -> str:
        try:
            return clients.pinot.segment_metadata(table, name).download_url
        except PinotNotFound:
            return ""  # deleted just now

    urls = in_threads(url_of, names, THREADS, "segments")
    return frozenset(
        key
        for name, url in zip(names, urls, strict=True)
        for key in tar_keys(name)[:1]
        if url == clients.staging.store.uri_of(key) or url.endswith(f"/{table}_OFFLINE/{key}")
    )


def _kind_of(table: str, key: str, mark: str) -> StagedKind | WhyKept:
    """:param mark: key of this cluster's marker."""
    if staged_segment(table, key):
        return StagedKind.TAR
    if is_bad_rows(key):
        return StagedKind.BAD_ROWS
    if SESSION_OBJECT.fullmatch(key):
        return StagedKind.SESSION
    if SNAPSHOT_OBJECT.fullmatch(key):
        return StagedKind.SNAPSHOT
    if PACK_OBJECT.fullmatch(key):
        return StagedKind.PACK
    if PART_KEY.fullmatch(key):
        return StagedKind.LISTING
    if PROBE.fullmatch(key):
        return StagedKind.PROBE
    return StagedKind.MARK if key == mark else WhyKept.STRANGE


def _grouped(listed: Iterable[ObjectInfo], kinds: Mapping[str, StagedKind | WhyKept]) -> list[StagedGroup]:
    """Return these objects in groups, those to be deleted first and in the order of their kinds."""
    sizes = {info.key: info.fingerprint.size for info in listed}
    return [
        StagedGroup(kind, keys, sum(sizes[key] for key in keys))
        for kind in (*StagedKind, *WhyKept)
        if (keys := tuple(sorted(key for key, of in kinds.items() if of is kind)))
    ]


# --- for people and programs -------------------------------------------------------------------------


def forget_values(plan: ForgetPlan) -> JsonObject:
    """Return a plan as JSON values."""
    return {
        "table": plan.table,
        "removes": {
            "nodes": list(plan.nodes),
            "shadowTable": plan.shadow or None,
            "staged": [_group_values(group) for group in plan.removed],
        },
        "keeps": {
            "segments": plan.segments,
            "lineageEntries": plan.entries,
            "staged": [_group_values(group) for group in plan.kept],
        },
        "notes": [*plan.notes, *consequences(plan)],
    }


def _group_values(group: StagedGroup) -> JsonObject:
    return {"what": group.what, "objects": len(group.keys), "bytes": group.size, "first": group.keys[0]}


def forget_lines(plan: ForgetPlan) -> Iterator[tuple[str, str]]:
    """Yield what a plan says, a label and a text for each line."""
    if plan.nodes:
        yield "removes", f"in ZooKeeper: {', '.join(plan.nodes)}"
    if plan.shadow:
        yield "removes", f"in Pinot: {plan.shadow}, which an audit left"
    for number, group in enumerate(plan.removed):
        where = f"in {plan.uri}: " if not number else ""
        yield "" if number else "removes", f"{where}{len(group.keys):,} × {group.what}, {size(group.size)}"
    if plan.segments is not None:
        entries = counted(plan.entries, "lineage entry", "lineage entries")
        stays = f"{plural(plan.segments, 'segment')}, {entries}"
        yield "stays", f"in Pinot: the table, its schema and config, {stays}; queries do not change"
    for group in plan.kept:
        yield (
            "stays",
            f"in {plan.uri}: {plural(len(group.keys), 'object')}, {size(group.size)}, "
            f"first {group.keys[0]}: {group.what}",
        )
    yield "stays", "the files of the source, the table spec, and the history in Dagster"
    yield from (("note", note) for note in (*plan.notes, *consequences(plan)))


def consequences(plan: ForgetPlan) -> Iterator[str]:
    """Yield what the table's owner loses, and what a later run would do."""
    if plan.nodes or plan.removed:
        yield "the snapshots are lost: no rollback, history, why or where of the table is possible any more"
    if plan.holds:
        yield "a rollback holds changes back: that is forgotten, and a later run publishes them"
    if plan.ours:
        yield (
            f"a later run of {plan.table} makes its ledger from the {plural(plan.ours, 'segment')} in Pinot. "
            "Each of them names its file and version, so the run loads none of these files twice. Content "
            f"hashes are lost: a file that was only touched counts as rewritten{_TOUCHED.get(plan.mode, '')}"
        )
        yield (
            "to prevent a later run, turn off the table's sensor and schedule, end `watch`, or delete the "
            "table spec"
        )


_TOUCHED: Final[Mapping[str, str]] = {
    "append": ", and its rows are then in the table twice",
    "swap": "; the run builds all files and replaces the segments",
}
"""What a touched file does to a table of that mode."""
