"""What `pinot-assets status` shows of a table: for people, and for other programs."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape

from pinot_assets.core.text import plural
from pinot_assets.session.detect.observe import ListingComparison, Observation
from pinot_assets.session.values.state import utc_text
from pinot_assets.session.values.trouble import again_ms, has_lasted, since_ms
from pinot_assets.source.readiness import told
from pinot_assets.table_spec import TableSpec

COUNTS = ("files", "done", "failed", "pending", "gone", "removals")
SHOWN = 10
"""Failures that are listed."""


def status_values(spec: TableSpec, seen: Observation, sighting: ListingComparison) -> dict[str, object]:
    """For other programs."""
    snapshot, session = seen.snapshot, seen.session
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
            "at": utc_text(snapshot.published_ms),
            "lineageEntry": snapshot.lineage_entry_id,
        },
        "source": {
            "listed": sighting.listed,
            "new": sighting.new,
            "rewritten": sighting.rewritten,
            "deleted": sighting.deleted,
            "notReady": [f"{u.uri} {u.why}" for u in (*sighting.waiting, *sighting.later)],
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
            "failed": [f"{f.uri}: {f.code}: {f.reason}" for f in seen.failures],
            "troubleSince": utc_text(since_ms(session)) if seen.passing else None,
            "triedAgainAt": utc_text(again_ms(session)) if seen.passing else None,
        },
        "heldBack": {"files": len(seen.hold.files), "removals": len(seen.hold.removals)},
        "leaseHolder": str(seen.holder) if seen.holder else None,
    }


def _counted(number: int, what: str) -> str:
    """`1 file`, `2 done`."""
    return plural(number, what.removesuffix("s")) if what.endswith("s") else f"{number} {what}"


def status_lines(
    spec: TableSpec, seen: Observation, sighting: ListingComparison, now_ms: int
) -> Iterator[tuple[str, str]]:
    """For people: labels and texts with markup, one pair for a line."""
    snapshot, session = seen.snapshot, seen.session
    yield "table", f"{spec.name_with_type} ({spec.mode})"
    if snapshot is None:
        yield "published", "nothing yet"
    else:
        files, segments = plural(len(snapshot.ledger), "file"), plural(len(snapshot.segments), "segment")
        what = f"{files}, {segments}, {plural(snapshot.rows, 'row')}"
        yield "published", f"{what} by {snapshot.session} at {utc_text(snapshot.published_ms)}"
    yield "source", f"{plural(sighting.listed, 'file')} listed: {sighting}"
    for unready in filter(None, (sighting.waiting, sighting.later)):
        yield "", escape(told(unready))
    if session is None:
        yield "session", "none open"
    else:
        counts = ", ".join(_counted(n, what) for what in COUNTS if (n := session.counts.get(what)))
        retries = f"retry {session.retry_count} of {spec.ingestion.max_retries}"
        yield "session", f"{session.id} {session.state}, {retries}: {counts}"
        if seen.passing:
            since, again = utc_text(since_ms(session)), utc_text(again_ms(session))
            text = f"trouble that may pass since {since}; sensors and `watch` try again from {again}"
            yield "", f"[{'red' if has_lasted(session.trouble_since_ms, now_ms) else 'yellow'}]{text}[/]"
        for failure in seen.failures[:SHOWN]:
            yield "", f"[red]{escape(f'{failure.uri}: {failure.code}: {failure.reason}')}[/]"
        if len(seen.failures) > SHOWN:
            yield "", f"and {len(seen.failures) - SHOWN} more; --json lists all"
        if session.last_error and not seen.failures:
            yield "", f"[red]{escape(session.last_error)}[/]"
    if seen.hold.files or seen.hold.removals:
        held = f"{plural(len(seen.hold.files), 'file version')}, {plural(len(seen.hold.removals), 'removal')}"
        yield "held back", f"{held} after a rollback; `pinot-assets resume {spec.name}` lets them in"
    if seen.holder is not None:
        yield "lease", f"held by {escape(str(seen.holder))}"
