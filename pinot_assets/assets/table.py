"""One table's assets, gate and jobs.

`source_files` → `segments` → (the check `consistent_push`) → `snapshot` → the Pinot table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._utils.warnings import disable_dagster_warnings

from pinot_assets.assets.keys import keys_of
from pinot_assets.assets.operations import operations
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.assets.runs import job_name, job_tags
from pinot_assets.assets.segments import consistent_push_check, segments_asset
from pinot_assets.assets.snapshot import snapshot_asset, table_asset
from pinot_assets.assets.source_files import source_files_asset
from pinot_assets.table_spec import TableSpec


@dataclass(frozen=True, slots=True)
class TableAssets:
    """What one table spec becomes in Dagster.

    :ivar job: one trigger of the table.
    :ivar operations: jobs for rollback, resume, clear.
    """

    spec: TableSpec
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
    check: dg.AssetChecksDefinition
    job: UnresolvedAssetJobDefinition
    operations: Sequence[dg.JobDefinition]


@disable_dagster_warnings()
def table_assets(spec: TableSpec) -> TableAssets:
    """Assets, gate and jobs of one table.

    Backfill policies are beta in Dagster, whose version is pinned.
    """
    keys = keys_of(spec)
    job = dg.define_asset_job(
        job_name(spec),
        selection=dg.AssetSelection.assets(keys.segments, keys.snapshot),
        executor_def=dg.in_process_executor,
        tags=job_tags(spec),
        description=f"One trigger of {spec.name}: build what changed, gate it, switch to it. "
        f"Choose the partition `{ALL_FILES}`; any other does the same.",
    )
    return TableAssets(
        spec,
        (source_files_asset(spec), segments_asset(spec), snapshot_asset(spec), table_asset(spec)),
        consistent_push_check(spec),
        job,
        operations(spec),
    )
