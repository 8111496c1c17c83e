"""What a switch leaves of the table's storage quota and of its servers' disks, as far as Pinot can tell.

The sums are those of `room`, which refuses at the switch what would not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pinot_assets.errors import PinotError
from pinot_assets.pinot.api import ServerDisk
from pinot_assets.session.checks.capacity import quota_bytes, replication_of, tars_at_once
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.values.estimate import Estimate


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
    :param tars: bytes of each tar that is pushed, as far as that can be told.
    """
    replication = replication_of(context.table_config)
    quota, present = quota_bytes(context.table_config), _present(context)
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


def _present(context: TriggerContext) -> int | None:
    try:
        return context.clients.pinot.table_bytes(context.spec.name)
    except PinotError:
        return None


def _disks(
    context: TriggerContext, coming: Estimate, tars: Sequence[int], replication: int
) -> tuple[Disk, ...]:
    pinot = context.clients.pinot
    try:
        servers = pinot.table_servers(context.spec.name)
        disks = pinot.server_disks(servers)
    except PinotError as error:
        return (Disk("all servers", None, why_not=error.reason),)
    part = None if coming.total is None else max(0, coming.total) // max(len(servers), 1)
    beside = tars_at_once(tars, replication, len(servers)) if part else 0
    return tuple(_disk(server, disks.get(server), part, beside) for server in servers)


def _disk(server: str, found: ServerDisk | PinotError | None, part: int | None, tars: int) -> Disk:
    if found is None:
        return Disk(server, None, why_not="Pinot's servers tell it from 1.3 on")
    if isinstance(found, PinotError):
        return Disk(server, None, why_not=found.reason)
    free = found.total - found.used
    return Disk(server, free) if part is None else Disk(server, free, free - part, free - part - tars)
