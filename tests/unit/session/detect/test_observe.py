"""What the sensor and the trigger see alike: the listing beside ledger, plan and hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.stores.memory import new_memory
from fakes.tables import APPEND, SWAP, SYNC, write_table
from fakes.zookeeper.memory import FakeZooKeeper

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.session.detect.observe import (
    ListingComparison,
    Observation,
    behind_since_ms,
    compare_listing,
    list_source,
    observe,
    published_token,
)
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.session.values.plan import Plan, Row, RowStatus
from pinot_assets.session.values.state import Mode, ObjectRef, Owner, Pointer
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.source import Fingerprint, Inventory, SourceFile, open_store

NOW_S = 1_800_000_000


def version(age: float) -> Fingerprint:
    return Fingerprint(1, int((NOW_S - age) * 1e6))


def listing(**ages: float) -> Inventory:
    files = {name: SourceFile(name, version(age)) for name, age in ages.items()}
    return Inventory(files, NOW_S * 1000, "everything")


def published(**ages: float) -> Snapshot:
    rows = tuple(PublishedFile(name, version(age), "00", 1, 0, "cp1", ()) for name, age in ages.items())
    return Snapshot(1, "t_OFFLINE", "cp1-aaaaaa", "SYNC", "entry", None, "", "", 0, rows)


def plan(**statuses: RowStatus) -> Plan:
    rows = tuple(Row(name, n, version(99), status) for n, (name, status) in enumerate(statuses.items()))
    return Plan("cp2-bbbbbb", 0, Mode.SYNC, rows, (), {}, "")


def seen(
    folder: Path,
    inventory: Inventory,
    snapshot: Snapshot | None,
    *,
    hold: Hold = NO_HOLD,
    session: Plan | None = None,
    mode: dict[str, str] = SYNC,
    **options: object,
) -> ListingComparison:
    spec = write_table(folder, "t", {**mode, "minFileAgeSec": 60, **options})
    observation = Observation(Pointer(), None, (), {}, None, snapshot, hold, session)
    return compare_listing(spec, inventory, observation)


def waiting(sighting: ListingComparison) -> list[str]:
    return [u.uri for u in sighting.waiting]


def later(sighting: ListingComparison) -> list[str]:
    return [u.uri for u in sighting.later]


def test_a_file_that_is_not_there_yet_is_listed_and_not_new(tmp_path: Path) -> None:
    sighting = seen(tmp_path, listing(a=5, b=99), None)
    assert (sighting.listed, sighting.new, later(sighting)) == (2, ("b",), ["a"])
    assert (sighting.listing, sighting.digest != "everything") == ("everything", True)
    assert str(sighting) == "1 new, 0 rewritten, 0 deleted"


def test_a_young_rewritten_file_is_never_seen_as_deleted(tmp_path: Path) -> None:
    sighting = seen(tmp_path, listing(a=5, b=99), published(a=500, b=99))
    assert (sighting.rewritten, sighting.deleted, waiting(sighting)) == (("a",), (), ["a"])


def test_a_file_of_the_open_sessions_plan_is_known_too(tmp_path: Path) -> None:
    for status in (RowStatus.BUILD, RowStatus.DONE):
        assert waiting(seen(tmp_path, listing(a=5, b=99), None, session=plan(a=status))) == ["a"]
    assert later(seen(tmp_path, listing(a=5, b=99), None, session=plan(a=RowStatus.GONE))) == ["a"]


def test_what_a_rollback_holds_back_is_as_good_as_published(tmp_path: Path) -> None:
    hold = Hold({"a": version(5).token}, ())
    assert waiting(seen(tmp_path, listing(a=5), published(a=500), hold=hold)) == []
    assert waiting(seen(tmp_path, listing(a=4), published(a=500), hold=hold)) == ["a"]


@pytest.mark.parametrize(("mode", "waits"), [(APPEND, False), (SYNC, True), (SWAP, True)])
def test_only_where_rows_would_go_is_everything_gone_waited_out(
    tmp_path: Path, mode: dict[str, str], waits: bool
) -> None:
    sighting = seen(tmp_path, listing(b=5), published(a=500), mode=mode)
    assert waiting(sighting) == (["b"] if waits else [])


def test_the_marker_is_looked_for_and_never_listed(tmp_path: Path) -> None:
    spec = write_table(tmp_path, "t", {**SYNC, "completenessMarker": "done"})
    for name in ("a", "done"):
        (tmp_path / "source" / name).touch()
    source = open_store(str(tmp_path / "source"), {}, UNLIMITED)
    inventory = list_source(spec, source)
    assert list(inventory.files) == [source.uri_of("a")]
    assert inventory.complete == {source.uri}


def test_what_stands_is_one_text_per_ledger_and_none_while_there_is_more_to_look_at() -> None:
    zookeeper = FakeZooKeeper().client()
    made = "/c/PROPERTYSTORE/CONFIGS/TABLE/t_OFFLINE"
    zookeeper.ensure_path(made)
    store = SessionStore(zookeeper, "c", "t_OFFLINE")  # type: ignore[arg-type]

    def after(**fields: Any) -> str:
        lease = store.take_lease(Owner("run", "host", 1, 0))
        assert published_token(store) == "", "while the lease is held"
        lease.write(pointer=replace(lease.pointer, **fields))
        lease.release()
        return published_token(store)

    assert published_token(store) == "", "nothing is published"
    first = after(current_snapshot=SnapshotRef("one", "aa"))
    assert first == after(current_snapshot=SnapshotRef("one", "aa")) != ""
    assert after(active_session="cp2") == ""
    assert after(active_session="", hold=ObjectRef("held", "bb")) == ""
    assert after(hold=None, current_snapshot=SnapshotRef("two", "cc")) not in ("", first)
    assert after(current_snapshot=SnapshotRef("one", "aa")) == first
    zookeeper.delete(made)
    zookeeper.server.ahead_ms += 1000
    zookeeper.create(made)
    assert published_token(store) not in ("", first), "another table of the same name"


# --- since when a change waits -------------------------------------------------------------------


def behind(folder: Path, inventory: Inventory, snapshot: Snapshot | None) -> int | None:
    return behind_since_ms(inventory, seen(folder, inventory, snapshot), snapshot)


def test_the_oldest_new_or_rewritten_file_counts(tmp_path: Path) -> None:
    inventory = listing(same=900, rewritten=200, new=300)
    assert behind(tmp_path, inventory, published(same=900, rewritten=800)) == (NOW_S - 300) * 1000


def test_nothing_that_waits_or_a_removal_alone_has_no_date(tmp_path: Path) -> None:
    assert behind(tmp_path, listing(a=99), published(a=99)) is None
    assert behind(tmp_path, listing(a=99), published(a=99, gone=99)) is None


def test_an_old_copy_waits_no_longer_than_the_snapshot_that_lacks_it(tmp_path: Path) -> None:
    snapshot = replace(published(), published_ms=(NOW_S - 100) * 1000)
    assert behind(tmp_path, listing(copied=10_000), snapshot) == (NOW_S - 100) * 1000


def test_segments_of_ours_in_pinot_of_a_table_that_zookeeper_has_no_record_of() -> None:
    zookeeper = FakeZooKeeper()
    client = zookeeper.client()
    for name in ("t__cp1-aaaaaa_0_0_0", "t__cp2-bbbbbb_0_0_0", "by_hand"):
        client.ensure_path(f"/pinot/PROPERTYSTORE/SEGMENTS/t_OFFLINE/{name}")
    store, staging = SessionStore(client, "pinot", "t_OFFLINE"), Staging(new_memory())
    assert observe(store, staging).unrecorded == 2
    lease = store.take_lease(Owner("run", "host", 1, 0))
    assert observe(store, staging).unrecorded == 2  # a lease alone is no record
    lease.write(pointer=replace(lease.pointer, next_seq=2))
    assert observe(store, staging).unrecorded == 0
