"""The files sensor: it finds new, rewritten and deleted files and starts the table's job.

If it cannot read a table, it tries again at each tick. The cursor stores when that began. After an hour the
sensor records an error for the table's check `snapshot_equals_source`, which lasts until a tick succeeds.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import dagster as dg

from pinot_assets.assets.health import evaluations, unseen
from pinot_assets.assets.history import TICK_S, Budget, TableHistory
from pinot_assets.assets.partition_events import PartitionEvents
from pinot_assets.assets.runs import job_name, runs_under_way, sensor_trigger_of
from pinot_assets.core.check_result import unknown
from pinot_assets.core.waiting import Late, Patience
from pinot_assets.errors import NeedsNewerRelease, PinotAssetsError, SourceError
from pinot_assets.health import source
from pinot_assets.resources import PinotResource
from pinot_assets.scheduling.files_tick import FilesCursor, decide_tick, settlement
from pinot_assets.sensors.tables import LATE_HINT, LOOK_S
from pinot_assets.session.detect.listing import CompleteListing, KeptParts, ListingCursor, resume_listing
from pinot_assets.session.detect.observe import Observation, observe, published_token
from pinot_assets.session.stores.clients import open_hints, open_session_store, open_source, open_staging
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.trouble import aged
from pinot_assets.settings.environment import Settings
from pinot_assets.source.notifications import SqsHints
from pinot_assets.table_spec import TableSpec

INTERVAL_S = 30
LISTING_S = 20.0
"""Seconds that a tick may spend on listing; comparing and writing events must also fit in Dagster's 60 s."""


def files_sensor(spec: TableSpec) -> dg.SensorDefinition:
    """Return the files sensor of one table."""
    looking = _Looking(spec)

    @dg.sensor(
        name=f"{spec.asset_name}_files",
        job_name=job_name(spec),
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=f"New, rewritten and deleted files of {spec.ingestion.input_dir_uri}.",
    )
    def sensor(context: dg.SensorEvaluationContext, pinot: PinotResource) -> dg.SensorResult:
        began = time.monotonic()
        if running := runs_under_way(context.instance, spec):
            return _skip(f"paused: run {running[0].run_id} of {spec.name} has not ended", context.cursor)
        try:
            cursor, now_s = FilesCursor.read(context.cursor or ""), int(time.time())
        except NeedsNewerRelease as error:
            return _skip(str(error), context.cursor)
        try:
            staging, queue = open_staging(spec), open_hints(spec)
            hints = _receive(queue, context.log) if queue and cursor.sweep is None else ()
            if hints:
                cursor = cursor.restless  # until the listing that they start is complete
            elif hints is not None and queue and (rest := cursor.rests_s(spec, now_s)) > 0:
                return _skip(f"no message about changes, the next sweep is in {rest} s", context.cursor)
            kept, left_s = KeptParts(staging.store), max(LOOK_S - (time.monotonic() - began), LISTING_S + 5)
            looked = looking.look(left_s, kept, staging, pinot.settings, cursor, now_s, hints or ())
        except PinotAssetsError as error:
            return _failed(context, spec, cursor, error)
        if isinstance(looked, ListingCursor):
            ended = _works(context.instance, spec, cursor, str(looked))
            return _skip(str(looked), replace(cursor.works, sweep=looked).text, ended)
        inventory, observation = looked.sweep.inventory, looked.observation
        if observation is None:
            _forget(kept, queue, looked.sweep, context.log)
            ended = _works(context.instance, spec, cursor, cursor.told)
            return _skip(cursor.told, cursor.listed_anew(spec, now_s).text, ended)
        history = TableHistory(context.instance, spec, Budget(TICK_S))
        picture = PartitionEvents.take(spec, inventory.files, observation.snapshot, history.partitions())
        is_reported = history.report(picture.observations(history))
        running = runs_under_way(context.instance, spec)
        if not running:  # a run that has started meanwhile needs its partitions
            picture.forget_all_others(history)
        is_shown = is_reported and history.is_through and not running
        now_s = int(time.time())
        tick = decide_tick(spec, inventory, observation, cursor.text, now_s, picture.rows.differing)
        context.log.info(tick.message)
        _forget(kept, queue, looked.sweep, context.log)
        after = FilesCursor.read(tick.cursor)
        after = after.settles(looked.settled, tick.message, now_s) if is_shown else after.restless
        ended = _works(context.instance, spec, cursor, tick.message)
        if not tick.launch:
            return _skip(tick.message, after.text, ended)
        if running:
            paused = f"paused: run {running[0].run_id} of {spec.name} has started meanwhile"
            return _skip(paused, after.not_launched(cursor).text, ended)
        request = sensor_trigger_of(context.instance, spec, tick.message)
        return dg.SensorResult(run_requests=[request], cursor=after.text, asset_events=ended)

    return sensor


