"""What people are told of a run that failed: which table, where, why, and what queries still see."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.text import plural
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.state import utc_text

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
    """The notice, as JSON.

    :param served: what `of_table` says.
    :param base_url: where Dagster's UI is, empty when nobody knows.
    """
    events = [
        entry.dagster_event
        for entry in instance.all_logs(run.run_id, of_type=_SAYS)
        if entry.dagster_event is not None
    ]
    steps = [{"step": e.step_key, "error": _error(e)} for e in events if e.is_step_failure]
    ends = [e.message or "" for e in events if e.event_type is dg.DagsterEventType.RUN_FAILURE]
    return {
        "text": f"{table}: run {run.run_id} failed{_where(steps)}; {served['text']}",
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


def least(run: dg.DagsterRun, table: str, base_url: str, why: str) -> JsonObject:
    """In place of `of_run`, when that cannot be made.

    :param why: it cannot.
    """
    return {
        "text": f"{table}: run {run.run_id} failed; nothing more can be said of it: {_shorten(why)}",
        "table": table,
        "run_id": run.run_id,
        "run_url": _run_url(run, base_url),
    }


def of_table(seen: Observation) -> JsonObject:
    """What queries see now, and how far the open session is."""
    session, snapshot = seen.session, seen.snapshot
    open_session = None
    if session is not None:
        open_session = {
            "id": session.id,
            "state": session.state.value,
            "attempt": session.attempt,
            "retry_count": session.retry_count,
            "failed_files": len(seen.failures),
            "last_error": _shorten(session.last_error),
        }
    if snapshot is None:
        return {"text": "nothing was published before", "session": open_session, "snapshot": None}
    published, rows = utc_text(snapshot.published_ms), plural(snapshot.rows, "row")
    return {
        "text": f"still served: {snapshot.session} with {rows}, published {published}",
        "session": open_session,
        "snapshot": {
            "session": snapshot.session,
            "files": len(snapshot.ledger),
            "segments": len(snapshot.segments),
            "rows": snapshot.rows,
            "published_at": published,
        },
    }


def of_stream_table() -> JsonObject:
    """In place of `of_table`, of a REALTIME table: no run publishes anything."""
    return {"text": "its servers consume without a run", "session": None, "snapshot": None}


def unknown(reason: str) -> JsonObject:
    """In place of `of_table`, when ZooKeeper or the staging area does not answer: it may be why."""
    return {"text": f"what is served is not known: {_shorten(reason)}", "session": None, "snapshot": None}


def _run_url(run: dg.DagsterRun, base_url: str) -> str | None:
    return f"{base_url.rstrip('/')}/runs/{run.run_id}" if base_url else None


def _where(steps: Sequence[JsonMapping]) -> str:
    return f" in {', '.join(step['step'] for step in steps)}" if steps else ""


def _error(event: dg.DagsterEvent) -> str:
    error = event.step_failure_data.error
    if error is None:
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
                "numbers": {name: v for name, v in values.items() if _is_number(v)},
            }


def _is_number(value: Any) -> bool:
    """One that JSON can say."""
    return isinstance(value, int | float) and math.isfinite(value)


def _shorten(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return "\n".join(lines[:LINES])[:LENGTH]
