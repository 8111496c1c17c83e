"""The cost of one switch: segments, rows, bytes, room, the two ZNodes, and what a forced start deletes.

What is unknown before files are read is marked as an estimate from the ledger, or as unknown. It never looks
like a count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pinot_assets.errors import PinotAssetsError, PinotError
from pinot_assets.pinot import versions
from pinot_assets.pinot.api import ServerDisk
from pinot_assets.pinot.table_config import prunes_segments
from pinot_assets.session.checks.capacity import (
    IdealState,
    beside,
    bytes_before,
    generation_before,
    ideal_state,
    names_at_least,
    quota_bytes,
    replication_of,
    tars_at_once,
    znode_bytes,
)
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.plan_report.planned_packs import PlannedPacks
from pinot_assets.session.plan_report.planned_run import PlannedRun
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.plan import Row
from pinot_assets.session.values.state import Mode, PushKind
from pinot_assets.snapshot.receipt import Output


@dataclass(frozen=True, slots=True)
class Sums:
    """Of rows, or of bytes of one replica.

    :ivar now: what the ledger knows of; segments of others come on top.
    :ivar after: once it is done.
    """

    now: int
    removed: Estimate
    added: Estimate
    after: Estimate


@dataclass(frozen=True, slots=True)
class ForceCleanupLoss:
    """What a forced start deletes for good: the segments of the snapshot before the present one.

    :ivar at_start: before anything is pushed (`rollbackWindow: pinotDefault`), else right before the end.
    """

    segments: tuple[str, ...]
    bytes: int
    at_start: bool


@dataclass(frozen=True, slots=True)
class SwitchCost:
    """What one switch takes and leaves.

    :ivar added: names of new segments; of files that are not built yet, one for each that is not empty.
    :ivar unread: whether there are such files: each may become more segments, or none.
    :ivar lineage_bytes: the node with the new entry, `entry_bytes` of it for that.
    :ivar revert_ms: for how long after the switch a revert leads back, 0 for not at all.
    :ivar prunes: whether brokers prune the table's segments: then a rollback does not revert.
    """

    added: tuple[str, ...]
    unread: bool
    rows: Sums
    bytes: Sums
    room: CapacityAfter
    lineage_bytes: int
    entry_bytes: int
    ideal_state: IdealState
    force_cleanup_loss: ForceCleanupLoss
    revert_ms: int
    prunes: bool = False


def switch_cost_of(context: TriggerContext, planned: PlannedRun, packs: PlannedPacks) -> SwitchCost:
    """Read and add up; writes nothing.

    :param planned: one that leads up to a switch.
    :param packs: what it does with packs.
    """
    built = list(planned.outputs)
    unread = [row for row in planned.to_build if row.planned.size]
    plan, present = planned.decision.plan, context.pinot.all_segments(context.table)
    to_come = names_at_least(context.table, plan, unread) if plan is not None else []
    to_come += packs.names(context.table, plan) if plan is not None else []
    added = (*(o.segment for o in built), *to_come)
    doomed = _doomed(context, planned)
    rows, size = _sums(planned, built, unread, packs)
    pushed = size.added.plus(-sum(o.loaded_bytes for o in built if o.segment in present))
    tars = [o.tar_bytes for o in built if o.segment not in present]
    tars += _tars_to_come(planned, size.added.guess, len(to_come))
    removed = size.removed.total or 0
    freed = doomed.bytes if doomed.at_start else 0
    kept, ours = beside(context.switcher().fetch(), planned.segments_from, added)
    node = znode_bytes(context.table, [*kept, ours])
    return SwitchCost(
        added=added,
        unread=bool(unread),
        rows=rows,
        bytes=size,
        room=capacity_after_switch(context, pushed, freed, removed + doomed.bytes - freed, tars),
        lineage_bytes=node,
        entry_bytes=node - znode_bytes(context.table, kept),
        ideal_state=ideal_state(
            context.table,
            present.difference(doomed.segments).union(added),
            _servers(context),
            replication_of(context.read_table_config()),
        ),
        force_cleanup_loss=doomed,
        revert_ms=_revert_ms(context, planned, added),
        prunes=prunes_segments(context.read_table_config()),
    )


def _sums(
    planned: PlannedRun, built: list[Output], unread: list[Row], packs: PlannedPacks
) -> tuple[Sums, Sums]:
    """Rows and bytes."""
    current = planned.decision.current
    known: Mapping[str, Output] = current.segments if current is not None else {}
    gone = [known[name] for name in planned.segments_from if name in known]
    # A swap replaces segments of others, too; their rows and bytes are unknown here.
    foreign = len(gone) < len(planned.segments_from)
    source = sum(f.fingerprint.size for f in current.files) if current is not None else 0
    to_read = sum(row.planned.size for row in unread)

    def sums(now: int, removed: int, added: int) -> Sums:
        per_byte = now / source if now and source else None
        come = cost_of_files(added, to_read, len(unread), per_byte)
        # Nothing that is visible stays of a swap.
        after = come if planned.mode is Mode.SWAP else come.plus(now - removed)
        return Sums(now, at_least(removed) if foreign else Estimate(removed), come, after)

    loaded = sum(o.loaded_bytes for o in known.values())
    removed = sum(o.rows for o in gone)
    new_bytes = sum(o.loaded_bytes for o in built) + packs.kept_bytes
    return (
        sums(sum(o.rows for o in known.values()), removed, sum(o.rows for o in built) + packs.kept_rows),
        sums(loaded, sum(o.loaded_bytes for o in gone), new_bytes),
    )


def _tars_to_come(planned: PlannedRun, loaded: int | None, segments: int) -> list[int]:
    """Bytes of each tar of files that are not read yet, packed as those of the ledger are.

    :param loaded: bytes of all of them, unpacked; None where the ledger has nothing to go by.
    """
    known = planned.decision.current.segments.values() if planned.decision.current is not None else ()
    unpacked = sum(o.loaded_bytes for o in known)
    if not loaded or not unpacked or not segments:
        return []
    return [loaded * sum(o.tar_bytes for o in known) // unpacked // segments] * segments


def _doomed(context: TriggerContext, planned: PlannedRun) -> ForceCleanupLoss:
    at_start = context.switcher().starts_forced
    if planned.push is PushKind.PLAIN:  # entries of one file each
        return ForceCleanupLoss((), 0, at_start)
    switch = Switch(0, planned.segments_from, ())
    return ForceCleanupLoss(
        tuple(sorted(generation_before(context, switch))), bytes_before(context, switch), at_start
    )


def _servers(context: TriggerContext) -> tuple[str, ...]:
    """The table's, or as many of usual names as it has replicas, where Pinot does not say."""
    try:
        return tuple(context.pinot.table_servers(context.table))
    except PinotAssetsError:
        replicas = replication_of(context.read_table_config())
        return tuple(f"Server_pinot-server-{n}_8098" for n in range(replicas))


