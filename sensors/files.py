"""The files sensor: sees new, rewritten and deleted files and starts the table's job."""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import time

import dagster as dg

from pinot_assets.assets.budget import TICK_S, Budget
from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.picture import Picture
from pinot_assets.assets.runs import runs_under_way, sensor_trigger_of
from pinot_assets.assets.table import TableAssets
from pinot_assets.connect import open_session_store, open_source, open_staging
from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import PinotResource
from pinot_assets.sensors.decision import decide
from pinot_assets.session.observe import list_source, observe

INTERVAL_S = 30


def files_sensor(table: TableAssets) -> dg.SensorDefinition:
    """The files sensor of one table."""
    spec = table.spec

    @dg.sensor(
        name=f"{spec.asset_name}_files",
        job=table.job,
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"New, rewritten and deleted files of {spec.ingestion.input_dir_uri}.",
    )
    def sensor(context: dg.SensorEvaluationContext, pinot: PinotResource) -> dg.SensorResult:
        running = runs_under_way(context.instance, spec)
        if running:
            return _skip(f"paused: run {running[0].run_id} of {spec.name} is under way", context.cursor)
        try:
            with open_session_store(spec, pinot.settings()) as store:
                observation = observe(store, open_staging(spec))
            inventory = list_source(spec, open_source(spec))
        except PinotAssetsError as error:
            return _skip(str(error), context.cursor)
        history = TableHistory(context.instance, spec, Budget(TICK_S))
        picture = Picture.take(spec, inventory.files, observation.snapshot, history.partitions())
        history.report(picture.observations(history))
        if not runs_under_way(context.instance, spec):  # one may have come up since
            picture.forget_all_others(history)
        tick = decide(spec, inventory, observation, context.cursor or "", int(time.time()))
        context.log.info(tick.message)
        if not tick.launch:
            return _skip(tick.message, tick.cursor)
        request = sensor_trigger_of(context.instance, spec, tick.message)
        return dg.SensorResult(run_requests=[request], cursor=tick.cursor)

    return sensor


def _skip(message: str, cursor: str | None) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=dg.SkipReason(message), cursor=cursor)
