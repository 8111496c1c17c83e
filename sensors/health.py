"""The health sensors: each tick examines one table and records the result without a run.

They are off by default, because the checks of an OFFLINE table list the source and the staging area. For a
REALTIME table, a tick records one observation with numbers to plot, and the evaluations of its checks. If
the spec sets `repairLimit`, and a repair can do something now, the sensor starts the repair job with that
limit, unless that job runs already or another operation holds the table.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Callable
from typing import TypeVar

import dagster as dg
from dagster._grpc.utils import default_sensor_grpc_timeout

from pinot_assets import health
from pinot_assets.assets.health import evaluations, with_lasting
from pinot_assets.assets.history import TICK_S
from pinot_assets.assets.keys import TABLE_TAG, table_key
from pinot_assets.assets.realtime import observations
from pinot_assets.assets.runs import UNDER_WAY, WHY_TAG, job_name
from pinot_assets.core.check_result import unknown
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import Late, Patience
from pinot_assets.errors import PinotAssetsError
from pinot_assets.health import CHECKS, CheckResult, summary
from pinot_assets.realtime.health.all_checks import RealtimeView, blind, view_of
from pinot_assets.realtime.lease import open_operations
from pinot_assets.realtime.repair.apply import preview_repair
from pinot_assets.realtime.repair.model import SUBJECT, RepairLimits
from pinot_assets.resources import PinotResource
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import RealtimeTableSpec, TableSpec, label_of

LOOK_S = default_sensor_grpc_timeout() - TICK_S - 5
"""Seconds that a tick waits for its look at the table. If a server is silent, clients give up after a minute,
or one after the other. By then Dagster would have ended the tick and dropped its result."""

LATE_HINT = (
    "is it up, and does the network let requests through? Where a look takes longer by itself, set "
    "DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS for code server and daemon (docs/scale.md)"
)

T = TypeVar("T")


def health_sensor(spec: TableSpec) -> dg.SensorDefinition:
    """Return the health sensor of one OFFLINE table."""
    patience = Patience()

    @dg.sensor(
        name=f"{spec.asset_name}_health",
        asset_selection=dg.AssetSelection.assets(table_key(spec)),
        minimum_interval_seconds=spec.dagster.health_interval_sec,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Looks at the standing health of {spec.name} and records its checks.",
    )
    def sensor(context: dg.SensorEvaluationContext, pinot: PinotResource) -> dg.SensorResult:
        looked = look_in_time(patience, spec.name, lambda: health.examine_table(spec, pinot.settings), _blind)
        answers = with_lasting(context.instance, spec, looked)
        message = summary(answers)
        context.log.info(message)
        return dg.SensorResult(
            skip_reason=dg.SkipReason(message), asset_events=evaluations(context.instance, spec, answers)
        )

    return sensor


def _blind(why: str, next_step: str) -> tuple[CheckResult, ...]:
    return tuple(unknown(check.name, why, next_step) for check in CHECKS)


def realtime_sensor(spec: RealtimeTableSpec) -> dg.SensorDefinition:
    """Return the health sensor of one REALTIME table."""
    repair, patience, name = job_name(spec, "repair"), Patience(), spec.name_with_type

    @dg.sensor(
        name=f"{spec.asset_name}_health",
        job_name=repair,
        minimum_interval_seconds=spec.dagster.health_interval_sec,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Looks at the health of {name} and records it; {_repairs(spec)}.",
    )
    def sensor(context: dg.SensorEvaluationContext, pinot: PinotResource) -> dg.SensorResult:
        looked = look_in_time(patience, name, lambda: view_of(spec.name, pinot.settings), blind)
        message = summary(looked.answers)
        context.log.info(message)
        due, holder = _due_repair(spec, looked, pinot.settings)
        under_way = dg.RunsFilter(job_name=repair, statuses=UNDER_WAY)
        if due and (running := context.instance.get_runs(under_way, limit=1)):
            message, due = f"{message}; run {running[0].run_id} repairs already", ""
        elif due and holder:  # a run could not get the lease and would fail
            message, due = f"{message}; not repaired, as {holder} works on the table", ""
        events: list[dg.AssetObservation | dg.AssetMaterialization | dg.AssetCheckEvaluation] = [
            *observations(spec, looked),
            *evaluations(context.instance, spec, looked.answers),
        ]
        if not due:
            return dg.SensorResult(skip_reason=dg.SkipReason(message), asset_events=events)
        return dg.SensorResult(run_requests=[repair_request(spec, due)], asset_events=events)

    return sensor


def _repairs(spec: RealtimeTableSpec) -> str:
    limit = spec.dagster.repair_limit
    return f"starts at most {limit} steps of a repair at a look" if limit else "repairs nothing (repairLimit)"


def repair_request(spec: RealtimeTableSpec, why: str) -> dg.RunRequest:
    """Request a run of the repair job with the spec's limit.

    :param why: shown as a tag of the run.
    """
    repair = job_name(spec, "repair")
    config = {"apply": True, "limit": spec.dagster.repair_limit}
    return dg.RunRequest(
        job_name=repair,
        run_config={"ops": {f"{repair}_op": {"config": config}}},
        tags={TABLE_TAG: label_of(spec), WHY_TAG: why},
    )


def _due_repair(
    spec: RealtimeTableSpec, looked: RealtimeView, settings: Callable[[], Settings]
) -> tuple[str, str]:
    """Return a summary of what a repair would do now, and who holds the table (a repair, drain or rebalance,
    also by the command line). Both are empty if the spec allows no repair, all is well, or reading fails."""
    if not spec.dagster.repair_limit or looked.state is None or all(one.passed for one in looked.answers):
        return "", ""
    try:
        with open_operations(settings(), spec.name_with_type) as operations:
            remembered, holder = operations.recall(SUBJECT), operations.holder()
        steps = preview_repair(looked.state, remembered, RepairLimits(steps=spec.dagster.repair_limit)).steps
    except PinotAssetsError:
        return "", ""  # without the memory a step might start twice; checks report the cause
    due = f"{plural(len(steps), 'step')}, first: {steps[0]}" if steps else ""
    return due, "" if holder is None else str(holder)


def look_in_time(patience: Patience, name: str, look: Callable[[], T], blind: Callable[[str, str], T]) -> T:
    """Return the result of `look`, or of `blind` if late: a tick that Dagster ends leaves all checks green.

    :param blind: makes the result of a late look, from a reason and a next step.
    """
    try:
        return patience.wait_for(look, LOOK_S)
    except Late as late:
        return blind(f"the look at {name} does not come to its end ({late})", LATE_HINT)
