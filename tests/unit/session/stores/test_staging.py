from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.stored_format import WITH_PACKS, parquet_table
from pinot_assets.errors import SnapshotCorrupt, SourceError, TooLarge
from pinot_assets.ingest.contract.task_outputs import receipt_key
from pinot_assets.session.stores.staging import Staging, Switch, kept_receipts
from pinot_assets.session.values.hold import HeldVersion, Hold
from pinot_assets.session.values.plan import Plan, Row, RowStatus
from pinot_assets.session.values.state import Mode, ObjectRef
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.packs import Member, MemberList, PublishedPack
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Failure, Fingerprint, Output, Receipt
from pinot_assets.source import open_store

VERSION = Fingerprint(3, 4)


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return Staging(open_store(str(tmp_path), {}, UNLIMITED))


def a_plan(attempt: int = 0, status: RowStatus = RowStatus.BUILD, accepted: str = "") -> Plan:
    rows = (Row("file:///a", 0, VERSION, status, accepted),)
    return Plan("cp1-00000a", attempt, Mode.SYNC, rows, (), {}, "digest")


def put_receipt(staging: Staging, attempt: int = 0, *, tar: bytes | None = b"tar") -> str:
    name = f"t__cp1-00000a_{attempt}_0_0"
    if tar is not None:
        staging.store.put_if_absent(f"segments/{name}.tar.gz", tar)
    staging.store.put_if_absent(f"segments/{name}.metadata.tar.gz", b"metadata")
    where = f"{staging.store.uri}/segments/{name}"
    sha256 = hashlib.sha256(b"tar").hexdigest()
    output = Output(name, 1, 1, f"{where}.tar.gz", 3, sha256, f"{where}.metadata.tar.gz")
    receipt = Receipt("file:///a", 0, attempt, VERSION, "", 1, 0, (output,), 0.1, "w/1")
    key = f"sessions/cp1-00000a/{receipt_key(receipt.uri, VERSION, attempt)}"
    staging.store.put_if_absent(key, receipt.to_bytes())
    return key


def test_a_valid_receipt_is_found(staging: Staging) -> None:
    key = put_receipt(staging)
    found = staging.receipts(a_plan())
    assert list(found) == [0]
    assert found[0][0] == key
    assert found[0][1].read == VERSION


def test_r12_a_receipt_whose_tar_is_missing_torn_or_another_is_none(staging: Staging) -> None:
    for attempt, tar in enumerate([None, b"ta", b"rat"]):
        put_receipt(staging, attempt, tar=tar)
        assert staging.receipts(a_plan(attempt)) == {}


def test_r12_a_receipt_whose_metadata_tar_is_missing_is_none(staging: Staging) -> None:
    put_receipt(staging)
    staging.store.delete("segments/t__cp1-00000a_0_0_0.metadata.tar.gz")
    assert staging.receipts(a_plan()) == {}


def test_r12_a_tar_in_the_version_that_was_written_is_not_read_again(
    staging: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = put_receipt(staging)
    receipt = staging.receipts(a_plan())[0][1]
    newer = staging.put_receipt("cp1-00000a", replace(receipt, attempt=1))
    staging.store.delete(key)
    with monkeypatch.context() as patch:
        patch.setattr(type(staging.store), "sha256", lambda store, key: pytest.fail(f"{key} was read"))
        assert staging.receipts(a_plan(1))[0][0] == newer
    tar = Path(staging.store.uri.removeprefix("file://"), "segments/t__cp1-00000a_0_0_0.tar.gz")
    os.utime(tar, (1, 1))
    assert staging.receipts(a_plan(1))[0][0] == newer  # restored from a copy: its content tells
    tar.write_bytes(b"rat")
    assert staging.receipts(a_plan(1)) == {}


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"7", b"{}", b"\xff"])
def test_a_torn_receipt_is_none(staging: Staging, data: bytes) -> None:
    staging.store.put_if_absent("sessions/cp1-00000a/files/a-0.json", data)
    assert staging.receipts(a_plan()) == {}


