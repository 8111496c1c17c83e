"""Names of a table's assets, tags, pool and partitions in Dagster, and attributes that its assets share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import dagster as dg

from pinot_assets.table_spec import AnyTableSpec, TableSpec

TABLE_TAG = "pinot/table"
"""Run tag with the table's name from `label_of`, for concurrency limits and filters."""
SESSION_TAG = "pinot/session"
"""Run tag with the consistent-push session that the run worked on."""
ATTEMPT_TAG = "pinot/attempt"
"""Run tag with the session's attempt."""


GATE = "consistent_push"
"""The blocking check between `segments` and `snapshot`."""


@dataclass(frozen=True, slots=True)
class TableKeys:
    """Asset keys of one table.

    :ivar source_files: the observed files; one partition per file or group of files.
    :ivar segments: the segments of those files, with the same partitions.
    :ivar snapshot: the switch.
    :ivar waiting: has a partition while the table is not up to date (`waiting`).
    :ivar table: the Pinot table as queries see it; downstream assets depend on it.
    """

    source_files: dg.AssetKey
    segments: dg.AssetKey
    snapshot: dg.AssetKey
    waiting: dg.AssetKey
    table: dg.AssetKey


def keys_of(spec: TableSpec) -> TableKeys:
    """Return the keys `<table>/source_files`, `…/segments`, `…/snapshot`, `…/waiting` and `<table>`."""
    name = spec.asset_name
    return TableKeys(
        source_files=dg.AssetKey([name, "source_files"]),
        segments=dg.AssetKey([name, "segments"]),
        snapshot=dg.AssetKey([name, "snapshot"]),
        waiting=dg.AssetKey([name, "waiting"]),
        table=table_key(spec),
    )


def table_key(spec: AnyTableSpec) -> dg.AssetKey:
    """Return the key of the Pinot table: `<table>`, or `<table>_realtime`."""
    return dg.AssetKey([spec.asset_name])


def pool_of(spec: AnyTableSpec) -> str:
    """Return the name of the concurrency pool of all steps that write to the table."""
    return f"pinot_table_{spec.asset_name}"


def partitions_name(spec: TableSpec) -> str:
    """Return the name of the dynamic partitions of `source_files` and `segments`."""
    return f"{spec.asset_name}_files"


class AssetAttributes(TypedDict):
    """Arguments that Dagster's asset decorators share."""

    group_name: str
    owners: list[str]
    tags: dict[str, str]
    kinds: set[str]
    description: str


def asset_attributes(spec: AnyTableSpec, description: str, *kinds: str) -> AssetAttributes:
    """Return the arguments that all assets of the table share.

    :param kinds: at most three, a limit of Dagster.
    """
    return {
        # The OFFLINE and the REALTIME part of a hybrid table get the same group.
        "group_name": spec.dagster.group or spec.name.replace("-", "_"),
        "owners": list(spec.dagster.owners),
        "tags": dict(spec.dagster.tags),
        "kinds": set(kinds),
        "description": description,
    }
