"""Check what was built before queries see it: the first tier of the audit (W4).

The checks look at what was read and written, and at losses that no user asked for: rows and columns of
rewritten files, and of unchanged files after a change of the table spec.

Receipts say what was read and written. Of tars only the version is checked; a tar is read again only if its
version differs from the one that was built.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pinot_assets.audit.built_files import (
    bounds_in_order,
    columns_as_in_schema,
    cut_values,
    empty_outputs,
    packs_as_read,
    rows_as_read,
    tars_as_built,
    time_range,
    unlike,
)
from pinot_assets.audit.checks import (
    Finding,
    Rewritten,
    RowsSeen,
    emptied_files,
    row_change,
    shrunk_files,
    shrunk_table,
    vanished_columns,
)
from pinot_assets.core.files import temporary_folder
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import SnapshotCorrupt
from pinot_assets.segment import SegmentSpec
from pinot_assets.session.checks.pack_segments import expired_packs, packs_in_part
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staged_files import THREADS
from pinot_assets.session.stores.staging import Staging, Switch, kept_receipts
from pinot_assets.session.values.plan import FileKey, carried_files, superseded
from pinot_assets.session.values.state import Mode, Session
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import PublishedPack, members_key
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output, Receipt
from pinot_assets.table_spec.blocks.audit import CutCheck, EmptyOutputs, Loss, LossName, RowChange, TimeRange
from pinot_assets.table_spec.changes.recipe import COLUMNS

LOOKS: Final = 32
"""Tars that are looked at a time, one small request each: some seconds for thousands of them on S3. A listing
would show those of all kept snapshots, too, of which a session of few files has no need."""
FAR: Final = TimeRange(check="time_range", to="now + 365d", severity="warn")
"""What is looked at where the table spec sets no range: one row of the year 9999 moves a hybrid table's time
boundary, and is never deleted by age."""


def receipt_findings(
    context: TriggerContext, session: Session, switch: Switch, receipts: Collection[Receipt]
) -> tuple[Finding, ...]:
    """Return the findings about what was built; they need no server.

    :param receipts: the receipts that the session's plan accepted.
    """
    spec, checks = context.spec, context.spec.audit.checks
    schema = SegmentSpec.from_pinot(spec.schema_json, spec.table_json, write_for=spec.ingestion.known_target)
    ranges = [check for check in checks if isinstance(check, TimeRange)]
    empty: list[EmptyOutputs | None] = [check for check in checks if isinstance(check, EmptyOutputs)]
    changes = [check for check in checks if isinstance(check, RowChange)]
    files = [receipt for receipt in receipts if not receipt.is_pack]
    has_packs = any(one.is_pack or one.places for one in receipts)
    return (
        rows_as_read(files),
        *([_packs(context, session, receipts)] if has_packs else []),
        columns_as_in_schema(receipts, {c.name: c.data_type.value for c in schema.columns}),
        bounds_in_order(receipts),
        _tars(context.staging, receipts),
        *(empty_outputs(files, bound) for bound in empty or [None]),
        *within(ranges, new_outputs(switch), context.clients.now_ms()),
        *(row_change(bound, rows_seen(context, switch, files, bound)) for bound in changes),
    )


def cut_findings(
    context: TriggerContext, session: Session, receipts: Collection[Receipt]
) -> tuple[Finding, ...]:
    """Return the findings about cut values of the files: values that Pinot cannot hold as they are."""
    bounds = [check for check in context.spec.audit.checks if isinstance(check, CutCheck)]
    lost = context.staging.cut_values(session.id, receipts)
    return tuple(cut_values({uri: one.columns for uri, one in lost.items()}, bounds))


def new_outputs(switch: Switch) -> tuple[Output, ...]:
    """Return the new segments of a switch; a placeholder segment is not new and was checked before."""
    return () if switch.carried else switch.segments_to


# --- packs -----------------------------------------------------------------------------------------


def _packs(context: TriggerContext, session: Session, receipts: Collection[Receipt]) -> Finding:
    staging, current = context.staging, context.current_snapshot()
    plan = staging.plan(session.plan)
    keys = [one.uri for one in receipts if one.is_pack]
    lists = dict(zip(keys, in_threads(staging.members, keys, THREADS, "member lists"), strict=True))
    # Rows that Pinot's retention has removed do not come back with the pack.
    in_part = packs_in_part(plan, current)
    there = {pack.name for pack in in_part} - expired_packs(context, in_part)
    kept = carried_files(plan, current) if plan.mode is not Mode.SWAP else []
    kept = [file for file in kept if not there.isdisjoint(file.packs)]
    before = _rows_before(staging, in_part, there, kept)
    return packs_as_read(
        lists, receipts, [replace(one, rows=before.get((one.uri, one.session), one.rows)) for one in kept]
    )


def _rows_before(
    staging: Staging, packs: Iterable[PublishedPack], names: Collection[str], files: Iterable[PublishedFile]
) -> dict[FileKey, int]:
    """Return how many rows files have in packs of these names, for files that may have more rows elsewhere:
    with cells a file has several packs, and the ledger counts all of its rows."""
    if not (celled := [members_key(pack.members) for pack in packs if pack.cell and pack.name in names]):
        return {}
    keys = {(file.uri, file.session) for file in files if len(file.packs) > 1}
    rows = Counter[FileKey]()
    for one in in_threads(staging.members, celled, THREADS, "member lists"):
        for member in one.members:
            rows[member.file] += member.rows
    return {key: rows[key] for key in keys}


# --- tars ------------------------------------------------------------------------------------------


def _tars(staging: Staging, receipts: Collection[Receipt]) -> Finding:
    uris = [output.tar_uri for receipt in receipts for output in receipt.outputs]
    stats = in_threads(lambda uri: staging.store.stat(staging.key_of(uri)), uris, LOOKS, "tars")
    staged = {uri: there.token for uri, there in zip(uris, stats, strict=True) if there is not None}
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
        return {context.table: _of_table(context, switch)}
    current = context.current_snapshot()
    published = current.ledger if current is not None else {}
    return {
        receipt.uri: RowsSeen(published[receipt.uri].rows, receipt.rows)
        for receipt in receipts
        if receipt.uri in published
    }


def _of_table(context: TriggerContext, switch: Switch) -> RowsSeen:
    """Rows of the segments that queries see, by the ledger; of others by Pinot's metadata."""
    current, pinot, table = context.current_snapshot(), context.pinot, context.table
    visible = pinot.visible_segments(table)
    ours = current.segments if current is not None else {}
    rows = {name: ours[name].rows for name in visible if name in ours}
    others = sorted(visible - rows.keys())
    metadata = in_threads(lambda name: pinot.segment_metadata(table, name), others, THREADS, "rows")
    rows |= {one.segment: one.total_docs for one in metadata}
    now = sum(rows.values())
    gone = sum(rows.get(name, 0) for name in switch.segments_from)
    return RowsSeen(now, now - gone + sum(output.rows for output in switch.segments_to))


