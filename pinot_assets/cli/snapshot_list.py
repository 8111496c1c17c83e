"""Lists of snapshots for people: `history` and `snapshots`, and who asked for what they show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.markup import escape
from rich.text import Text

from pinot_assets.cli.terminal import lines_that_fit
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.session.plan_report.rendering import rollback_way_text
from pinot_assets.session.rollback.rollback_plan import RollbackPlan
from pinot_assets.session.values.state import HoldEnd, utc_iso, utc_text

_ASKED_BY: Final = "asked by"
"""The column that a narrow terminal leaves out."""
HISTORY: Final = ("seq", "session", "mode", "published (UTC)", "files", "segments", "rows", _ASKED_BY)
"""Header of `history`."""


def listing(table: str, rows: Sequence[Sequence[str]], hold_ended: HoldEnd | None) -> Iterator[Text | str]:
    """Yield the lines of a list of snapshots.

    :param rows: the header, and a row for each snapshot.
    """
    if len(rows) == 1:
        yield f"{table} has never been published"
        return
    yield from lines_that_fit(rows, _ASKED_BY)
    if hold_ended is not None:
        yield escape(str(hold_ended))


def hold_end_values(end: HoldEnd | None, seq: int) -> JsonObject:
    """Return when and by whom the hold of a snapshot was ended, as far as that is known."""
    shown = end if end is not None and end.seq == seq else None
    return {
        "holdEndedAt": None if shown is None else utc_iso(shown.at_ms),
        "holdEndedBy": None if shown is None else shown.asked_by or None,
    }


def history_row(change: JsonMapping) -> tuple[str, ...]:
    """Return the row of `history` for a switch.

    :param change: what the switch changed, as `history --json` has it.
    """
    at = str(change["publishedAt"] or "").replace("T", " ").removesuffix("Z")
    asked_by = str(change["askedBy"] or "-")
    return (str(change["seq"]), str(change["session"]), str(change["mode"]), at, *counts(change), asked_by)


def counts(change: JsonMapping) -> tuple[str, str, str]:
    """Return what changed: files, segments, rows."""
    return (
        f"+{change['filesAdded']:,} ~{change['filesRewritten']:,} -{change['filesRemoved']:,}",
        f"+{change['segmentsAdded']:,} -{change['segmentsRemoved']:,}",
        f"{change['rows']:,} ({change['rowsMore']:+,})",
    )


WAYS: Final = ("seq", "session", "mode", "published (UTC)", "files", "rows", _ASKED_BY, "reached by")
"""Header of `snapshots`."""


def way_row(way: RollbackPlan) -> tuple[str, ...]:
    """Return the row of `snapshots` for a kept snapshot."""
    snapshot = way.target.snapshot
    at, files = utc_text(snapshot.published_ms).removesuffix(" UTC"), f"{len(snapshot.ledger):,}"
    mode, rows, asked_by = str(snapshot.mode), f"{snapshot.rows:,}", snapshot.asked_by or "-"
    return (str(snapshot.seq), snapshot.session, mode, at, files, rows, asked_by, rollback_way_text(way))
