"""A ledger that outlived its table: dropped when the table was made anew (edge case E12)."""

from __future__ import annotations

from dataclasses import replace

from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.detect.observe import is_older_than
from pinot_assets.session.values.state import Mode, Outcome, close, is_ours
from pinot_assets.snapshot.manifest import Snapshot


def of_former_table(context: TriggerContext) -> Snapshot | None:
    """The ledger, where it is that of a table of the same name that is no more.

    Pinot 0.11 leaves our nodes in ZooKeeper when it deletes a table. One that is made again under the same
    name would never be filled: the ledger says that everything is published.
    """
    pointer, table = context.lease.pointer, context.spec.name
    made_ms = context.clients.store.table_made_ms() if pointer.current_snapshot is not None else None
    if made_ms is None:
        return None
    names = context.clients.pinot.all_segments(table)
    if any(is_ours(table, name) for name in names):
        return None  # before the ledger is read: one that cannot be is told later, when it is needed
    published = context.current_snapshot()
    return published if published is not None and is_older_than(published, made_ms) else None


def forget_former_table(context: TriggerContext) -> None:
    """Drop ledger and hold of a table that was made anew.

    The numbers of sessions go on, so nothing of the former table is met again (rule R17).
    """
    if (published := of_former_table(context)) is None:
        return
    pointer, session = context.lease.pointer, context.active_session()
    pointer = replace(pointer, current_snapshot=None, hold=None)
    if session is not None and session.mode is Mode.ROLLBACK:
        # There is nothing left to go back from. Any other session goes on: it lists again.
        closed = close(session, Outcome.CLEARED, context.clients.now_ms())
        context.lease.write(pointer=replace(pointer, active_session=""), session=closed)
    else:
        context.lease.write(pointer=pointer)
    context.note(
        f"{context.spec.name} was made anew after {published.session} had been published: "
        "all files count as new"
    )
