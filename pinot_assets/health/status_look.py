"""The status of a table from a look at it, by what the health checks have read already."""

from __future__ import annotations

from typing import Final

from pinot_assets.core.check_result import HealthCheck
from pinot_assets.errors import PinotAssetsError
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.health.table_status import (
    NAME,
    PROMISE,
    SourceChanges,
    StatusFacts,
    StatusReport,
    table_status,
    unknown_status,
)
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.state import Session, given_up
from pinot_assets.table_spec import TableSpec


def status_from(probe: TableProbe) -> StatusReport:
    """Return the table's status. Never raises for what cannot be read; then the status is not known."""
    try:
        newest = None if probe.observation().session else probe.newest_session()
        facts = facts_of(
            probe.spec, probe.observation(), newest, source_changes(probe), probe.difference().held
        )
    except PinotAssetsError as error:
        return unknown_status(probe.spec.name, error.reason, error.hint or "look again when it answers")
    except Exception as error:
        return unknown_status(
            probe.spec.name, repr(error), "this is a fault of the status itself: please report it"
        )
    return table_status(facts, probe.now_ms)


def facts_of(
    spec: TableSpec, seen: Observation, newest: Session | None, changes: SourceChanges, held: int = 0
) -> StatusFacts:
    """Return the facts from what was read in ZooKeeper and the staging area, and from a listing.

    :param newest: the newest session, if none is open.
    :param held: how many files the rollback holds back, 0 if it is not known.
    """
    return StatusFacts(
        spec.name,
        seen.snapshot,
        seen.session,
        seen.failures,
        given_up(newest),
        seen.holder,
        seen.pointer.hold is not None,
        held,
        changes,
    )


def source_changes(probe: TableProbe) -> SourceChanges:
    """Return what waits in the source; a change is no older than the snapshot that lacks it."""
    difference, snapshot = probe.difference(), probe.snapshot()
    deleted = len(difference.extra) if probe.spec.mode != "append" else 0
    since = min(probe.waiting_since_ms().values(), default=0)
    if since and snapshot is not None:
        since = max(since, snapshot.published_ms)
    return SourceChanges(len(difference.missing), len(difference.stale), deleted, since)


STATUS: Final[HealthCheck[TableProbe]] = HealthCheck(
    NAME, PROMISE, lambda probe: status_from(probe).check_result()
)
"""The status as a health check. It sums the others up, so it is none of `CHECKS`."""
