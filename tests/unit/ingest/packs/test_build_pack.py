"""Small files become rows objects, and rows objects become the segments that the files would have given."""

from __future__ import annotations

import errno
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.builder import make_order, tasks_of, write_names

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.stored_format import WITH_PACKS
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, PackSettings, TaskKind
from pinot_assets.ingest.contract.task_outputs import Heartbeat
from pinot_assets.ingest.packs import small_files
from pinot_assets.ingest.task import build_file, read_small_files, rows_through_arrow
from pinot_assets.snapshot.batch_receipt import BatchReceipt
from pinot_assets.snapshot.manifest import sha256_hex
from pinot_assets.snapshot.packs import Member, MemberList, members_key, members_to_parquet
from pinot_assets.snapshot.receipt import Failure, FileResult, Fingerprint, Receipt
from pinot_assets.source import SourceFile, open_store
from pinot_assets.source.object_store import ObjectStore


@pytest.fixture
def order(tmp_path: Path) -> BuildSpec:
    area = (tmp_path / "staging").as_uri()
    return make_order(tmp_path, packs=PackSettings(area, 1 << 20), format=WITH_PACKS)


def area_of(order: BuildSpec) -> ObjectStore:
    assert order.packs is not None
    return open_store(order.packs.staging_uri, {}, UNLIMITED)


def read(order: BuildSpec, tasks: list[FileTask]) -> list[FileResult]:
    small = [replace(task, kind=TaskKind.SMALL_FILE) for task in tasks]
    return read_small_files(order, small, rows_through_arrow(order))


def receipts_of(results: list[FileResult]) -> list[Receipt]:
    return [result for result in results if isinstance(result, Receipt)]


def pack(order: BuildSpec, receipts: list[Receipt], ordinal: int = 9) -> FileResult:
    members = MemberList(
        tuple(
            Member(r.uri, r.read, r.sha256, r.rows, 0, order.session, r.rows_object, r.first)
            for r in receipts
            if r.rows
        ),
        "",
        format=WITH_PACKS,
    )
    data = members_to_parquet(members)
    key = members_key(sha256_hex(data))
    area_of(order).put_if_absent(key, data)
    return build_file(order, FileTask(SourceFile(key, Fingerprint(0, 0)), ordinal, TaskKind.PACK))


def test_a_pack_has_the_rows_of_its_files_in_their_order(order: BuildSpec, tmp_path: Path) -> None:
    for n, rows in enumerate((3, 0, 5)):
        write_names(tmp_path / "in" / f"{n}.csv", rows, first=10 * n)
    receipts = receipts_of(read(order, tasks_of(order)))
    assert [(r.rows, r.first, bool(r.rows_object), r.outputs) for r in receipts] == [
        (3, 0, True, ()),
        (0, 0, False, ()),
        (5, 3, True, ()),
    ]
    built = pack(order, receipts)
    assert isinstance(built, Receipt)
    assert (built.rows, built.rows_read, len(built.outputs)) == (8, 8, 1)
    assert built.outputs[0].segment == "names__cp7-abc_1_9_0"


def test_one_receipt_lists_all_files_of_a_batch(order: BuildSpec, tmp_path: Path) -> None:
    for n in range(4):
        write_names(tmp_path / "in" / f"{n}.csv", 2, first=10 * n)
    receipts = receipts_of(read(order, tasks_of(order)))
    folder = open_store(order.staging_uri, {}, UNLIMITED)
    [info] = folder.list("batches")
    batch = BatchReceipt.from_bytes(folder.read(info.key))
    assert [*batch.files] == receipts
    assert info.key.endswith(batch.stored()[0])
    assert not [*folder.list("files")]


def test_a_bad_file_leaves_the_others(order: BuildSpec, tmp_path: Path) -> None:
    write_names(tmp_path / "in" / "0.csv", 2)
    (tmp_path / "in" / "1.csv").write_text("name,count,at\nx,many,2020-01-01T00:00:00Z\n")
    write_names(tmp_path / "in" / "2.csv", 2)
    results = read(order, tasks_of(order))
    assert [result.code for result in results if isinstance(result, Failure)] == ["TYPE_MISMATCH"]
    assert [(r.ordinal, r.first) for r in receipts_of(results)] == [(0, 0), (2, 2)]


