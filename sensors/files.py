"""The files sensor: sees new, rewritten and deleted files and starts the table's job.

It decides by fingerprints alone and changes nothing; the run lists again and lets content decide. A cursor
keeps what was launched last, so that a listing is not launched again at every tick. It is launched again
after a while, longer each time: a run may have ended without a trace (Pinot was away, the driver died), and
nobody would look at its files until others come.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import json
import time
from dataclasses import asdict, dataclass

import dagster as dg

from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.assets.table import TableAssets
from pinot_assets.connect import open_session_store, open_source, open_staging
from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import PinotResource
from pinot_assets.session.model import Mode
from pinot_assets.session.observe import Observation, Sighting, list_source, observe, sight
from pinot_assets.session.run import WRITER_VERSION
from pinot_assets.source import Inventory
from pinot_assets.spec import TableSpec

INTERVAL_S = 30
FIRST_WAIT_S = 300
"""Until a listing that was launched in vain is launched again; doubled each time. Above the time-outs of one
run, so that a Pinot that restarts is met at most once or twice."""
LONGEST_WAIT_S = 6 * 3600
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


@dataclass(frozen=True, slots=True)
class Launched:
    """The cursor: what was launched last.

    :ivar listing: digest of the listing.
    :ivar snapshot: what was published then.
    :ivar at_s: when, seconds since the epoch.
    :ivar times: how often in a row.
    """

    listing: str
    snapshot: str
    at_s: int
    times: int

    @classmethod
    def read(cls, cursor: str) -> "Launched | None":
        """None for an empty cursor, and for one that somebody else wrote."""
        try:
            return cls(**json.loads(cursor))
        except (ValueError, TypeError):
            return None

    @property
    def wait_s(self) -> int:
        """How long to leave it alone."""
        return int(min(FIRST_WAIT_S * 2 ** min(self.times - 1, 16), LONGEST_WAIT_S))


def decide(spec: TableSpec, inventory: Inventory, observation: Observation, cursor: str, now_s: int) -> Tick:
    """One tick, from values alone (spec/session.md section 3, rule R26).

    A session that failed is retried by schedule or by hand; the sensor goes on with it only when asked to
    (`sensorRetries`), and then only when something has changed for it.

    :param now_s: seconds since the epoch.
    """
    seen = sight(inventory, observation)
    reason = _stays_out(spec, inventory, observation, seen)
    if reason is not None:
        return Tick(False, reason, cursor)
    now = Launched(seen.digest, _snapshot_key(observation), now_s, 1)
    last = Launched.read(cursor)
    if last is None or (last.listing, last.snapshot) != (now.listing, now.snapshot):
        return Tick(True, f"{seen}; launched", json.dumps(asdict(now)))
    if _audit_failed(observation):
        return Tick(False, f"{seen}; the audit of this listing failed, waiting for a change", cursor)
    left = last.at_s + last.wait_s - now_s
    if left > 0:
        return Tick(False, f"{seen}; this listing was launched before, again in {left} s", cursor)
    again = Launched(now.listing, now.snapshot, now_s, last.times + 1)
    return Tick(True, f"{seen}; launched again", json.dumps(asdict(again)))


def _stays_out(spec: TableSpec, inventory: Inventory, observation: Observation, seen: Sighting) -> str | None:
    """Why there is nothing to launch, None when there may be."""
    session = observation.session
    if observation.holder is not None:
        return f"paused: {session.id if session else 'no session yet'} held by {observation.holder}"
    if spec.mode == "swap" and observation.pointer.hold is not None:
        return f"held after a rollback until `pinot-assets resume {spec.name}`; {seen}"
    if session is None:
        # Append never takes rows away, so a file that has gone leaves nothing to do.
        work = seen.new or seen.rewritten or (seen.deleted and spec.mode != "append")
        return None if work else f"{seen} of {seen.listed} files listed"
    trouble = _trouble(spec, observation)
    if trouble and not spec.ingestion.sensor_retries:
        return (
            f"{session.id} {trouble} and waits for the schedule or a run by hand "
            f"(sensorRetries is off); {seen}"
        )
    if observation.failures and not _failed_files_changed(inventory, observation):
        return f"{session.id} waits for {len(observation.failures)} failed files to change; {seen}"
    return None


def _trouble(spec: TableSpec, observation: Observation) -> str:
    """Why the next trigger would spend a retry of the open session, or abandon it."""
    session = observation.session
    if session is None or session.mode is Mode.ROLLBACK:
        return ""
    if observation.failures:
        return f"failed with {len(observation.failures)} files"
    if _audit_failed(observation):
        return "failed its audit"
    if session.config_fingerprint != spec.config_fingerprint(WRITER_VERSION):
        return "was planned for another table spec"
    return ""


def _audit_failed(observation: Observation) -> bool:
    session = observation.session
    return session is not None and session.audit is not None and not session.audit.passed


def _failed_files_changed(inventory: Inventory, observation: Observation) -> bool:
    """Whether one of them has gone, or stands there in another version than the one that failed."""
    return any(
        uri not in inventory.files or inventory.files[uri].fingerprint.token != version
        for uri, version in observation.failed_versions.items()
    )


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
        tick = decide(spec, inventory, observation, context.cursor or "", int(time.time()))
        context.log.info(tick.message)
        if not tick.launch:
            return _skip(tick.message, tick.cursor)
        request = dg.RunRequest(tags={TABLE_TAG: spec.name, "pinot/tick": tick.message})
        return dg.SensorResult(run_requests=[request], cursor=tick.cursor)

    return sensor


def _skip(message: str, cursor: str | None) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=dg.SkipReason(message), cursor=cursor)