def _revert_ms(context: TriggerContext, planned: PlannedRun, added: tuple[str, ...]) -> int:
    no_entry = planned.push is PushKind.PLAIN or not (added or planned.segments_from)
    if no_entry or planned.decision.current is None:
        return 0
    # As `rollback_plan`: one that replaced nothing has nothing that Pinot could delete.
    if not planned.segments_from:
        return versions.RENEWAL_MS
    return versions.way_back_ms(context.read_pinot_version(), context.read_table_config())


@dataclass(frozen=True, slots=True)
class Disk:
    """One server's disk.

    :ivar free: bytes, None where it is not known; `why_not` says why.
    :ivar after: what is left once its part has come; None where that is not known.
    :ivar loading: what is left while it holds the tars of its part, too; None likewise.
    """

    server: str
    free: int | None
    after: int | None = None
    loading: int | None = None
    why_not: str = ""

    @property
    def fits(self) -> bool | None:
        """Whether its part fits while it is loaded; None where that is not known."""
        return None if self.loading is None else self.loading >= 0


@dataclass(frozen=True, slots=True)
class CapacityAfter:
    """Bytes over all replicas.

    :ivar quota: what `quota.storage` allows, None without one.
    :ivar present: what the table takes now, hidden segments included; None where no server says.
    :ivar coming: what is pushed.
    :ivar at_peak: while old and new are both there.
    :ivar later: when Pinot has deleted what was replaced.
    """

    replication: int
    quota: int | None
    present: int | None
    coming: Estimate
    at_peak: Estimate | None
    later: Estimate | None
    disks: tuple[Disk, ...]

    @property
    def fits(self) -> bool | None:
        """Whether it fits into the quota; None where that is not known, or there is none."""
        total = self.at_peak.total if self.at_peak is not None else None
        return None if self.quota is None or total is None else total <= self.quota


