"""Automation conditions, for tables that ask for them (`dagster: {automation: true}`).

They see new, rewritten and deleted files once `source_files` was observed, which somebody must do: the files
sensor's ticks, a schedule, a person. A failed file does not start a run again before it changes; any other
file that changes meanwhile starts one, and that spends a retry of the session. `snapshot` follows in a run of
its own. The files sensor observes and explains itself; it stays the recommended way.
"""

from __future__ import annotations

from typing import Any

import dagster as dg

from pinot_assets.table_spec import TableSpec

Condition = dg.AutomationCondition[Any]


def segments_condition(spec: TableSpec) -> Condition | None:
    """A file was rewritten, or a new one was observed."""
    if not spec.dagster.automation:
        return None
    condition = dg.AutomationCondition
    changed = condition.any_deps_match(condition.data_version_changed()) | condition.missing().newly_true()
    return changed.since(condition.newly_requested()) & ~condition.in_progress()


def snapshot_condition(spec: TableSpec) -> Condition | None:
    """New segments were built and passed the gate."""
    if not spec.dagster.automation:
        return None
    condition = dg.AutomationCondition
    return (
        condition.any_deps_updated().since(condition.newly_requested())
        & condition.all_deps_blocking_checks_passed()
        & ~condition.any_deps_in_progress()
        & ~condition.in_progress()
    )
