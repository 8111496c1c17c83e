"""Files that Spark's own readers and SQL turn into rows: what holds for every file holds for them too."""

from __future__ import annotations

import gzip
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pyspark
import pytest
from fakes.builder import with_functions
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import BuildError
from pinot_assets.ingest.contract import task_outputs
from pinot_assets.ingest.contract.build_spec import BuildSpec, Query
from pinot_assets.ingest.spark import expression, file_jobs, reader
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_session, silent_on_pandas
from pinot_assets.ingest.spark.reader import reading_session, size_for_spark
from pinot_assets.ingest.task import build_file
from pinot_assets.snapshot.receipt import Failure, Receipt

pytestmark = pytest.mark.spark

_2020 = 1_577_836_800_000
EVEN = Query(where="cast(count AS int) % 2 = 0", transforms={"name": "upper(name)"})
AS_IT_IS = Query()


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    started = local_session("spark sql", 2)
    yield started
    started.stop()


@pytest.fixture
def build_spec(fakes: ModuleType, tmp_path: Path) -> BuildSpec:
    made: BuildSpec = fakes.make_order(tmp_path, query=EVEN)
    return made


Build = Callable[[BuildSpec], JsonObject]


@pytest.fixture
def build(session: SparkSession, fakes: ModuleType) -> Build:
    def run(build_spec: BuildSpec) -> JsonObject:
        results: list[Receipt | Failure] = []
        SparkBuilder(lambda: session).build(build_spec, fakes.tasks_of(build_spec), results.append)
        return {result.uri.rpartition("/")[2]: result for result in results}

    return run


def crc(root: Path, receipt: Receipt) -> list[tuple[str, int, int]]:
    return [(output.segment, output.crc, output.rows) for output in receipt.outputs]


