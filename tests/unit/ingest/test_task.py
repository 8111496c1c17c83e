from __future__ import annotations

import gzip
import hashlib
import json
import os
import pickle
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest
from fakes.segment_info import read_segment_info

from pinot_assets.core.installation_policy import Layer, Policy
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, Query
from pinot_assets.ingest.contract.task_outputs import (
    bad_rows_key,
    file_id,
    receipt_key,
    version_from_text,
    version_text,
)
from pinot_assets.ingest.stores import stores_of
from pinot_assets.ingest.task import build_file, build_or_keep, built_before, inspected
from pinot_assets.segment.values.normalize import Cut
from pinot_assets.session.stores.staging import Staging
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source import Fingerprint
from pinot_assets.source.local_store import LocalObjectStore
from pinot_assets.source.uris import parse_root


@pytest.fixture
def build_spec(fakes: ModuleType, tmp_path: Path) -> BuildSpec:
    made: BuildSpec = fakes.make_order(tmp_path)
    return made


@pytest.fixture
def one_task(fakes: ModuleType, tmp_path: Path, build_spec: BuildSpec) -> FileTask:
    fakes.write_names(tmp_path / "in" / "a.csv", 5)
    [found] = fakes.tasks_of(build_spec)
    assert isinstance(found, FileTask)
    return found


def done(build_spec: BuildSpec, wanted: FileTask) -> Receipt:
    result = build_file(build_spec, wanted)
    assert isinstance(result, Receipt), result
    return result


def failed(build_spec: BuildSpec, wanted: FileTask) -> Failure:
    result = build_file(build_spec, wanted)
    assert isinstance(result, Failure), result
    return result


def files_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_worker_builds_files_of_several_tables_one_after_the_other(
    build_spec: BuildSpec, one_task: FileTask
) -> None:
    schema: JsonObject = json.loads(json.dumps(build_spec.schema))
    schema["dimensionFieldSpecs"].append({"name": "more", "dataType": "LONG"})
    more = replace(build_spec, schema=schema, attempt=2)
    first, other, again = (
        {column.name for column in done(spec, one_task).facts[0].columns}
        for spec in (build_spec, more, replace(build_spec, attempt=3))
    )
    assert other - first == {"more"}
    assert again == first


def test_a_worker_opens_no_file_that_the_policy_says_is_no_data(
    tmp_path: Path, build_spec: BuildSpec, one_task: FileTask
) -> None:
    (tmp_path / "in" / ".env").write_text("KEY=s3cret\n")
    file = replace(one_task.file, uri=(tmp_path / "in" / ".env").as_uri())
    policy = Policy((Layer().with_defaults(()),), (str(tmp_path),))
    build_spec, hidden = replace(build_spec, policy=policy), replace(one_task, file=file)
    looked: list[Path] = []  # as what reads with SQL does beforehand
    for refused in (failed(build_spec, hidden), inspected(build_spec, hidden, looked.append)):
        assert isinstance(refused, Failure)
        assert refused.code == "SETTINGS"
        assert "belongs to the project and is not data" in refused.reason
    assert looked == []
    assert done(build_spec, one_task).rows == 5


