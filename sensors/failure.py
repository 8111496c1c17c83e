"""Tells a webhook of every run of a table that failed.

Not one of Dagster's run failure sensors: those move on when their body raises, and the notice is lost. This
one keeps its own cursor, which moves past a run only when the webhook has taken its notice.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from pinot_assets.assets.runs import works_on
from pinot_assets.connect import open_session_store, open_staging
from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import PinotResource
from pinot_assets.sensors import notice
from pinot_assets.sensors.webhook import URL_VARIABLE, NoticeRefused, Webhook
from pinot_assets.session.observe import observe
from pinot_assets.spec import TableSpec

UI_VARIABLE = "DAGSTER_WEBSERVER_URL"
INTERVAL_S = 30
LOOKED_AT = 100
"""Failed runs that one tick looks at."""
BUDGET_S = 15
"""No further notice is begun after this long: Dagster ends a tick after 60 s."""


def failure_sensor(
    specs: Sequence[TableSpec], environ: Mapping[str, str] | None = None
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
        instance = context.instance
        if not context.cursor:
            return _skip("from now on, failed runs are told to the webhook", _newest(instance))
        after, told, end = int(context.cursor), [], time.monotonic() + BUDGET_S
        for event_id, run in _failed_runs(instance, after):
            try:
                for spec in specs:
                    if works_on(run, spec):
                        webhook.post(notice.of_run(instance, run, spec.name, _served(spec, pinot), base_url))
                        told.append(f"run {run.run_id} of {spec.name}")
            except NoticeRefused as error:
                told.append(f"run {run.run_id}, whose notice was refused")
                context.log.error(str(error))
            except PinotAssetsError:
                if not told:
                    raise  # a tick that failed keeps its cursor
                break
            after = event_id
            if time.monotonic() > end:
                break
        return _skip(f"told of {', '.join(told)}" if told else "no run of a table has failed", after)

    return sensor


def _newest(instance: dg.DagsterInstance) -> int:
    """Id of the newest failure, 0 when there is none."""
    records = instance.fetch_run_status_changes(dg.DagsterEventType.RUN_FAILURE, limit=1).records
    return records[0].storage_id if records else 0


def _failed_runs(instance: dg.DagsterInstance, after: int) -> list[tuple[int, dg.DagsterRun]]:
    """Runs that failed after an event, each with the id of the event, oldest first."""
    changes = instance.fetch_run_status_changes(
        dg.RunStatusChangeRecordsFilter(dg.DagsterEventType.RUN_FAILURE, after_storage_id=after),
        limit=LOOKED_AT,
        ascending=True,
    )
    found = [(record.storage_id, instance.get_run_by_id(record.run_id)) for record in changes.records]
    return [(event_id, run) for event_id, run in found if run is not None]


def _served(spec: TableSpec, pinot: PinotResource) -> dict[str, Any]:
    try:
        with open_session_store(spec, pinot.settings()) as store:
            return notice.of_table(observe(store, open_staging(spec)))
    except PinotAssetsError as error:
        return notice.unknown(str(error))


def _skip(message: str, after: int) -> dg.SensorResult:
    return dg.SensorResult(skip_reason=message, cursor=str(after))