def test_what_is_no_receipt_of_the_plan_s_files_is_not_read(
    staging: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder full of somebody's objects costs a listing."""
    key = put_receipt(staging)
    for n in range(20):
        staging.store.put_if_absent(f"sessions/cp1-00000a/files/{n:016x}-v-0.json", b"[" * 100)
    read, seen = type(staging.store).read, list[str]()

    def noting(store: Any, key: str, *most: Any) -> bytes:
        seen.append(key)
        return read(store, key, *most)

    monkeypatch.setattr(type(staging.store), "read", noting)
    assert list(staging.receipts(a_plan())) == [0]
    assert seen == [key]


@pytest.mark.parametrize("kept", [False, True])
def test_receipts_that_are_too_large_together_are_not_read(
    staging: Staging, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Each may be as large as one may be; it says which is the largest and what to set."""
    monkeypatch.setenv("PINOT_ASSETS_MAX_RECEIPTS_MIB", "1")
    put_receipt(staging)
    assert staging.receipts(a_plan())
    for attempt, most in ((1, 400), (2, 700)):
        key = f"sessions/cp1-00000a/{receipt_key('file:///a', VERSION, attempt)}"
        staging.store.put_if_absent(key, b" " * most * 1024)
    monkeypatch.setattr(type(staging.store), "read", lambda *_: pytest.fail("it was read"))
    versions = {"file:///a": VERSION.token}
    with pytest.raises(TooLarge) as refused:
        kept_receipts(staging, "cp1-00000a", versions) if kept else staging.receipts(a_plan(2))
    text = str(refused.value)
    assert "3 receipts of" in text
    assert "the largest is sessions/cp1-00000a/files/" in text
    assert "-2.json, 700.0 KB" in text
    assert "PINOT_ASSETS_MAX_RECEIPTS_MIB" in text


def test_of_kept_receipts_the_one_of_the_latest_attempt_is_taken(staging: Staging) -> None:
    for attempt in (2, 9, 10):
        put_receipt(staging, attempt)
    (receipt,) = kept_receipts(staging, "cp1-00000a", {"file:///a": VERSION.token}).values()
    assert receipt.attempt == 10


def test_the_newest_receipt_is_taken_but_none_of_a_later_attempt(staging: Staging) -> None:
    keys = [put_receipt(staging, attempt) for attempt in (0, 1, 2)]
    assert staging.receipts(a_plan(1))[0][0] == keys[1]


def test_r11_an_accepted_receipt_is_never_exchanged(staging: Staging) -> None:
    """R11: a zombie's receipt is ignored."""
    keys = [put_receipt(staging, attempt) for attempt in (0, 1)]
    plan = a_plan(1, RowStatus.DONE, keys[0])
    assert staging.receipts(plan)[0][0] == keys[0]
    assert staging.accepted_receipts(plan)[0].attempt == 0


def test_a_lost_accepted_receipt_is_an_error_and_not_another_one(staging: Staging) -> None:
    keys = [put_receipt(staging, attempt) for attempt in (0, 1)]
    staging.store.delete(keys[0])
    plan = a_plan(1, RowStatus.DONE, keys[0])
    assert staging.receipts(plan) == {}
    with pytest.raises(SnapshotCorrupt, match=r"-0\.json cannot be read"):
        staging.accepted_receipts(plan)


def test_what_is_put_is_read_back(staging: Staging) -> None:
    plan = a_plan(3, RowStatus.DONE, "files/a")
    assert staging.plan(staging.put_plan(plan)) == plan
    output = Output("s", 2**32 - 1, 1, "u", 3, "", "", -5, None)
    switch = Switch(2, ("x", "y"), (output, replace(output, segment="s2")))
    assert staging.switch(staging.put_switch("cp1-00000a", switch)) == switch
    hold = Hold({"file:///a": "0123"}, ("file:///b",))
    assert staging.hold(staging.put_hold("cp1-00000a", hold)) == hold
    assert b"versions" not in staging._get(staging.put_hold("cp1-00000a", hold)), "where it says nothing"
    more = hold.with_versions({"file:///a": (HeldVersion("0123", 7, "ab"), HeldVersion("4567"))})
    assert staging.put_hold("cp1-00000a", more) == staging.put_hold("cp1-00000a", hold), "in format 1"
    more = replace(more, format=2)
    assert staging.hold(staging.put_hold("cp1-00000a", more)) == more
    failures = (Failure("file:///ä", 3, 1, "UNREADABLE", "line 7: “x”"),)
    assert staging.failures(staging.put_failures("cp1-00000a", 1, failures)) == failures
    file = PublishedFile("file:///a", VERSION, "sha", 1, 0, "cp1-00000a", (output,), VERSION.token, 1.5)
    snapshot = Snapshot(4, "t", "cp4-00000a", "SYNC", "e", SnapshotRef("k", "s"), "d", "f", 9, (file,))
    assert staging.snapshot(staging.put_snapshot(snapshot)) == snapshot


PACK = PublishedPack("cp4-00000a", 3, "c" * 64, 1, 1, (Output("p", 1, 1, "u", 3, "", ""),), 0.5)


def with_a_pack() -> Snapshot:
    """A snapshot with one file in a pack, and one with a segment of its own."""
    own = Output("s", 1, 2, "u", 3, "", "")
    files = (
        PublishedFile("file:///a", VERSION, "sha", 1, 0, "cp4-00000a", (), VERSION.token, packs=(PACK.name,)),
        PublishedFile("file:///b", VERSION, "sha", 2, 0, "cp3-00000a", (own,), VERSION.token),
    )
    return Snapshot(
        4, "t", "cp4-00000a", "SYNC", "e", None, "d", "f", 9, files, packs=(PACK,), format=WITH_PACKS
    )


def test_packs_are_part_of_a_snapshot(staging: Staging) -> None:
    snapshot = with_a_pack()
    ref = staging.put_snapshot(snapshot)
    back = staging.snapshot(ref)
    assert back == snapshot
    assert (set(back.segments), back.rows, back.tar_bytes) == ({"p", "s"}, 3, 6)
    reach = staging.reach(ref)
    assert (reach.segments, reach.sessions) == ({"p", "s"}, {"cp3-00000a", "cp4-00000a"})
    there = {info.key for info in staging.store.list("snapshots")}
    assert reach.objects == there | {f"packs/{PACK.members}.parquet"}
    assert len(there) == 3
    assert staging.outline(ref).packs == ()


def test_a_snapshot_of_an_older_format_has_none(staging: Staging) -> None:
    header = staging.header(staging.put_snapshot(replace(with_a_pack(), packs=(), files=())))
    assert "packs" not in header


def test_a_file_in_a_pack_that_the_snapshot_does_not_name_is_an_error(staging: Staging) -> None:
    ref = staging.put_snapshot(replace(with_a_pack(), packs=(replace(PACK, ordinal=9),)))
    with pytest.raises(SnapshotCorrupt, match=r"has files in packs that it does not name.*cp4-00000a_3"):
        staging.snapshot(ref)
    staging.store.delete(staging.header(ref)["packs"]["key"])
    with pytest.raises(SnapshotCorrupt, match="cannot be read"):
        staging.snapshot(ref)


def test_a_member_list_is_found_by_its_hash(staging: Staging) -> None:
    member = Member("file:///a", VERSION, "sha", 1, 0, "cp4-00000a", "d" * 64, 0)
    members = MemberList((member,), "read", format=WITH_PACKS)
    key = staging.put_members(members)
    assert (staging.put_members(members), staging.members(key)) == (key, members)
    other = f"packs/{'0' * 64}.parquet"
    staging.store.put_if_absent(other, staging.store.read(key))
    for name, why in ((other, "hash"), ("packs/x.parquet", "cannot be read")):
        with pytest.raises(SnapshotCorrupt, match=why):
            staging.members(name)


def test_a_plan_has_packs_from_format_3_on(staging: Staging) -> None:
    rows = (
        Row("file:///a", 0, VERSION, RowStatus.DONE, "files/a", is_small=True),
        Row("file:///b", 2, VERSION, RowStatus.BUILD),
    )
    packs = (Row(f"packs/{'c' * 64}.parquet", 1, Fingerprint(9, 0), RowStatus.BUILD),)
    plan = replace(a_plan(), rows=rows, packs=packs, format=WITH_PACKS)
    assert staging.plan(staging.put_plan(plan)) == plan
    before = staging.store.read(staging.put_plan(replace(plan, rows=rows[1:], packs=(), format=2)).key)
    assert not {"kind", "small"} & set(parquet_table(before).column_names), "older releases read that one"


def test_an_older_format_refuses_packs(staging: Staging) -> None:
    row = Row("file:///a", 0, VERSION, RowStatus.BUILD, is_small=True)
    for put in (
        lambda: staging.put_snapshot(replace(with_a_pack(), format=2)),
        lambda: staging.put_plan(replace(a_plan(), rows=(row,), format=2)),
        lambda: staging.put_members(MemberList((), "read", format=2)),
    ):
        with pytest.raises(ValueError, match="format 2"):
            put()


def test_an_object_that_is_put_twice_is_the_same(staging: Staging) -> None:
    assert staging.put_plan(a_plan()) == staging.put_plan(a_plan())
    assert staging.put_plan(a_plan()) != staging.put_plan(a_plan(1))


def test_r13_r18_a_lost_or_changed_object_is_corrupt(staging: Staging) -> None:
    """R13, R18: only the reference counts."""
    ref = staging.put_plan(a_plan())
    with pytest.raises(SnapshotCorrupt, match="hash"):
        staging.plan(ObjectRef(ref.key, "0" * 64))
    staging.store.delete(ref.key)
    with pytest.raises(SnapshotCorrupt, match="cannot be read"):
        staging.plan(ref)


def test_a_store_that_is_away_makes_nothing_corrupt(
    staging: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever leaves out what is corrupt must not leave out what can be read a minute later."""
    ref = staging.put_plan(a_plan())
    away = SourceError("Cannot read it", why="503 SlowDown", hint="try again")

    def refuse(*_: object) -> None:
        raise away

    with monkeypatch.context() as first:
        first.setattr(type(staging.store), "read", refuse)
        with pytest.raises(SourceError) as caught:
            staging.plan(ref)
        assert caught.value is away
        first.setattr(type(staging.store), "stat", refuse)
        with pytest.raises(SourceError) as caught:
            staging.plan(ref)
        assert caught.value is away
    assert staging.plan(ref) == a_plan()


@pytest.mark.parametrize("key", ["../elsewhere", ""])
def test_a_reference_that_is_none_is_corrupt(staging: Staging, key: str) -> None:
    with pytest.raises(SnapshotCorrupt, match="cannot be read"):
        staging.plan(ObjectRef(key, "0" * 64))