def test_a_file_becomes_a_segment_and_a_receipt(
    tmp_path: Path, build_spec: BuildSpec, one_task: FileTask
) -> None:
    receipt = done(build_spec, one_task)
    source = tmp_path / "in" / "a.csv"
    assert receipt.uri == source.as_uri()
    assert receipt.sha256 == hashlib.sha256(source.read_bytes()).hexdigest()
    assert receipt.read == one_task.file.fingerprint
    assert (receipt.rows, receipt.bad_rows, receipt.ordinal, receipt.attempt) == (5, 0, 0, 1)
    [output] = receipt.outputs
    assert output.segment == "names__cp7-abc_1_0_0"
    assert (output.start_ms, output.end_ms) == (1577836800000, 1577836804000)
    tar = tmp_path / "staging" / "segments" / "names__cp7-abc_1_0_0.tar.gz"
    assert output.tar_uri == tar.as_uri()
    assert output.tar_bytes == tar.stat().st_size
    with tarfile.open(tar) as packed:
        assert output.unpacked_bytes == sum(entry.size for entry in packed)
    assert output.tar_sha256 == hashlib.sha256(tar.read_bytes()).hexdigest()
    info = read_segment_info(tar)
    assert (info.name, info.crc, info.rows) == (output.segment, output.crc, 5)
    with tarfile.open(tmp_path / "staging" / "segments" / "names__cp7-abc_1_0_0.metadata.tar.gz") as small:
        assert small.getnames()[0] == output.segment
    key = receipt_key(receipt.uri, receipt.read, 1)
    assert key == f"files/{file_id(receipt.uri)}-{receipt.read.token}-1.json"
    stored = tmp_path / "staging" / "sessions" / "cp7-abc" / key
    assert Receipt.from_bytes(stored.read_bytes()) == receipt


def test_the_segment_says_where_it_comes_from(
    tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec
) -> None:
    fakes.write_names(tmp_path / "in" / "a,b é.csv", 1)
    [wanted] = fakes.tasks_of(build_spec)
    receipt = done(build_spec, wanted)
    tar = tmp_path / "staging" / "segments" / f"{receipt.outputs[0].segment}.tar.gz"
    with tarfile.open(tar) as archive:
        member = archive.extractfile(f"{receipt.outputs[0].segment}/v3/metadata.properties")
        assert member is not None
        lines = member.read().decode().splitlines()
    custom = dict(
        line.removeprefix("custom.").split(" = ", 1) for line in lines if line.startswith("custom.")
    )
    assert custom == {
        "input.data.file.uri": receipt.uri,
        "pinotAssets.file": receipt.uri,
        "pinotAssets.session": "cp7-abc",
        "pinotAssets.version": version_text(receipt.read),
        "pinotAssets.writtenFor": "0.11",
    }
    assert stores_of(build_spec).source.key_of(receipt.uri) == "a,b é.csv"


@pytest.mark.parametrize(
    "version", [Fingerprint(0, -5), Fingerprint(7, 8, etag='a,b="&é', version_id=""), Fingerprint(1, 2, "e")]
)
def test_versions_go_through_the_custom_map(version: Fingerprint) -> None:
    text = version_text(version)
    assert "," not in text
    assert version_from_text(text) == version
    with pytest.raises(ValueError, match=r"."):
        version_from_text("size=1")


def test_a_long_file_becomes_several_segments(
    tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec, one_task: FileTask
) -> None:
    receipt = done(replace(build_spec, max_rows_per_segment=2), one_task)
    assert [o.segment[-2:] for o in receipt.outputs] == ["_0", "_1", "_2"]
    assert [o.rows for o in receipt.outputs] == [2, 2, 1]
    assert [o.start_ms for o in receipt.outputs] == [1577836800000, 1577836802000, 1577836804000]


