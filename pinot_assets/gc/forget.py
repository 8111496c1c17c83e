"""Forget a table: delete all that this project stores about it, and leave the table itself in Pinot.

Segments, schema, table config and lineage stay, so queries answer as before. The order makes every crash
harmless: older snapshots lose their headers first. Then the pointer becomes that of a table without sessions,
as if its node was lost. Then the current snapshot, all other objects and the nodes go. A run that comes in
between makes the ledger anew from what queries see. `forget` again deletes the rest (docs/guides/forget.md).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pinot_assets.gc.forget_plan import ForgetPlan, look_at_table
from pinot_assets.session.checks.shadow import remove_shadow
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.nodes import remove_empty_parents
from pinot_assets.session.stores.staged_files import remove
from pinot_assets.session.values.state import Pointer

STEP: Final = "forget"
"""Name of the step of the driver."""

OnProgress = Callable[[int, int], None]
"""Called with how many objects are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What became of a table that was to be forgotten.

    :ivar plan: what was to be deleted, as determined under the lease.
    :ivar failed: key of an object that could not be deleted → why. Then the nodes in ZooKeeper stay, too.
    """

    plan: ForgetPlan
    failed: dict[str, str]


def forget_plan(driver: Driver) -> ForgetPlan:
    """Return what `forget` would delete; needs no lease and changes nothing.

    :raises ForgetRefused: work on the table is open.
    """
    driver.require_known()
    return look_at_table(driver.spec, driver.clients, driver.clients.store.pointer())


def forget(driver: Driver, on_progress: OnProgress) -> Forgotten:
    """Delete what is stored about a table, as determined again under the lease.

    :raises ForgetRefused: work on the table is open; nothing was deleted.
    :raises SessionHeld: another run works on the table.
    :raises LeaseLost: another run owns the table now; what was not deleted yet stays.
    """
    return driver.carry_out(STEP, lambda context: _forget(context, on_progress))


def _forget(context: TriggerContext, on_progress: OnProgress) -> Forgotten:
    context.before_pinot_write()  # a late call of a dead run may still hide or show segments (rule R2)
    plan = look_at_table(context.spec, context.clients, context.lease.pointer)
    if plan.shadow:
        remove_shadow(context)
    failed = dict[str, str]()
    total = sum(len(group.keys) for group in plan.removed)
    for done, (key, why) in enumerate(_delete_staged(context, plan), 1):
        if why:
            failed[key] = why
        on_progress(done, total)
    if not failed:
        context.lease.forget()
        store = context.clients.store
        remove_empty_parents(store.zk, store.path)
    return Forgotten(plan, failed)


def _delete_staged(context: TriggerContext, plan: ForgetPlan) -> Iterator[tuple[str, str]]:
    """Delete the objects, and yield each key with why it could not be deleted, or "".

    If the header of a snapshot cannot be deleted, all that comes later stays: that snapshot may need it.
    """
    store, current = context.staging.store, context.lease.pointer.current_snapshot
    older = [header.ref.key for header in plan.headers if header.ref != current]
    newest = [header.ref.key for header in plan.headers if header.ref == current]
    if (yield from _delete_headers(context, older)):
        return
    context.lease.write(pointer=Pointer(format=context.lease.pointer.format))
    if (yield from _delete_headers(context, newest)):
        return
    headers = {*older, *newest}
    rest = [key for group in plan.removed for key in group.keys if key not in headers]
    yield from remove(store, rest, context.lease.assert_held)


def _delete_headers(context: TriggerContext, keys: Sequence[str]) -> Generator[tuple[str, str], None, bool]:
    """As `_delete_staged`; return whether one could not be deleted."""
    is_stuck = False
    for key, why in remove(context.staging.store, keys, context.lease.assert_held):
        is_stuck = is_stuck or bool(why)
        yield key, why
    return is_stuck
