"""The status of a table from a look at it, by what the health checks have read already."""

from __future__ import annotations

from typing import Final

from pinot_assets.core.check_result import HealthCheck
from pinot_assets.errors import PinotAssetsError
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.session.detect.table_status import (
    NAME,
    PROMISE,
    SourceChanges,
    StatusReport,
    facts_of,
    table_status,
    unknown_status,
)


def status_from(probe: TableProbe) -> StatusReport:
    """Return the table's status. Never raises for what cannot be read; then the status is not known."""
    try:
        newest = None if probe.observation().session else probe.newest_session()
        facts = facts_of(
            probe.spec,
            probe.observation(),
            newest,
            source_changes(probe),
            probe.rebuild_need(),
            probe.difference().held,
        )
    except PinotAssetsError as error:
        return unknown_status(probe.spec.name, error.reason, error.hint or "look again when it answers")
    except Exception as error:
        return unknown_status(
            probe.spec.name, repr(error), "this is a fault of the status itself: please report it"
        )
    return table_status(facts, probe.now_ms)


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
