"""Columns that Arrow makes where Spark SQL would be needed only for LONG arithmetic."""

from __future__ import annotations

import io
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from fakes.builder import make_order, pinots_functions, tasks_of

from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.contract.build_spec import BuildSpec, Query
from pinot_assets.ingest.spark.arrow_steps import NeedsSql, build_with_steps, computable, with_made
from pinot_assets.ingest.spark.tasks import MADE
from pinot_assets.segment.functions.pinot_functions import LongSteps
from pinot_assets.snapshot.receipt import Failure, Receipt

DAY = 86_400_000


def query_of(*transforms: tuple[str, str], dropped: str = "") -> Query:
    return Query.of("", {}, {"ingestionConfig": pinots_functions(*transforms, dropped=dropped)})


@pytest.mark.parametrize(
    ("function", "steps"),
    [
        ("fromEpochDays(day)", (("*", DAY),)),
        ("toEpochHoursRounded(day, 6)", (("DIV", 3_600_000), ("DIV", 6), ("*", 6))),
        ("toEpochSeconds(from_epoch_days(day))", (("*", DAY), ("DIV", 1000))),
        ("fromEpochMinutesBucket(day, 5)", (("*", 5), ("*", 60_000))),
        ("round(day, 10)", (("DIV", 10), ("*", 10))),
        ('"day"', ()),
    ],
)
def test_functions_of_whole_numbers_are_steps(function: str, steps: tuple[tuple[str, int], ...]) -> None:
    assert query_of(("at", function)).long_steps == (("at", LongSteps("day", steps)),)


@pytest.mark.parametrize(
    "function",
    ["day + 1", "toEpochDaysBucket(day, n)", "toEpochDaysRounded(day, 0)", "round(day, -1)",
     "fromEpochDays('3')", "hour(day)", "upper(day)", "fromEpochDays(length(day))"],
)  # fmt: skip
def test_other_functions_are_left_to_sql(function: str) -> None:
    query = query_of(("at", function))
    assert query.derived
    assert query.long_steps == ()


def test_only_a_query_of_nothing_else_is_computed(tmp_path: Path) -> None:
    steps = query_of(("at", "fromEpochDays(day)"))
    order = make_order(tmp_path, query=steps, input_format="avro")
    (tmp_path / "in" / "a.avro").write_bytes(b"x")
    [task] = tasks_of(order)
    assert computable(order, steps, [task]) == [task]
    large = replace(task.file.fingerprint, size=(8 << 20) + 1)
    assert computable(order, steps, [replace(task, file=replace(task.file, fingerprint=large))]) == []
    assert computable(replace(order, input_format="json"), steps, [task]) == []
    for other in (
        query_of(("at", "fromEpochDays(day)"), ("name", "upper(day)")),
        query_of(("at", "fromEpochDays(day)"), dropped="day > 1"),
        replace(steps, where="day > 1"),
        replace(steps, transforms={"name": "'x'"}),
        Query(),
    ):
        assert computable(order, other, [task]) == []


def test_a_column_is_made_where_the_file_has_none_and_later_steps_read_both() -> None:
    table = pa.table(
        {"day": pa.array([1, -3, None], pa.int32()), "hour": pa.array([None, 7, None], pa.int64())}
    )
    made = with_made(
        table,
        [("hour", LongSteps("day", (("*", 24),))), ("half", LongSteps("hour", (("DIV", 2),)))],
    )
    assert made.column("hour").to_pylist() == [None, 7, None]
    assert made.column(MADE + "hour").to_pylist() == [24, None, None]
    assert made.column(MADE + "half").to_pylist() == [12, 3, None]
    assert with_made(table, [("at", LongSteps("day", (("DIV", 2),)))]).column(MADE + "at").to_pylist() == [
        0,
        -1,
        None,
    ]


def test_no_value_is_made_where_the_file_has_one_even_if_it_would_overflow() -> None:
    table = pa.table({"day": [2**62, 1], "at": [5, None]})
    assert with_made(table, [("at", LongSteps("day", (("*", 4),)))]).column(MADE + "at").to_pylist() == [
        None,
        4,
    ]


