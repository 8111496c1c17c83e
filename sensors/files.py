"""The files sensor: sees new, rewritten and deleted files and starts the table's job.

It decides by fingerprints alone and changes nothing; the run lists again and lets content decide. A cursor
keeps what was launched last, so that a listing that already failed is not launched again at every tick.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import json
from dataclasses import dataclass

import dagster as dg

from pinot_assets.assets.table import TABLE_TAG, TableAssets
from pinot_assets.connect import open_session_store, open_source, open_staging
from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import PinotResource
from pinot_assets.session.observe import Observation, Sighting, list_source, observe, sight
from pinot_assets.source import Inventory

INTERVAL_S = 30
UNDER_WAY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick decided.

    :ivar launch: whether to start the job.
    :ivar message: why, for people.
    :ivar cursor: what the next tick compares with.
    """

    launch: bool
    message: str
    cursor: str


def decide(inventory: Inventory, observation: Observation, cursor: str, *, sensor_retries: bool) -> Tick:
    """One tick, from values alone (spec/session.md section 3, rule R26).

    A failed session is retried by schedule or by hand; the sensor goes on with it only when asked to
    (`sensorRetries`), and then only when a file that failed has changed or vanished.
    """
    seen = sight(inventory, observation)
    state = json.dumps({"listing": seen.digest, "snapshot": _snapshot_key(observation)}, sort_keys=True)
    if observation.holder is not None:
        session = observation.pointer.active_session or "no session yet"
        return Tick(False, f"paused: {session} held by {observation.holder}", cursor)
    if observation.failures:
        return _decide_failed(inventory, observation, seen, cursor, state, sensor_retries=sensor_retries)
    if not seen.changed and observation.session is None:
        return Tick(False, f"{seen} of {seen.listed} files listed", cursor)
    if state == cursor:
        return Tick(False, f"{seen}; this listing was launched before, waiting for a change", cursor)
    return Tick(True, f"{seen}; launched", state)


def _decide_failed(
    inventory: Inventory,
    observation: Observation,
    seen: Sighting,
    cursor: str,
    state: str,
    *,
    sensor_retries: bool,
) -> Tick:
    failed = {f.uri for f in observation.failures}
    session = observation.pointer.active_session
    if not sensor_retries:
        return Tick(
            False,
            f"{session} waits with {len(failed)} failed files for the schedule or a run by hand "
            f"(sensorRetries is off); {seen}",
            cursor,
        )
    before = json.loads(cursor).get("failed", {}) if cursor else {}
    now = {
        uri: inventory.files[uri].fingerprint.token if uri in inventory.files else ""
        for uri in sorted(failed)
    }
    marked = json.dumps({**json.loads(state), "failed": now}, sort_keys=True)
    if not before:
        # The first tick after the failure: remember what failed, in which version.
        return Tick(False, f"{session} failed with {len(failed)} files; waiting for them to change", marked)
    if before == now:
        return Tick(False, f"{session} waits for {len(failed)} failed files to change; {seen}", cursor)
    return Tick(True, f"failed files of {session} changed; {seen}; launched", marked)


def _snapshot_key(observation: Observation) -> str:
    current = observation.pointer.current_snapshot
    return current.key if current else ""


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
        running = context.instance.get_runs(
            dg.RunsFilter(tags={TABLE_TAG: spec.name}, statuses=UNDER_WAY), limit=1
        )
        if running:
            return _skip(f"paused: run {running[0].run_id} of {spec.name} is under way", context.cursor)
        try:
            with open_session_store(spec, pinot.settings()) as store:
                observation = observe(store, open_staging(spec))
            inventory = list_source(spec, open_source(spec))
        except PinotAssetsError as error:
            return _skip(str(error), context.cursor)
        tick = decide(
            inventory, observation, context.cursor or "", sensor_retries=spec.ingestion.sensor_retries
        )
        context.log.info(tick.message)
        if not tick.launch:
            return _skip(tick.message, tick.cursor)
        request = dg.RunRequest(tags={TABLE_TAG: spec.name, "pinot/tick": tick.message})
        return dg.SensorResult(run_requests=[request], cursor=tick.cursor)

    return sensor


def _skip(message: str, cursor: str | None) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=dg.SkipReason(message), cursor=cursor)
