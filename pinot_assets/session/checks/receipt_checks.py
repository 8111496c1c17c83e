"""Looking at what was built before queries see it: the first tier of the audit (W4).

Receipts tell what was read and written; of tars only the version is looked at, and none is read again but
one that is there in another version than when it was built.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from pinot_assets.audit import Finding
from pinot_assets.audit.bounds import RowsSeen, empty_outputs, row_change, time_range
from pinot_assets.audit.built import (
    bounds_in_order,
    columns_as_in_schema,
    rows_as_read,
    tars_as_built,
    unlike,
)
from pinot_assets.audit.cut import cut_values
from pinot_assets.core.files import temporary_folder
from pinot_assets.core.threads import in_threads
from pinot_assets.errors import SnapshotCorrupt
from pinot_assets.segment import SegmentSpec
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staged_objects import THREADS
from pinot_assets.session.stores.staging import Staging, Switch
from pinot_assets.session.values.state import Session
from pinot_assets.snapshot.receipt import Output, Receipt
from pinot_assets.table_spec.blocks.audit_checks import CutCheck, EmptyOutputs, RowChange, TimeRange

LOOKS: Final = 32
"""Tars that are looked at a time, one small request each: some seconds for thousands of them on S3. A listing
would show those of all kept snapshots, too, of which a session of few files has no need."""
FAR: Final = TimeRange(check="time_range", to="now + 365d", severity="warn")
"""What is looked at where the table spec sets no range: one row of the year 9999 moves a hybrid table's time
boundary, and is never deleted by age."""


def receipt_findings(
    context: TriggerContext, switch: Switch, receipts: Collection[Receipt]
) -> tuple[Finding, ...]:
    """What is found in what was built, before servers are asked.

    :param receipts: those that the session's plan accepted.
    """
    checks = context.spec.audit.checks
    ranges = [check for check in checks if isinstance(check, TimeRange)]
    empty: list[EmptyOutputs | None] = [check for check in checks if isinstance(check, EmptyOutputs)]
    changes = [check for check in checks if isinstance(check, RowChange)]
    return (
        rows_as_read(receipts),
        columns_as_in_schema(receipts, _schema(context)),
        bounds_in_order(receipts),
        _tars(context.clients.staging, receipts),
        *(empty_outputs(receipts, bound) for bound in empty or [None]),
        *within(ranges, coming(switch), context.clients.now_ms()),
        *(row_change(bound, rows_seen(context, switch, receipts, bound)) for bound in changes),
    )


def cut_findings(
    context: TriggerContext, session: Session, receipts: Collection[Receipt]
) -> tuple[Finding, ...]:
    """What values of the files lost, because Pinot cannot hold them as they are."""
    bounds = [check for check in context.spec.audit.checks if isinstance(check, CutCheck)]
    lost = context.clients.staging.cut_values(session.id, receipts)
    return tuple(cut_values({uri: one.columns for uri, one in lost.items()}, bounds))


def coming(switch: Switch) -> tuple[Output, ...]:
    """What it brings; a segment that stays and only takes another name was looked at when it came."""
    return () if switch.carried else switch.segments_to


def _schema(context: TriggerContext) -> dict[str, str]:
    spec = context.spec
    columns = SegmentSpec.from_pinot(
        spec.schema_json, spec.table_json, min_server=spec.ingestion.min_server
    ).columns
    return {column.name: column.data_type.value for column in columns}


# --- tars ------------------------------------------------------------------------------------------


def _tars(staging: Staging, receipts: Collection[Receipt]) -> Finding:
    uris = [output.tar_uri for receipt in receipts for output in receipt.outputs]
    found = in_threads(lambda uri: staging.store.stat(staging.key_of(uri)), uris, LOOKS, "tars")
    staged = {uri: there.token for uri, there in zip(uris, found, strict=True) if there is not None}
    suspects = unlike(receipts, staged)
    judged = in_threads(lambda output: _what_is_wrong(staging, output), suspects, THREADS, "tars")
    changed = {o.tar_uri: wrong for o, wrong in zip(suspects, judged, strict=True) if wrong}
    return tars_as_built(receipts, staged, changed)


def _what_is_wrong(staging: Staging, output: Output) -> str:
    """What is wrong with a tar that is there in another version; nothing where its content is the same."""
    with temporary_folder("look") as folder:
        try:
            staging.fetch_tar(output, folder / "segment.tar.gz")
        except SnapshotCorrupt as corrupt:
            return f"was changed: {corrupt.why}"
    return ""


# --- times -----------------------------------------------------------------------------------------


def within(ranges: Sequence[TimeRange], outputs: Sequence[Output], now_ms: int) -> Iterator[Finding]:
    """One finding for each range; where none is asked for, those that have times are to lie near."""
    timed = [output for output in outputs if output.start_ms is not None]
    for bound in ranges:
        yield time_range(bound, outputs, now_ms)
    if timed and not ranges:
        yield time_range(FAR, timed, now_ms)


# --- rows ------------------------------------------------------------------------------------------


def rows_seen(
    context: TriggerContext, switch: Switch, receipts: Collection[Receipt], bound: RowChange
) -> Mapping[str, RowsSeen]:
    """Rows of what a bound is about: the table's by its name, those of rewritten files by their URIs."""
    if bound.of == "table":
        return {context.spec.name: _of_table(context, switch)}
    current = context.current_snapshot()
    published = current.ledger if current is not None else {}
    return {
        receipt.uri: RowsSeen(published[receipt.uri].rows, receipt.rows)
        for receipt in receipts
        if receipt.uri in published
    }


def _of_table(context: TriggerContext, switch: Switch) -> RowsSeen:
    """Rows of the segments that queries see, by the ledger; of others by Pinot's metadata."""
    current, pinot, table = context.current_snapshot(), context.clients.pinot, context.spec.name
    visible = pinot.visible_segments(table)
    ours = current.segments if current is not None else {}
    rows = {name: ours[name].rows for name in visible if name in ours}
    others = sorted(visible - rows.keys())
    metadata = in_threads(lambda name: pinot.segment_metadata(table, name), others, THREADS, "rows")
    rows |= {one.segment: one.total_docs for one in metadata}
    now = sum(rows.values())
    gone = sum(rows.get(name, 0) for name in switch.segments_from)
    return RowsSeen(now, now - gone + sum(output.rows for output in switch.segments_to))
