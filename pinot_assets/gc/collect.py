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
from pinot_assets.gc.orphans import IN_STAGING, Kind, Orphan
from pinot_assets.gc.probe import Garbage, look
from pinot_assets.session.checks.shadow import remove_shadow
from pinot_assets.session.context.context import Run
from pinot_assets.session.driver import Driver
from pinot_assets.session.recover.abandon import sweep
from pinot_assets.session.recover.catch_up import catch_up
from pinot_assets.session.rollback.retention import take_away
from pinot_assets.source.object_store import ObjectStore, probe_key

STEP: Final = "collect"
"""What the driver calls it."""

Told = Callable[[int, int], None]
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


def collect(driver: Driver, grace_ms: int, told: Told) -> Collected:
    """Take away what nothing needs any more and is old enough, looked up anew under the lease.

    :param grace_ms: how old it has to be, by the clock of the staging area.

    :raises LeaseLost: another run owns the table now; what was not taken away stays.
    :raises PinotAssetsError: as `look`; nothing was taken away.
    """
    return driver.carry_out(STEP, lambda run: _collect(run, grace_ms, told))


def _collect(run: Run, grace_ms: int, told: Told) -> Collected:
    catch_up(run)
    run.edges.staging.store.probe()  # a disk clears away what killed writers left unfinished
    garbage = look(run.spec, run.edges, run.lease.pointer, grace_ms, store_now_ms(run.edges.staging.store))
    failed = dict[str, str]()
    for done, (name, why) in enumerate(_work(run, garbage), 1):
        if why:
            failed[name] = why
        told(done, len(garbage.old))
    return Collected(garbage, failed)


def _work(run: Run, garbage: Garbage) -> Iterator[tuple[str, str]]:
    """Each orphan's name as it is done, with why it could not be taken away."""
    yield from _together(run, _named(garbage, Kind.STRAY), lambda _: sweep(run, None, run.current_snapshot()))
    yield from _together(run, _named(garbage, Kind.SEGMENT), run.switcher.delete)
    yield from _together(run, _named(garbage, Kind.SHADOW), lambda _: remove_shadow(run))
    yield from _together(run, _named(garbage, Kind.NODE), lambda _: run.lease.prune())
    staging = run.edges.staging
    left = [o.name for o in garbage.old if o.kind in IN_STAGING and o.kind is not Kind.SNAPSHOT]
    yield from take_away(
        staging.store, garbage.expired, left, lambda header: staging.reach(header.ref), run.lease.assert_held
    )


def _named(garbage: Garbage, kind: Kind) -> list[str]:
    return [o.name for o in garbage.old if o.kind is kind]


def _together(run: Run, names: list[str], act: Callable[[list[str]], object]) -> Iterator[tuple[str, str]]:
    """What goes in one call, or not."""
    why = ""
    if names:
        try:
            act(names)
        except LeaseLost:
            raise
        except SwitchStateUnknown as error:
            run.lease.left_unknown()  # it may still arrive: the next owner waits (rule R2)
            why = error.reason
        except PinotAssetsError as error:
            why = error.reason
    yield from ((name, why) for name in names)
