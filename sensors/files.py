"""The files sensor: sees new, rewritten and deleted files and starts the table's job."""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import logging
import time
from dataclasses import replace

import dagster as dg

from pinot_assets.assets.budget import LISTING_S, TICK_S, Budget
from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.picture import Picture
from pinot_assets.assets.runs import runs_under_way, sensor_trigger_of
from pinot_assets.assets.table import TableAssets
from pinot_assets.connect import open_hints, open_session_store, open_source, open_staging
from pinot_assets.errors import NeedsNewerRelease, PinotAssetsError
from pinot_assets.resources import PinotResource
from pinot_assets.sensors.decision import Cursor, decide, settlement
from pinot_assets.session.kept_parts import KeptParts
from pinot_assets.session.observe import observe, standing
from pinot_assets.session.sweep import Bookmark, Sweep, go_on
from pinot_assets.source.notifications import Hints

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
            cursor, now_s = Cursor.read(context.cursor or ""), int(time.time())
        except NeedsNewerRelease as error:
            return _skip(str(error), context.cursor)
        try:
            staging, queue = open_staging(spec), open_hints(spec)
            hints = _receive(queue, context.log) if queue and cursor.sweep is None else ()
            if hints:
                cursor = cursor.restless  # until the sweep that they wake has come to its end
            elif hints is not None and queue and (rest := cursor.rests_s(spec, now_s)) > 0:
                return _skip(f"no message of changes, the next sweep is in {rest} s", context.cursor)
            kept, time_left = KeptParts(staging.store), Budget(LISTING_S)
            found = go_on(
                spec, open_source(spec), kept, cursor.sweep, lambda: time_left.is_spent, hints or ()
            )
            if isinstance(found, Bookmark):
                return _skip(str(found), replace(cursor, sweep=found).text)
            inventory = found.inventory
            with open_session_store(spec, pinot.settings()) as store:
                settled = settlement(spec, inventory, standing(store))
                if cursor.is_settled(settled, now_s):
                    _forget(kept, queue, found, context.log)
                    return _skip(cursor.told, cursor.listed_anew(now_s).text)
                observation = observe(store, staging)
        except PinotAssetsError as error:
            return _skip(str(error), cursor.text)
        history = TableHistory(context.instance, spec, Budget(TICK_S))
        picture = Picture.take(spec, inventory.files, observation.snapshot, history.partitions())
        is_shown = history.report(picture.observations(history))
        if runs_under_way(context.instance, spec):  # it has come up since, and needs its partitions
            is_shown = False
        else:
            picture.forget_all_others(history)
        now_s = int(time.time())
        tick = decide(spec, inventory, observation, cursor.text, now_s, picture.rows.differing)
        context.log.info(tick.message)
        _forget(kept, queue, found, context.log)
        after = Cursor.read(tick.cursor)
        after = after.settles(settled, tick.message, now_s) if is_shown else after.restless
        if not tick.launch:
            return _skip(tick.message, after.text)
        request = sensor_trigger_of(context.instance, spec, tick.message)
        return dg.SensorResult(run_requests=[request], cursor=after.text)

    return sensor


def _receive(queue: Hints, log: logging.Logger) -> tuple[str, ...] | None:
    """Messages of changes; None where the queue cannot be asked, and sweeps go on as without one."""
    try:
        return queue.receive()
    except PinotAssetsError as error:
        log.warning(f"{error}; sweeps go on as without it")
        return None


def _forget(kept: KeptParts, queue: Hints | None, sweep: Sweep, log: logging.Logger) -> None:
    """Clear away what led to a listing that is made use of; what stays does no harm."""
    try:
        kept.drop(sweep.parts)
    except PinotAssetsError as error:
        log.warning(f"parts of the listing stay in the staging area: {error}")
    try:
        if queue is not None and sweep.hints:
            queue.delete(sweep.hints)
    except PinotAssetsError as error:
        log.warning(f"messages stay in the queue and wake another sweep: {error}")


def _skip(message: str, cursor: str | None) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=dg.SkipReason(message), cursor=cursor)
