"""What a rollback would do, in words: for the command line and for Dagster's log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pinot_assets.core.text import plural
from pinot_assets.pinot.versions import HOUR_MS
from pinot_assets.session.plan_report.history import counts_text
from pinot_assets.session.rollback.rollback_plan import RollbackPlan, RollbackWay
from pinot_assets.session.values.state import utc_text
from pinot_assets.snapshot.manifest import PublishedFile, Snapshot

SHOWN = 5
"""Files that are named."""


def preview(way: RollbackPlan, now_ms: int) -> Iterator[tuple[str, str]]:
    """Labels and texts, one pair for a line."""
    yield "now", of_snapshot(way.current.snapshot)
    yield "back to", of_snapshot(way.target.snapshot)
    if way.way is RollbackWay.REVERT and way.until_ms is not None:
        left = (way.until_ms - now_ms) / HOUR_MS
        yield "way", f"revert of lineage entry {way.entry_id}: at once, nothing is pushed"
        yield "open", f"until {utc_text(way.until_ms)}, for {left:.1f} h"
    elif way.way is RollbackWay.REVERT:
        yield "way", "a revert that was left half way; it is finished"
    elif way.way is RollbackWay.REPUBLISH:
        size = f"{sum(o.tar_bytes for o in way.comes) / 1024**2:,.1f} MB"
        yield "way", f"re-publish of {len(way.comes)} staged segments ({size}) under new names, no Spark"
        if way.no_revert:
            yield "", f"no revert: {way.no_revert}"
    else:
        yield "way", f"none; {way.why_not}"
    if way.drops is not None and way.way is not None:
        yield "drops", f"open session {way.drops.id}, {counts_text(way.drops)}; what it built is deleted"
    yield "goes", _files(way.files_go, len(way.goes))
    yield "comes", _files(way.files_come, len(way.comes))


def of_snapshot(snapshot: Snapshot) -> str:
    """One line."""
    what = f"{plural(len(snapshot.ledger), 'file')}, {plural(snapshot.rows, 'row')}"
    return f"{snapshot.session} ({snapshot.mode}) of {utc_text(snapshot.published_ms)}: {what}"


def rollback_way_text(way: RollbackPlan) -> str:
    """How a kept snapshot is reached, in a few words."""
    if way.current.ref == way.target.ref:
        return "current"
    if way.way is RollbackWay.REVERT and way.until_ms is not None:
        return f"revert until {utc_text(way.until_ms)}"
    return str(way.way) if way.way is not None else f"not: {way.why_not}"


def _files(files: Sequence[PublishedFile], segments: int) -> str:
    rows = sum(f.rows for f in files)
    text = f"{plural(len(files), 'file')}, {plural(rows, 'row')}, {plural(segments, 'segment')}"
    named = ", ".join(f.uri.rsplit("/", 1)[-1] for f in files[:SHOWN])
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    return f"{text}: {named}{more}" if named else text
