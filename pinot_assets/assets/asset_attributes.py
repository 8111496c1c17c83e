"""How a table's assets look in Dagster: group, owners, tags, kinds, descriptions."""

from __future__ import annotations

from typing import TypedDict

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
