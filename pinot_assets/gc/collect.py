"""Taking away what nothing needs any more, under the lease of its table.

What is an orphan is looked up anew, under the lease. Snapshots lose their headers first: one whose header
cannot be deleted is kept, and so is what it needs. Wherever that ends, the table works, and the next time
takes away what is left.

Nodes of tables that Pinot does not have any more go, too. Pinot 0.11 leaves them when it deletes a table.
They are of no use: a table that is made again under the same name begins anew in any case
(`session/recover/interrupted.py`), and numbers of sessions go on beyond those in the staging area. What is
staged for such a table stays: where it lies, only its spec knows.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import plural, size
from pinot_assets.errors import LeaseLost, PinotAssetsError, SessionHeld, SwitchStateUnknown
from pinot_assets.gc.orphans import Garbage, Orphan, OrphanKind, look
from pinot_assets.pinot.versions import HOUR_MS
from pinot_assets.session.checks.shadow import remove_shadow
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.driver import Driver
from pinot_assets.session.recover.interrupted import sweep
from pinot_assets.session.recover.lost_pointer import catch_up
from pinot_assets.session.rollback.retention import take_away
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.state import Owner
from pinot_assets.source.object_store import ObjectStore, probe_key

STEP: Final = "collect"
"""What the driver calls it."""

OnProgress = Callable[[int, int], None]
"""Told how many are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What was done.

    :ivar garbage: what was found under the lease.
    :ivar failed: what could not be taken away, with why, by name.
    """

    garbage: Garbage
    failed: dict[str, str]

    @property
    def removed(self) -> tuple[Orphan, ...]:
        """What is gone."""
        return tuple(o for o in self.garbage.old if o.name not in self.failed)


def store_now_ms(store: ObjectStore) -> int:
    """The time by the store's own clock, which stamped all that lies there.

    :raises SourceError: it cannot be written.
    """
    key = probe_key()
    store.put_if_absent(key, b"what time is it?")
    try:
        stat = store.stat(key)
    finally:
        store.delete(key)
    assert stat is not None
    return stat.mtime_us // 1000


def collect(driver: Driver, grace_ms: int, on_progress: OnProgress) -> Collected:
    """Take away what nothing needs any more and is old enough, looked up anew under the lease.

    :param grace_ms: how old it has to be, by the clock of the staging area.

    :raises LeaseLost: another run owns the table now; what was not taken away stays.
    :raises PinotAssetsError: as `look`; nothing was taken away.
    """
    return driver.carry_out(STEP, lambda run: _collect(run, grace_ms, on_progress))


def _collect(context: TriggerContext, grace_ms: int, on_progress: OnProgress) -> Collected:
    catch_up(context)
    context.staging.store.probe()  # a disk clears away what killed writers left unfinished
    now_ms = store_now_ms(context.staging.store)
    garbage = look(context.spec, context.clients, context.lease.pointer, grace_ms, now_ms)
    failed = dict[str, str]()
    for done, (name, why) in enumerate(_work(context, garbage), 1):
        if why:
            failed[name] = why
        on_progress(done, len(garbage.old))
    return Collected(garbage, failed)


_STAGED: Final = frozenset(
    (OrphanKind.ROWS, OrphanKind.TAR, OrphanKind.SESSION, OrphanKind.LISTING, OrphanKind.PROBE)
)
"""Objects of the staging area that are deleted by themselves; their names are their keys."""


def _work(context: TriggerContext, garbage: Garbage) -> Iterator[tuple[str, str]]:
    """Each orphan's name as it is done, with why it could not be taken away."""
    acts: dict[OrphanKind, Callable[[list[str]], object]] = {
        OrphanKind.STRAY: lambda _: sweep(context, None, context.current_snapshot()),
        OrphanKind.SEGMENT: context.switcher().delete,
        OrphanKind.SHADOW: lambda _: remove_shadow(context),
        OrphanKind.NODE: lambda _: context.lease.prune(),
    }
    for kind, act in acts.items():
        yield from _together(context, [o.name for o in garbage.old if o.kind is kind], act)
    staging = context.staging
    left = [o.name for o in garbage.old if o.kind in _STAGED]
    yield from take_away(
        staging.store,
        garbage.expired,
        left,
        lambda header: staging.reach(header.ref),
        context.lease.assert_held,
    )


