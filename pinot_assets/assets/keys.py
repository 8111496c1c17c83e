"""What a table's assets, tags and pool are called in Dagster, and how its assets look there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import dagster as dg

from pinot_assets.table_spec import AnyTableSpec, TableSpec

TABLE_TAG = "pinot/table"
"""Run tag with the table's name, as `label_of` tells it, for concurrency limits and filters."""
SESSION_TAG = "pinot/session"
"""Run tag with the consistent-push session that the run worked on."""
ATTEMPT_TAG = "pinot/attempt"
"""Run tag with the session's attempt."""


GATE = "consistent_push"
"""The blocking check between `segments` and `snapshot`."""


@dataclass(frozen=True, slots=True)
class TableKeys:
    """Asset keys of one table.

    :ivar source_files: the files, observed; one partition per file or group of files.
    :ivar segments: their segments; the same partitions.
    :ivar snapshot: the switch.
    :ivar table: the Pinot table as queries see it; what downstream assets depend on.
    """

    source_files: dg.AssetKey
    segments: dg.AssetKey
    snapshot: dg.AssetKey
    table: dg.AssetKey


def keys_of(spec: TableSpec) -> TableKeys:
    """`<table>/source_files`, `<table>/segments`, `<table>/snapshot` and `<table>`."""
    name = spec.asset_name
    return TableKeys(
        source_files=dg.AssetKey([name, "source_files"]),
        segments=dg.AssetKey([name, "segments"]),
        snapshot=dg.AssetKey([name, "snapshot"]),
        table=table_key(spec),
    )


def table_key(spec: AnyTableSpec) -> dg.AssetKey:
    """`<table>`, or `<table>_realtime`."""
    return dg.AssetKey([spec.asset_name])


def pool_of(spec: AnyTableSpec) -> str:
    """The concurrency pool of everything that writes to the table."""
    return f"pinot_table_{spec.asset_name}"


def partitions_name(spec: TableSpec) -> str:
    """The dynamic partitions of `source_files` and `segments`."""
    return f"{spec.asset_name}_files"


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
