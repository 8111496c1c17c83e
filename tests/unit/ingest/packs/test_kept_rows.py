"""Files whose rows are kept cell by cell, and packs that read only the chunks of one cell."""

from __future__ import annotations

import json
import re
import tarfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.builder import make_order, tasks_of, write_names
from unit.ingest.packs.test_build_pack import area_of, read, receipts_of

from pinot_assets.core.stored_format import WITH_PACKS
from pinot_assets.errors import SnapshotCorrupt, SourceError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, PackSettings, TaskKind
from pinot_assets.ingest.packs import small_files
from pinot_assets.ingest.packs.rows_object import read_rows
from pinot_assets.ingest.task import build_file
from pinot_assets.segment.values.cells import CellSettings, TimeSlice
from pinot_assets.snapshot.batch_receipt import BatchReceipt
from pinot_assets.snapshot.manifest import sha256_hex
from pinot_assets.snapshot.packs import Member, MemberList, members_key, members_to_parquet
from pinot_assets.snapshot.receipt import Failure, FileResult, Fingerprint, Receipt
from pinot_assets.source import SourceFile, open_store

PARTITIONS = {"columnPartitionMap": {"count": {"functionName": "Modulo", "numPartitions": 3}}}


@pytest.fixture
def order(tmp_path: Path) -> BuildSpec:
    cells = CellSettings(partition=True, time_slice=TimeSlice.DAY)
    packs = PackSettings((tmp_path / "staging").as_uri(), 1 << 20, cells=cells)
    order = make_order(tmp_path, packs=packs, format=WITH_PACKS)
    indexing = {**order.table_config["tableIndexConfig"], "segmentPartitionConfig": PARTITIONS}
    return replace(order, table_config={**order.table_config, "tableIndexConfig": indexing})


def write(path: Path, *rows: tuple[int, str]) -> None:
    path.write_text("\n".join(["name,count,at", *(f"n{n},{n},{at}" for n, at in rows), ""]))


def lists_of(order: BuildSpec, receipts: list[Receipt]) -> dict[str, MemberList]:
    """As a session decides it, one pack a cell."""
    members: dict[str, list[Member]] = defaultdict(list)
    for r in receipts:
        for piece in r.places:
            at = piece.chunk
            members[at.cell].append(
                Member(
                    *(r.uri, r.read, r.sha256, piece.rows, 0, order.session, at.rows_object),
                    *(piece.first, at.offset, at.length, at.crc),
                )
            )
    return {cell: MemberList(tuple(some), "", cell, format=WITH_PACKS) for cell, some in members.items()}


def pack(order: BuildSpec, members: MemberList, ordinal: int) -> FileResult:
    data = members_to_parquet(members)
    key = members_key(sha256_hex(data))
    area_of(order).put_if_absent(key, data)
    return build_file(order, FileTask(SourceFile(key, Fingerprint(0, 0)), ordinal, TaskKind.PACK))


def properties(order: BuildSpec, receipt: Receipt) -> dict[str, str]:
    [output] = receipt.outputs
    with tarfile.open(output.tar_uri.removeprefix("file://"), mode="r:gz") as archive:
        file = archive.extractfile(f"{output.segment}/v3/metadata.properties")
        assert file is not None
        return dict(re.findall(r"^(\S+) = (.*)$", file.read().decode(), re.MULTILINE))


def test_each_pack_has_one_partition_and_one_day(order: BuildSpec, tmp_path: Path) -> None:
    """L6."""
    write(tmp_path / "in" / "0.csv", (1, "2020-01-01T00:00:00Z"), (2, "2020-01-02T23:59:59Z"), (4, ""))
    write(tmp_path / "in" / "1.csv")
    write(tmp_path / "in" / "2.csv", (7, "2020-01-01T12:00:00Z"), (-1, "2020-01-01T00:00:00Z"))
    receipts = receipts_of(read(order, tasks_of(order)))
    assert [(r.rows, sum(piece.rows for piece in r.places)) for r in receipts] == [(3, 3), (0, 0), (2, 2)]
    lists = lists_of(order, receipts)
    assert {cell: (one.files, one.rows) for cell, one in lists.items()} == {
        "DAY 2020-01-01 Modulo(count)=1/3": (2, 2),
        "DAY 2020-01-01 Modulo(count)=2/3": (1, 1),
        "DAY 2020-01-02 Modulo(count)=2/3": (1, 1),
        "DAY 2023-11-14 Modulo(count)=1/3": (1, 1),  # a null time is the time of the build
    }
    for ordinal, (cell, members) in enumerate(lists.items(), start=9):
        built = pack(order, members, ordinal)
        assert isinstance(built, Receipt), built
        said = properties(order, built)
        assert cell.endswith(f"={said['column.count.partitionValues']}/3")
        assert said["segment.start.time"][:5] == said["segment.end.time"][:5]
        assert built.rows == members.rows