def test_a_value_that_no_segment_can_have_fails_its_file_at_reading(tmp_path: Path) -> None:
    schema = {
        "schemaName": "names",
        "dimensionFieldSpecs": [
            {"name": "name", "dataType": "STRING", "maxLength": 3, "maxLengthExceedStrategy": "ERROR"}
        ],
    }
    packs = PackSettings((tmp_path / "staging").as_uri(), 1 << 20)
    order = make_order(
        tmp_path,
        packs=packs,
        format=WITH_PACKS,
        schema=schema,
        table_config={"tableName": "names_OFFLINE", "tableType": "OFFLINE", "segmentsConfig": {}},
    )
    (tmp_path / "in" / "0.csv").write_text("name\nabc\n")
    (tmp_path / "in" / "1.csv").write_text("name\nabcd\n")
    (tmp_path / "in" / "2.csv").write_text("name\nxyz\n")
    results = read(order, tasks_of(order))
    [failure] = [result for result in results if isinstance(result, Failure)]
    assert failure.uri.endswith("1.csv")
    assert "longer than 3" in failure.reason
    assert [r.ordinal for r in receipts_of(results)] == [0, 2]


def test_a_batch_of_quick_files_leaves_signs_of_life(
    order: BuildSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is read in less time than lies between two signs; without any, the driver kills the job."""
    left: list[int] = []
    monkeypatch.setattr(Heartbeat, "worked", lambda self, rows=0: left.append(id(self)))
    for n in range(3):
        write_names(tmp_path / "in" / f"{n}.csv", 1)
    read(order, tasks_of(order))
    assert len(left) >= 3
    assert len({*left}) == 1


def test_a_full_disk_fails_the_files_and_not_the_job(
    order: BuildSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(2):
        write_names(tmp_path / "in" / f"{n}.csv", 1)

    def full(_purpose: str) -> AbstractContextManager[Path]:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(small_files, "temporary_folder", full)
    results = read(order, tasks_of(order))
    assert [result.ordinal for result in results if isinstance(result, Failure)] == [0, 1]


def test_two_builds_of_a_list_are_equal_and_a_null_time_stays_what_it_was(
    order: BuildSpec, tmp_path: Path
) -> None:
    """L5, and the scenario of a null time that is rebuilt a month later."""
    (tmp_path / "in" / "0.csv").write_text("name,count,at\na,1,\nb,2,2020-01-01T00:00:00Z\n")
    receipts = receipts_of(read(order, tasks_of(order)))
    later = replace(order, session="cp8-abd", creation_time_ms=order.creation_time_ms + 30 * 86_400_000)
    first, second = pack(order, receipts), pack(later, receipts)
    assert isinstance(first, Receipt)
    assert isinstance(second, Receipt)
    assert first.facts == second.facts
    assert (first.outputs[0].start_ms, first.outputs[0].end_ms) == (
        second.outputs[0].start_ms,
        second.outputs[0].end_ms,
    )
    assert first.outputs[0].end_ms == order.creation_time_ms


def test_a_pack_that_comes_out_too_large_gets_even_segments(order: BuildSpec, tmp_path: Path) -> None:
    for n in range(3):
        write_names(tmp_path / "in" / f"{n}.csv", 100, first=100 * n)
    receipts = receipts_of(read(order, tasks_of(order)))
    assert order.packs is not None
    tight = replace(order, packs=replace(order.packs, target_bytes=3000))
    built = pack(tight, receipts)
    assert isinstance(built, Receipt)
    assert built.rows == 300
    rows = [output.rows for output in built.outputs]
    assert len(rows) > 1
    assert max(rows) - min(rows) <= 1


def test_a_rows_object_that_was_changed_is_never_built_of(order: BuildSpec, tmp_path: Path) -> None:
    write_names(tmp_path / "in" / "0.csv", 3)
    receipts = receipts_of(read(order, tasks_of(order)))
    [path] = (tmp_path / "staging" / "rows").iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    result = pack(order, receipts)
    assert isinstance(result, Failure)
    assert "is not what was written there" in result.reason
