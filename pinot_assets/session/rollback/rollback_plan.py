"""What a rollback would do: the way from the current snapshot of a table back to each kept one (rule R22).

There are two ways. A revert of the newest switch costs nothing and leads to one snapshot, as long as Pinot
keeps what that switch replaced. A re-publish of staged tars leads to any snapshot whose tars are still
there. `rollback_facts` reads the facts, without a lease; `RollbackFacts` decides from them alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice

from pinot_assets.core.stored_format import structured
from pinot_assets.errors import RollbackRefused
from pinot_assets.pinot import versions
from pinot_assets.pinot.api import PinotClient
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState, why_not_revert
from pinot_assets.pinot.table_config import prunes_segments
from pinot_assets.session.recover.lost_pointer import adopted, ledger_to_leave
from pinot_assets.session.rollback.spec_of_target import SpecOfTarget, spec_of_target
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.staging import staged
from pinot_assets.session.stores.stored_snapshots import (
    StoredSnapshot,
    find_target,
    read_snapshots,
    snapshots_of,
)
from pinot_assets.session.values.state import Mode, Pointer, Session, State, is_ours
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.tables.drift import held_table_config


class RollbackWay(StrEnum):
    """How a snapshot is reached."""

    REVERT = "revert"
    REPUBLISH = "re-publish"


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """From the current snapshot to a kept one.

    :ivar way: None if no way is open; `why_not` says why.
    :ivar entry_id: the lineage entry that a revert undoes, "" for the other way.
    :ivar until_ms: until when it can be reverted, epoch milliseconds; None for the other way.
    :ivar comes: segments that become visible; a re-publish pushes them.
    :ivar goes: segments that queries see no more.
    :ivar no_revert: why it is not reverted; "" where it is.
    :ivar no_republish: why the tars cannot be published again; "" where they can.
    :ivar drops: the open session, which is dropped with all that it built: its plan was compared with the
        snapshot that the rollback leaves.
    :ivar spec: what the table spec must be for the target; None if it is that, or if it is not known.
    """

    current: StoredSnapshot
    target: StoredSnapshot
    way: RollbackWay | None
    entry_id: str
    until_ms: int | None
    comes: tuple[Output, ...]
    goes: tuple[str, ...]
    no_revert: str
    no_republish: str
    drops: Session | None = None
    spec: SpecOfTarget | None = None

    @property
    def promise(self) -> tuple[object, ...]:
        """The parts of the plan that a person was shown and that must not change."""
        dropped = self.drops.id if self.drops is not None else ""
        comes = [output.segment for output in self.comes]
        return self.way, self.current.ref, self.target.ref, sorted(self.goes), sorted(comes), dropped

    @property
    def why_not(self) -> str:
        """Why there is no way at all."""
        return f"no revert: {self.no_revert}; no re-publish: {self.no_republish}"

    @property
    def files_come(self) -> tuple[PublishedFile, ...]:
        """Versions of files that become visible, or that become visible as another revision built them."""
        return _without(self.target.snapshot, self.current.snapshot)

    @property
    def files_go(self) -> tuple[PublishedFile, ...]:
        """Versions of files that queries see no more, or no more as the present revision built them."""
        return _without(self.current.snapshot, self.target.snapshot)


def _without(some: Snapshot, others: Snapshot) -> tuple[PublishedFile, ...]:
    # Another revision of the table spec may have built the same version of a file.
    known = {(f.uri, f.version, f.revision) for f in others.files}
    return tuple(f for f in some.files if (f.uri, f.version, f.revision) not in known)


@dataclass(frozen=True, slots=True)
class RollbackFacts:
    """The facts that decide which ways are open for one table.

    :ivar mode: of the table spec; on a swap table, every visible segment is the table's own to replace.
    :ivar segments: all names in the table.
    :ivar tars: key → bytes of the staged segments.
    :ivar window_ms: how long after a switch that replaced something it may be reverted.
    :ivar takes_empty_outputs: whether this Pinot can switch to nothing.
    :ivar prunes: whether brokers prune the table's segments. Then a revert shows too few rows for some ten
        milliseconds (docs/design/lineage.md#the-gap-of-a-revert), which a switch does not.
    """

    table: str
    mode: Mode
    lineage: Lineage
    segments: frozenset[str]
    visible: frozenset[str]
    tars: Mapping[str, int]
    window_ms: int
    takes_empty_outputs: bool
    now_ms: int
    prunes: bool = False

    def plan(self, current: StoredSnapshot, target: StoredSnapshot) -> RollbackPlan:
        """The way from one snapshot to another."""
        no_revert, until_ms = self.revert(current.snapshot, target.snapshot)
        no_republish = self._republish(current, target)
        can_revert, can_republish = not no_revert, not no_republish
        way = RollbackWay.REVERT if can_revert else RollbackWay.REPUBLISH if can_republish else None
        if self.prunes and can_republish:
            way = RollbackWay.REPUBLISH
        return RollbackPlan(
            current=current,
            target=target,
            way=way,
            entry_id=current.snapshot.lineage_entry_id if way is RollbackWay.REVERT else "",
            until_ms=until_ms if way is RollbackWay.REVERT else None,
            comes=coming(self.visible, target.snapshot),
            goes=going(self.table, self.mode, self.visible, target.snapshot),
            no_revert=no_revert,
            no_republish=no_republish,
        )

    def revert(self, current: Snapshot, target: Snapshot) -> tuple[str, int | None]:
        """Why the newest switch cannot be reverted to get there, "" if it can; and until when it can."""
        entry = self.lineage.get(current.lineage_entry_id)
        if entry is None or entry.state is not LineageState.COMPLETED:
            return "Pinot has already forgotten the switch", None
        if before_switch(self.table, current, entry) != set(target.segments):
            return "the newest switch did not replace this snapshot", None
        # If the switch replaced nothing, Pinot has nothing to delete, so its window does not matter.
        window_ms = self.window_ms if entry.segments_from else versions.RENEWAL_MS
        if not window_ms:
            return "Pinot deletes at once what a switch of this table replaced", None
        age_ms = self.now_ms - entry.timestamp_ms
        if age_ms > window_ms:
            hours = f"{age_ms / versions.HOUR_MS:.0f} hours old"
            return f"the switch is {hours}, and Pinot may be deleting what it replaced", None
        reasons = why_not_revert(self.lineage, self.segments, entry.id)
        # A delayed start of ours (rule R1) would hide the segments that come back.
        delayed = self.lineage.naming(target.segments, LineageState.IN_PROGRESS)
        reasons += [f"entry {late.id} is open and hides segments of this snapshot" for late in delayed]
        reasons = reasons or [
            f"entry {later.id} was started after it"
            for later in self.lineage.in_state(LineageState.COMPLETED)
            if later.timestamp_ms > entry.timestamp_ms
            and any(is_ours(self.table, name) for name in later.segments_from | later.segments_to)
        ]
        return "; ".join(reasons), entry.timestamp_ms + window_ms

    def _republish(self, current: StoredSnapshot, target: StoredSnapshot) -> str:
        """Why the snapshot's tars cannot be published again, "" if they can."""
        away = going(self.table, self.mode, self.visible, target.snapshot)
        if current.ref == target.ref and not any(is_ours(self.table, name) for name in away):
            return "it is the current snapshot"
        if not target.snapshot.segments and not self.takes_empty_outputs:
            return "this Pinot is older than 1.0 and cannot switch to an empty table"
        for entry in self.lineage.in_state(LineageState.IN_PROGRESS):
            ours = all(is_ours(self.table, name) for name in entry.segments_to)
            if not ours and not entry.segments_from.isdisjoint(away):
                return f"entry {entry.id} of another program is replacing segments that have to be removed"
        gone = [
            o.segment
            for o in coming(self.visible, target.snapshot)
            if self.tars.get(f"segments/{o.segment}.tar.gz") != o.tar_bytes
        ]
        return f"{len(gone):,} of its tars are missing in the staging area, first {min(gone)}" if gone else ""


def rollback_facts(spec: TableSpec, clients: TableClients) -> RollbackFacts:
    """Read the facts; change nothing."""
    tars = {info.key: info.fingerprint.size for info in staged(clients.staging, "segments")}
    return _facts(spec, clients.pinot, tars, clients.now_ms())


def _facts(spec: TableSpec, pinot: PinotClient, tars: Mapping[str, int], now_ms: int) -> RollbackFacts:
    version, config = pinot.version(), held_table_config(spec, pinot)
    return RollbackFacts(
        table=spec.name,
        mode=Mode(spec.mode.upper()),
        lineage=pinot.lineage(spec.name),
        segments=pinot.all_segments(spec.name),
        visible=pinot.visible_segments(spec.name),
        tars=tars,
        window_ms=versions.way_back_ms(version, config),
        takes_empty_outputs=versions.takes_empty_outputs(version),
        now_ms=now_ms,
        prunes=prunes_segments(config),
    )


def revert_until_ms(
    spec: TableSpec, pinot: PinotClient, current: Snapshot, before: Snapshot, now_ms: int
) -> int | None:
    """Until when one revert leads from a snapshot to the one before.

    :returns: epoch milliseconds, None when it does not, or when a rollback publishes again in its place.
    """
    facts = _facts(spec, pinot, {}, now_ms)
    no_revert, until_ms = facts.revert(current, before)
    return None if no_revert or facts.prunes else until_ms


def coming(visible: frozenset[str], target: Snapshot) -> tuple[Output, ...]:
    """Segments of a snapshot that are not visible, and so have to be pushed again."""
    return tuple(o for name, o in target.segments.items() if name not in visible)


def going(table: str, mode: Mode, visible: frozenset[str], target: Snapshot) -> tuple[str, ...]:
    """Visible segments that the snapshot lacks: ours, and on a swap table all (rule R22)."""
    return tuple(sorted(s for s in visible - set(target.segments) if mode is Mode.SWAP or is_ours(table, s)))


def before_switch(table: str, current: Snapshot, entry: LineageEntry) -> set[str]:
    """Our segments that were visible before the switch of that entry, which made `current`."""
    return (set(current.segments) - entry.segments_to) | {s for s in entry.segments_from if is_ours(table, s)}


def rollback_plans(spec: TableSpec, clients: TableClients, newest: int) -> Iterator[RollbackPlan]:
    """The ways to the newest kept snapshots that can be read, newest first; needs no lease.

    :param newest: how many to look at.
    """
    if (ref := clients.store.pointer().current_snapshot) is None:
        return
    staging, facts = clients.staging, rollback_facts(spec, clients)
    current = StoredSnapshot(ref, staging.snapshot(ref))
    for kept in islice(snapshots_of(staging, current), newest):
        yield facts.plan(current, kept)


def rollback_plan(spec: TableSpec, clients: TableClients, to: str = "") -> RollbackPlan:
    """What a rollback would do; takes no lease and changes nothing.

    :param to: number or session of a kept snapshot; "" is the one before the current one. While a
        rollback is half way, its own target.
    :raises RollbackRefused: there is nothing to go back to, or a session is in its switch (rule R21).
    """
    pointer = clients.store.pointer()
    session = clients.store.active_session(pointer)
    ref = (ledger_to_leave if to else adopted)(spec.name, clients, pointer, session)
    if ref is None:
        raise RollbackRefused(f"{spec.name} has never been published", hint="there is nothing to roll back")
    current = StoredSnapshot(ref, clients.staging.snapshot(ref))
    session = session if ref == pointer.current_snapshot else None
    if session is not None and session.mode is Mode.ROLLBACK:
        return _half_way(spec, clients, session, current, to)
    target = find_target(clients.staging, current, to)
    if session is not None and session.state is State.SWITCH:
        shut = session.audit is not None and not session.audit.passed
        gate = ", and its gate is shut" if shut else ""
        raise RollbackRefused(
            f"session {session.id} of {spec.name} is in its switch{gate}",
            why=session.last_error or "it is staged in Pinot and has not ended yet",
            # What did not pass may well not pass again: then a run ends nothing.
            hint=(
                f"`pinot-assets session clear {spec.name}` drops it, and what is published stays; "
                "then roll back"
            )
            if shut
            else "run the table once more to end it, then roll back",
        )
    plan = rollback_facts(spec, clients).plan(current, target)
    if plan.way is None and target.ref == current.ref:
        raise RollbackRefused(
            f"{spec.name} is at snapshot {current.snapshot.seq} already",
            hint=f"`pinot-assets snapshots {spec.name}` lists those before it",
        )
    return replace(plan, drops=session, spec=spec_of_target(spec, current.snapshot, target.snapshot))


def _half_way(
    spec: TableSpec, clients: TableClients, session: Session, current: StoredSnapshot, to: str
) -> RollbackPlan:
    target = target_of(clients, session)
    if to and find_target(clients.staging, current, to).ref != target.ref:
        raise RollbackRefused(
            f"a rollback of {spec.name} to {target.snapshot.session} has begun",
            why=f"rollback {session.id} was interrupted",
            hint="finish that rollback (`rollback` without --to) or give it up (`session clear`) first",
        )
    plan = rollback_facts(spec, clients).plan(current, target)
    return replace(plan, way=RollbackWay.REVERT if is_revert(session) else RollbackWay.REPUBLISH)


def from_source(clients: TableClients, current: StoredSnapshot) -> StoredSnapshot:
    """The newest snapshot that was made from the source, as far as it can be read: a rollback's is not."""
    ref = current.snapshot.audit.get("source") if current.snapshot.mode == Mode.ROLLBACK else None
    if not ref:
        return current
    source = structured(SnapshotRef, ref, "the name of a snapshot")
    return next(read_snapshots(clients.staging, [source]), current)


def is_revert(session: Session) -> bool:
    """Whether a rollback goes by reverting; a re-publish is IN_PROGRESS until its switch is written."""
    return session.state is State.SWITCH and session.switch_object is None


def ends_of(
    clients: TableClients, session: Session, pointer: Pointer
) -> tuple[StoredSnapshot, StoredSnapshot]:
    """The snapshots from which and to which a rollback leads."""
    ref = pointer.current_snapshot
    assert ref is not None
    return StoredSnapshot(ref, clients.staging.snapshot(ref)), target_of(clients, session)


def target_of(clients: TableClients, session: Session) -> StoredSnapshot:
    """The snapshot to which a rollback leads."""
    assert session.target is not None
    return StoredSnapshot(session.target, clients.staging.snapshot(session.target))
