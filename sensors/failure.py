"""Tells a webhook of every run of a table that failed.

Not one of Dagster's run failure sensors: those move on when their body raises, and the notice is lost. This
one keeps its own cursor, which moves past a run only when the webhook has taken its notice for each of its
tables.
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
"""Failed runs that one tick looks at."""
IDS_END = 10**18
"""From here on a number is no id of an event: databases count in 64 bits."""
BUDGET_S = 15
"""No further notice is begun after this long: Dagster ends a tick after 60 s."""


def failure_sensor(
    specs: Sequence[AnyTableSpec], environ: Mapping[str, str] | None = None
) -> dg.SensorDefinition | None:
    """The sensor, None unless PINOT_ASSETS_WEBHOOK_URL is set."""
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
            message = "from now on, failed runs are told to the webhook"
            if context.cursor:
                message += "; up to where they were told is not known: the cursor was "
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
                        raise  # a tick that failed keeps its cursor
                    break
                posted.append(what)
            cursor = afterwards
        return _skip(f"told of {', '.join(posted)}" if posted else "no run of a table has failed", cursor)

    return sensor


@dataclass(frozen=True, slots=True)
class FailureCursor:
    """What was told already.

    :ivar after: every failure up to this event.
    :ivar tables: of the failure after it, a run on several tables.
    """

    after: int
    tables: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> "FailureCursor | None":
        """From Dagster's cursor; None for an empty one, and for one that somebody else wrote."""
        after, *tables = text.split() or [""]
        number = whole_number(after)
        return None if number is None or number >= IDS_END else cls(number, tuple(tables))

    def text(self) -> str:
        """As Dagster keeps it."""
        return " ".join((str(self.after), *self.tables))


def _due(
    instance: dg.DagsterInstance, specs: Sequence[AnyTableSpec], cursor: FailureCursor
) -> Iterator[tuple[dg.DagsterRun, AnyTableSpec | None, FailureCursor]]:
    """What is to be told, oldest first, and the cursor once it was; no table for a run that is not ours."""
    tables = cursor.tables
    since = dg.RunStatusChangeRecordsFilter(dg.DagsterEventType.RUN_FAILURE, after_storage_id=cursor.after)
    failures = instance.fetch_run_status_changes(since, limit=LOOKED_AT, ascending=True).records
    # All of them before the first is told: a database that fails later would have it told again.
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
    """Of this run; one that cannot be made must not keep the later ones back."""
    try:
        made = notice.of_run(context.instance, run, label_of(spec), _served(spec, pinot), base_url)
        json.dumps(made, allow_nan=False)
    except Exception as error:
        context.log.exception(f"the notice of run {run.run_id} could not be made: please report it")
        return notice.least(run, label_of(spec), base_url, repr(error))
    return made


def _served(spec: AnyTableSpec, pinot: PinotResource) -> JsonObject:
    if not isinstance(spec, TableSpec):
        return notice.of_stream_table()
    try:
        with open_session_store(spec, pinot.settings()) as store:
            return notice.of_table(observe(store, open_staging(spec)))
    except PinotAssetsError as error:
        return notice.unknown(str(error))


def _skip(message: str, cursor: FailureCursor) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=message, cursor=cursor.text())