def test_without_expressions_both_engines_write_the_same_segment(
    build: Build, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    fakes.write_names(folder / "a.csv", 2500)
    (folder / "b [x]*, %20.csv").write_text('name,count,at\n"a ""q"", b",1,1577836800000\n"x\ny",,\n')
    (folder / "c.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    built = build(replace(build_spec, query=AS_IT_IS))
    direct = replace(build_spec, query=None, staging_uri=(tmp_path / "2" / "s").as_uri())
    direct = replace(direct, segments_uri=(tmp_path / "2" / "t").as_uri())
    (tmp_path / "2").mkdir()
    assert len(built) == 3
    for task in fakes.tasks_of(direct):
        expected = build_file(direct, task)
        assert isinstance(expected, Receipt)
        receipt = built[task.file.uri.rpartition("/")[2]]
        assert isinstance(receipt, Receipt), receipt
        assert crc(tmp_path, receipt) == crc(tmp_path, expected)
        assert (receipt.sha256, receipt.read, receipt.rows) == (expected.sha256, expected.read, expected.rows)
        assert (receipt.rows_read, receipt.facts) == (expected.rows_read, expected.facts)
        assert receipt.rows_read == receipt.rows
    assert [output.rows for output in built["a.csv"].outputs] == [1000, 1000, 500]


def test_each_row_has_the_path_of_its_file(
    build: Build, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    column = {"name": "source_file", "dataType": "STRING"}
    fields = [*build_spec.schema["dimensionFieldSpecs"], column]
    order = replace(
        build_spec,
        schema={**build_spec.schema, "dimensionFieldSpecs": fields},
        provenance_column="source_file",
        missing_column="fail",
        query=Query(where="count > 1"),
    )
    for name in ("a.csv", "b c.csv"):
        fakes.write_names(tmp_path / "in" / name, 5)
    built = build(order)
    assert {name: receipt.rows for name, receipt in built.items()} == {"a.csv": 3, "b%20c.csv": 3}
    for receipt in built.values():
        (found,) = [fact for fact in receipt.facts[0].columns if fact.name == "source_file"]
        assert found.low == found.high == receipt.uri.rpartition("/")[2].replace("%20", " ")


def test_columns_with_blanks_in_their_names_become_those_that_pinot_takes(
    build: Build, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    """As `pinot-assets init` writes it, whatever the columns hold."""
    kinds = {
        "tags": ("STRING", False),
        "address": ("JSON", True),
        "raw": ("BYTES", True),
        "sum": ("DOUBLE", True),
    }
    more = [{"name": n, "dataType": k, "singleValueField": single} for n, (k, single) in kinds.items()]
    schema = {**build_spec.schema, "dimensionFieldSpecs": [*build_spec.schema["dimensionFieldSpecs"], *more]}
    columns = {
        "name": ["a", None],
        "count": [1, 2],
        "at": pa.array([_2020, _2020 + 1], pa.timestamp("ms", "UTC")),
        "tags": [["x", "y"], ["z"]],
        "address": [{"city": "Bonn", "no": 1}, {"city": "Mainz", "no": 2}],
        "raw": [b"\x00\xff", b"z"],
        "sum": [1.5, -2.25],
    }
    build_spec = replace(build_spec, schema=schema, input_format="parquet", query=None)
    pq.write_table(pa.table(columns), tmp_path / "in" / "a.parquet")
    [task] = fakes.tasks_of(build_spec)
    expected = build_file(build_spec, task)
    assert isinstance(expected, Receipt), expected
    renamed = pa.table({f"the {name}": column for name, column in columns.items()})
    pq.write_table(renamed, tmp_path / "in" / "a.parquet")
    names = Query(transforms={name: f"`the {name}`" for name in columns})
    staging = (tmp_path / "2").as_uri()
    (tmp_path / "2").mkdir()
    elsewhere = replace(build_spec, staging_uri=f"{staging}/s", segments_uri=f"{staging}/t", query=names)
    [receipt] = build(elsewhere).values()
    assert isinstance(receipt, Receipt), receipt
    made, direct = receipt.outputs[0].segment, expected.outputs[0].segment
    assert _columns(tmp_path / "2" / "t", made) == _columns(tmp_path / "staging" / "segments", direct)


def _columns(folder: Path, segment: str) -> bytes:
    """All values of a segment; what else it has names its file's version."""
    with tarfile.open(folder / f"{segment}.tar.gz") as archive:
        member = archive.extractfile(f"{segment}/v3/columns.psf")
        assert member is not None
        return member.read()


def test_filter_and_transforms(
    build: Build, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    fakes.write_names(tmp_path / "in" / "a.csv", 2500)
    [receipt] = build(build_spec).values()
    assert isinstance(receipt, Receipt), receipt
    assert [output.rows for output in receipt.outputs] == [1000, 250]
    assert (receipt.rows_read, receipt.rows_filtered) == (None, 0)  # text does not say how many rows it has
    again = build(
        replace(build_spec, session="cp8-abc", staging_uri=build_spec.staging_uri.replace("cp7", "cp8"))
    )
    # A build of the same version elsewhere: the same rows, hence the same columns.
    assert [output.rows for output in again["a.csv"].outputs] == [1000, 250]
    properties = _properties(tmp_path, receipt.outputs[0].segment)
    assert properties["column.name.minValue"] == "N0"
    assert properties["column.count.maxValue"] == "1998"


def _properties(root: Path, segment: str) -> dict[str, str]:
    with tarfile.open(root / "staging" / "segments" / f"{segment}.tar.gz") as archive:
        member = archive.extractfile(f"{segment}/v3/metadata.properties")
        assert member is not None
        lines = member.read().decode().splitlines()
    return dict(line.split(" = ", 1) for line in lines if " = " in line)


def test_a_second_run_of_a_build_finds_its_own_receipts(
    build: Build, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    fakes.write_names(tmp_path / "in" / "a.csv", 50)
    assert build(build_spec) == build(build_spec)


BAD = {
    "cells.csv": (
        b"name,count,at\na,2,\nb\nc,4,\n",
        "UNREADABLE",
        "row 2: cannot be split into columns: 'b'",
    ),
    "quote.csv": (b'name,count,at\na,2,"\nb,2,x\n', "UNREADABLE", "number of quotes is odd"),
    "utf8.csv": (b"name,count,at\n\xff,2,\n", "UNREADABLE", "line 2: is not UTF-8"),
    "cut.csv.gz": (
        gzip.compress(b"name,count,at\n" + b"a,2,\n" * 9999)[:-20],
        "UNREADABLE",
        "damaged or incomplete",
    ),
    "name.csv": (gzip.compress(b"name,count,at\n"), "", ""),
    "other.csv": (b"x,y\n1,2\n", "UNREADABLE", "none of the table's columns"),
    "twice.csv": (b"name,name\n1,2\n", "UNREADABLE", "the header names name twice"),
    "cast.csv": (b"name,count,at\na,zz,\n", "SPARK", "CAST_INVALID_INPUT"),
    "zone.csv": (b"name,count,at\na,2,2020-01-01 00:00:00\n", "TIMESTAMP_STRING_ZONE_DEPENDENT", "row 1"),
    "_hidden.csv": (b"name,count,at\na,2,\n", "UNREADABLE", "names start with _ or ."),
}


def test_bad_files_fail_alone_and_leave_no_receipt(
    build: Build, build_spec: BuildSpec, tmp_path: Path
) -> None:
    for name, (data, _, _) in BAD.items():
        (tmp_path / "in" / name).write_bytes(data)
    (tmp_path / "in" / "blank.csv").write_text("\n")
    (tmp_path / "in" / "empty.csv").write_text("")
    (tmp_path / "in" / "good.csv").write_text("name,count,at\na,2,\n")
    built = build(build_spec)
    for name, (_, code, why) in BAD.items():
        failure = built[name]
        assert isinstance(failure, Failure), name
        assert failure.code == code or not code, failure
        assert why in failure.reason, failure
    for name, rows in (("blank.csv", 0), ("empty.csv", 0), ("good.csv", 1)):
        assert isinstance(built[name], Receipt), built[name]
        assert built[name].rows == rows
    assert len(list((tmp_path / "staging").rglob("files/*.json"))) == 3


def test_bad_rows_are_put_aside_whatever_the_filter_says(
    build: Build, build_spec: BuildSpec, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("name,count,at\na,2,\nb\nc,4,zz\nd,6,\n")
    [receipt] = build(replace(build_spec, max_bad_rows="2")).values()
    assert isinstance(receipt, Receipt), receipt
    assert (receipt.rows, receipt.bad_rows) == (2, 2)
    [aside] = (tmp_path / "staging").rglob("bad-rows/*.parquet")
    assert pq.read_table(aside, columns=["row", "column"]).to_pylist() == [
        {"row": 2, "column": ""},
        {"row": 3, "column": "at"},
    ]


NOT_TO_BE = [
    (Query(transforms={"name": "uuid()"}), "calls uuid()", "another value each time"),
    (Query(transforms={"at": "now()"}), "calls now()", "another value each time"),
    (Query(where="rand() < 1"), "calls rand()", "another value each time"),
    (Query(transforms={"name": "max(name)"}), "calls max()", "MISSING_GROUP_BY"),
    (Query(transforms={"name": "explode(split(name, ''))"}), "calls explode()", "UNSUPPORTED_GENERATOR"),
    (
        Query(transforms={"name": "first_value(name) OVER (ORDER BY count)"}),
        "calls first_value()",
        "uses more than one row",
    ),
    (Query(transforms={"name": "(SELECT 1)"}), "has SELECT", "a subquery"),
    (Query(where="nosuch(name)"), "calls nosuch()", "UNRESOLVED_ROUTINE"),
]
"""Queries, and what is refused in them: by their text, and by what Spark makes of it."""


@pytest.mark.parametrize(("query", "refused"), [(query, refused) for query, refused, _ in NOT_TO_BE])
def test_expressions_that_may_not_be_are_refused_before_any_file_is_read(
    build: Build, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path, query: Query, refused: str
) -> None:
    fakes.write_names(tmp_path / "in" / "a.csv", 5)
    with pytest.raises(BuildError) as error:
        build(replace(build_spec, query=query))
    [name] = query.expressions
    assert error.value.what.startswith(f"{build_spec.table}: {name} {refused}")


@pytest.mark.parametrize(("query", "why"), [(query, why) for query, _, why in NOT_TO_BE])
def test_what_spark_makes_of_an_expression_is_looked_at_whatever_its_text_is(
    build: Build,
    fakes: ModuleType,
    build_spec: BuildSpec,
    tmp_path: Path,
    query: Query,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expression, "check_spark_expression", lambda sql: None)
    monkeypatch.setattr(expression, "_check_tree", lambda session, tree: None)
    fakes.write_names(tmp_path / "in" / "a.csv", 5)
    [failure] = build(replace(build_spec, query=query)).values()
    assert isinstance(failure, Failure)
    assert (failure.code, why in failure.reason) == ("EXPRESSION", True), failure


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (Query(where="size(name) > 1"), "DATATYPE_MISMATCH"),
        (Query(transforms={"name": "upper(name, name)"}), "WRONG_NUM_ARGS"),
    ],
)
def test_expressions_that_cannot_be_applied_to_a_file(
    build: Build, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path, query: Query, why: str
) -> None:
    fakes.write_names(tmp_path / "in" / "a.csv", 5)
    [failure] = build(replace(build_spec, query=query)).values()
    assert isinstance(failure, Failure)
    assert (failure.code, why in failure.reason) == ("EXPRESSION", True), failure


def test_what_is_no_sql_is_told_before_any_file_is_read(
    build: Build, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    fakes.write_names(tmp_path / "in" / "a.csv", 5)
    with pytest.raises(BuildError, match=r"transforms.name is not Spark SQL"):
        build(replace(build_spec, query=Query(transforms={"name": "CAST(name AS LETTERS)"})))


@pytest.mark.parametrize("literal", ["date'today'", "timestamp 'now'", "TIMESTAMP_NTZ'tomorrow'"])
def test_a_literal_that_is_another_moment_every_day_is_refused(
    session: SparkSession,
    build: Build,
    fakes: ModuleType,
    build_spec: BuildSpec,
    tmp_path: Path,
    literal: str,
) -> None:
    fakes.write_names(tmp_path / "in" / "a.csv", 5)
    assert session.range(1).selectExpr(literal).first() is not None, "Spark takes it for a constant"
    with pytest.raises(BuildError, match="another value each time"):
        build(replace(build_spec, query=Query(where=f"cast(at AS timestamp) < {literal}")))


def test_line_ends_comments_and_headers_that_spark_would_take_in_its_own_way(
    build: Build, build_spec: BuildSpec, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    (folder / "ends.csv").write_bytes(b"count,name\n2,a\r\n4,b\r\n")
    (folder / "dos.csv").write_bytes(b'count,name\r\n2,"a\r\nb"\r\n4,c\r\n')
    (folder / "mac.csv").write_bytes(b"count,name\r2,a\r")
    (folder / "comment.csv").write_bytes(b'# 5" wide\ncount,name\n2,a\n# 6"\n# 7"\n4,b\n')
    (folder / "long.csv").write_bytes(b"count," + b"n" * 200_000 + b"\n2,a\n")
    (folder / "escaped.csv").write_bytes(b'"na\\"me",count\na,2\n')
    reader = {"commentMarker": "#", "escapeCharacter": "\\"}
    built = build(replace(build_spec, reader=reader, query=Query(where="cast(count AS int) > 0")))
    assert "lines end in" in built["ends.csv"].reason
    assert "no header that can be read" in built["long.csv"].reason
    for name, rows in (("dos.csv", 2), ("mac.csv", 1), ("comment.csv", 2), ("escaped.csv", 1)):
        assert isinstance(built[name], Receipt), built[name]
        assert built[name].rows == rows
    properties = _properties(tmp_path, built["dos.csv"].outputs[0].segment)
    assert properties["column.name.maxValue"] == "c", "and no carriage return after it"


def test_a_file_in_which_spark_finds_nothing_is_published_only_if_nothing_is_in_it(
    build: Build, build_spec: BuildSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "LONGEST_ROW", 500)  # Hadoop leaves out what is twice as long
    folder = tmp_path / "in"
    (folder / "array.json").write_text(json.dumps([{"name": "a" * 10}] * 200))
    (folder / "members.json").write_text("{}\n{}\n")
    (folder / "blank.json").write_text("\n\n")
    (folder / "empty.json").write_text("")
    built = build(replace(build_spec, input_format="json", query=Query(where="false")))
    assert "JSON array" in built["array.json"].reason
    assert "finds no columns" in built["members.json"].reason
    assert (built["blank.json"].rows, built["empty.json"].rows) == (0, 0)


def test_what_is_there_keeps_its_last_digit_and_fractions_are_cut_off(
    build: Build, build_spec: BuildSpec, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    big = 2**53 + 1
    (folder / "a.json").write_text(f'{{"count": {big}, "ms": 1}}\n{{"count": null, "ms": -2999}}\n')
    (folder / "none.json").write_text('{"ms": 5999}\n')
    built = build(replace(with_functions(build_spec, ("count", "ms / 1000")), input_format="json"))
    assert isinstance(built["a.json"], Receipt), built["a.json"]
    properties = _properties(tmp_path, built["a.json"].outputs[0].segment)
    assert (properties["column.count.minValue"], properties["column.count.maxValue"]) == ("-2", str(big))
    assert isinstance(built["none.json"], Receipt), built["none.json"]
    properties = _properties(tmp_path, built["none.json"].outputs[0].segment)
    assert properties["column.count.maxValue"] == "5"
    for path in folder.iterdir():
        path.unlink()
    (folder / "a.csv").write_text(f"count,ms\n{big},1\n,-2999\n")
    built = build(replace(with_functions(build_spec, ("count", "ms / 1000")), session="cp8-abc"))
    assert isinstance(built["a.csv"], Receipt), built["a.csv"]
    properties = _properties(tmp_path, built["a.csv"].outputs[0].segment)
    assert (properties["column.count.minValue"], properties["column.count.maxValue"]) == ("-2", str(big))


def test_a_function_is_not_looked_at_where_the_file_has_a_value(
    build: Build, build_spec: BuildSpec, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("count,other\n7,no number\n,8\n")
    [receipt] = build(with_functions(build_spec, ("count", "other + 1"))).values()
    assert isinstance(receipt, Receipt), receipt
    assert _properties(tmp_path, receipt.outputs[0].segment)["column.count.maxValue"] == "9"


def test_later_functions_see_what_earlier_ones_filled(
    build: Build, build_spec: BuildSpec, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text("count,other,name\n7,1,\n,8,\n,3,x\n")
    made = with_functions(
        build_spec, ("name", "concat('n', count)"), ("count", "round(other, 4)"), dropped="count = 0"
    )
    [receipt] = build(made).values()
    assert isinstance(receipt, Receipt), receipt
    # The filter took the last row, and text has no footer that would tell how many there were.
    assert (receipt.rows, receipt.rows_read, receipt.rows_filtered) == (2, None, 0)
    properties = _properties(tmp_path, receipt.outputs[0].segment)
    assert (properties["column.name.minValue"], properties["column.name.maxValue"]) == ("n7", "n8")


@pytest.mark.parametrize(
    ("transforms", "dropped", "why"),
    [
        ([("name", "concat(price, 'x')")], "", "column price: decimal(3,2) is used as text"),
        ([("name", "upper(rate)")], "", "column rate: double is used as text"),
        ([], "startsWith(price, '1')", "column price: decimal(3,2) is used as text"),
        ([("made", "count + 1"), ("name", "concat(made, 'x')")], "", "column made: double is used as text"),
        ([("count", "price * 2")], "count > 1", "bigint in the file, double by transformConfigs"),
        ([("name", "price * 2")], "", "double cannot become STRING"),
        ([("name", "upper(p)")], "", "column p: struct<q:bigint> is used as text"),
        ([("count", "p + 1")], "", "there is no translation for struct<q:bigint>"),
    ],
)
def test_what_pinot_would_make_of_a_column_is_certain_or_refused(
    build: Build,
    build_spec: BuildSpec,
    tmp_path: Path,
    transforms: list[tuple[str, str]],
    dropped: str,
    why: str,
) -> None:
    row = '{"price": 1.50, "rate": 1e-40, "count": 1, "p": {"q": 1}}\n{"price": 2.25, "count": null}\n'
    (tmp_path / "in" / "a.json").write_text(row)
    made = with_functions(build_spec, *transforms, dropped=dropped)
    [failure] = build(replace(made, input_format="json")).values()
    assert isinstance(failure, Failure), failure
    assert why in failure.reason


@pytest.mark.parametrize(("made", "text"), [("name", "01234"), ("concat(name, '!')", "01234!")])
def test_text_of_digits_in_json_stays_text(
    build: Build, build_spec: BuildSpec, tmp_path: Path, made: str, text: str
) -> None:
    rows = '{"name": "01234", "count": 1.0}\n{"name": "0.50", "count": 2}\n'
    (tmp_path / "in" / "a.json").write_text(rows)
    query = Query(where="count * 10 = 10", transforms={"name": made})
    [receipt] = build(replace(build_spec, input_format="json", query=query)).values()
    assert isinstance(receipt, Receipt), receipt
    assert _properties(tmp_path, receipt.outputs[0].segment)["column.name.maxValue"] == text


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_what_cannot_be_cast_is_an_error_whatever_the_users_session_says(
    session: SparkSession, build: Build, build_spec: BuildSpec, tmp_path: Path, ansi: str
) -> None:
    """Spark 3.5's sessions are not ANSI by themselves: there such a row would be left out in silence."""
    before = session.conf.get("spark.sql.ansi.enabled")
    assert before is not None
    (tmp_path / "in" / "a.csv").write_text("name,count\na,zz\n")
    session.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        failures = [
            *build(build_spec).values(),
            *build(with_functions(build_spec, ("at", "name * 2"))).values(),
            *build(with_functions(build_spec, dropped="name > 2")).values(),
        ]
    finally:
        session.conf.set("spark.sql.ansi.enabled", before)
    assert [type(failure) for failure in failures] == [Failure] * 3
    assert {failure.code for failure in failures} == {"SPARK"}


_OBJECTS = """\
{"name": "a", "j": {"b": 1.50, "a": [{"x": 1}, {"y": 12345678901234567890.123456789}]}}
{"name": "b", "j": {"c": null}, "k": "text"}
{"name": "c", "j": "{\\"t\\": 1}", "k": {"b": 1}}
{"name": "d", "j": null, "k": [1, 2.0]}
{"name": "e", "j": 1e400, "k": true}
"""


def with_json(build_spec: BuildSpec) -> BuildSpec:
    more = [{"name": name, "dataType": "JSON"} for name in ("j", "k")]
    schema = {**build_spec.schema, "dimensionFieldSpecs": [*build_spec.schema["dimensionFieldSpecs"], *more]}
    return replace(build_spec, schema=schema, input_format="json")


@pytest.mark.skipif(pyspark.__version__.startswith("3"), reason="Spark 3.5 writes such text anew")
def test_objects_of_json_files_are_what_stands_in_the_file(
    build: Build, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    """Not with the members of all rows, in an order of Spark's and without fractions."""
    (tmp_path / "in" / "a.json").write_text(_OBJECTS)
    build_spec = with_json(build_spec)
    [receipt] = build(replace(build_spec, query=Query(transforms={"name": "trim(name)"}))).values()
    direct = replace(build_spec, query=None, staging_uri=(tmp_path / "2" / "s").as_uri())
    direct = replace(direct, segments_uri=(tmp_path / "2" / "t").as_uri())
    (tmp_path / "2").mkdir()
    [task] = fakes.tasks_of(direct)
    expected = build_file(direct, task)
    assert isinstance(receipt, Receipt), receipt
    assert isinstance(expected, Receipt), expected
    assert crc(tmp_path, receipt) == crc(tmp_path, expected)


def test_members_of_json_columns_can_be_read(build: Build, build_spec: BuildSpec, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.json").write_text('{"j": {"n": "x"}, "k": {"n": 1}}\n')
    [receipt] = build(replace(with_json(build_spec), query=Query(transforms={"name": "j.n"}))).values()
    assert isinstance(receipt, Receipt), receipt
    assert _properties(tmp_path, receipt.outputs[0].segment)["column.name.maxValue"] == "x"


def test_lines_with_more_than_one_object_are_refused(
    build: Build, build_spec: BuildSpec, tmp_path: Path
) -> None:
    """Spark reads the first object of each."""
    (tmp_path / "in" / "a.json").write_text('{"count": 1}\n{"count": 2}{"count": 3}\n')
    [failure] = build(replace(build_spec, input_format="json")).values()
    assert isinstance(failure, Failure), failure
    assert failure.code == "UNREADABLE"
    assert "line 2" in failure.reason


def test_numbers_with_an_exponent(build: Build, build_spec: BuildSpec, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.json").write_text('{"count": 1e5}\n{"count": 2E+1}\n')
    (tmp_path / "in" / "large.json").write_text('{"x": 1e300, "count": 1}\n{"x": 5, "count": 2}\n')
    (tmp_path / "in" / "mixed.json").write_text('{"x": 1e2, "count": 3}\n{"x": 2.5, "count": 4}\n')
    query = Query(where="coalesce(x, 7) > 6")
    built = build(replace(build_spec, input_format="json", query=query))
    for name, largest in (("a.json", "100000"), ("large.json", "1"), ("mixed.json", "3")):
        assert isinstance(built[name], Receipt), built[name]
        properties = _properties(tmp_path, built[name].outputs[0].segment)
        assert properties["column.count.maxValue"] == largest


def test_names_may_hold_what_sql_has_a_meaning_for(
    build: Build, build_spec: BuildSpec, tmp_path: Path
) -> None:
    fields = [{"name": name, "dataType": "STRING"} for name in ("a.b", "c d", "e`f", "g'h")]
    config = {**build_spec.table_config, "segmentsConfig": {"replication": "1"}}
    build_spec = replace(
        build_spec, schema={"schemaName": "names", "dimensionFieldSpecs": fields}, table_config=config
    )
    row = {"a.b": "1", "c d": "2", "e`f": "3", "x": 4}
    (tmp_path / "in" / "a.json").write_text(json.dumps(row) + "\n")
    made = with_functions(build_spec, ("g'h", """concat("a.b", "c d")"""), ("a.b", "upper(x)"))
    made = replace(made, query=replace(made.query, where="`e``f` = '3'", transforms={"c d": "`c d` || '!'"}))
    [receipt] = build(replace(made, input_format="json")).values()
    assert isinstance(receipt, Receipt), receipt.reason
    properties = _properties(tmp_path, receipt.outputs[0].segment)
    values = {key.split(".minValue")[0]: value for key, value in properties.items() if "minValue" in key}
    assert values == {"column.a.b": "1", r"column.c\ d": "2!", "column.e`f": "3", "column.g'h": "12!"}


def test_a_time_used_as_text_is_refused(build: Build, build_spec: BuildSpec, tmp_path: Path) -> None:
    pq.write_table(pa.table({"at": pa.array([_2020], pa.timestamp("ms"))}), tmp_path / "in" / "a.parquet")
    made = with_functions(build_spec, ("name", "concat(at, 'x')"))
    [failure] = build(replace(made, input_format="parquet")).values()
    assert isinstance(failure, Failure), failure
    assert "column at: timestamp" in failure.reason
    assert "is used as text" in failure.reason


def test_an_odd_file_fails_alone_whatever_it_is(
    build: Build, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = file_jobs.open_file

    def odd(session: SparkSession, build_spec: BuildSpec, uri: str, texts: frozenset[str]) -> Any:
        if uri.endswith("odd.csv"):
            raise ValueError("nobody thought of this")
        return opened(session, build_spec, uri, texts)

    monkeypatch.setattr(file_jobs, "open_file", odd)
    fakes.write_names(tmp_path / "in" / "a.csv", 4)
    fakes.write_names(tmp_path / "in" / "odd.csv", 4)
    built = build(build_spec)
    assert isinstance(built["a.csv"], Receipt), built["a.csv"]
    assert (built["odd.csv"].code, built["odd.csv"].reason) == (
        "INTERNAL",
        "ValueError: nobody thought of this",
    )


def test_a_caller_that_gives_up_ends_the_jobs(
    session: SparkSession, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    for n in range(30):
        fakes.write_names(tmp_path / "in" / f"{n}.csv", 30_000)
    results: list[Receipt | Failure] = []

    def on_done(result: Receipt | Failure) -> None:
        results.append(result)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SparkBuilder(lambda: session).build(build_spec, fakes.tasks_of(build_spec), on_done)
    assert session.sparkContext.statusTracker().getActiveJobsIds() == []
    assert len(results) == 1
    assert len(list((tmp_path / "staging").rglob("files/*.json"))) < 30


def test_spark_that_reads_is_a_sign_of_life(
    session: SparkSession,
    fakes: ModuleType,
    build_spec: BuildSpec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here the tasks leave none: they take less than their 15 seconds, and the filter leaves them no rows."""
    monkeypatch.setattr(task_outputs, "EVERY_S", 0.0)  # in this process alone, where the driver looks
    (tmp_path / "in" / "a.json").write_text('{"name": "a", "count": 1}\n' * 300_000)
    build_spec = replace(build_spec, input_format="json", query=Query(where="name = 'b'"))
    results: list[Receipt | Failure] = []
    rows: list[int] = []
    SparkBuilder(lambda: session).build(build_spec, fakes.tasks_of(build_spec), results.append, rows.append)
    [receipt] = results
    assert isinstance(receipt, Receipt), receipt
    assert receipt.rows == 0
    assert rows, "at least one look found that Spark came further"
    assert {*rows} == {0}


def test_spark_tells_the_size_of_the_very_file(
    session: SparkSession, build_spec: BuildSpec, tmp_path: Path
) -> None:
    for name in ("a b%20[x]*.csv", "ä.csv"):
        path = tmp_path / "in" / name
        path.write_bytes(b"x" * 1234)
        assert size_for_spark(session, path.as_uri()) == 1234
    with pytest.raises(Py4JError, match="FileNotFoundException"):
        size_for_spark(session, (tmp_path / "in" / "none.csv").as_uri())


def test_a_file_that_spark_finds_elsewhere_is_not_taken_for_ours(
    build: Build, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a second S3 that has a file of this name: Spark's settings for stores are its own."""
    fakes.write_names(tmp_path / "in" / "a.csv", 4)
    (tmp_path / "else").mkdir()
    fakes.write_names(tmp_path / "else" / "a.csv", 5)

    def elsewhere(uri: str) -> str:
        return uri.replace("/in/", "/else/")

    monkeypatch.setattr(reader, "hadoop_path", elsewhere)
    [failure] = build(build_spec).values()
    assert isinstance(failure, Failure), failure
    assert failure.code == "CHANGED_DURING_READ"
    assert "Spark reads another store" in failure.reason


def test_json_lines_and_what_spark_may_not_have(build: Build, build_spec: BuildSpec, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    lines = [{"name": f"n{n}", "count": n, "p": {"q": n * 0.1}} for n in range(30)]
    (folder / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "array.json").write_text(json.dumps(lines))
    (folder / "bad.json").write_text('{"name": "a", "p": {"q": 0}}\n{"name"\n')
    query = Query(where="p.q < 1", transforms={"count": "coalesce(count, 7)"})
    built = build(replace(build_spec, input_format="json", query=query))
    assert built["a.json"].rows == 10, built["a.json"]
    assert built["a.json"].missing == ("at",)
    assert "JSON array" in built["array.json"].reason
    assert built["bad.json"].reason.startswith("row 2: ")


def test_json_texts_longer_than_sparks_parser_takes_by_itself(
    build: Build, build_spec: BuildSpec, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.json").write_text(json.dumps({"name": "x" * 25_000_000, "count": 1}) + "\n")
    [receipt] = build(replace(build_spec, input_format="json", query=Query("count > 0"))).values()
    assert isinstance(receipt, Receipt), receipt
    assert receipt.rows == 1


def test_parquet_and_orc_with_pinots_own_transforms(
    build: Build, build_spec: BuildSpec, tmp_path: Path
) -> None:
    rows = pa.table(
        {
            "name": ["a", None, "c"],
            "count": pa.array([1, None, 3], pa.int64()),
            "at": pa.array([_2020 + n for n in (0, 86_400_000, 1)], pa.timestamp("ms", "UTC")),
        }
    )
    pq.write_table(rows, tmp_path / "in" / "a.parquet")
    pinot = {
        "transformConfigs": [
            {"columnName": "count", "transformFunction": "toEpochDays(at)"},
            {"columnName": "name", "transformFunction": "concat('day ', count)"},
        ],
        "filterConfig": {"filterFunction": "count = 3"},
    }
    config = {**build_spec.table_config, "ingestionConfig": pinot}
    query = Query.of("", {}, config)
    build_spec = replace(build_spec, table_config=config, query=query, input_format="parquet")
    [receipt] = build(build_spec).values()
    assert isinstance(receipt, Receipt), receipt
    assert (receipt.rows, receipt.rows_read, receipt.rows_filtered) == (2, 3, 1)
    properties = _properties(tmp_path, receipt.outputs[0].segment)
    assert (properties["column.name.minValue"], properties["column.name.maxValue"]) == ("a", "day 18263")
    assert properties["column.count.maxValue"] == "18263"
    (tmp_path / "in" / "a.parquet").unlink()
    orc.write_table(
        rows.drop_columns(["at"]).append_column("at", pa.array([_2020, _2020, _2020])),
        tmp_path / "in" / "a.orc",
    )
    [receipt] = build(replace(build_spec, input_format="orc", session="cp9-abc")).values()
    assert isinstance(receipt, Receipt), receipt
    assert (receipt.rows, receipt.rows_read, receipt.rows_filtered) == (2, 3, 1)


def test_the_users_own_session_keeps_its_settings(session: SparkSession) -> None:
    reading_session(session)
    assert session.conf.get("spark.sql.caseSensitive") == "false"
    whole = session.conf.get("spark.sql.files.maxPartitionBytes")
    assert whole is not None
    assert int(whole.rstrip("b")) < 1 << 40


def test_sql_shares_the_python_daemon_of_tasks_without_sql(session: SparkSession) -> None:
    """Spark starts another daemon, with workers of its own, for each different environment."""

    def daemon(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"daemon": [os.getppid()]})

    of_task = session.sparkContext.parallelize([0], 1).map(lambda _: os.getppid()).collect()
    with silent_on_pandas():
        of_sql = reading_session(session).range(0, 1, 1, 1).mapInArrow(daemon, "daemon long").collect()
    assert [row.daemon for row in of_sql] == of_task
