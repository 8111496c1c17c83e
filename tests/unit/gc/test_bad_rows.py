"""How long rows that were put aside are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fakes.stores.memory import new_memory
from fakes.tables import write_table

from pinot_assets.gc.bad_rows import (
    BadRowRetention,
    KeptBadRows,
    is_bad_rows,
    keeping_bad_rows,
    versions_in_use,
)
from pinot_assets.ingest.contract.task_outputs import bad_rows_key, file_id
from pinot_assets.pinot.versions import DAY_MS
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.hold import HeldVersion, Hold
from pinot_assets.session.values.state import ObjectRef, Pointer
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.source import Fingerprint
from pinot_assets.source.file_table import ObjectInfo

READ = Fingerprint(10, 20)
KEY = f"sessions/cp2-bbbbbb/{bad_rows_key('s3://b/F1', READ, 0)}"
VERSION = f"{file_id('s3://b/F1')}-{READ.token}"
RETENTION = BadRowRetention(days=30, open_session="", in_use=frozenset({VERSION}))


def test_the_key_that_a_task_writes_is_known_and_no_other() -> None:
    assert is_bad_rows(KEY)
    for other in ("sessions/cp2-bbbbbb/files/x.json", "sessions/mine/bad-rows/x.parquet", f"{KEY}.bak"):
        assert not is_bad_rows(other)


def test_they_are_over_when_the_days_have_passed() -> None:
    assert not RETENTION.is_over(KEY, 30 * DAY_MS - 1)
    assert RETENTION.is_over(KEY, 30 * DAY_MS)
    assert replace(RETENTION, days=0).is_over(KEY, 0)


def test_an_open_session_keeps_its_own() -> None:
    mine = replace(RETENTION, days=0, open_session="cp2-bbbbbb", in_use=frozenset())
    assert not mine.is_over(KEY, 99 * DAY_MS)
    assert not mine.is_of_no_file(KEY)
    other = replace(mine, open_session="cp3-cccccc")
    assert other.is_over(KEY, 99 * DAY_MS)
    assert other.is_of_no_file(KEY)


def test_rows_of_a_file_that_is_not_published_any_more() -> None:
    assert not RETENTION.is_of_no_file(KEY)
    assert replace(RETENTION, in_use=frozenset()).is_of_no_file(KEY)
    assert not replace(RETENTION, in_use=None).is_of_no_file(KEY)


def test_nothing_else_is_ever_judged() -> None:
    none = replace(RETENTION, days=0, in_use=frozenset())
    assert not none.is_over("sessions/cp2-bbbbbb/files/x.json", 99 * DAY_MS)
    assert not none.is_of_no_file("sessions/cp2-bbbbbb/files/x.json")


def snapshot() -> Snapshot:
    file = PublishedFile("s3://b/F1", READ, "", 1, 1, "cp2-bbbbbb", (), version=READ.token)
    return Snapshot(2, "t_OFFLINE", "cp2-bbbbbb", "SYNC", "", None, "", "", 0, (file,))


def test_versions_that_are_published_or_held_are_in_use() -> None:
    staging = Staging(new_memory())
    ref = staging.put_snapshot(snapshot())
    held = Hold(
        {"s3://b/F2": "a" * 12}, (), {"s3://b/F2": (HeldVersion("b" * 12, 1, "0" * 64).text,)}, format=2
    )
    hold = staging.put_hold("cp3-cccccc", held)
    two = file_id("s3://b/F2")
    assert versions_in_use(staging, Pointer()) == frozenset()
    assert versions_in_use(staging, Pointer(current_snapshot=ref)) == {VERSION}
    both = versions_in_use(staging, Pointer(current_snapshot=ref, hold=hold))
    assert both == {VERSION, f"{two}-{'a' * 12}", f"{two}-{'b' * 12}"}


def test_what_is_in_use_is_not_known_where_it_cannot_be_read() -> None:
    lost = Pointer(hold=ObjectRef("sessions/cp3-cccccc/hold-x.json", "0" * 64))
    assert versions_in_use(Staging(new_memory()), lost) is None


def test_what_stays_is_summed_up() -> None:
    listed = [
        ObjectInfo(key, f"mem://{key}", Fingerprint(size, mtime_ms * 1000))
        for key, size, mtime_ms in (
            (KEY, 7, 400),
            (KEY.replace("-0.p", "-1.p"), 5, 100),
            ("segments/x", 99, 1),
        )
    ]
    assert KeptBadRows.of(30, listed, set(), 1000) == KeptBadRows(30, 2, 12, 900)
    assert KeptBadRows.of(30, listed, {listed[1].key}, 1000) == KeptBadRows(30, 1, 7, 600)
    assert KeptBadRows.of(30, listed[2:], set(), 1000) == KeptBadRows(30)


@pytest.mark.parametrize("days", [0, 7])
def test_a_command_may_name_other_days(tmp_path: Path, days: int) -> None:
    spec = write_table(tmp_path, "flights")
    other = keeping_bad_rows(spec, days)
    assert (spec.ingestion.bad_row_days_to_keep, other.ingestion.bad_row_days_to_keep) == (30, days)
    assert other.config_fingerprint("1") == spec.config_fingerprint("1")