def loss_findings(
    context: TriggerContext, session: Session, receipts: Collection[Receipt]
) -> tuple[Finding, ...]:
    """Return the findings about losses; none if no published file is built again and the others stay.

    :param receipts: the receipts that the session's plan accepted.
    """
    current = context.current_snapshot()
    if current is None or session.mode is Mode.ROLLBACK:  # which shows what was audited
        return ()
    is_swap = session.mode is Mode.SWAP
    replaced = [] if is_swap else superseded(context.staging.plan(session.plan), current)
    if not replaced and session.mode is Mode.APPEND:  # which takes nothing else away
        return ()
    published = current.ledger if is_swap else {file.uri: file for file in replaced}
    # Only a swap reads published files again whose recipe is the same. After a rollback or a rebuild of the
    # ledger, the table spec with which the segments were built is unknown.
    same_spec = is_swap and current.mode == Mode.SWAP and _same_fingerprint(session, current)
    columns = {recipe.revision: frozenset(recipe.read.get(COLUMNS) or ()) for recipe in current.recipes}
    rewritten = _rewritten(context, receipts, published, same_spec, columns)
    had = any(file.rows for file in rewritten)
    left = any(file.rows and file.receipt.rows for file in rewritten)
    findings: list[Finding] = []
    if had:
        findings += (emptied_files(rewritten, bound) for bound in _bounds(context, "emptied_files"))
    if left and not _bounded(context, "file"):
        findings += (shrunk_files(rewritten, bound) for bound in _bounds(context, "shrunk_files"))
    if left:
        findings += (vanished_columns(rewritten, bound) for bound in _bounds(context, "vanished_columns"))
    rebuilds = not is_swap and any(file.same_content for file in rewritten)
    other_spec = rebuilds or not _same_fingerprint(session, current)
    counts = _table(session, current, replaced, receipts, other_spec)
    if not _bounded(context, "table") and counts is not None:
        cause = "the table spec was changed" if other_spec else ""
        findings += (shrunk_table(context.table, counts, b, cause) for b in _bounds(context, "shrunk_table"))
    return tuple(findings)


