"""Post a notice of every failed run of a table to a webhook.

This is not one of Dagster's run failure sensors: they skip a run when their body raises, and its notice is
lost. This sensor has its own cursor. The cursor moves past a run only when the webhook has accepted or
refused the run's notice for each of its tables.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from pinot_assets.assets.runs import works_on
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.untrusted import whole_number
from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import PinotResource
from pinot_assets.sensors import notice
from pinot_assets.sensors.notice import URL_VARIABLE, NoticeRefused, Webhook
from pinot_assets.session.detect.observe import observe
from pinot_assets.session.stores.clients import open_session_store, open_staging
from pinot_assets.table_spec import AnyTableSpec, TableSpec, label_of

UI_VARIABLE = "DAGSTER_WEBSERVER_URL"
INTERVAL_S = 30
LOOKED_AT = 100
"""The most failed runs that one tick reads."""
IDS_END = 10**18
"""Numbers from here on are not valid event ids: databases use 64-bit ids."""
BUDGET_S = 15
"""A tick starts no further notice after this many seconds: Dagster ends a tick after 60 s."""


def failure_sensor(
    specs: Sequence[AnyTableSpec], environ: Mapping[str, str] | None = None
) -> dg.SensorDefinition | None:
    """Return the sensor; None unless PINOT_ASSETS_WEBHOOK_URL is set."""
    env = os.environ if environ is None else environ
    if not (url := env.get(URL_VARIABLE, "").strip()):
        return None
    webhook, base_url = Webhook(url), env.get(UI_VARIABLE, "").strip()

    @dg.sensor(
        name="pinot_assets_failures",
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Posts a notice of every failed run of a table to {URL_VARIABLE}.",
    )
    def sensor(context: dg.SensorEvaluationContext, pinot: PinotResource) -> dg.SensorResult:
        instance, known = context.instance, FailureCursor.read(context.cursor or "")
        if known is None:
            message = "from now on, the sensor posts failed runs to the webhook"
            if context.cursor:
                message += "; which runs it had posted before is not known: the cursor was "
                message += repr(context.cursor[:100])
                context.log.warning(message)
            newest = instance.fetch_run_status_changes(dg.DagsterEventType.RUN_FAILURE, limit=1).records
            return _skip(message, FailureCursor(newest[0].storage_id if newest else 0))
        cursor, posted, end = known, list[str](), time.monotonic() + BUDGET_S
        for run, spec, afterwards in _due(instance, specs, cursor):
            if time.monotonic() > end:
                break
            if spec is not None:
                what = f"run {run.run_id} of {label_of(spec)}"
                try:
                    webhook.post(_notice(context, run, spec, pinot, base_url))
                except NoticeRefused as error:
                    what += ", whose notice was refused"
                    context.log.error(str(error))
                except PinotAssetsError:
                    if not posted:
                        raise  # Dagster keeps the cursor of a tick that fails
                    break
                posted.append(what)
            cursor = afterwards
        return _skip(
            f"posted the failure of {', '.join(posted)}" if posted else "no run of a table has failed", cursor
        )

    return sensor


@dataclass(frozen=True, slots=True)
class FailureCursor:
    """The failures that the webhook has had notices of.

    :ivar after: storage id of the last event whose notices are all done.
    :ivar tables: the tables that are done for the next failure, when that run worked on several tables.
    """

    after: int
    tables: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> "FailureCursor | None":
        """Parse Dagster's cursor; None if it is empty or not in this format."""
        after, *tables = text.split() or [""]
        number = whole_number(after)
        return None if number is None or number >= IDS_END else cls(number, tuple(tables))

    def text(self) -> str:
        """Return the cursor as the text that Dagster stores."""
        return " ".join((str(self.after), *self.tables))


def _due(
    instance: dg.DagsterInstance, specs: Sequence[AnyTableSpec], cursor: FailureCursor
) -> Iterator[tuple[dg.DagsterRun, AnyTableSpec | None, FailureCursor]]:
    """Yield each run and table to notify of, oldest first, and the cursor after it; no table if not ours."""
    tables = cursor.tables
    since = dg.RunStatusChangeRecordsFilter(dg.DagsterEventType.RUN_FAILURE, after_storage_id=cursor.after)
    failures = instance.fetch_run_status_changes(since, limit=LOOKED_AT, ascending=True).records
    # Read all runs before the first notice: if the database failed later, the notice would be sent again.
    for failure, run in [(one, instance.get_run_by_id(one.run_id)) for one in failures]:
        if run is None:
            continue
        of_run = [spec for spec in specs if label_of(spec) not in tables and works_on(run, spec)]
        for spec in of_run[:-1]:
            tables = (*tables, label_of(spec))
            yield run, spec, FailureCursor(cursor.after, tables)
        cursor, tables = FailureCursor(failure.storage_id), ()
        yield run, of_run[-1] if of_run else None, cursor


def _notice(
    context: dg.SensorEvaluationContext,
    run: dg.DagsterRun,
    spec: AnyTableSpec,
    pinot: PinotResource,
    base_url: str,
) -> JsonObject:
    """Return the notice of this run, or a short one if making it fails: later runs must not wait for it."""
    try:
        made = notice.of_run(context.instance, run, label_of(spec), _served(spec, pinot), base_url)
        json.dumps(made, allow_nan=False)
    except Exception as error:
        context.log.exception(f"the notice of run {run.run_id} could not be made: please report it")
        return notice.minimal(run, label_of(spec), base_url, repr(error))
    return made


def _served(spec: AnyTableSpec, pinot: PinotResource) -> JsonObject:
    if not isinstance(spec, TableSpec):
        return notice.of_stream_table()
    try:
        with open_session_store(spec, pinot.settings()) as store:
            return notice.of_table(observe(store, open_staging(spec)))
    except PinotAssetsError as error:
        return notice.without_table(str(error))


def _skip(message: str, cursor: FailureCursor) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=message, cursor=cursor.text())
