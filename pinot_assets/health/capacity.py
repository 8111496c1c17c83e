"""Checks whether the next switch has room: in Pinot's quota, in the staging area, on the servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pinot_assets.core.check_result import CheckProblem, CheckResult, megabytes, result_of, unknown
from pinot_assets.errors import PinotAssetsError, PinotError
from pinot_assets.health.check import check
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.session.checks.capacity import quota_bytes, replication_of

RESERVE = 0.1
"""Share of a quota or of a server's disk to keep free: Pinot refuses uploads when a disk is at 95 %."""

STAGING_RESERVE = 1024**3
"""Bytes to keep free on the disk of a local staging area, whatever the table's size."""


@dataclass(frozen=True, slots=True)
class Room:
    """One place that can fill up.

    :ivar key: name in plots: `quota`, `staging_disk` or `server_disk`.
    :ivar where: name for people.
    :ivar total: its size in bytes.
    :ivar free: bytes left.
    :ivar needed: bytes that should be free for the next switch.
    :ivar next_step: how to make room.
    """

    key: str
    where: str
    total: int
    free: int
    needed: int
    next_step: str


def quota_room(allowed: int, used: int, next_switch: int) -> Room:
    """Return the room in the table's quota.

    Pinot counts loaded, unpacked segments, including hidden ones and every replica.

    :param allowed: `quota.storage` times the replicas, bytes.
    :param used: bytes that Pinot counts now.
    :param next_switch: bytes that a switch of the whole table would add; 0 where only changes are added.
    """
    return Room(
        "quota",
        "the table's quota.storage",
        allowed,
        allowed - used,
        max(next_switch, int(allowed * RESERVE)),
        "raise quota.storage in the table spec and apply it (`pinot-assets tables apply`): during a "
        "switch the table has the old and the new segments at once",
    )


def staging_room(path: str, total: int, free: int, next_switch: int) -> Room:
    """Return the room on the disk of a local staging area."""
    return Room(
        "staging_disk",
        f"the disk of the staging area {path}",
        total,
        free,
        STAGING_RESERVE + next_switch,
        "free some space there, or change output.segment.dir.uri",
    )


def server_room(server: str, total: int, used: int) -> Room:
    """Return the room on a server's data disk."""
    return Room(
        "server_disk",
        f"the disk of {server}",
        total,
        total - used,
        int(total * RESERVE),
        "give that server a larger disk, or add servers and rebalance the table",
    )


@check("Quota and disks have room for the next switch.")
def head_room(probe: TableProbe) -> CheckResult:
    """Every place has room for the next switch."""
    rooms: list[Room] = []
    not_known: dict[str, str] = {}
    for where, read in (("the quota", _quota), ("the staging area", _staging), ("the servers", _servers)):
        try:
            rooms += read(probe)
        except PinotAssetsError as error:
            not_known[where] = error.why or error.what
    return enough_room(rooms, not_known)


def _quota(probe: TableProbe) -> Iterator[Room]:
    if (quota := quota_bytes(probe.table_config())) is None:
        return
    replication = replication_of(probe.table_config())
    used = probe.table_bytes()
    # A swap adds the whole table once more; the segments that are hidden now are deleted before.
    share = len(probe.served()) / len(probe.segments()) if probe.segments() else 0.0
    more = int(used * share) if probe.spec.mode == "swap" else 0
    yield quota_room(quota * replication, used, more)


def _staging(probe: TableProbe) -> Iterator[Room]:
    if (disk := probe.staging_disk()) is None:
        return
    swap = probe.spec.mode == "swap"
    snapshot = probe.snapshot()
    more = snapshot.tar_bytes if swap and snapshot else 0
    yield staging_room(*disk, more)


def _servers(probe: TableProbe) -> Iterator[Room]:
    for server, disk in sorted(probe.server_disks().items()):
        if isinstance(disk, PinotError):
            raise disk
        yield server_room(server, disk.total, disk.used)


def enough_room(rooms: Sequence[Room], not_known: Mapping[str, str]) -> CheckResult:
    """Return whether every place has room; "not known" if a place could not be read and no other is short.

    :param not_known: place → why it could not be read.
    """
    problems = [
        CheckProblem(
            f"{r.where} has {megabytes(r.free)} left, {megabytes(r.needed)} may be needed", r.next_step
        )
        for r in rooms
        if r.free < r.needed
    ]
    tightest = min(rooms, key=lambda r: r.free - r.needed, default=None)
    numbers: dict[str, float] = {}
    for r in rooms:  # of several servers, the one with the least free space
        free = numbers.get(f"{r.key}_free_bytes")
        if free is None or r.free < free:
            numbers |= {f"{r.key}_free_bytes": r.free, f"{r.key}_total_bytes": r.total}
            numbers[f"{r.key}_used_percent"] = round(100 * (1 - r.free / r.total), 1) if r.total else 100.0
    if not_known and not problems:
        reasons = "; ".join(f"{where}: {why}" for where, why in not_known.items())
        return replace(unknown("", reasons, "look again when it answers"), numbers=numbers)
    problems += [
        CheckProblem(f"the space of {where} is not known: {why}", "look again when it answers")
        for where, why in not_known.items()
    ]
    good = (
        f"the least is left at {tightest.where}: {megabytes(tightest.free)}"
        if tightest
        else "no quota is set, and no disk reports its space"
    )
    return result_of(
        problems,
        expected=tightest.needed if tightest else 0,
        found=tightest.free if tightest else 0,
        good=good,
        numbers=numbers,
    )
