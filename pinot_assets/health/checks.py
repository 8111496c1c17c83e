"""All checks of a table's standing health: which readings each one takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pinot_assets.core.check_result import Health, Severity, unknown
from pinot_assets.errors import PinotAssetsError, PinotError, SnapshotCorrupt
from pinot_assets.health import (
    capacity,
    failing,
    freshness,
    leftovers,
    lineage,
    replicas,
    rollback,
    session,
    source,
)
from pinot_assets.health.capacity import Room
from pinot_assets.health.table_probe import Look, open_look
from pinot_assets.session.checks.capacity import quota_bytes, replication_of
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import TableSpec

LOOK_AGAIN_S = 20.0
"""A look that took longer is not repeated: Dagster ends a sensor's tick after 60 s."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check.

    :ivar promise: what holds when it passes, one sentence.
    """

    name: str
    promise: str
    answer: Callable[[Look], Health]


def examine(look: Look) -> tuple[Health, ...]:
    """The answer of every check, in the order of `CHECKS`. Never raises."""
    return tuple(_answer(check, look) for check in CHECKS)


def examine_table(spec: TableSpec, settings: Callable[[], Settings]) -> tuple[Health, ...]:
    """Look at a table. Never raises for what cannot be reached.

    A look that failed while a run changed the session is taken once more, if there is time for it: it may
    have seen two states.
    """
    started = time.monotonic()
    with open_look(spec, settings) as look:
        answers = examine(look)
        in_time = time.monotonic() - started <= LOOK_AGAIN_S
        if all(a.passed for a in answers) or not in_time or not look.moved():
            return answers
    with open_look(spec, settings) as look:
        return examine(look)


def summary(answers: tuple[Health, ...]) -> str:
    """`10 checks, 2 failed: orphans, freshness`."""
    failed = [a.name if a.known else f"{a.name} (not known)" for a in answers if not a.passed]
    return f"{len(answers)} checks, " + (
        f"{len(failed)} failed: {', '.join(failed)}" if failed else "all passed"
    )


def _answer(check: Check, look: Look) -> Health:
    try:
        return check.answer(look)
    except PinotAssetsError as error:
        # A ledger that is damaged is more than something that does not answer.
        severity = Severity.ERROR if isinstance(error, SnapshotCorrupt) else Severity.WARN
        return unknown(check.name, error.reason, error.hint or "", severity)
    except Exception as error:
        # A check that breaks is a failed check with its reason, as the gate is.
        return unknown(check.name, repr(error), "this is a fault of the check itself: please report it")


def _source(look: Look) -> Health:
    removes = look.spec.mode != "append"
    return source.snapshot_equals_source(look.spec.name, look.difference, removes=removes)


def _replicas(look: Look) -> Health:
    built = {name: output.crc for name, output in look.served.items()}
    return replicas.replicas_and_crc(look.spec.name, built, look.replicas, look.registered_crcs, look.loaded)


def _lineage(look: Look) -> Health:
    return lineage.lineage_clean(
        look.spec.name,
        look.lineage,
        look.segments,
        look.served,
        look.session,
        look.now_ms,
        look.entry_renewed_ms,
    )


def _session(look: Look) -> Health:
    retries = look.spec.ingestion.max_retries
    return session.session_progress(look.spec.name, look.session, look.holder, retries, look.now_ms)


def _orphans(look: Look) -> Health:
    wanted = replace(look.wanted, later=look.published_later)
    return leftovers.orphans(
        look.spec.name, look.lineage, look.segments, look.session_nodes, look.staged, wanted
    )


def _staged(look: Look) -> Health:
    return leftovers.staged_tars(look.spec.name, look.staged, look.wanted)


def _room(look: Look) -> Health:
    rooms: list[Room] = []
    not_known: dict[str, str] = {}
    for where, read in (("the quota", _quota), ("the staging area", _staging), ("the servers", _servers)):
        try:
            rooms += read(look)
        except PinotAssetsError as error:
            not_known[where] = error.why or error.what
    return capacity.head_room(rooms, not_known)


def _quota(look: Look) -> Iterator[Room]:
    quota = quota_bytes(look.table_config)
    if quota is None:
        return
    replication = replication_of(look.table_config)
    used = look.table_bytes
    # A swap brings the whole table once more; what of it is hidden now goes before.
    share = len(look.served) / len(look.segments) if look.segments else 0.0
    more = int(used * share) if look.spec.mode == "swap" else 0
    yield capacity.quota_room(quota * replication, used, more)


def _staging(look: Look) -> Iterator[Room]:
    disk = look.staging_disk()
    if disk is None:
        return
    swap = look.spec.mode == "swap"
    more = sum(o.tar_bytes for o in look.snapshot.segments.values()) if swap and look.snapshot else 0
    yield capacity.staging_room(*disk, more)


def _servers(look: Look) -> Iterator[Room]:
    for server, disk in sorted(look.server_disks.items()):
        if isinstance(disk, PinotError):
            raise disk
        yield capacity.server_room(server, disk.total, disk.used)


def _way_back(look: Look) -> Health:
    return rollback.rollback_window(
        look.spec.name,
        look.snapshot,
        look.before,
        look.lineage,
        look.segments,
        look.session,
        look.now_ms,
        look.revert_window_ms,
    )


def _freshness(look: Look) -> Health:
    return freshness.freshness(
        look.spec.name,
        look.snapshot.published_ms if look.snapshot else None,
        look.waiting_since_ms,
        look.spec.dagster.freshness_hours,
        look.now_ms,
    )


def _failing(look: Look) -> Health:
    # What may pass by itself is judged by the time that it lasts (`session_progress`).
    passing = look.session is not None and look.session.trouble_since_ms > 0
    return failing.failing_files(look.spec.name, look.attempts, () if passing else look.failing_now)


CHECKS = (
    Check(source.NAME, "Every listed file is published as it is listed, and no other.", _source),
    Check(replicas.NAME, "Every replica of every published segment is ONLINE as it was built.", _replicas),
    Check(
        lineage.NAME, "No lineage entry is open but the open session's; none hides the snapshot.", _lineage
    ),
    Check(session.NAME, "An open session gets on and has retries left.", _session),
    Check(leftovers.ORPHANS, "No segment, session node or pile of tars that nothing refers to.", _orphans),
    Check(leftovers.STAGED, "Every tar of the snapshot and of the way back is in the staging area.", _staged),
    Check(capacity.NAME, "Quota and disks have room for the next switch.", _room),
    Check(rollback.NAME, "The newest switch can be reverted while Pinot keeps what it replaced.", _way_back),
    Check(
        freshness.NAME, "Snapshot and waiting changes are younger than dagster.freshnessHours.", _freshness
    ),
    Check(failing.NAME, "No file fails again and again.", _failing),
)
"""In the order of a dashboard."""
