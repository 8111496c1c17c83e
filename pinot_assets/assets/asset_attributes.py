"""How a table's assets look in Dagster: group, owners, tags, kinds, descriptions, automation conditions.

Automation conditions are for tables that ask for them (`dagster: {automation: true}`). They see new,
rewritten and deleted files once `source_files` was observed, which somebody must do: the files sensor's
ticks, a schedule, a person. A failed file does not start a run again before it changes; any other file that
changes meanwhile starts one, and that spends a retry of the session. `snapshot` follows in a run of its own.
The files sensor observes and explains itself; it stays the recommended way.
"""

from __future__ import annotations

from typing import Any, TypedDict

import dagster as dg
from dagster import DynamicPartitionsDefinition

from pinot_assets.assets.keys import partitions_name
from pinot_assets.table_spec import AnyTableSpec, TableSpec


class AssetAttributes(TypedDict):
    """Arguments that Dagster's asset decorators share."""

    group_name: str
    owners: list[str]
    tags: dict[str, str]
    kinds: set[str]
    description: str


def asset_attributes(spec: AnyTableSpec, description: str, *kinds: str) -> AssetAttributes:
    """Arguments that every asset of the table has in common.

    :param kinds: at most three, as Dagster wants it.
    """
    return {
        # Both halves of a hybrid table stand together.
        "group_name": spec.dagster.group or spec.name.replace("-", "_"),
        "owners": list(spec.dagster.owners),
        "tags": dict(spec.dagster.tags),
        "kinds": set(kinds),
        "description": description,
    }


def store_kind(uri: str) -> str:
    """What Dagster calls the store: `s3`, `gcs`, `azure` or `file`."""
    scheme = uri.partition(":")[0].lower()
    return {"s3": "s3", "gs": "gcs", "abfss": "azure"}.get(scheme, "file")


def file_partitions(spec: TableSpec) -> DynamicPartitionsDefinition:
    """One partition per file, or per group of files."""
    return DynamicPartitionsDefinition(name=partitions_name(spec))


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
