"""The sensor of all sessions and a table's schedule, which start a table's job without looking at its files.

pinot_sessions continues sessions whose driver died: once, then less and less often. It takes the tables in
turn, within a time budget, and reads ZooKeeper and the staging area only; the files sensor reads the files.
It touches only tables that somebody has switched on in Dagster. The schedule runs Pinot's `schedule`.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import dagster as dg
from dagster._core.scheduler.instigation import InstigatorStatus

from pinot_assets.assets.history import Budget
from pinot_assets.assets.runs import (
    UNDER_WAY,
    job_name,
    sensor_trigger_of,
    table_job,
    trigger_of,
    trigger_to_come,
    works_on,
)
from pinot_assets.core.check_result import some
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import Late, Patience
from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import PinotResource
from pinot_assets.scheduling.files_tick import Tick
from pinot_assets.scheduling.rounds import SessionsCursor, in_turn
from pinot_assets.scheduling.stalled_session import decide_session
from pinot_assets.session.detect.observe import observe
from pinot_assets.session.stores.clients import open_session_stores, open_staging
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.table_spec import TableSpec

INTERVAL_S = 30
TICK_S = 30.0
"""Seconds of a tick in which it starts with further tables; the next tick continues after the last one."""
TABLE_S = 5.0
"""Seconds for which a tick waits for one table. Its request continues meanwhile, and is not repeated."""


def sessions_sensor(specs: Sequence[TableSpec]) -> dg.SensorDefinition:
    """Return the sensor pinot_sessions of these tables."""
    by_name = {spec.asset_name: spec for spec in specs}
    patience = {name: Patience() for name in by_name}

    @dg.sensor(
        name="pinot_sessions",
        jobs=[table_job(spec) for spec in specs],
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Continues sessions whose driver died, of tables whose files sensor or schedule is on, "
        "or that use automation conditions. It never spends a retry.",
    )
    def sensor(context: dg.SensorEvaluationContext, pinot: PinotResource) -> dg.SensorResult:
        budget = Budget(TICK_S)
        try:
            cursor = SessionsCursor.read(context.cursor or "")
            tables = switched_on(context, by_name)
            with open_session_stores(specs, pinot.settings()) as stores:
                visit = _Visit(context, cursor, patience)
                for name in budget.spend_on(in_turn(tables, cursor.after)):
                    visit.table(by_name[name], stores[by_name[name].name])
        except PinotAssetsError as error:
            return dg.SensorResult(skip_reason=str(error), cursor=context.cursor)
        message = visit.message(len(tables))
        context.log.info(message)
        after = visit.cursor.only(by_name).text
        if visit.requests:
            return dg.SensorResult(run_requests=visit.requests, cursor=after)
        return dg.SensorResult(skip_reason=message, cursor=after)

    return sensor


def switched_on(context: dg.SensorEvaluationContext, specs: Mapping[str, TableSpec]) -> list[str]:
    """Return the tables, by asset name, that something in Dagster starts runs of without a person.

    A session of another table belongs to whoever drives it by hand.
    """
    running = {InstigatorStatus.RUNNING}
    origin = context.code_location_origin
    on = {
        state.origin.instigator_name
        for state in context.instance.all_instigator_state(instigator_statuses=running)
        if origin is None or state.origin.repository_origin.code_location_origin == origin
    }
    return [
        name
        for name, spec in specs.items()
        if spec.dagster.automation or on & {f"{name}_files", f"{name}_schedule"}
    ]


class _Visit:
    """What one tick does with the tables that it visits."""

    def __init__(
        self,
        context: dg.SensorEvaluationContext,
        cursor: SessionsCursor,
        patience: Mapping[str, Patience],
    ) -> None:
        self._context, self._patience = context, patience
        # Runs are read before any lease: a run that ends in between then still counts as running.
        self._runs = context.instance.get_runs(dg.RunsFilter(statuses=UNDER_WAY))
        self.cursor = cursor
        self.requests: list[dg.RunRequest] = []
        self._visited = 0
        self._said: list[str] = []

    def table(self, spec: TableSpec, store: SessionStore) -> None:
        """Visit one table: start a run for its session, mark a dead run as failed, or leave it alone."""
        name, instance = spec.asset_name, self._context.instance
        before = self.cursor.tables.get(name, "")
        self.cursor = replace(self.cursor, after=name)
        self._visited += 1
        running = [run for run in self._runs if works_on(run, spec)]
        states = {run.run_id: run.status.value for run in running}

        def decided() -> Tick | None:
            if not states and not store.pointer().active_session:
                return None
            return decide_session(spec, observe(store, open_staging(spec)), states, before, int(time.time()))

        try:
            tick = self._patience[name].wait_for(decided, TABLE_S)
        except Late as late:
            self._said.append(f"{name}: ZooKeeper, or the staging area, does not answer ({late})")
            return
        except PinotAssetsError as error:
            self._said.append(f"{name}: {error}")
            return
        self.cursor = self.cursor.with_table(name, tick.cursor if tick else "")
        if tick is None:
            return
        self._said.append(f"{name}: {tick.message}")
        for run in running:
            if run.run_id == tick.dead_run:
                instance.report_run_failed(run, tick.message)
        if tick.launch:
            request = sensor_trigger_of(instance, spec, tick.message)
            self.requests.append(
                dg.RunRequest(job_name=job_name(spec), partition_key=request.partition_key, tags=request.tags)
            )

    def message(self, tables: int) -> str:
        """Return one line about the tables with an open session or a run.

        :param tables: number of tables that are switched on.
        """
        if not tables:
            return "no table's files sensor or schedule is on"
        later = (
            f"; {plural(tables - self._visited, 'table')} at the next tick" if tables > self._visited else ""
        )
        if not self._said:
            return f"none of {plural(self._visited, 'table')} has an open session{later}"
        return some(self._said, 10, "; ") + later


def table_schedule(spec: TableSpec) -> dg.ScheduleDefinition | None:
    """Return the schedule that starts the table's job, in `scheduleTimezone`; None without a `schedule`.

    A tick also triggers where sensors may not, because scheduled runs may spend retries
    (docs/design/session.md#retries). If another run of the table is under way, the new run waits in Dagster's
    queue. A tick starts no run if one like it waits there already: that run will list the files, too.
    """
    if spec.ingestion.cron is None:
        return None

    @dg.schedule(
        name=f"{spec.asset_name}_schedule",
        job_name=job_name(spec),
        cron_schedule=spec.ingestion.cron,
        execution_timezone=spec.ingestion.schedule_timezone,
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=f"`schedule: {spec.ingestion.schedule}` of {spec.name}.",
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if (waiting := trigger_to_come(context.instance, spec)) is not None:
            state = waiting.status.value.lower().replace("_", " ")
            return dg.SkipReason(f"run {waiting.run_id} of {spec.name} is {state}")
        return trigger_of(context.instance, spec, f"schedule {spec.ingestion.schedule}")

    return schedule