def _together(
    context: TriggerContext, names: list[str], act: Callable[[list[str]], object]
) -> Iterator[tuple[str, str]]:
    """What goes in one call, or not."""
    why = ""
    if names:
        try:
            act(names)
        except LeaseLost:
            raise
        except PinotAssetsError as error:
            if isinstance(error, SwitchStateUnknown):
                context.lease.left_unknown()  # it may still arrive: the next owner waits (rule R2)
            why = error.reason
    yield from ((name, why) for name in names)


def nodes_of_dropped_table(store: SessionStore, now_ms: int) -> Orphan | None:
    """The nodes of a table, if it is gone and nobody works on it.

    :param now_ms: their age counts up to then.
    """
    written_ms = store.pointer_written_ms()
    if written_ms is None or store.table_made_ms() is not None or store.holder() is not None:
        return None
    return Orphan(
        OrphanKind.TABLE, store.table, "Pinot has no such table any more", age_ms=now_ms - written_ms
    )


def forget(store: SessionStore) -> bool:
    """Delete them, under the lease, unless the table was made again or somebody works on it.

    :returns: whether they are gone.
    """
    owner = Owner("pinot-assets gc", socket.gethostname(), os.getpid(), time.time_ns() // 1_000_000)
    try:
        lease = store.take_lease(owner)
    except SessionHeld:
        return False
    if store.table_made_ms() is not None:
        lease.release()
        return False
    lease.forget()
    return True


# --- for people and programs -----------------------------------------------------------------------

SHOWN = 3
"""Names that a line shows."""


def values(garbage: Garbage, collected: Collected | None) -> JsonObject:
    """For JSON.

    :param collected: None for a plan.
    """
    return {
        "orphans": [_orphan_values(orphan) for orphan in garbage.old],
        "tooYoung": [_orphan_values(orphan) for orphan in garbage.young],
        "notes": list(garbage.notes),
        "removed": len(collected.removed) if collected else None,
        "notRemoved": collected.failed if collected else None,
    }


def _orphan_values(orphan: Orphan) -> JsonObject:
    return {
        "kind": orphan.kind,
        "name": orphan.name,
        "why": orphan.why,
        "bytes": orphan.size,
        "ageHours": None if orphan.age_ms is None else round(orphan.age_ms / HOUR_MS, 1),
    }


def lines(garbage: Garbage, collected: Collected | None) -> Iterator[str]:
    """For people.

    :param collected: None for a plan.
    """
    gone = garbage.old if collected is None else collected.removed
    failed = {} if collected is None else collected.failed
    if gone:
        yield f"{_sum(gone)} would go" if collected is None else f"gone: {_sum(gone)}"
        yield from _groups(gone)
    elif not failed:
        yield "nothing to take away"
    if garbage.young:
        yield f"too young to go yet: {_sum(garbage.young)}"
    if failed:
        yield f"{len(failed)} could not be taken away:"
    for name, why in [*failed.items()][:SHOWN]:
        yield f"  {name}: {why}"
    yield from garbage.notes


def _sum(some: Sequence[Orphan]) -> str:
    return f"{plural(len(some), 'thing')} ({size(sum(o.size or 0 for o in some))})"


def _groups(some: Sequence[Orphan]) -> Iterator[str]:
    for (kind, why), group in groupby(some, key=lambda o: (o.kind, o.why)):
        these = [*group]
        shown = ", ".join(o.name for o in these[:SHOWN])
        more = f" and {len(these) - SHOWN:,} more" if len(these) > SHOWN else ""
        yield f"  {len(these):,} × {kind}  {size(sum(o.size or 0 for o in these))}  {why}"
        yield f"    {shown}{more}"
