"""Avro with SQL: Spark has no reader of it, so ours reads the files and Spark SQL gets their rows."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.builder import NAMES_SCHEMA, make_order, tasks_of, with_functions
from pyspark.sql import SparkSession

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.ingest.contract.build_spec import BuildSpec, Query
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.ingest.task import build_file
from pinot_assets.snapshot.receipt import Failure, FileResult, Receipt

pytestmark = pytest.mark.spark

NEW_YEAR = datetime(2020, 1, 1, tzinfo=UTC)
FIELDS: JsonObject = {"name": ["null", "string"], "count": ["int"], "at": {"type": "long"}}
Rows = Sequence[Mapping[str, object]]
ROWS: Rows = [
    {"name": "a", "count": 1, "at": 1_577_836_800_000},
    {"name": None, "count": 2, "at": 1_577_836_800_001},
    {"name": "c", "count": 4, "at": 1_577_836_800_002},
]
Build = Callable[[BuildSpec], dict[str, FileResult]]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    started = local_session("spark avro", 2)
    yield started
    started.stop()


@pytest.fixture
def build(session: SparkSession) -> Build:
    def run(build_spec: BuildSpec) -> dict[str, FileResult]:
        results: list[FileResult] = []
        SparkBuilder(lambda: session).build(build_spec, tasks_of(build_spec), results.append)
        return {result.uri.rpartition("/")[2]: result for result in results}

    return run


def avro(rows: Rows, fields: JsonObject = FIELDS, codec: str = "null", block: int = 16_000) -> bytes:
    members = [{"name": name, "type": kind} for name, kind in fields.items()]
    sink = io.BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "row", "fields": members}, rows, codec, block)
    return sink.getvalue()


def order(root: Path, query: Query, **changes: object) -> BuildSpec:
    root.mkdir(exist_ok=True)
    return make_order(root, query=query, **{"input_format": "avro", **changes})


def columns(root: Path, receipt: FileResult) -> bytes:
    """All values of the only segment of a file."""
    assert isinstance(receipt, Receipt), receipt
    [output] = receipt.outputs
    with tarfile.open(root / "staging" / "segments" / f"{output.segment}.tar.gz") as archive:
        member = archive.extractfile(f"{output.segment}/v3/columns.psf")
        assert member is not None
        return member.read()


def failure(result: FileResult) -> tuple[str, str]:
    assert isinstance(result, Failure), result
    return result.code, result.reason


def test_without_expressions_the_segment_is_the_direct_readers(build: Build, tmp_path: Path) -> None:
    build_spec = order(tmp_path / "spark", Query())
    (tmp_path / "spark" / "in" / "a.avro").write_bytes(avro(ROWS, codec="deflate"))
    [receipt] = build(build_spec).values()
    assert isinstance(receipt, Receipt), receipt
    direct = replace(build_spec, query=None, staging_uri=(tmp_path / "direct" / "s").as_uri())
    direct = replace(direct, segments_uri=(tmp_path / "direct" / "t").as_uri())
    (tmp_path / "direct").mkdir()
    [task] = tasks_of(direct)
    expected = build_file(direct, task)
    assert isinstance(expected, Receipt), expected
    assert [output.crc for output in receipt.outputs] == [output.crc for output in expected.outputs]
    assert (receipt.rows_read, receipt.facts) == (3, expected.facts)


WIDE_SCHEMA: JsonObject = {
    **NAMES_SCHEMA,
    "dimensionFieldSpecs": [
        {"name": "name", "dataType": "STRING"},
        {"name": "tags", "dataType": "STRING", "singleValueField": False},
        {"name": "kind", "dataType": "STRING"},
        {"name": "address", "dataType": "JSON"},
        {"name": "raw", "dataType": "BYTES"},
        {"name": "day", "dataType": "STRING"},
        {"name": "price", "dataType": "DOUBLE"},
    ],
}
WIDE_FIELDS: JsonObject = {
    "label": ["null", "string"],
    "count": ["null", "long"],
    "moment": {"type": "long", "logicalType": "timestamp-micros"},
    "tags": {"type": "array", "items": ["null", "string"]},
    "kind": {"type": "enum", "name": "kinds", "symbols": ["X", "Y"]},
    "address": {
        "type": "record",
        "name": "place",
        "fields": [{"name": "city", "type": ["string"]}, {"name": "no", "type": ["null", "int"]}],
    },
    "raw": {"type": "fixed", "name": "two", "size": 2},
    "born": {"type": "int", "logicalType": "date"},
    "amount": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2},
}
WIDE_QUERY = Query(
    where="count IS NULL OR count < 3",
    transforms={
        "name": "concat(label, '/', address.city)",
        "at": "moment",
        "day": "date_format(born, 'yyyy-MM-dd')",
        "price": "amount * 2",
    },
)


def wide_rows() -> Rows:
    return [
        {
            "label": None if n == 1 else f"n{n}",
            "count": None if n == 2 else n,
            "moment": NEW_YEAR.replace(microsecond=n * 1000),
            "tags": ["t", None, f"t{n}"],
            "kind": "XY"[n % 2],
            "address": {"city": f"c{n}", "no": None if n % 2 else n},
            "raw": bytes([n, 255]),
            "born": NEW_YEAR.date(),
            "amount": Decimal(n) + Decimal("0.25"),
        }
        for n in range(6)
    ]


def test_sql_gets_the_same_rows_of_avro_as_of_parquet(build: Build, tmp_path: Path) -> None:
    """Ours reads the one, Spark the other; all types that both have."""
    read = order(tmp_path / "avro", WIDE_QUERY, schema=WIDE_SCHEMA)
    (tmp_path / "avro" / "in" / "a.avro").write_bytes(avro(wide_rows(), WIDE_FIELDS, "deflate"))
    spark = order(tmp_path / "parquet", WIDE_QUERY, schema=WIDE_SCHEMA, input_format="parquet")
    table = pa.Table.from_pylist([*wide_rows()])
    pq.write_table(table, tmp_path / "parquet" / "in" / "a.parquet")
    [ours], [sparks] = build(read).values(), build(spark).values()
    assert isinstance(ours, Receipt), ours
    assert (ours.rows, ours.rows_read, ours.rows_filtered) == (3, 6, 3)
    assert columns(tmp_path / "avro", ours) == columns(tmp_path / "parquet", sparks)


def test_pinots_own_transforms_and_filter(build: Build, tmp_path: Path) -> None:
    made = ("name", "concat('day ', toEpochDays(at))")
    build_spec = with_functions(order(tmp_path, Query()), made, dropped="count = 4")
    (tmp_path / "in" / "a.avro").write_bytes(avro(ROWS))
    [receipt] = build(build_spec).values()
    assert isinstance(receipt, Receipt), receipt
    assert (receipt.rows, receipt.rows_read, receipt.rows_filtered) == (2, 3, 1)
    assert b"day 18262" in columns(tmp_path, receipt)
    [name] = [column for column in receipt.facts[0].columns if column.name == "name"]
    assert (name.low, name.high) == ("a", "day 18262")  # a value of the file stays


STEPS = (("at", "fromEpochDays(day)"), ("count", "toEpochHoursRounded(n, 5)"), ("price", "n"))
STEPS_SCHEMA: JsonObject = {
    **NAMES_SCHEMA,
    "dimensionFieldSpecs": [*NAMES_SCHEMA["dimensionFieldSpecs"], {"name": "price", "dataType": "DOUBLE"}],
}


def test_arrow_makes_of_whole_numbers_what_spark_sql_makes(
    build: Build, session: SparkSession, tmp_path: Path
) -> None:
    numbers = [None, 0, 1, -1, 20_000, -(2**31), 2**60, -(2**60)]
    files = {
        "all.avro": avro(
            [{"name": f"x{n}", "day": 18_000, "n": n} for n in numbers],
            {"name": "string", "day": "int", "n": ["null", "long"]},
        ),
        "some.avro": avro(
            [
                {"day": 18_000, "at": None if n is None else 1_577_836_800_000, "n": n, "count": n and n % 3}
                for n in numbers
            ],
            {"day": "long", "n": ["null", "long"], "at": ["null", "long"], "count": ["null", "int"]},
        ),
        "none.avro": avro([], {"name": "string", "day": "int", "n": "int"}),
    }
    others = {
        "text.avro": avro([{"day": 18_000, "n": "12"}], {"day": "int", "n": "string"}),
        "overflow.avro": avro([{"day": 2**62, "n": 1}], {"day": "long", "n": "int"}),
    }
    orders = {}
    for name, dropped in (("arrow", ""), ("sql", "day = 123456789")):
        orders[name] = with_functions(
            order(tmp_path / name, Query(), schema=STEPS_SCHEMA), *STEPS, dropped=dropped
        )
        for file, content in {**files, **(others if name == "sql" else {})}.items():
            (tmp_path / name / "in" / file).write_bytes(content)
    sql = build(orders["sql"])
    results: list[FileResult] = []

    def no_session() -> SparkSession:
        raise AssertionError("no SQL is needed")

    arrow = SparkBuilder(no_session, lambda: session.sparkContext)
    arrow.build(orders["arrow"], tasks_of(orders["arrow"]), results.append)
    assert {result.uri.rpartition("/")[2] for result in results} == {*files}
    for result in results:
        other = sql[result.uri.rpartition("/")[2]]
        assert isinstance(result, Receipt), result
        assert isinstance(other, Receipt), other
        assert (result.rows, result.rows_read, result.missing) == (other.rows, other.rows_read, other.missing)
        assert result.facts == other.facts
        if result.outputs:
            assert columns(tmp_path / "arrow", result) == columns(tmp_path / "sql", other)
    for file, content in others.items():
        (tmp_path / "arrow" / "in" / file).write_bytes(content)
    left = build(replace(orders["arrow"], session="cp8-abc"))
    assert isinstance(left["text.avro"], Receipt), left["text.avro"]  # SQL casts the text
    assert left["text.avro"].facts == getattr(sql["text.avro"], "facts", None)
    for built in (left, sql):
        code, why = failure(built["overflow.avro"])
        assert (code, "overflow" in why.lower()) == ("SPARK", True), why


def test_files_that_sparks_own_readers_would_leave_out_or_could_not_unpack(
    build: Build, tmp_path: Path
) -> None:
    query = Query(transforms={"name": "_metadata.file_name"})
    build_spec = order(tmp_path, query)
    for name in ("_part 1.avro", ".hidden.avro"):
        (tmp_path / "in" / name).write_bytes(avro(ROWS))
    (tmp_path / "in" / "b.avro.gz").write_bytes(gzip.compress(avro(ROWS)))
    built = build(build_spec)
    for name, result in built.items():
        assert isinstance(result, Receipt), result
        assert (result.rows, result.rows_read) == (3, 3), name
    assert b"_part 1.avro" in columns(tmp_path, built["_part%201.avro"])


def test_a_file_without_rows_and_one_without_the_columns(build: Build, tmp_path: Path) -> None:
    build_spec = order(tmp_path, Query(where="count > 1"))
    (tmp_path / "in" / "none.avro").write_bytes(avro([]))
    (tmp_path / "in" / "other.avro").write_bytes(avro([{"x": 1}], {"x": "int"}))
    (tmp_path / "in" / "part.avro").write_bytes(avro([{"count": 7}], {"count": "int"}))
    built = build(build_spec)
    assert isinstance(built["none.avro"], Receipt), built["none.avro"]
    assert built["none.avro"].rows == 0
    code, why = failure(built["other.avro"])
    assert (code, "none of the table's columns" in why, "are x" in why) == ("UNREADABLE", True, True)
    assert isinstance(built["part.avro"], Receipt), built["part.avro"]
    assert (built["part.avro"].rows, {*built["part.avro"].missing}) == (1, {"name", "at"})


def test_a_type_that_spark_lacks_matters_only_where_it_is_read(build: Build, tmp_path: Path) -> None:
    mixed: JsonValue = ["string", "long"]
    rows = [{**row, "extra": "x"} for row in ROWS]
    root = tmp_path / "unread"
    unread = order(root, Query(where="count > 1"))
    (root / "in" / "a.avro").write_bytes(avro(rows, {**FIELDS, "extra": mixed}))
    [receipt] = build(unread).values()
    assert isinstance(receipt, Receipt), receipt
    assert receipt.rows == 2
    root = tmp_path / "read"
    read = order(root, Query(transforms={"name": "cast(extra AS string)"}))
    (root / "in" / "a.avro").write_bytes(avro(rows, {**FIELDS, "extra": mixed}))
    [result] = build(read).values()
    code, why = failure(result)
    assert (code, "column extra:" in why, "no type in Spark SQL" in why) == ("UNREADABLE", True, True)


def test_a_damaged_file_fails_with_what_is_wrong_with_it(build: Build, tmp_path: Path) -> None:
    build_spec = order(tmp_path, Query(where="count > 0"))
    (tmp_path / "in" / "good.avro").write_bytes(avro(ROWS))
    whole = avro([{"name": "n" * 50, "count": n, "at": n} for n in range(2000)], codec="deflate", block=4000)
    torn = bytearray(whole)
    torn[len(whole) // 2 : len(whole) // 2 + 8] = b"\0" * 8  # within a block: its frame stays whole
    (tmp_path / "in" / "torn.avro").write_bytes(torn)
    (tmp_path / "in" / "cut.avro").write_bytes(whole[:-9])
    built = build(build_spec)
    assert isinstance(built["good.avro"], Receipt), built["good.avro"]
    for name in ("torn.avro", "cut.avro"):
        code, why = failure(built[name])
        assert (code, "damaged" in why) == ("UNREADABLE", True), built[name]
