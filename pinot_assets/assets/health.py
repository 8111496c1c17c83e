"""A table's standing health as asset checks on the Pinot table: not blocking, run by hand or by a schedule.

`sensors/health.py` records the same checks without a run for every look, `sensors/files.py` one of them
while it cannot look at the table. `assets/evaluations.py` makes and remembers what they record.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from pinot_assets.assets.evaluations import examine_table, said
from pinot_assets.assets.keys import keys_of
from pinot_assets.health import CHECKS
from pinot_assets.resources import PinotResource
from pinot_assets.table_spec import TableSpec

WARN_SHARE = 0.75
"""Share of the promised freshness after which Dagster warns."""


def table_health(spec: TableSpec) -> dg.AssetChecksDefinition:
    """The standing health of one table: one check each, all of one look."""
    table = keys_of(spec).table

    @dg.multi_asset_check(
        name=f"{spec.asset_name}_health_checks",
        specs=[
            dg.AssetCheckSpec(check.name, asset=table, description=check.promise, blocking=False)
            for check in CHECKS
        ],
        can_subset=True,
        description=f"What should hold of {spec.name} at any time. Reads only, and takes no lease.",
    )
    def health(context: dg.AssetCheckExecutionContext, pinot: PinotResource) -> Iterator[dg.AssetCheckResult]:
        selected = {key.name for key in context.selected_asset_check_keys}
        for answer in examine_table(context.instance, spec, pinot.settings):
            if answer.name in selected:
                yield dg.AssetCheckResult(
                    asset_key=table,
                    check_name=answer.name,
                    **said(answer),
                )

    return health


def health_job(spec: TableSpec) -> UnresolvedAssetJobDefinition:
    """The job that makes all checks of one table by hand.

    Without the table's tag: it only reads, and keeps no run of the table waiting.
    """
    table = keys_of(spec).table
    checks = [dg.AssetCheckKey(table, check.name) for check in CHECKS]
    return dg.define_asset_job(
        f"{spec.asset_name}_health",
        selection=dg.AssetSelection.checks(*checks),
        executor_def=dg.in_process_executor,
        description=f"One look at the standing health of {spec.name}; changes nothing.",
    )


def freshness_policy(spec: TableSpec) -> dg.FreshnessPolicy | None:
    """What Dagster itself watches of the table asset; None where no freshness is promised."""
    promised = spec.dagster.freshness_hours
    if promised is None:
        return None
    warn = timedelta(hours=promised * WARN_SHARE)
    return dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=promised),
        # Dagster takes no window below a minute.
        warn_window=warn if warn >= timedelta(minutes=1) else None,
    )