def capacity_after_switch(
    context: TriggerContext, coming: Estimate, freed: int, replaced: int, tars: Sequence[int] = ()
) -> CapacityAfter:
    """Ask Pinot, and add up.

    :param coming: bytes of one replica that are pushed.
    :param freed: bytes of one replica that a forced start deletes before anything is pushed.
    :param replaced: bytes of one replica that Pinot deletes later.
    :param tars: bytes of each tar that is pushed, as far as that is known.
    """
    replication = replication_of(context.read_table_config())
    quota = quota_bytes(context.read_table_config())
    present: int | None = None
    with suppress(PinotError):
        present = context.pinot.table_bytes(context.table)
    coming = coming.times(replication)
    peak = coming.plus(present - freed * replication) if present is not None else None
    return CapacityAfter(
        replication=replication,
        quota=None if quota is None else quota * replication,
        present=present,
        coming=coming,
        at_peak=peak,
        later=peak.plus(-replaced * replication) if peak is not None else None,
        disks=_disks(context, coming.plus(-freed * replication), tars, replication),
    )


def _disks(
    context: TriggerContext, coming: Estimate, tars: Sequence[int], replication: int
) -> tuple[Disk, ...]:
    pinot = context.pinot
    try:
        servers = pinot.table_servers(context.table)
        disks = pinot.server_disks(servers)
    except PinotError as error:
        return (Disk("all servers", None, why_not=error.reason),)
    part = None if coming.total is None else max(0, coming.total) // max(len(servers), 1)
    beside = tars_at_once(tars, replication, len(servers)) if part else 0
    return tuple(_disk(server, disks.get(server), part, beside) for server in servers)


def _disk(server: str, answer: ServerDisk | PinotError | None, part: int | None, tars: int) -> Disk:
    if answer is None:
        return Disk(server, None, why_not="Pinot's servers report it since 1.3")
    if isinstance(answer, PinotError):
        return Disk(server, None, why_not=answer.reason)
    free = answer.total - answer.used
    return Disk(server, free) if part is None else Disk(server, free, free - part, free - part - tars)


# --- estimates ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows or bytes.

    :ivar known: what was counted.
    :ivar guess: an estimate of the rest; None where there is none.
    :ivar exact: whether there is no rest. It is False for any estimated rest, even if the guess is 0.
    """

    known: int
    guess: int | None = 0
    exact: bool = True

    @property
    def total(self) -> int | None:
        """All of it; None where a part is not known."""
        return None if self.guess is None else self.known + self.guess

    def plus(self, known: int) -> Estimate:
        """Return the estimate with `known` added to the known part."""
        return replace(self, known=self.known + known)

    def times(self, factor: int) -> Estimate:
        """Return the estimate times `factor`."""
        return replace(
            self, known=self.known * factor, guess=None if self.guess is None else self.guess * factor
        )


def at_least(known: int) -> Estimate:
    """Return an estimate of a known part and an unknown rest."""
    return Estimate(known, None, exact=False)


def cost_of_files(known: int, unread_bytes: int, unread_files: int, per_byte: float | None) -> Estimate:
    """What is known of files that are built, and an estimate for those that are not read yet.

    :param per_byte: what the ledger's files have for each of their bytes; None where it has none to go by.
    """
    if not unread_files:
        return Estimate(known)
    return (
        at_least(known) if per_byte is None else Estimate(known, round(unread_bytes * per_byte), exact=False)
    )
