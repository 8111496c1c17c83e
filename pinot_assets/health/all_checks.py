"""All health checks of an OFFLINE table, and a look at a table with each of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from pinot_assets.core.check_result import CheckResult
from pinot_assets.health import capacity, leftovers, packs, serving, session, source, table_spec
from pinot_assets.health.table_probe import TableProbe, open_table_probe
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import TableSpec

T = TypeVar("T")

LOOK_AGAIN_S = 20.0
"""Seconds; a look that took longer is not repeated: Dagster ends a sensor's tick after 60 s."""

CHECKS = (
    source.snapshot_equals_source,
    serving.replicas_and_crc,
    serving.lineage_clean,
    session.session_progress,
    leftovers.orphans,
    leftovers.staged_tars,
    packs.packs,
    capacity.head_room,
    serving.rollback_window,
    source.freshness,
    source.failing_files,
    table_spec.built_as_specified,
)
"""In the order in which a dashboard shows them."""


def examine(probe: TableProbe) -> tuple[CheckResult, ...]:
    """Return the result of every check, in the order of `CHECKS`. Never raises."""
    return tuple(check(probe) for check in CHECKS)


def examine_table(spec: TableSpec, settings: Callable[[], Settings]) -> tuple[CheckResult, ...]:
    """Look at a table and return the result of every check. Never raises for what cannot be reached."""
    answers, _ = look_at(spec, settings, lambda _: None)
    return answers


def look_at(
    spec: TableSpec, settings: Callable[[], Settings], read: Callable[[TableProbe], T]
) -> tuple[tuple[CheckResult, ...], T]:
    """Look at a table; return the result of every check, and what `read` takes from the same look.

    If a check failed while a run changed the session, and there is time for it, the table is looked at once
    more: the first look may have seen two states.
    """
    started = time.monotonic()
    with open_table_probe(spec, settings) as probe:
        answers = examine(probe)
        in_time = time.monotonic() - started <= LOOK_AGAIN_S
        if all(a.passed for a in answers) or not in_time or not probe.ask_if_moved():
            return answers, read(probe)
    with open_table_probe(spec, settings) as probe:
        return examine(probe), read(probe)


def summary(answers: tuple[CheckResult, ...]) -> str:
    """Return a line such as `11 checks, 2 failed: orphans, freshness`."""
    failed = [a.name if a.known else f"{a.name} (not known)" for a in answers if not a.passed]
    return f"{len(answers):,} checks, " + (
        f"{len(failed):,} failed: {', '.join(failed)}" if failed else "all passed"
    )
