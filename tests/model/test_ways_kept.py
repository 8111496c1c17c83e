"""Whatever people do to a table: the snapshots that a revert leads to are kept, and what a rollback left."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from model.world.specs import spec_of
from model.world.table import CLUSTER, TABLE, ModelTable, run

from pinot_assets.gc.collect import collect
from pinot_assets.session.driver import Driver
from pinot_assets.session.rollback.rollback_plan import rollback_facts
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import snapshot_refs
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef

Act = Callable[[ModelTable], None]


def rewrite(content: str) -> Act:
    """The same content again is a session without a switch."""

    def act(table: ModelTable) -> None:
        table.source.write("A", content.encode())
        table.start(run)

    act.__name__ = f"rewrite as {content}"
    return act


def later(hours: float) -> Act:
    def act(table: ModelTable) -> None:
        table.later(hours * 3600)
        table.clean_up()

    act.__name__ = f"{hours} h later"
    return act


def back(place: int) -> Act:
    """To one of the kept snapshots, if there is a way, and let the source in again."""

    def act(table: ModelTable) -> None:
        def rollback(driver: Driver) -> None:
            ways = [way for way in driver.rollback_plans(99) if way.way is not None]
            if ways:
                driver.rollback(ways[place % len(ways)].target.snapshot.session)

        table.start(rollback)
        table.start(Driver.resume)

    act.__name__ = f"back to {place}"
    return act


def gc(table: ModelTable) -> None:
    table.start(lambda driver: collect(driver, 0, lambda done, total: None))


ACTS = st.one_of(
    st.sampled_from(["A0", "A1", "A9"]).map(rewrite),
    st.sampled_from([0.2, 25.0]).map(later),
    st.integers(0, 3).map(back),
    st.just(gc),
)
HISTORY = [act for n in range(3) for act in (rewrite(f"A{n}"), later(25))]
"""Something to go back to, and some of it too old to be reverted to."""


def current_of(table: ModelTable) -> SnapshotRef | None:
    return SessionStore(table.zookeeper.client(), CLUSTER, f"{TABLE}_OFFLINE").pointer().current_snapshot


def check_ways(table: ModelTable, published: dict[SnapshotRef, Snapshot], left: SnapshotRef | None) -> None:
    """Each snapshot that a revert leads to now is kept, or one that shows the same.

    :param published: all that ever were.
    :param left: by the last rollback, if nothing was switched since.
    """
    kept = {*snapshot_refs(Staging(table.staging))}
    shown = {frozenset(published[ref].segments) for ref in kept}
    assert left is None or left in kept

    def check(driver: Driver) -> None:
        ref = current_of(table)
        assert ref in kept
        facts = rollback_facts(driver.spec, driver.clients)
        for one in published.values():
            no_revert, _ = facts.revert(published[ref], one)
            assert no_revert or frozenset(one.segments) in shown, f"{one.session} has gone"

    error = table.start(check).process.error
    assert error is None, error


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(["sync", "append", "swap"]), st.integers(1, 2), st.lists(ACTS, min_size=3, max_size=9))
def test_what_a_way_back_needs_is_kept(mode: str, keep: int, acts: list[Act]) -> None:
    table = ModelTable(spec_of, mode, {"consistentPushMaxRetries": 3, "snapshotsToKeep": keep})
    published: dict[SnapshotRef, Snapshot] = {}
    before: SnapshotRef | None = None
    left: SnapshotRef | None = None
    for act in (*HISTORY, *acts):
        act(table)
        staging = Staging(table.staging)
        published |= {ref: staging.snapshot(ref) for ref in snapshot_refs(staging) if ref not in published}
        now = current_of(table)
        assert now is not None
        if before is not None and now != before:
            if published[now].mode == Mode.ROLLBACK:
                left = before
            elif published[now].lineage_entry_id != published[before].lineage_entry_id:
                left = None
        before = now
        check_ways(table, published, left)