@dataclass(frozen=True, slots=True)
class _WholeLook:
    """A completed look at a table.

    :ivar settled: what the listing and ZooKeeper showed, as `settlement` describes it.
    :ivar observation: None if the cursor shows that nothing changed since the last complete look.
    """

    sweep: CompleteListing
    settled: str
    observation: Observation | None


class _Looking:
    """Read the state of one table: first its source, then ZooKeeper and the staging area."""

    def __init__(self, spec: TableSpec) -> None:
        self._spec = spec
        self._patience = Patience()
        self._asked = ""

    def look(
        self,
        seconds: float,
        kept: KeptParts,
        staging: Staging,
        settings: Callable[[], Settings],
        cursor: FilesCursor,
        now_s: int,
        hints: tuple[str, ...],
    ) -> ListingCursor | _WholeLook:
        """Continue the listing; when it is complete, read the table's session state.

        :param seconds: how long to wait for this.
        :raises PinotAssetsError: something cannot be read, or does not answer in time.
        """
        spec, time_left = self._spec, Budget(LISTING_S)

        def looked() -> ListingCursor | _WholeLook:
            self._asked = f"the source {spec.input_uri()}, or the staging area,"
            sweep = resume_listing(
                spec, open_source(spec), kept, cursor.sweep, lambda: time_left.is_spent, hints
            )
            if isinstance(sweep, ListingCursor):
                return sweep
            self._asked = "ZooKeeper, or the staging area,"
            with open_session_store(spec, settings()) as store:
                settled = settlement(spec, sweep.inventory, published_token(store))
                if cursor.is_settled(settled, now_s):
                    return _WholeLook(sweep, settled, None)
                return _WholeLook(sweep, settled, observe(store, staging))

        try:
            return self._patience.wait_for(looked, seconds)
        except Late as late:
            raise SourceError(
                f"{spec.name} cannot be checked",
                why=f"{self._asked} does not answer ({late})",
                hint=LATE_HINT,
            ) from None


def _receive(queue: SqsHints, log: logging.Logger) -> tuple[str, ...] | None:
    """Return the queue's messages about changes; None if it cannot be read, and the sensor lists as usual."""
    try:
        return queue.receive()
    except PinotAssetsError as error:
        log.warning(f"{error}; sweeps continue without it")
        return None


def _forget(kept: KeptParts, queue: SqsHints | None, sweep: CompleteListing, log: logging.Logger) -> None:
    """Delete the stored parts and the messages of a listing that has been used; left-overs do no harm."""
    try:
        kept.drop(sweep.parts)
    except PinotAssetsError as error:
        log.warning(f"parts of the listing are left in the staging area: {error}")
    try:
        if queue is not None and sweep.hints:
            queue.delete(sweep.hints)
    except PinotAssetsError as error:
        log.warning(f"messages stay in the queue and start another sweep: {error}")


def _skip(
    message: str, cursor: str | None, events: Sequence[dg.AssetCheckEvaluation] = ()
) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=dg.SkipReason(message), cursor=cursor, asset_events=events)


def _failed(
    context: dg.SensorEvaluationContext, spec: TableSpec, cursor: FilesCursor, error: PinotAssetsError
) -> dg.SensorResult:
    """Skip the tick and report how long the table could not be read; after an hour, record a failed check."""
    now_s = int(time.time())
    cursor = cursor.fails(now_s)
    since_ms, now_ms = cursor.failing_s * 1000, now_s * 1000
    answer = source.lasts(unknown(source.NAME, error.reason, error.hint or ""), since_ms, now_ms)
    events: list[dg.AssetCheckEvaluation] = []
    if isinstance(answer, source.Lasting):
        before = unseen(context.instance, spec)
        if before is None or before.is_due(now_ms):
            events = evaluations(context.instance, spec, (answer,))
    return _skip(aged(error, since_ms, now_ms), cursor.text, events)


def _works(
    instance: dg.DagsterInstance, spec: TableSpec, before: FilesCursor, message: str
) -> list[dg.AssetCheckEvaluation]:
    """Return the evaluation that ends the error recorded while the table could not be read, if there is one.

    :param before: the cursor at the start of the tick.
    """
    if not before.failing_s or (recorded := unseen(instance, spec)) is None:
        return []
    answer = source.seen_again(recorded.since_ms, int(time.time()) * 1000, message)
    return evaluations(instance, spec, (answer,))
