"""All checks of a table's standing health: which readings each one takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pinot_assets.core.check_result import CheckResult, Severity, unknown
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
from pinot_assets.health.table_probe import TableProbe, open_table_probe
from pinot_assets.session.checks.capacity import quota_bytes, replication_of
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import TableSpec

LOOK_AGAIN_S = 20.0
"""A look that took longer is not repeated: Dagster ends a sensor's tick after 60 s."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One check.

    :ivar promise: what holds when it passes, one sentence.
    """

    name: str
    promise: str
    answer: Callable[[TableProbe], CheckResult]


def examine(probe: TableProbe) -> tuple[CheckResult, ...]:
    """The answer of every check, in the order of `CHECKS`. Never raises."""
    return tuple(_answer(check, probe) for check in CHECKS)


def examine_table(spec: TableSpec, settings: Callable[[], Settings]) -> tuple[CheckResult, ...]:
    """Look at a table. Never raises for what cannot be reached.

    A look that failed while a run changed the session is taken once more, if there is time for it: it may
    have seen two states.
    """
    started = time.monotonic()
    with open_table_probe(spec, settings) as look:
        answers = examine(look)
        in_time = time.monotonic() - started <= LOOK_AGAIN_S
        if all(a.passed for a in answers) or not in_time or not look.moved():
            return answers
    with open_table_probe(spec, settings) as look:
        return examine(look)


def summary(answers: tuple[CheckResult, ...]) -> str:
    """`10 checks, 2 failed: orphans, freshness`."""
    failed = [a.name if a.known else f"{a.name} (not known)" for a in answers if not a.passed]
    return f"{len(answers)} checks, " + (
        f"{len(failed)} failed: {', '.join(failed)}" if failed else "all passed"
    )


def _answer(check: HealthCheck, probe: TableProbe) -> CheckResult:
    try:
        return check.answer(probe)
    except PinotAssetsError as error:
        # A ledger that is damaged is more than something that does not answer.
        severity = Severity.ERROR if isinstance(error, SnapshotCorrupt) else Severity.WARN
        return unknown(check.name, error.reason, error.hint or "", severity)
    except Exception as error:
        # A check that breaks is a failed check with its reason, as the gate is.
        return unknown(check.name, repr(error), "this is a fault of the check itself: please report it")


def _source(probe: TableProbe) -> CheckResult:
    removes = probe.spec.mode != "append"
    return source.snapshot_equals_source(probe.spec.name, probe.difference, removes=removes)


def _replicas(probe: TableProbe) -> CheckResult:
    built = {name: output.crc for name, output in probe.served.items()}
    return replicas.replicas_and_crc(
        probe.spec.name, built, probe.replicas, probe.registered_crcs, probe.loaded
    )


def _lineage(probe: TableProbe) -> CheckResult:
    return lineage.lineage_clean(
        probe.spec.name,
        probe.lineage,
        probe.segments,
        probe.served,
        probe.session,
        probe.now_ms,
        probe.entry_renewed_ms,
    )


def _session(probe: TableProbe) -> CheckResult:
    retries = probe.spec.ingestion.max_retries
    return session.session_progress(probe.spec.name, probe.session, probe.holder, retries, probe.now_ms)


def _orphans(probe: TableProbe) -> CheckResult:
    wanted = replace(probe.referenced, later=probe.published_later)
    return leftovers.orphans(
        probe.spec.name, probe.lineage, probe.segments, probe.session_nodes, probe.staged, wanted
    )


def _staged(probe: TableProbe) -> CheckResult:
    return leftovers.staged_tars(probe.spec.name, probe.staged, probe.referenced)


def _room(probe: TableProbe) -> CheckResult:
    rooms: list[Room] = []
    not_known: dict[str, str] = {}
    for where, read in (("the quota", _quota), ("the staging area", _staging), ("the servers", _servers)):
        try:
            rooms += read(probe)
        except PinotAssetsError as error:
            not_known[where] = error.why or error.what
    return capacity.head_room(rooms, not_known)


def _quota(probe: TableProbe) -> Iterator[Room]:
    quota = quota_bytes(probe.table_config)
    if quota is None:
        return
    replication = replication_of(probe.table_config)
    used = probe.table_bytes
    # A swap brings the whole table once more; what of it is hidden now goes before.
    share = len(probe.served) / len(probe.segments) if probe.segments else 0.0
    more = int(used * share) if probe.spec.mode == "swap" else 0
    yield capacity.quota_room(quota * replication, used, more)


def _staging(probe: TableProbe) -> Iterator[Room]:
    disk = probe.staging_disk()
    if disk is None:
        return
    swap = probe.spec.mode == "swap"
    more = probe.snapshot.tar_bytes if swap and probe.snapshot else 0
    yield capacity.staging_room(*disk, more)


def _servers(probe: TableProbe) -> Iterator[Room]:
    for server, disk in sorted(probe.server_disks.items()):
        if isinstance(disk, PinotError):
            raise disk
        yield capacity.server_room(server, disk.total, disk.used)


def _way_back(probe: TableProbe) -> CheckResult:
    return rollback.rollback_window(
        probe.spec.name,
        probe.snapshot,
        probe.before,
        probe.lineage,
        probe.segments,
        probe.session,
        probe.now_ms,
        probe.revert_window_ms,
    )


def _freshness(probe: TableProbe) -> CheckResult:
    return freshness.freshness(
        probe.spec.name,
        probe.snapshot.published_ms if probe.snapshot else None,
        probe.waiting_since_ms,
        probe.spec.dagster.freshness_hours,
        probe.now_ms,
    )


def _failing(probe: TableProbe) -> CheckResult:
    # What may pass by itself is judged by the time that it lasts (`session_progress`).
    passing = probe.session is not None and probe.session.trouble_since_ms > 0
    return failing.failing_files(probe.spec.name, probe.attempts, () if passing else probe.failing_now)


CHECKS = (
    HealthCheck(source.NAME, "Every listed file is published as it is listed, and no other.", _source),
    HealthCheck(
        replicas.NAME, "Every replica of every published segment is ONLINE as it was built.", _replicas
    ),
    HealthCheck(
        lineage.NAME, "No lineage entry is open but the open session's; none hides the snapshot.", _lineage
    ),
    HealthCheck(session.NAME, "An open session gets on and has retries left.", _session),
    HealthCheck(
        leftovers.ORPHANS, "No segment, session node or pile of tars that nothing refers to.", _orphans
    ),
    HealthCheck(
        leftovers.STAGED, "Every tar of the snapshot and of the way back is in the staging area.", _staged
    ),
    HealthCheck(capacity.NAME, "Quota and disks have room for the next switch.", _room),
    HealthCheck(
        rollback.NAME, "The newest switch can be reverted while Pinot keeps what it replaced.", _way_back
    ),
    HealthCheck(
        freshness.NAME, "Snapshot and waiting changes are younger than dagster.freshnessHours.", _freshness
    ),
    HealthCheck(failing.NAME, "No file fails again and again.", _failing),
)
"""In the order of a dashboard."""
