"""Deletes the orphans of a table, under the lease of the table.

The orphans are determined again, under the lease. Snapshots lose their headers first: a snapshot whose header
cannot be deleted is kept, with all that it needs. Wherever the deletion ends, the table works, and the next
collection deletes the rest.

The nodes of tables that Pinot no longer has are deleted, too: Pinot 0.11 leaves them when it deletes a table.
They are of no use. A table that is created again under the same name begins anew in any case
(`session/recover/interrupted.py`), and session numbers continue after those in the staging area. What is
staged for such a table stays, since only its spec knows where that is.
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
from pinot_assets.core.text import duration, plural, size
from pinot_assets.errors import LeaseLost, PinotAssetsError, SessionHeld, SwitchStateUnknown
from pinot_assets.gc.bad_rows import KeptBadRows
from pinot_assets.gc.orphans import Garbage, Orphan, OrphanKind, survey
from pinot_assets.pinot.versions import HOUR_MS
from pinot_assets.session.checks.shadow import remove_shadow
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.driver import Driver
from pinot_assets.session.recover.interrupted import delete_strays
from pinot_assets.session.recover.lost_pointer import catch_up
from pinot_assets.session.rollback.retention import take_away
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.state import Owner
from pinot_assets.source.object_store import ObjectStore, probe_key

STEP: Final = "collect"
"""Name of the step of the driver."""

OnProgress = Callable[[int, int], None]
"""Called with how many orphans are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Collected:
    """The result of a collection.

    :ivar garbage: what was found under the lease.
    :ivar failed: name of an orphan that could not be deleted → why.
    """

    garbage: Garbage
    failed: dict[str, str]

    @property
    def removed(self) -> tuple[Orphan, ...]:
        """Return the orphans that are deleted."""
        return tuple(o for o in self.garbage.old if o.name not in self.failed)


def store_now_ms(store: ObjectStore) -> int:
    """Return the time of the store's own clock, which stamped all objects there.

    :raises SourceError: the store cannot be written.
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
    """Delete the orphans that are old enough, as determined again under the lease.

    :param grace_ms: minimum age, by the clock of the staging area.

    :raises LeaseLost: another run owns the table now; what was not deleted yet stays.
    :raises PinotAssetsError: as `survey`; nothing was deleted.
    """
    return driver.carry_out(STEP, lambda run: _collect(run, grace_ms, on_progress))


def _collect(context: TriggerContext, grace_ms: int, on_progress: OnProgress) -> Collected:
    catch_up(context)
    context.staging.store.probe()  # a local store deletes what killed writers left unfinished
    now_ms = store_now_ms(context.staging.store)
    garbage = survey(context.spec, context.clients, context.lease.pointer, grace_ms, now_ms)
    failed = dict[str, str]()
    for done, (name, why) in enumerate(_work(context, garbage), 1):
        if why:
            failed[name] = why
        on_progress(done, len(garbage.old))
    return Collected(garbage, failed)


_STAGED: Final = frozenset(
    (
        OrphanKind.ROWS,
        OrphanKind.TAR,
        OrphanKind.SESSION,
        OrphanKind.BAD_ROWS,
        OrphanKind.LISTING,
        OrphanKind.PROBE,
    )
)
"""Kinds of orphans that are objects of the staging area, each deleted alone; their names are their keys."""


def _work(context: TriggerContext, garbage: Garbage) -> Iterator[tuple[str, str]]:
    """Yield each orphan's name once it is done, and why it could not be deleted, "" if it was."""
    acts: dict[OrphanKind, Callable[[list[str]], object]] = {
        OrphanKind.STRAY: lambda _: delete_strays(context, None, context.current_snapshot()),
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
    """Delete these names by one call, and yield each with the reason of the failure, "" for success."""
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
    """Return the nodes of a table as an orphan; None unless the table is gone and no run holds its lease.

    :param now_ms: time for which their age is given.
    """
    written_ms = store.pointer_written_ms()
    if written_ms is None or store.table_made_ms() is not None or store.holder() is not None:
        return None
    return Orphan(
        OrphanKind.TABLE, store.table, "Pinot has no such table any more", age_ms=now_ms - written_ms
    )


def forget_table(store: SessionStore) -> bool:
    """Delete the table's nodes under the lease, unless the table exists again or a run holds the lease.

    :returns: whether they are deleted.
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
"""Maximum of names that a line shows."""


def gc_values(garbage: Garbage, collected: Collected | None) -> JsonObject:
    """Return a plan or a collection as JSON values.

    :param collected: None for a plan.
    """
    return {
        "orphans": [_orphan_values(orphan) for orphan in garbage.old],
        "tooYoung": [_orphan_values(orphan) for orphan in garbage.young],
        "notes": list(garbage.notes),
        "badRowsKept": {
            "days": garbage.bad_rows.days,
            "objects": garbage.bad_rows.objects,
            "bytes": garbage.bad_rows.size,
            "oldestHours": round(garbage.bad_rows.oldest_ms / HOUR_MS, 1),
        },
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
    """Yield the lines that people read of a plan or a collection.

    :param collected: None for a plan.
    """
    gone = garbage.old if collected is None else collected.removed
    failed = {} if collected is None else collected.failed
    if gone:
        yield f"{_sum(gone)} would be deleted" if collected is None else f"gone: {_sum(gone)}"
        yield from _groups(gone)
    elif not failed:
        yield "nothing to delete"
    if garbage.young:
        yield f"too young to be deleted: {_sum(garbage.young)}"
    if garbage.bad_rows.objects:
        yield _kept_in_words(garbage.bad_rows)
    if failed:
        yield f"{len(failed):,} could not be deleted:"
    for name, why in [*failed.items()][:SHOWN]:
        yield f"  {name}: {why}"
    yield from garbage.notes


def _kept_in_words(kept: KeptBadRows) -> str:
    return (
        f"rows put aside that stay: {plural(kept.objects, 'object')} ({size(kept.size)}), the oldest "
        f"{duration(kept.oldest_ms / 1000)} old; each is kept for "
        f"{plural(kept.days, 'day')} (badRowDaysToKeep)"
    )


def _sum(some: Sequence[Orphan]) -> str:
    return f"{plural(len(some), 'thing')} ({size(sum(o.size or 0 for o in some))})"


def _groups(some: Sequence[Orphan]) -> Iterator[str]:
    for (kind, why), group in groupby(some, key=lambda o: (o.kind, o.why)):
        these = [*group]
        shown = ", ".join(o.name for o in these[:SHOWN])
        more = f" and {len(these) - SHOWN:,} more" if len(these) > SHOWN else ""
        ages = [o.age_ms or 0 for o in these] if kind is OrphanKind.BAD_ROWS else []
        oldest = f"; the oldest is {duration(max(ages) / 1000)} old" if ages else ""
        yield f"  {len(these):,} × {kind}  {size(sum(o.size or 0 for o in these))}  {why}{oldest}"
        yield f"    {shown}{more}"
