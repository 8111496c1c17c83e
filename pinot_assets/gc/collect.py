"""Taking away what nothing needs any more, under the lease of its table.

What is an orphan is looked up anew, under the lease. Snapshots lose their headers first: one whose header
cannot be deleted is kept, and so is what it needs. Wherever that ends, the table works, and the next time
takes away what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from pinot_assets.errors import LeaseLost, PinotAssetsError, SwitchStateUnknown
from pinot_assets.gc.orphans import IN_STAGING, Orphan, OrphanKind
from pinot_assets.gc.probe import Garbage, look
from pinot_assets.session.checks.shadow import remove_shadow
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.driver import Driver
from pinot_assets.session.recover.interrupted import sweep
from pinot_assets.session.recover.lost_pointer import catch_up
from pinot_assets.session.rollback.retention import take_away
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
        found = store.stat(key)
    finally:
        store.delete(key)
    assert found is not None
    return found.mtime_us // 1000


def collect(driver: Driver, grace_ms: int, told: OnProgress) -> Collected:
    """Take away what nothing needs any more and is old enough, looked up anew under the lease.

    :param grace_ms: how old it has to be, by the clock of the staging area.

    :raises LeaseLost: another run owns the table now; what was not taken away stays.
    :raises PinotAssetsError: as `look`; nothing was taken away.
    """
    return driver.carry_out(STEP, lambda run: _collect(run, grace_ms, told))


def _collect(context: TriggerContext, grace_ms: int, told: OnProgress) -> Collected:
    catch_up(context)
    context.clients.staging.store.probe()  # a disk clears away what killed writers left unfinished
    garbage = look(
        context.spec,
        context.clients,
        context.lease.pointer,
        grace_ms,
        store_now_ms(context.clients.staging.store),
    )
    failed = dict[str, str]()
    for done, (name, why) in enumerate(_work(context, garbage), 1):
        if why:
            failed[name] = why
        told(done, len(garbage.old))
    return Collected(garbage, failed)


def _work(context: TriggerContext, garbage: Garbage) -> Iterator[tuple[str, str]]:
    """Each orphan's name as it is done, with why it could not be taken away."""
    yield from _together(
        context, _named(garbage, OrphanKind.STRAY), lambda _: sweep(context, None, context.current_snapshot())
    )
    yield from _together(context, _named(garbage, OrphanKind.SEGMENT), context.switcher.delete)
    yield from _together(context, _named(garbage, OrphanKind.SHADOW), lambda _: remove_shadow(context))
    yield from _together(context, _named(garbage, OrphanKind.NODE), lambda _: context.lease.prune())
    staging = context.clients.staging
    left = [o.name for o in garbage.old if o.kind in IN_STAGING and o.kind is not OrphanKind.SNAPSHOT]
    yield from take_away(
        staging.store,
        garbage.expired,
        left,
        lambda header: staging.reach(header.ref),
        context.lease.assert_held,
    )


def _named(garbage: Garbage, kind: OrphanKind) -> list[str]:
    return [o.name for o in garbage.old if o.kind is kind]


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
        except SwitchStateUnknown as error:
            context.lease.left_unknown()  # it may still arrive: the next owner waits (rule R2)
            why = error.reason
        except PinotAssetsError as error:
            why = error.reason
    yield from ((name, why) for name in names)