@pytest.mark.parametrize("data", [b"", b"name,count,at\n", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_done_without_segments(
    tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec, data: bytes
) -> None:
    (tmp_path / "in" / "a.csv").write_bytes(data)
    receipt = done(build_spec, fakes.tasks_of(build_spec)[0])
    assert (receipt.rows, receipt.outputs) == (0, ())
    assert len(files_in(tmp_path / "staging")) == 1


@pytest.mark.parametrize(("name", "input_format"), [("a.csv.gz", "csv"), ("a.json.gz", "json"), ("a", "orc")])
def test_a_torn_upload_of_0_bytes_fails_and_takes_no_rows_away(
    tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec, name: str, input_format: str
) -> None:
    (tmp_path / "in" / name).write_bytes(b"")
    failure = build_file(replace(build_spec, input_format=input_format), fakes.tasks_of(build_spec)[-1])
    assert isinstance(failure, Failure)
    assert failure.code == "UNREADABLE"
    assert "the file has 0 bytes" in failure.reason
    assert files_in(tmp_path / "staging") == []


def test_values_that_are_cut_are_counted_beside_the_receipt(
    tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec
) -> None:
    rows = ["a\0b,1,", "whole,2,", f"{'x' * 600},3,", "c\0,4,"]
    (tmp_path / "in" / "a.csv").write_text("\n".join(["name,count,at", *rows, ""]))
    build_spec = replace(build_spec, max_rows_per_segment=2)
    task = fakes.tasks_of(build_spec)[0]
    receipt = done(build_spec, task)
    store = LocalObjectStore(parse_root((tmp_path / "staging").as_uri()))
    lost = Staging(store).cut_values(build_spec.session, [receipt])
    assert {uri: dict(one.columns) for uri, one in lost.items()} == {task.file.uri: {"name": Cut(2, 1)}}
    # Under the name of another attempt, as after a rename; and of a file that lost nothing.
    assert Staging(store).cut_values(build_spec.session, [replace(receipt, attempt=7)]) == lost
    assert Staging(store).cut_values(build_spec.session, [replace(receipt, uri="file:///other")]) == {}
    # A release before this one reads receipts with exactly these keys.
    assert json.loads(receipt.to_bytes()).keys() == {
        "uri", "ordinal", "attempt", "read", "sha256", "rows", "bad_rows", "outputs", "seconds", "worker",
        "tars", "bad_rows_uri", "missing", "rows_read", "rows_filtered", "facts",
    }  # fmt: skip


def test_a_task_run_twice_makes_the_same_bytes(
    tmp_path: Path, build_spec: BuildSpec, one_task: FileTask
) -> None:
    first = done(build_spec, one_task)
    tar = tmp_path / "staging" / "segments" / f"{first.outputs[0].segment}.tar.gz"
    other = replace(
        build_spec, segments_uri=(tmp_path / "other").as_uri(), staging_uri=(tmp_path / "o2").as_uri()
    )
    again = done(other, one_task)
    assert again.outputs[0].crc == first.outputs[0].crc
    assert (tmp_path / "other" / tar.name).read_bytes() == tar.read_bytes()


def test_the_second_run_obeys_the_first(tmp_path: Path, build_spec: BuildSpec, one_task: FileTask) -> None:
    first = done(build_spec, one_task)
    before = {
        name: (tmp_path / "staging" / name).stat().st_mtime_ns for name in files_in(tmp_path / "staging")
    }
    assert done(build_spec, one_task) == first  # its seconds too: it is the stored one
    after = {
        name: (tmp_path / "staging" / name).stat().st_mtime_ns for name in files_in(tmp_path / "staging")
    }
    assert before == after


def test_a_receipt_that_says_otherwise_is_not_obeyed(
    tmp_path: Path, build_spec: BuildSpec, one_task: FileTask
) -> None:
    first = done(build_spec, one_task)
    key = tmp_path / "staging" / "sessions" / "cp7-abc" / receipt_key(first.uri, first.read, 1)
    key.write_bytes(replace(first, outputs=()).to_bytes())
    assert failed(build_spec, one_task).code == "STAGING_CONFLICT"


def test_the_receipt_comes_last(
    tmp_path: Path, build_spec: BuildSpec, one_task: FileTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    real = LocalObjectStore._put

    def put(self: LocalObjectStore, key: str, write: Callable[[Any], object]) -> None:
        written.append(key)
        real(self, key, write)

    monkeypatch.setattr(LocalObjectStore, "_put", put)
    done(replace(build_spec, max_rows_per_segment=3), one_task)
    assert [key.split("_1_0_")[-1] for key in written[:4]] == [
        "0.tar.gz",
        "0.metadata.tar.gz",
        "1.tar.gz",
        "1.metadata.tar.gz",
    ]
    assert len(written) == 5
    assert written[4].startswith("files/")


def test_no_receipt_when_a_tar_cannot_be_written(
    tmp_path: Path, build_spec: BuildSpec, one_task: FileTask
) -> None:
    foreign = tmp_path / "staging" / "segments" / "names__cp7-abc_1_0_0.metadata.tar.gz"
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(b"foreign")
    failure = failed(build_spec, one_task)
    assert failure.code == "STAGING_CONFLICT"
    assert not (tmp_path / "staging" / "sessions").exists()


def change_while_read(path: Path, times: int) -> Callable[..., str]:
    real = LocalObjectStore.download
    left = [times]

    def download(self: LocalObjectStore, key: str, to: Path, size: int) -> str:
        if left[0]:
            left[0] -= 1
            with path.open("a") as file:
                file.write(f"late{left[0]},1,2020-01-01T00:00:00Z\n")
        return real(self, key, to, size)

    return download


def test_e01_a_file_that_changes_once_is_read_again(
    tmp_path: Path, build_spec: BuildSpec, one_task: FileTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "in" / "a.csv"
    monkeypatch.setattr(LocalObjectStore, "download", change_while_read(path, 1))
    receipt = done(build_spec, one_task)
    assert receipt.read != one_task.file.fingerprint
    assert receipt.read.size == path.stat().st_size
    assert receipt.rows == 6


def test_e01_a_file_that_is_rewritten_to_the_same_size_while_it_is_copied_is_read_again(
    tmp_path: Path, build_spec: BuildSpec, one_task: FileTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, copies = tmp_path / "in" / "a.csv", LocalObjectStore.download, []

    def download(self: LocalObjectStore, key: str, to: Path, size: int) -> str:
        copies.append(real(self, key, to, size))
        if len(copies) == 1:
            header, rows = path.read_bytes().split(b"\n", 1)
            path.write_bytes(header + b"\nx" + rows[1:])
        return copies[-1]

    monkeypatch.setattr(LocalObjectStore, "download", download)
    receipt = done(build_spec, one_task)
    assert receipt.sha256 == copies[1] != copies[0]
    assert receipt.read.token != one_task.file.fingerprint.token
    assert receipt.read.size == one_task.file.fingerprint.size


def test_e01_a_file_that_changes_twice_is_refused(
    tmp_path: Path, build_spec: BuildSpec, one_task: FileTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalObjectStore, "download", change_while_read(tmp_path / "in" / "a.csv", 2))
    failure = failed(build_spec, one_task)
    assert failure.code == "CHANGED_DURING_READ"
    assert files_in(tmp_path / "staging") == []


def test_r12_a_file_rewritten_after_the_plan_is_done_with_what_was_read(
    tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec, one_task: FileTask
) -> None:
    fakes.write_names(tmp_path / "in" / "a.csv", 9)
    receipt = done(build_spec, one_task)
    assert receipt.rows == 9
    assert receipt.read.token != one_task.file.fingerprint.token


def test_a_vanished_file(tmp_path: Path, build_spec: BuildSpec, one_task: FileTask) -> None:
    (tmp_path / "in" / "a.csv").unlink()
    failure = failed(build_spec, one_task)
    assert (failure.code, failure.uri, failure.ordinal, failure.attempt) == (
        "VANISHED",
        one_task.file.uri,
        0,
        1,
    )


def test_a_file_that_vanishes_while_it_is_read(
    tmp_path: Path, build_spec: BuildSpec, one_task: FileTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LocalObjectStore.download

    def download(self: LocalObjectStore, key: str, to: Path, size: int) -> str:
        (tmp_path / "in" / "a.csv").unlink(missing_ok=True)
        return real(self, key, to, size)

    monkeypatch.setattr(LocalObjectStore, "download", download)
    assert failed(build_spec, one_task).code == "VANISHED"


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (b"name,count,at\na,1.5,\n", "TYPE_MISMATCH", "column count, row 2: '1.5' cannot become LONG"),
        (b"name,at\na,2020-01-01 00:00:00\n", "TIMESTAMP_STRING_ZONE_DEPENDENT", "column at, row 2"),
        (b"foo\n1\n", "UNREADABLE", "none of the table's columns"),
        (gzip.compress(b"name\na\n", mtime=0)[:-4], "UNREADABLE", "gzip"),
        (b"name,at\na,0\n", "BUILD", "time"),
    ],
)
def test_what_is_wrong_with_a_file_is_a_failure(
    tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec, data: bytes, code: str, said: str
) -> None:
    (tmp_path / "in" / "a.csv").write_bytes(data)
    failure = failed(build_spec, fakes.tasks_of(build_spec)[0])
    assert failure.code == code
    assert said in failure.reason
    assert "\n" not in failure.reason
    assert files_in(tmp_path / "staging") == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"reader": {"recordSeparator": ";"}}, "READER_SETTINGS"),
        ({"schema": {"dimensionFieldSpecs": [{"name": "x", "dataType": "BYTES"}]}}, "UNSUPPORTED"),
        ({"source_uri": "ftp://host/dir"}, "SETTINGS"),
        ({"source_uri": "s3://lake/in", "source_props": {"regoin": "x"}}, "SETTINGS"),
        ({"source_uri": "s3://lake/in", "source_props": {"region": "${PA_NOT_HERE}"}}, "SETTINGS"),
        ({"schema": None}, "INTERNAL"),
    ],
)
def test_a_wrong_order_is_a_failure_too(
    build_spec: BuildSpec, one_task: FileTask, changes: JsonObject, code: str
) -> None:
    assert failed(replace(build_spec, **changes), one_task).code == code


