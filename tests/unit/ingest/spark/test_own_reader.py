"""Types of files as Spark SQL takes them, and the rows that a task reads for it."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from fakes.builder import make_order, tasks_of

from pinot_assets.errors import SourceChanged
from pinot_assets.ingest.contract.build_spec import Query
from pinot_assets.ingest.spark import own_reader
from pinot_assets.ingest.spark.own_reader import look_at_columns, read_file, spark_type
from pinot_assets.ingest.spark.tasks import find_fault
from pinot_assets.snapshot.receipt import Failure

UTC_US, LOCAL_US = pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("stored", "taken"),
    [
        (pa.int32(), pa.int32()),
        (pa.null(), pa.string()),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.binary(2), pa.binary()),
        (pa.timestamp("ms", "+00:00"), UTC_US),
        (pa.timestamp("ns"), LOCAL_US),
        (pa.time32("ms"), pa.int32()),
        (pa.decimal128(38, 10), pa.decimal128(38, 10)),
        (pa.large_list(pa.field("x", pa.int8(), nullable=False)), pa.list_(pa.int8())),
        (pa.map_(pa.string(), pa.large_string()), pa.map_(pa.string(), pa.string())),
        (pa.struct([("a", pa.date32()), ("b", pa.large_binary())]),
         pa.struct([("a", pa.date32()), ("b", pa.binary())])),
        (pa.decimal256(60, 2), None),
        (pa.dense_union([pa.field("s", pa.string()), pa.field("n", pa.int64())]), None),
        (pa.list_(pa.uint64()), None),
        (pa.struct([("a", pa.uint64())]), None),
    ],
)  # fmt: skip
def test_types(stored: pa.DataType, taken: pa.DataType | None) -> None:
    assert spark_type(stored) == taken


def names(count: int) -> bytes:
    kinds = {"name": "string", "count": "long", "other": "long"}
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    sink = io.BytesIO()
    rows = [{"name": f"n{n}", "count": n, "other": n} for n in range(count)]
    fastavro.writer(sink, {"type": "record", "name": "row", "fields": fields}, rows)
    return sink.getvalue()


def test_only_what_is_used_is_read_in_batches_of_limited_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_reader, "limit_memory", lambda size: None)
    monkeypatch.setattr(own_reader, "_BATCH_BYTES", 1000)
    build_spec = make_order(tmp_path, query=Query(where="count > 1"), input_format="avro")
    (tmp_path / "in" / "a.avro").write_bytes(names(500))
    [task] = tasks_of(build_spec)
    found = look_at_columns(build_spec, frozenset(("name", "count", "at")), task)
    assert not isinstance(found, Failure), found
    version, schema = found
    assert schema.names == ["name", "count"]
    batches = [*read_file(build_spec, task, version, schema, iter(()))]
    assert pa.Table.from_batches(batches)["count"].to_pylist() == [*range(500)]
    assert len(batches) > 5


def test_a_file_that_changed_is_read_again_and_not_called_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_reader, "limit_memory", lambda size: None)
    monkeypatch.setattr("pinot_assets.ingest.spark.tasks.limit_memory", lambda size: None)
    build_spec = make_order(tmp_path, query=Query(where="count > 1"), input_format="avro")
    (tmp_path / "in" / "a.avro").write_bytes(names(5))
    [task] = tasks_of(build_spec)
    found = look_at_columns(build_spec, None, task)
    assert not isinstance(found, Failure), found
    version, schema = found
    assert schema.names == ["name", "count", "other"]
    older = replace(version, size=version.size + 1)
    with pytest.raises(SourceChanged):
        next(read_file(build_spec, task, older, schema, iter(())))
    assert find_fault(build_spec, older, lambda path: None, "why", task).code == "CHANGED_DURING_READ"
    assert find_fault(build_spec, version, lambda path: None, "why", task).code == "SPARK"
