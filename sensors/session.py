"""The session sensor and the schedule, which start a table's job without looking at its files.

The session sensor continues a session whose driver died: once, then less and less often. It reads ZooKeeper
and the staging area only; the files sensor reads the files. It also shows in Dagster what was published
without Dagster. The schedule runs Pinot's `schedule` in Dagster.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import time

import dagster as dg

from pinot_assets.assets.history import TICK_S, Budget, TableHistory
from pinot_assets.assets.keys import keys_of
from pinot_assets.assets.runs import job_name, runs_under_way, sensor_trigger_of, trigger_of, trigger_to_come
from pinot_assets.assets.snapshot import data_version_of, publication
from pinot_assets.errors import PinotAssetsError
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.resources import PinotResource
from pinot_assets.scheduling.stalled_session import decide_session
from pinot_assets.session.detect.observe import Observation, observe
from pinot_assets.session.stores.clients import open_session_store, open_staging
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import TableSpec

INTERVAL_S = 30


def session_sensor(spec: TableSpec) -> dg.SensorDefinition:
    """Return the session sensor of one table."""

    @dg.sensor(
        name=f"{spec.asset_name}_session",
        job_name=job_name(spec),
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"Goes on with a session of {spec.name} whose driver died. It never spends a retry.",
    )
    def sensor(context: dg.SensorEvaluationContext, pinot: PinotResource) -> dg.SensorResult:
        # Runs are read before the lease: a run that ends in between then still counts as running.
        running = runs_under_way(context.instance, spec)
        try:
            settings = pinot.settings()
            with open_session_store(spec, settings) as store:
                observation = observe(store, open_staging(spec))
                if not running:
                    _show_published(context.instance, spec, observation, store, settings)
            states = {run.run_id: run.status.value for run in running}
            tick = decide_session(spec, observation, states, context.cursor or "", int(time.time()))
        except PinotAssetsError as error:
            return dg.SensorResult(skip_reason=str(error), cursor=context.cursor)
        context.log.info(tick.message)
        for run in running:
            if run.run_id == tick.dead_run:
                context.instance.report_run_failed(run, tick.message)
        if not tick.launch:
            return dg.SensorResult(skip_reason=tick.message, cursor=tick.cursor)
        request = sensor_trigger_of(context.instance, spec, tick.message)
        return dg.SensorResult(run_requests=[request], cursor=tick.cursor)

    return sensor


def _show_published(
    instance: dg.DagsterInstance,
    spec: TableSpec,
    status: Observation,
    store: SessionStore,
    settings: Settings,
) -> None:
    """Record in Dagster a snapshot that the command line or another Dagster instance published."""
    history = TableHistory(instance, spec, Budget(TICK_S))
    if status.snapshot is None or history.published() == data_version_of(status.snapshot):
        return
    with HttpPinotClient(settings.pinot) as pinot:
        shown = publication(spec, status, store, open_staging(spec), pinot, settings)
    assert shown is not None
    if not history.report(shown.events(history).publications(history)):
        return
    # A run may have started meanwhile. It will record a newer snapshot, and this one is out of date.
    if runs_under_way(instance, spec) or store.pointer().current_snapshot != status.pointer.current_snapshot:
        return
    # The table's own event comes last: it marks that all other events are stored.
    for key in (keys_of(spec).snapshot, keys_of(spec).table):
        history.store(shown.event(key))


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