def test_no_temporary_file_stays(
    tmp_path: Path, build_spec: BuildSpec, one_task: FileTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / "tmp" / "pinot-assets-build-left"
    left.mkdir(parents=True)
    (left / "lock").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    done(build_spec, one_task)
    os.truncate(tmp_path / "in" / "a.csv", 20)
    failed(replace(build_spec, attempt=2), one_task)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_orders_tasks_and_results_can_be_pickled(build_spec: BuildSpec, one_task: FileTask) -> None:
    again = pickle.loads(pickle.dumps((build_spec, one_task)))
    assert again == (build_spec, one_task)
    result = done(*again)
    assert pickle.loads(pickle.dumps(result)) == result


def test_json_columns_take_objects(tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec) -> None:
    schema = {"schemaName": "names", "dimensionFieldSpecs": [{"name": "doc", "dataType": "JSON"}]}
    config = dict(build_spec.table_config) | {"segmentsConfig": {"replication": "1"}}
    (tmp_path / "in" / "a.json").write_text(json.dumps({"doc": {"b": 1, "a": [None]}}))
    [wanted] = fakes.tasks_of(build_spec)
    receipt = done(replace(build_spec, schema=schema, table_config=config, input_format="json"), wanted)
    assert (receipt.rows, receipt.outputs[0].start_ms) == (1, None)


def test_bad_rows_are_put_aside_beside_the_session_and_counted(
    tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec
) -> None:
    text = "name,count,at\na,1,2020-01-01T00:00:00Z\nb,x,2020-01-01T00:00:00Z\nc,2\n"
    (tmp_path / "in" / "a.csv").write_text(text)
    [wanted] = fakes.tasks_of(build_spec)
    receipt = done(replace(build_spec, max_bad_rows="2"), wanted)
    assert (receipt.rows, receipt.bad_rows, receipt.missing) == (1, 2, ())
    key = bad_rows_key(receipt.uri, receipt.read, 1)
    stored = tmp_path / "staging" / "sessions" / "cp7-abc" / key
    assert receipt.bad_rows_uri == stored.as_uri()
    rows = pq.read_table(stored).to_pylist()
    assert [(row["file"], row["row"], row["column"]) for row in rows] == [
        (receipt.uri, 3, "count"),
        (receipt.uri, 4, ""),
    ]
    assert Receipt.from_bytes(receipt.to_bytes()) == receipt
    assert done(replace(build_spec, max_bad_rows="2"), wanted) == receipt  # a task run twice
    assert failed(replace(build_spec, max_bad_rows="1", attempt=2), wanted).code == "TOO_MANY_BAD_ROWS"
    assert failed(replace(build_spec, attempt=2), wanted).code == "UNREADABLE"


def test_a_file_of_bad_rows_alone_has_no_segment(
    tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec
) -> None:
    (tmp_path / "in" / "a.csv").write_text("name,count,at\nb,x,\n")
    receipt = done(replace(build_spec, max_bad_rows="100%"), fakes.tasks_of(build_spec)[0])
    assert (receipt.rows, receipt.bad_rows, receipt.outputs) == (0, 1, ())


def test_columns_that_a_file_lacks_are_in_its_receipt(
    tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec
) -> None:
    (tmp_path / "in" / "a.csv").write_text("name,at\na,2020-01-01T00:00:00Z\n")
    [wanted] = fakes.tasks_of(build_spec)
    assert done(build_spec, wanted).missing == ("count",)
    failure = failed(replace(build_spec, missing_column="fail"), wanted)
    assert (failure.code, failure.reason[:36]) == ("COLUMN_MISSING", "the file has no column count: onMiss")


def test_the_desired_size_cuts_a_file(tmp_path: Path, build_spec: BuildSpec, one_task: FileTask) -> None:
    receipt = done(replace(build_spec, desired_segment_bytes=1), one_task)
    assert [o.rows for o in receipt.outputs] == [1] * 5


def test_a_query_is_never_left_out(build_spec: BuildSpec, one_task: FileTask, tmp_path: Path) -> None:
    failure = failed(replace(build_spec, query=Query(where="false")), one_task)
    assert failure.code == "BUILD"
    assert "SQL" in failure.reason
    assert not list((tmp_path / "staging").rglob("*.tar.gz"))


def test_times_that_the_table_config_replaces_are_counted_beside_the_receipt(
    tmp_path: Path, fakes: ModuleType, build_spec: BuildSpec
) -> None:
    ingestion = {"rowTimeValueCheck": True, "continueOnError": True, "segmentTimeValueCheck": False}
    build_spec = replace(build_spec, table_config={**build_spec.table_config, "ingestionConfig": ingestion})
    (tmp_path / "in" / "a.csv").write_text("name,count,at\na,1,0\nb,2,1577836800000\nc,3,-1\nd,4,\n")
    task = fakes.tasks_of(build_spec)[0]
    receipt = done(build_spec, task)
    assert receipt.outputs[0].start_ms == 1_577_836_800_000
    store = LocalObjectStore(parse_root((tmp_path / "staging").as_uri()))
    lost = Staging(store).cut_values(build_spec.session, [receipt])
    assert {uri: dict(one.columns) for uri, one in lost.items()} == {task.file.uri: {"at": Cut(0, 0, 2)}}
    alone = {**build_spec.table_config, "ingestionConfig": {"rowTimeValueCheck": True}}
    failure = build_file(replace(build_spec, table_config=alone, attempt=2), task)
    assert isinstance(failure, Failure)
    assert "Time column at holds 0, which does not lie within 1971-01-01 and 2071-01-01" in failure.reason


def test_what_an_earlier_run_of_a_task_has_built_is_kept(build_spec: BuildSpec, one_task: FileTask) -> None:
    assert built_before(build_spec, one_task) is None
    built = done(build_spec, one_task)
    path = Path(build_spec.source_uri.removeprefix("file://")) / "a.csv"
    path.unlink()  # so that it cannot be built again
    assert build_or_keep(build_spec, one_task) == built
    assert built_before(replace(build_spec, attempt=2), one_task) is None
    rewritten = replace(one_task, file=replace(one_task.file, fingerprint=Fingerprint(1, 2)))
    assert isinstance(build_or_keep(build_spec, rewritten), Failure)


def test_a_staging_area_that_cannot_be_opened_fails_the_file_and_names_the_setting(
    build_spec: BuildSpec, one_task: FileTask
) -> None:
    lacking = replace(build_spec, staging_uri="s3://bucket/s", staging_props={"accessKey": "${NOT_HERE}"})
    failure = build_or_keep(lacking, one_task)
    assert isinstance(failure, Failure)
    assert "NOT_HERE" in failure.reason
