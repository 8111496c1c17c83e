"""The state of an OFFLINE table for `status`: read once, then shown as lines, as JSON, or in one word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rich.markup import escape

from pinot_assets.cli.first_query import FirstQuery
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import counted, plural
from pinot_assets.session.detect.observe import (
    ListingComparison,
    Observation,
    behind_since_ms,
    compare_listing,
    list_source,
    observe,
)
from pinot_assets.session.detect.table_status import (
    NEEDS_PERSON,
    SourceChanges,
    StatusReport,
    TableCondition,
    facts_of,
    table_status,
)
from pinot_assets.session.stores.clients import open_source, open_staging
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.merges import is_open
from pinot_assets.session.values.outdated import (
    NO_NEED,
    RebuildNeed,
    need_of_listing,
    outdated_values,
    waiting_words,
)
from pinot_assets.session.values.state import Session, utc_iso, utc_text
from pinot_assets.session.values.trouble import again_ms, has_lasted, since_ms
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.source.readiness import unready_words
from pinot_assets.table_spec import TableSpec

SHOWN = 10
"""The most failed files that are shown."""
BROKEN: Final = "broken"
"""The state of a table whose spec is wrong."""
STYLES: Final[Mapping[str, str]] = {
    **dict.fromkeys((*NEEDS_PERSON, TableCondition.NOT_KNOWN, BROKEN), "red"),
    **dict.fromkeys((TableCondition.TRIED_AGAIN, TableCondition.UNFINISHED), "yellow"),
}
"""Colours of the states; a state that needs a person is red, as it is an error in Dagster."""
COUNTS = ("files", "done", "failed", "pending", "gone", "removals")


@dataclass(frozen=True, slots=True)
class TableStatus:
    """What `status` reads of a table.

    :ivar behind_since_ms: since when a change waits, epoch milliseconds; None if none waits.
    :ivar report: the status in a sentence, and what to do; as Dagster's check `status` has it.
    :ivar need: published files that the table spec would build otherwise.
    """

    spec: TableSpec
    observation: Observation
    listing: ListingComparison
    behind_since_ms: int | None
    report: StatusReport
    need: RebuildNeed = NO_NEED

    @property
    def state(self) -> TableCondition:
        """The state in a word: that of the report, unless a run works on the table."""
        is_at_work = self.observation.holder is not None and self.report.state is not TableCondition.FAILED
        return TableCondition.RUNNING if is_at_work else self.report.state


def read_status(spec: TableSpec, store: SessionStore, now_ms: int) -> TableStatus:
    """Read a table: its nodes, its ledger, and the listing of its source. Changes nothing.

    :raises PinotAssetsError: one of them cannot be read.
    """
    observation = observe(store, open_staging(spec))
    newest = None if observation.session else store.newest_session()
    inventory = list_source(spec, open_source(spec))
    listing = compare_listing(spec, inventory, observation)
    since_ms = behind_since_ms(inventory, listing, observation.snapshot)
    return status_of(spec, observation, listing, since_ms, newest, now_ms)


def status_of(
    spec: TableSpec,
    observation: Observation,
    listing: ListingComparison,
    since_ms: int | None,
    newest: Session | None,
    now_ms: int,
) -> TableStatus:
    """Return the status that follows from what was read.

    :param since_ms: since when the oldest change waits, epoch milliseconds; None if none waits.
    :param newest: the newest session, if none is open.
    """
    changes = SourceChanges(
        new=len(listing.new) + len(listing.later),
        rewritten=len(listing.rewritten) + len(listing.waiting),
        deleted=len(listing.deleted) if spec.mode != "append" else 0,
        since_ms=since_ms or 0,
    )
    rewritten = (*listing.rewritten, *(unready.uri for unready in listing.waiting))
    need = need_of_listing(spec, observation.snapshot, observation.hold, rewritten, listing.deleted)
    facts = facts_of(spec, observation, newest, changes, need, len(observation.hold.files))
    return TableStatus(spec, observation, listing, since_ms, table_status(facts, now_ms), need)


def status_values(status: TableStatus, rows: FirstQuery) -> JsonObject:
    """Return the answer of `status` as JSON, for other programs.

    :param rows: how to look at the table's rows.
    """
    spec, observation, listing = status.spec, status.observation, status.listing
    snapshot, session = observation.snapshot, observation.session
    return {
        "table": spec.name_with_type,
        "mode": spec.mode,
        "state": status.state,
        "published": None
        if snapshot is None
        else {
            "session": snapshot.session,
            "mode": snapshot.mode,
            "files": len(snapshot.ledger),
            "segments": len(snapshot.segments),
            "packs": len(snapshot.packs),
            "openPacks": _open_packs(snapshot, spec),
            "rows": snapshot.rows,
            "badRows": snapshot.bad_rows,
            "at": utc_iso(snapshot.published_ms),
            "lineageEntry": snapshot.lineage_entry_id,
        },
        "unrecordedSegments": observation.unrecorded,
        "source": {
            "listed": listing.listed,
            "new": listing.new,
            "rewritten": listing.rewritten,
            "deleted": listing.deleted,
            "notReady": [f"{u.uri} {u.why}" for u in (*listing.waiting, *listing.later)],
            "behindSince": None if status.behind_since_ms is None else utc_iso(status.behind_since_ms),
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
        "heldBack": {
            "files": len(observation.hold.files),
            "removals": len(observation.hold.removals),
            "rebuilds": observation.hold.rebuilds,
            "merges": observation.hold.merges,
        },
        "tableSpec": {
            "outdated": outdated_values(status.need.possible),
            "sourceGone": outdated_values(status.need.gone),
        },
        "leaseHolder": str(observation.holder) if observation.holder else None,
        "nextStep": status.report.do or None,
        "nextCommand": status.report.command or None,
        "query": rows.sql,
        "console": rows.console,
    }


def _open_packs(snapshot: Snapshot, spec: TableSpec) -> int:
    """Return how many packs are small enough to be merged."""
    return sum(is_open(pack.bytes, spec.layout.target_bytes) for pack in snapshot.packs)


def _packs(snapshot: Snapshot, spec: TableSpec) -> str:
    """Return the packs of a table as a sentence."""
    packed = sum(bool(file.packs) for file in snapshot.files)
    cells = {pack.cell for pack in snapshot.packs} - {""}
    what = f"{plural(len(snapshot.packs), 'pack')} of {plural(packed, 'file')}"
    if cells:
        what += f", in {plural(len(cells), 'cell')}"
    small = _open_packs(snapshot, spec)
    return f"{what}; {counted(small, 'is', 'are')} below three quarters of targetSegmentSize"


def _counted(number: int, what: str) -> str:
    """Return number and word, as `1 file`, `2 done`."""
    return plural(number, what.removesuffix("s")) if what.endswith("s") else f"{number:,} {what}"


def status_lines(status: TableStatus, rows: FirstQuery, now_ms: int) -> Iterator[tuple[str, str]]:
    """Yield the answer of `status` for people: a label and a text with markup for each line.

    :param rows: how to look at the table's rows.
    """
    spec, observation, listing = status.spec, status.observation, status.listing
    snapshot, session = observation.snapshot, observation.session
    yield "table", f"{spec.name_with_type} ({spec.mode}): {status.state}"
    if snapshot is None:
        yield "published", "nothing yet"
        if observation.unrecorded:
            there = counted(
                observation.unrecorded, "segment of pinot-assets is", "segments of pinot-assets are"
            )
            yield "", f"{there} in Pinot: the next run makes the ledger from them"
    else:
        files, segments = plural(len(snapshot.ledger), "file"), plural(len(snapshot.segments), "segment")
        what = f"{files}, {segments}, {plural(snapshot.rows, 'row')}"
        yield "published", f"{what} by {snapshot.session} at {utc_text(snapshot.published_ms)}"
        if snapshot.packs:
            yield "packs", _packs(snapshot, spec)
        if snapshot.bad_rows:
            aside = plural(snapshot.bad_rows, "bad row")
            yield "", f"{aside} put aside; `pinot-assets where {spec.name} FILE` counts those of a file"
    yield "source", f"{plural(listing.listed, 'file')} listed: {listing}"
    for unready in filter(None, (listing.waiting, listing.later)):
        yield "", escape(unready_words(unready))
    for text in waiting_words(spec.name, status.need):
        yield "spec", escape(text)
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
    if observation.pointer.hold is not None:
        hold = observation.hold
        held = f"{plural(len(hold.files), 'file version')}, {plural(len(hold.removals), 'removal')}"
        if hold.rebuilds:
            held += ", a rebuild"
        if hold.merges:
            held += ", a merge"
        if hold.is_empty:  # a swap table is held as a whole (rule R23)
            held = "the whole table"
        yield "held back", f"{held} after a rollback; `pinot-assets resume {spec.name}` ends the hold"
    if observation.holder is not None:
        yield "lease", f"held by {escape(str(observation.holder))}"
    if status.report.do:
        yield "next", escape(status.report.do)
        yield "", escape(status.report.command)
    if snapshot is not None:
        yield "query", escape(rows.command)
        yield "console", escape(rows.console)
