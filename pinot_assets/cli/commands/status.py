"""`pinot-assets status`: show a table's state."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rich.markup import escape

from pinot_assets.cli.options import AsJson, TableName, TablesOption, one_table
from pinot_assets.cli.terminal import fields, show_answer
from pinot_assets.core.text import plural
from pinot_assets.session.detect.observe import (
    ListingComparison,
    Observation,
    compare_listing,
    list_source,
    observe,
)
from pinot_assets.session.stores.clients import open_session_store, open_source, open_staging
from pinot_assets.session.values.state import utc_iso, utc_text
from pinot_assets.session.values.trouble import again_ms, has_lasted, since_ms
from pinot_assets.settings.environment import load_settings
from pinot_assets.source.readiness import unready_words
from pinot_assets.table_spec import TableSpec

SHOWN = 10
"""The most files shown that failed so far."""
COUNTS = ("files", "done", "failed", "pending", "gone", "removals")


def status(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """Show what is published, what waits in the source, and the open session, without changing anything.

    Exits 0.
    """
    spec = one_table(table, tables)
    with open_session_store(spec, load_settings()) as store:
        observation = observe(store, open_staging(spec))
    comparison = compare_listing(spec, list_source(spec, open_source(spec)), observation)
    lines = status_lines(spec, observation, comparison, time.time_ns() // 1_000_000)
    show_answer(as_json, status_values(spec, observation, comparison), fields(lines, 9))


def status_values(spec: TableSpec, observation: Observation, listing: ListingComparison) -> dict[str, object]:
    """Return the answer of `status` as JSON, for other programs."""
    snapshot, session = observation.snapshot, observation.session
    return {
        "table": spec.name_with_type,
        "mode": spec.mode,
        "published": None
        if snapshot is None
        else {
            "session": snapshot.session,
            "mode": snapshot.mode,
            "files": len(snapshot.ledger),
            "segments": len(snapshot.segments),
            "rows": snapshot.rows,
            "at": utc_iso(snapshot.published_ms),
            "lineageEntry": snapshot.lineage_entry_id,
        },
        "source": {
            "listed": listing.listed,
            "new": listing.new,
            "rewritten": listing.rewritten,
            "deleted": listing.deleted,
            "notReady": [f"{u.uri} {u.why}" for u in (*listing.waiting, *listing.later)],
        },
        "session": None
        if session is None
        else {
            "id": session.id,
            "state": session.state,
            "attempt": session.attempt,
            "retryCount": session.retry_count,
            "maxRetries": spec.ingestion.max_retries,
            "files": dict(session.counts),
            "lastError": session.last_error,
            "failed": [f"{f.uri}: {f.code}: {f.reason}" for f in observation.failures],
            "troubleSince": utc_iso(since_ms(session)) if observation.passing else None,
            "triedAgainAt": utc_iso(again_ms(session)) if observation.passing else None,
        },
        "heldBack": {"files": len(observation.hold.files), "removals": len(observation.hold.removals)},
        "leaseHolder": str(observation.holder) if observation.holder else None,
    }


def _counted(number: int, what: str) -> str:
    """Return number and word, as `1 file`, `2 done`."""
    return plural(number, what.removesuffix("s")) if what.endswith("s") else f"{number:,} {what}"


def status_lines(
    spec: TableSpec, observation: Observation, listing: ListingComparison, now_ms: int
) -> Iterator[tuple[str, str]]:
    """Yield the answer of `status` for people: a label and a text with markup for each line."""
    snapshot, session = observation.snapshot, observation.session
    yield "table", f"{spec.name_with_type} ({spec.mode})"
    if snapshot is None:
        yield "published", "nothing yet"
    else:
        files, segments = plural(len(snapshot.ledger), "file"), plural(len(snapshot.segments), "segment")
        what = f"{files}, {segments}, {plural(snapshot.rows, 'row')}"
        yield "published", f"{what} by {snapshot.session} at {utc_text(snapshot.published_ms)}"
    yield "source", f"{plural(listing.listed, 'file')} listed: {listing}"
    for unready in filter(None, (listing.waiting, listing.later)):
        yield "", escape(unready_words(unready))
    if session is None:
        yield "session", "none open"
    else:
        counts = ", ".join(_counted(n, what) for what in COUNTS if (n := session.counts.get(what)))
        retries = f"retry {session.retry_count} of {spec.ingestion.max_retries}"
        yield "session", f"{session.id} {session.state}, {retries}: {counts}"
        if observation.passing:
            since, again = utc_text(since_ms(session)), utc_text(again_ms(session))
            text = f"trouble that may pass since {since}; sensors and `watch` try again from {again}"
            yield "", f"[{'red' if has_lasted(session.trouble_since_ms, now_ms) else 'yellow'}]{text}[/]"
        for failure in observation.failures[:SHOWN]:
            yield "", f"[red]{escape(f'{failure.uri}: {failure.code}: {failure.reason}')}[/]"
        if len(observation.failures) > SHOWN:
            yield "", f"and {len(observation.failures) - SHOWN:,} more; --json lists all"
        if session.last_error and not observation.failures:
            yield "", f"[red]{escape(session.last_error)}[/]"
    if (hold := observation.hold).files or hold.removals:
        held = f"{plural(len(hold.files), 'file version')}, {plural(len(hold.removals), 'removal')}"
        yield "held back", f"{held} after a rollback; `pinot-assets resume {spec.name}` lets them in"
    if observation.holder is not None:
        yield "lease", f"held by {escape(str(observation.holder))}"
