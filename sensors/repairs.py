"""The sensor that repairs REALTIME tables, of those whose spec sets `repairLimit`.

It looks at a table every `healthIntervalSec`. If a check fails and a repair can do something now, it starts
the repair job with the spec's limit, unless that job runs for the table already or another operation holds
the table. It records nothing: the sensor pinot_tables does that.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import time
from collections.abc import Callable, Sequence

import dagster as dg
from dagster._core.storage.tags import PARTITION_NAME_TAG

from pinot_assets.assets.history import Budget
from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.assets.location_jobs import run_config
from pinot_assets.assets.runs import UNDER_WAY, WHY_TAG
from pinot_assets.core.check_result import some
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import Late, Patience
from pinot_assets.errors import PinotAssetsError
from pinot_assets.health import summary
from pinot_assets.realtime.health.all_checks import RealtimeView, blind, view_of
from pinot_assets.realtime.lease import open_operations
from pinot_assets.realtime.repair.apply import preview_repair
from pinot_assets.realtime.repair.model import SUBJECT, RepairLimits
from pinot_assets.resources import PinotResource
from pinot_assets.scheduling.rounds import due
from pinot_assets.sensors.tables import INTERVAL_S, LATE_HINT
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import RealtimeTableSpec, label_of

REPAIR = "realtime_repair"
TICK_S = 30.0
"""Seconds of a tick in which it starts with further tables."""
TABLE_S = 15.0
"""Seconds for which a tick waits for one table. Its request continues meanwhile, and is not repeated."""


def repairs_sensor(specs: Sequence[RealtimeTableSpec]) -> dg.SensorDefinition | None:
    """Return the sensor pinot_realtime_repairs; None if no table may be repaired without a person."""
    tables = {label_of(spec): spec for spec in specs if spec.dagster.repair_limit}
    if not tables:
        return None
    limits = some([f"{name} {spec.dagster.repair_limit}" for name, spec in tables.items()], 10)
    intervals = {name: float(spec.dagster.health_interval_sec) for name, spec in tables.items()}
    patience = {name: Patience() for name in tables}
    looked_s: dict[str, float] = {}

    @dg.sensor(
        name="pinot_realtime_repairs",
        job_name=f"pinot_{REPAIR}",
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Repairs REALTIME tables whose checks fail, with at most as many steps at a time as "
        f"`repairLimit` allows: {limits}.",
    )
    def sensor(context: dg.SensorEvaluationContext, pinot: PinotResource) -> dg.SensorResult:
        last, said, requests = context.cursor or "", list[str](), list[dg.RunRequest]()
        waiting = due(intervals, looked_s, (), time.monotonic(), last)
        for name in Budget(TICK_S).spend_on(waiting):
            looked_s[name], last, spec = time.monotonic(), name, tables[name]
            looked = _look_in_time(patience[name], spec, pinot.settings)
            message, request = _repair(context.instance, spec, looked, pinot.settings)
            said.append(f"{name}: {message}")
            requests += [request] if request is not None else []
        message = some(said, 10, "; ") if said else "no look is due"
        context.log.info(message)
        if requests:
            return dg.SensorResult(run_requests=requests, cursor=last)
        return dg.SensorResult(skip_reason=dg.SkipReason(message), cursor=last)

    return sensor


def _look_in_time(
    patience: Patience, spec: RealtimeTableSpec, settings: Callable[[], Settings]
) -> RealtimeView:
    try:
        return patience.wait_for(lambda: view_of(spec.name, settings), TABLE_S)
    except Late as late:
        return blind(f"the look at {spec.name_with_type} does not end ({late})", LATE_HINT)


def _repair(
    instance: dg.DagsterInstance,
    spec: RealtimeTableSpec,
    looked: RealtimeView,
    settings: Callable[[], Settings],
) -> tuple[str, dg.RunRequest | None]:
    """Return what the look found, and the run that repairs something of it; None if none is to be started."""
    message = summary(looked.answers)
    due_repair, holder = _due_repair(spec, looked, settings)
    if not due_repair:
        return message, None
    under_way = dg.RunsFilter(
        job_name=f"pinot_{REPAIR}", statuses=UNDER_WAY, tags={TABLE_TAG: label_of(spec)}
    )
    if running := instance.get_runs(under_way, limit=1):
        return f"{message}; run {running[0].run_id} already repairs it", None
    if holder:  # a run could not get the lease and would fail
        return f"{message}; not repaired, as {holder} works on the table", None
    return f"{message}; {due_repair}", repair_request(spec, due_repair)


def repair_request(spec: RealtimeTableSpec, why: str) -> dg.RunRequest:
    """Request a run of the repair job with the spec's limit.

    :param why: shown as a tag of the run.
    """
    label = label_of(spec)
    return dg.RunRequest(
        job_name=f"pinot_{REPAIR}",
        run_config=run_config(REPAIR, label, apply=True, limit=spec.dagster.repair_limit),
        tags={TABLE_TAG: label, WHY_TAG: why, PARTITION_NAME_TAG: label},
    )


def _due_repair(
    spec: RealtimeTableSpec, looked: RealtimeView, settings: Callable[[], Settings]
) -> tuple[str, str]:
    """Return a summary of what a repair would do now, and who holds the table (a repair, drain or rebalance,
    also by the command line). Both are empty if all is well, or reading fails."""
    if looked.state is None or all(one.passed for one in looked.answers):
        return "", ""
    try:
        with open_operations(settings(), spec.name_with_type) as operations:
            remembered, holder = operations.recall(SUBJECT), operations.holder()
        steps = preview_repair(looked.state, remembered, RepairLimits(steps=spec.dagster.repair_limit)).steps
    except PinotAssetsError:
        return "", ""  # without the memory a step might start twice; checks report the cause
    due_steps = f"{plural(len(steps), 'step')}, first: {steps[0]}" if steps else ""
    return due_steps, "" if holder is None else str(holder)