@pytest.mark.parametrize(
    "table",
    [
        {"day": [2**62]},
        {"day": [1.0]},
        {"day": ["1"]},
        {"other": [1]},
        {"day": [1], "at": [1.5]},
        {"day": pa.array([1], pa.timestamp("us"))},
    ],
)
def test_what_is_unusual_needs_sql(table: dict[str, list[object]]) -> None:
    with pytest.raises(NeedsSql):
        with_made(pa.table(table), [("at", LongSteps("day", (("*", 4),)))])


def order_of(tmp_path: Path, rows: int, more: JsonObject | None = None, **changes: object) -> BuildSpec:
    """An order with one file.

    :param more: one more field, of texts or decimals.
    """
    order = make_order(tmp_path, query=query_of(("at", "fromEpochDays(day)")), input_format="avro", **changes)
    fields: list[JsonObject] = [{"name": "name", "type": "string"}, {"name": "day", "type": ["null", "int"]}]
    value = "x" if more is None or more["type"] == "string" else Decimal("1.5")
    fields += [] if more is None else [more]
    with (tmp_path / "in" / "a.avro").open("wb") as file:
        fastavro.writer(
            file,
            {"type": "record", "name": "row", "fields": fields},
            [{"name": f"n{n}", "day": 18_000 + n, "count": value} for n in range(rows)],
        )
    return order


def reasons(order: BuildSpec) -> list[str]:
    """Why each file needs SQL."""
    failures = [build_with_steps(order, task) for task in tasks_of(order)]
    assert all(isinstance(failure, Failure) for failure in failures)
    return [failure.reason for failure in failures if isinstance(failure, Failure)]


def test_a_file_of_one_segment_is_built(tmp_path: Path) -> None:
    order = order_of(tmp_path, 5)
    [task] = tasks_of(order)
    receipt = build_with_steps(order, task)
    assert isinstance(receipt, Receipt), receipt
    assert (receipt.rows, receipt.rows_read, receipt.missing) == (5, 5, ("count",))
    [at] = [column for column in receipt.facts[0].columns if column.name == "at"]
    assert (at.low, at.high) == (str(18_000 * DAY), str(18_004 * DAY))


@pytest.mark.parametrize("limit", [{"max_rows_per_segment": 3}, {"desired_segment_bytes": 10}])
def test_a_file_of_more_segments_stages_none(tmp_path: Path, limit: dict[str, object]) -> None:
    """Spark SQL would cut it elsewhere, and a segment's name has one content."""
    order = order_of(tmp_path, 5, **limit)
    assert reasons(order) == ["NeedsSql: more than one segment"]
    assert [*(tmp_path / "staging").rglob("*.tar.gz")] == []


def test_bad_rows_are_left_to_sql_which_puts_them_aside(tmp_path: Path) -> None:
    """Its quarantine has the columns that the file lacks, too, and a quarantine's name has one content."""
    order = order_of(tmp_path, 5, {"type": "string", "name": "count"}, max_bad_rows="5")
    assert reasons(order) == ["NeedsSql: bad rows are put aside as Spark SQL has them"]
    assert [*(tmp_path / "staging").rglob("*.parquet")] == []


def test_decimals_are_left_to_sql_which_rounds_them_as_java_does(tmp_path: Path) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 6}
    [reason] = reasons(order_of(tmp_path, 5, {"type": kind, "name": "count"}))
    assert reason.startswith("NeedsSql: Spark rounds a decimal")


def test_a_blank_file_and_one_without_the_columns_need_sql(tmp_path: Path) -> None:
    order = order_of(tmp_path, 1)
    (tmp_path / "in" / "a.avro").write_bytes(b"")
    buffer = io.BytesIO()
    fastavro.writer(
        buffer, {"type": "record", "name": "row", "fields": [{"name": "x", "type": "int"}]}, [{"x": 1}]
    )
    (tmp_path / "in" / "b.avro").write_bytes(buffer.getvalue())
    blank, strange = reasons(order)
    assert blank.startswith("the file has 0 bytes")
    assert strange == "NeedsSql: no column of the table"
