"""The health sensor: one look at a table at every tick, recorded as check evaluations without a run.

Off unless it is switched on: a look lists the source and the staging area.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Callable

import dagster as dg

from pinot_assets import health
from pinot_assets.assets.budget import look_in_time
from pinot_assets.assets.health import evaluations, examine_table
from pinot_assets.assets.keys import keys_of
from pinot_assets.core.check_result import unknown
from pinot_assets.core.waiting import Patience
from pinot_assets.health import CHECKS, CheckResult, summary
from pinot_assets.resources import PinotResource
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import TableSpec


def health_sensor(spec: TableSpec) -> dg.SensorDefinition:
    """The health sensor of one table."""
    table, patience = keys_of(spec).table, Patience()

    def in_time(spec: TableSpec, settings: Callable[[], Settings]) -> tuple[CheckResult, ...]:
        return look_in_time(patience, spec.name, lambda: health.examine_table(spec, settings), _blind)

    @dg.sensor(
        name=f"{spec.asset_name}_health",
        asset_selection=dg.AssetSelection.assets(table),
        minimum_interval_seconds=spec.dagster.health_interval_sec,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Looks at the standing health of {spec.name} and records its checks.",
    )
    def sensor(context: dg.SensorEvaluationContext, pinot: PinotResource) -> dg.SensorResult:
        answers = examine_table(context.instance, spec, pinot.settings, in_time)
        message = summary(answers)
        context.log.info(message)
        return dg.SensorResult(
            skip_reason=dg.SkipReason(message),
            asset_events=evaluations(context.instance, spec, answers),
        )

    return sensor


def _blind(why: str, next_step: str) -> tuple[CheckResult, ...]:
    return tuple(unknown(check.name, why, next_step) for check in CHECKS)