def test_the_receipt_of_a_batch_says_where_the_rows_are(order: BuildSpec, tmp_path: Path) -> None:
    for n in range(4):
        write_names(tmp_path / "in" / f"{n}.csv", 5, first=10 * n)
    write(tmp_path / "in" / "4.csv")  # has no row, and so no piece
    receipts = receipts_of(read(order, tasks_of(order)))
    assert [len(one.pieces) > 0 for one in receipts] == [True] * 4 + [False]
    folder = open_store(order.staging_uri, {}, order.policy)
    [info] = folder.list("batches")
    data = folder.read(info.key)
    assert [*BatchReceipt.from_bytes(data).files] == receipts
    assert BatchReceipt.from_bytes(data).to_bytes() == data
    assert data.count(receipts[0].pieces[0].chunk.rows_object.encode()) == 4, "once, and in each chunk"


@pytest.mark.parametrize("number", [-1, 99, "0", None, [0]])
def test_a_piece_of_a_chunk_that_is_not_listed_is_none(
    order: BuildSpec, tmp_path: Path, number: object
) -> None:
    write_names(tmp_path / "in" / "0.csv", 5)
    read(order, tasks_of(order))
    folder = open_store(order.staging_uri, {}, order.policy)
    [info] = folder.list("batches")
    said = json.loads(folder.read(info.key))
    said["files"][0]["pieces"][0][0] = number
    with pytest.raises(ValueError, match="name chunks that it does not list"):
        BatchReceipt.from_bytes(json.dumps(said).encode())


def test_a_large_file_is_kept_in_several_objects_that_differ(
    order: BuildSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if it has the same rows again and again."""
    monkeypatch.setattr(small_files, "CELL_FLUSH_BYTES", 4000)
    monkeypatch.setattr("pinot_assets.ingest.formats.csv_file.BLOCK_BYTES", 4000, raising=False)
    write(tmp_path / "in" / "0.csv", *[(n % 3, "2020-01-01T00:00:00Z") for n in range(60_000)])
    write_names(tmp_path / "in" / "1.csv", 7)
    receipts = receipts_of(read(order, tasks_of(order)))
    assert [r.rows for r in receipts] == [60_000, 7]
    large = receipts[0]
    assert len(large.rows_objects) > 1
    for cell, members in lists_of(order, receipts).items():
        built = pack(order, members, 9 + int(cell[-3]))
        assert isinstance(built, Receipt), built
        assert built.rows == members.rows
    folder = open_store(order.staging_uri, {}, order.policy)
    batches = [BatchReceipt.from_bytes(folder.read(info.key)) for info in folder.list("batches")]
    assert sorted(len(batch.objects) for batch in batches) == [1, len(large.rows_objects)]


def test_a_large_file_that_is_bad_fails_alone(
    order: BuildSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_files, "CELL_FLUSH_BYTES", 4000)
    (tmp_path / "in" / "0.csv").write_text("name,count,at\n" + "x,many,2020-01-01T00:00:00Z\n" * 900)
    write_names(tmp_path / "in" / "1.csv", 2)
    results = read(order, tasks_of(order))
    assert [result.ordinal for result in results if isinstance(result, Failure)] == [0]
    assert [r.ordinal for r in receipts_of(results)] == [1]


def test_a_chunk_that_was_changed_is_never_built_of(order: BuildSpec, tmp_path: Path) -> None:
    """A pack reads a few bytes of an object, whose hash is of all of them."""
    write_names(tmp_path / "in" / "0.csv", 600)
    [receipt] = receipts_of(read(order, tasks_of(order)))
    [path] = (tmp_path / "staging" / "rows").iterdir()
    whole = path.read_bytes()
    chunk = receipt.pieces[1].chunk
    for at in range(chunk.offset, chunk.offset + chunk.length, 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(SnapshotCorrupt, match="is not what was written there"):
            read_rows(area_of(order), chunk)
    for lost in (whole[: chunk.offset], whole[: chunk.offset + 9], b""):
        path.write_bytes(lost)
        with pytest.raises((SnapshotCorrupt, SourceError)):
            read_rows(area_of(order), chunk)


def test_a_receipt_never_lists_more_pieces_than_can_be_read(
    order: BuildSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_files, "MOST_PIECES", 6)
    for n in range(5):
        write_names(tmp_path / "in" / f"{n}.csv", 3, first=10 * n)
    write(tmp_path / "in" / "5.csv", *[(n % 3, f"2020-01-0{1 + n % 4}T00:00:00Z") for n in range(20)])
    results = read(order, tasks_of(order))
    [failure] = [result for result in results if isinstance(result, Failure)]
    assert failure.ordinal == 5
    assert "rows of too many partitions and time slices" in failure.reason
    folder = open_store(order.staging_uri, {}, order.policy)
    batches = [BatchReceipt.from_bytes(folder.read(info.key)) for info in folder.list("batches")]
    assert sorted(one.ordinal for batch in batches for one in batch.files) == [0, 1, 2, 3, 4]
    assert all(sum(len(one.pieces) for one in batch.files) <= 6 for batch in batches)


def test_cells_that_the_columns_do_not_give_fail_the_file(order: BuildSpec, tmp_path: Path) -> None:
    write_names(tmp_path / "in" / "0.csv", 3)
    indexing = {**order.table_config["tableIndexConfig"], "segmentPartitionConfig": None}
    [result] = read(
        replace(order, table_config={**order.table_config, "tableIndexConfig": indexing}), tasks_of(order)
    )
    assert isinstance(result, Failure)
    assert "0 partitioned columns and 1 time columns decide about them" in result.reason
