"""Which plan a session has next, decided from values alone: listing, ledger, receipts, former plan.

No I/O here. Sources: docs/design/session.md#modes-and-kinds-of-push and #continuing-an-open-session;
docs/guides/consistent-push.md#how-all-scenes-begin.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pinot_assets.session.values.plan import Changes, Plan, Receipts, Row, RowStatus, with_receipt
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.receipt import Fingerprint, Receipt, SourceFile


def new_plan(session: str, mode: Mode, changes: Changes, small_below: int = 0) -> Plan:
    """The first plan of a session (docs/design/session.md#modes-and-kinds-of-push).

    :param small_below: bytes below which a file's rows go into a pack.
    """
    work = work_of(mode, changes)
    rows = tuple(
        _row(uri, ordinal, work[uri].fingerprint, small_below) for ordinal, uri in enumerate(sorted(work))
    )
    return Plan(
        session=session,
        attempt=0,
        mode=mode,
        rows=rows,
        removals=_removals(mode, changes),
        touched=changes.touched,
        listing_digest=changes.listing_digest,
    )


def _row(uri: str, ordinal: int, version: Fingerprint, small_below: int) -> Row:
    return Row(uri, ordinal, version, RowStatus.BUILD, is_small=version.size < small_below)


def work_of(mode: Mode, changes: Changes) -> Mapping[str, SourceFile]:
    """The files that a session of that mode has to build (docs/design/session.md#modes-and-kinds-of-push)."""
    return changes.listed if mode is Mode.SWAP else changes.work


def is_empty(plan: Plan) -> bool:
    """Nothing to build, nothing to take away, nothing to remember, nothing to merge."""
    return not (plan.rows or plan.removals or plan.touched or plan.merged)


def reconcile(plan: Plan, changes: Changes, receipts: Receipts, small_below: int = 0) -> Plan:
    """The plan of the next attempt, file by file.

    Source: docs/design/session.md#continuing-an-open-session.

    :param receipts: valid receipts by ordinal, each with its key (R12).
    :param small_below: bytes below which a file's rows go into a pack; for versions that the plan has not.
    """
    rows: list[Row] = []
    work = work_of(plan.mode, changes)
    for row in plan.rows:
        listed = changes.listed.get(row.uri)
        valid = receipts.get(row.ordinal)
        if row.status is RowStatus.GONE:
            rows.append(row)
        elif listed is not None and valid is not None:
            rows.append(with_receipt(row, *valid))
        elif listed is None or row.uri not in work:
            # Gone, or back to the version that is published: built again, append would show its rows twice.
            rows.append(replace(row, status=RowStatus.GONE, receipt=""))
        else:
            # A receipt that it had is revoked (R14), also for a driver that follows one which dies now.
            row = replace(row, planned=listed.fingerprint, status=RowStatus.BUILD)
            rows.append(replace(row, is_small=listed.fingerprint.size < small_below))
    live = {r.uri for r in rows if r.status is not RowStatus.GONE}
    for ordinal, uri in enumerate(sorted(set(work) - live), start=plan.next_ordinal):
        rows.append(_row(uri, ordinal, work[uri].fingerprint, small_below))
    return replace(
        plan,
        attempt=plan.attempt + 1,
        rows=tuple(rows),
        packs=tuple(_pack(row, receipts) for row in plan.packs),
        removals=_removals(plan.mode, changes),
        touched=changes.touched,
        listing_digest=changes.listing_digest,
    )


def _pack(row: Row, receipts: Receipts) -> Row:
    """A pack before its members are looked at again (`session/pack_decision.py`), when all files are read."""
    if row.status is RowStatus.GONE:
        return row
    if (valid := receipts.get(row.ordinal)) is not None:
        return replace(row, status=RowStatus.DONE, receipt=valid[0])
    return replace(row, status=RowStatus.BUILD)  # a receipt that it had is revoked (R14)


def unchanged(plan: Plan, changes: Changes, receipts: Receipts) -> dict[int, tuple[str, Receipt]]:
    """The receipts without those of files that were rewritten since.

    Normally a session keeps the version that it read (F8), and the next session takes the newer one. But a
    session whose rows failed an assertion would then never pass, so it builds rewritten files again.
    """
    rows = {row.ordinal: changes.listed.get(row.uri) for row in plan.rows}
    return {
        ordinal: (key, receipt)
        for ordinal, (key, receipt) in receipts.items()
        if (listed := rows.get(ordinal)) is None or listed.fingerprint == receipt.read
    }


def with_spent_names(plan: Plan, receipts: Receipts, spent: frozenset[str]) -> dict[int, Receipt]:
    """Receipts of done rows that name a segment whose name is spent, by ordinal (rule R16)."""
    accepted = {row.ordinal: receipts[row.ordinal][1] for row in (*plan.done, *plan.packs_done)}
    return {n: r for n, r in accepted.items() if not spent.isdisjoint(o.segment for o in r.outputs)}


def revoked(plan: Plan, ordinals: Collection[int]) -> Plan:
    """The plan without the receipts that those rows accepted."""

    def without(row: Row) -> Row:
        return replace(row, status=RowStatus.BUILD, receipt="") if row.ordinal in ordinals else row

    return replace(plan, rows=tuple(map(without, plan.rows)), packs=tuple(map(without, plan.packs)))


def returned(before: Plan, after: Plan, receipts: Receipts) -> dict[int, Receipt]:
    """Receipts of files that were dropped and came back in the version that was built (rule R15).

    :param before: the plan that `after` was reconciled from.
    :param receipts: valid receipts by ordinal.
    :returns: by the ordinal of the file's new row.
    """
    gone = [
        receipts[r.ordinal][1] for r in before.rows if r.status is RowStatus.GONE and r.ordinal in receipts
    ]
    built = {(receipt.uri, receipt.read): receipt for receipt in gone}
    rows = ((row.ordinal, (row.uri, row.planned)) for row in after.to_build)
    return {ordinal: built[key] for ordinal, key in rows if key in built}


def _removals(mode: Mode, changes: Changes) -> tuple[str, ...]:
    # Append never takes rows away; swap replaces everything, so there is nothing to name.
    return tuple(sorted(changes.deleted)) if mode is Mode.SYNC else ()
