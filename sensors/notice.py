"""Make and post the notice of a failed run: which table, where, why, and what queries still see.

A notice is posted to a webhook. The webhook's URL is a secret, because anyone who knows it can post.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import dagster as dg
import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.state import utc_iso, utc_text

URL_VARIABLE = "PINOT_ASSETS_WEBHOOK_URL"
TIMEOUT = httpx.Timeout(10.0, connect=5.0)
ATTEMPTS = 2
"""Attempts per notice in one tick; the next tick tries again."""

_JSON = {"Content-Type": "application/json"}
_NEVER_TAKEN = frozenset({400, 413, 415, 422})
"""Status codes that reject this notice for good; with other codes a later attempt may succeed."""

LINES = 5
LENGTH = 1000

_SAYS = {
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.ASSET_CHECK_EVALUATION,
    dg.DagsterEventType.RUN_FAILURE,
}


def of_run(
    instance: dg.DagsterInstance, run: dg.DagsterRun, table: str, served: JsonMapping, base_url: str
) -> JsonObject:
    """Return the notice of a failed run, as JSON.

    :param served: the result of `of_table`, `of_stream_table` or `without_table`.
    :param base_url: URL of Dagster's UI, empty if not known.
    """
    events = [
        entry.dagster_event
        for entry in instance.all_logs(run.run_id, of_type=_SAYS)
        if entry.dagster_event is not None
    ]
    steps = [{"step": e.step_key, "error": _error(e)} for e in events if e.is_step_failure]
    where = f" in {', '.join(str(step['step']) for step in steps)}" if steps else ""
    ends = [e.message or "" for e in events if e.event_type is dg.DagsterEventType.RUN_FAILURE]
    return {
        "text": f"{table}: run {run.run_id} failed{where}; {served['text']}",
        "table": table,
        "run_id": run.run_id,
        "run_url": _run_url(run, base_url),
        "job": run.job_name,
        "failed_steps": steps,
        "failed_checks": list(_failed_checks(events)),
        "message": _shorten(ends[-1]) if ends else "",
        "will_be_retried": run.tags.get("dagster/will_retry") == "true",
        "session": served["session"],
        "still_served": served["snapshot"],
    }


def minimal(run: dg.DagsterRun, table: str, base_url: str, why: str) -> JsonObject:
    """Return a minimal notice, for when `of_run` fails.

    :param why: why it failed.
    """
    return {
        "text": f"{table}: run {run.run_id} failed; no more is known about it: {_shorten(why)}",
        "table": table,
        "run_id": run.run_id,
        "run_url": _run_url(run, base_url),
    }


def of_table(observation: Observation) -> JsonObject:
    """Return what queries see now, and the state of the open session."""
    session, snapshot = observation.session, observation.snapshot
    open_session = None
    if session is not None:
        open_session = {
            "id": session.id,
            "state": session.state.value,
            "attempt": session.attempt,
            "retry_count": session.retry_count,
            "failed_files": len(observation.failures),
            "last_error": _shorten(session.last_error),
        }
    if snapshot is None:
        return {"text": "nothing was published before", "session": open_session, "snapshot": None}
    published, rows = utc_text(snapshot.published_ms), plural(snapshot.rows, "row")
    return {
        "text": f"still published: {snapshot.session} with {rows}, published {published}",
        "session": open_session,
        "snapshot": {
            "session": snapshot.session,
            "files": len(snapshot.ledger),
            "segments": len(snapshot.segments),
            "rows": snapshot.rows,
            "published_at": utc_iso(snapshot.published_ms),
        },
    }


def of_stream_table() -> JsonObject:
    """Return what replaces `of_table` for a REALTIME table: no run publishes anything there."""
    return {"text": "its servers consume without a run", "session": None, "snapshot": None}


def without_table(reason: str) -> JsonObject:
    """Return what replaces `of_table` if ZooKeeper or the staging area fails, perhaps the run's own cause."""
    return {"text": f"what queries see is not known: {_shorten(reason)}", "session": None, "snapshot": None}


def _run_url(run: dg.DagsterRun, base_url: str) -> str | None:
    return f"{base_url.rstrip('/')}/runs/{run.run_id}" if base_url else None


def _error(event: dg.DagsterEvent) -> str:
    if (error := event.step_failure_data.error) is None:
        return _shorten(event.message or "")
    while error.cause is not None:  # Dagster wraps what the step raised
        error = error.cause
    return _shorten(error.message)


def _failed_checks(events: Sequence[dg.DagsterEvent]) -> Iterator[JsonObject]:
    for event in events:
        if event.event_type is not dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            continue
        check = event.asset_check_evaluation_data
        if not check.passed:
            values = {name: value.value for name, value in check.metadata.items()}
            yield {
                "asset": check.asset_key.to_user_string(),
                "check": check.check_name,
                "description": _shorten(check.description or ""),
                "numbers": {  # JSON has no NaN and no infinity
                    name: v for name, v in values.items() if isinstance(v, int | float) and math.isfinite(v)
                },
            }


def _shorten(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return "\n".join(lines[:LINES])[:LENGTH]


class NoticeRefused(PinotAssetsError):
    """The webhook answers and will never accept this notice."""


class _Unanswered(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Webhook:
    """The webhook that notices are posted to."""

    url: str = field(repr=False)

    def post(self, notice: JsonMapping) -> None:
        """Post one notice as JSON.

        :raises NoticeRefused: the webhook will never accept it.
        :raises PinotAssetsError: the webhook did not accept it now. Neither error contains the URL.
        """
        body = json.dumps(notice, allow_nan=False)  # ASCII: paths may hold bytes that are no UTF-8
        try:
            status = Retrying(
                stop=stop_after_attempt(ATTEMPTS),
                wait=wait_fixed(1),
                retry=retry_if_exception_type(_Unanswered),
                reraise=True,
            )(self._post, body)
        except _Unanswered as error:
            why = str(error)
        else:
            if 200 <= status < 300:
                return
            why = f"it answered {status}"
            if status in _NEVER_TAKEN:
                raise NoticeRefused("the webhook refused a notice", why=why)
        # Raised outside the handler: some of httpx's errors contain the URL, and Dagster shows causes.
        raise PinotAssetsError(
            "the webhook did not accept a notice, which is kept",
            why=why,
            hint=f"check {URL_VARIABLE}; the next tick tries again",
        )

    def _post(self, notice: str) -> int:
        """Post the notice once and return the HTTP status.

        :raises _Unanswered: the webhook did not answer, or its status asks to try again later.
        """
        try:
            with (
                _unlogged(),
                httpx.Client(timeout=TIMEOUT) as client,
                # Streamed, so that the answer's body is not read: nothing in it is used.
                client.stream("POST", self.url, content=notice, headers=_JSON) as answer,
            ):
                status = answer.status_code
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Unanswered(type(error).__name__) from None
        if status in (408, 429) or status >= 500:
            raise _Unanswered(f"it answered {status}")
        return status


@contextmanager
def _unlogged() -> Iterator[None]:
    """Silence httpx inside the block: at INFO, it logs the URL of every request."""
    logger = logging.getLogger("httpx")

    def quiet(_: logging.LogRecord) -> bool:
        return False

    logger.addFilter(quiet)
    try:
        yield
    finally:
        logger.removeFilter(quiet)