def _same_fingerprint(session: Session, current: Snapshot) -> bool:
    return current.config_fingerprint == session.config_fingerprint


def _table(
    session: Session,
    current: Snapshot,
    replaced: Collection[PublishedFile],
    receipts: Collection[Receipt],
    other_spec: bool,
) -> RowsSeen | None:
    """The table's rows before and after, where a loss of most of them may be a slip: a swap replaces all,
    and a changed table spec lets a sync delete files that are there. None where it is not, or where the
    source lists no file at all, which was looked into when it was listed (edge cases E2, E33)."""
    kept: Collection[PublishedFile] = ()
    if session.mode is not Mode.SWAP:
        if not other_spec:
            return None
        gone = {id(file) for file in replaced}
        kept = [file for file in current.files if id(file) not in gone]
    if not current.rows or not (kept or receipts):
        return None
    after = sum(file.rows for file in kept) + sum(receipt.rows for receipt in receipts)
    return RowsSeen(current.rows, after)


def _bounds(context: TriggerContext, name: LossName) -> list[Loss | None]:
    asked: list[Loss | None] = [
        check for check in context.spec.audit.checks if isinstance(check, Loss) and check.check == name
    ]
    return asked or [None]


def _bounded(context: TriggerContext, of: str) -> bool:
    """Whether the table spec itself says how many rows may go before the gate is shut."""
    return any(
        isinstance(check, RowChange) and (check.of, check.severity) == (of, "error") and check.min is not None
        for check in context.spec.audit.checks
    )


# --- what was rewritten ----------------------------------------------------------------------------


def _rewritten(
    context: TriggerContext,
    receipts: Collection[Receipt],
    ledger: Mapping[str, PublishedFile],
    same_spec: bool,
    columns: Mapping[int, frozenset[str]],
) -> tuple[Rewritten, ...]:
    """Published files that are built into something else; of one table spec, a file of the published content
    gives what it gave: a swap reads those again, too.

    :param columns: the table's columns then, by revision.
    """
    pairs = []
    for receipt in receipts:
        if (file := ledger.get(receipt.uri)) is None:
            continue
        same = receipt.sha256 == file.sha256
        if not (same and same_spec):
            pairs.append((Rewritten(receipt, file.rows, same_content=same), file))
    # Receipts of the published versions; only of files that lack something, as few do.
    by_session: dict[str, dict[str, str]] = defaultdict(dict)
    for new, file in pairs:
        if new.suspects:
            by_session[file.session][file.uri] = file.version
    former: dict[str, Receipt] = {}
    for session, versions in by_session.items():
        former |= kept_receipts(context.staging, session, versions)
    # The receipt of a small file has no facts of its columns: those of its pack have other files' rows, too.
    for new, file in pairs:
        kept, known = former.get(file.uri), columns.get(file.revision)
        if kept is not None and not kept.facts and known:
            added = (name for name in new.suspects if name not in known)
            former[file.uri] = replace(kept, missing=(*kept.missing, *added))
    return tuple(replace(new, former=former.get(file.uri)) for new, file in pairs)
