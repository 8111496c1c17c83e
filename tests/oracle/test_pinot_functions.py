"""Every translated function, in Pinot 1.5.1 and in Spark SQL, on the same values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pinot_assets.build.local_spark import local_session
from pinot_assets.build.spark_reader import reading_session
from pinot_assets.segment.pinot_expression import translate
from pinot_assets.segment.pinot_functions import FUNCTIONS
from pinot_assets.segment.time_format import PATTERNS

pytestmark = pytest.mark.spark

NUMBERS = [None, 0, 1, -1, 999, -999, 1_577_836_799_999, 1_609_459_200_000, -86_400_001, 253_402_300_799_999]
TEXTS = [None, "", " a\t", "Straße İI", "\U00010348x", "x'y\\", "\u00a0q\n"]
SMALL = [None, 0, 1, -1, 999, 18_262]
TEXT_FUNCTIONS = {"upper", "lower", "reverse", "concat", "trim", "length", "startswith", "endswith"}


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    started = local_session("pinot functions", 1)
    yield reading_session(started)
    started.stop()


def cases() -> list[tuple[str, list[Any]]]:
    found: list[tuple[str, list[Any]]] = []
    for name, count in sorted(FUNCTIONS):
        if name == "fromdatetime":
            continue
        if name == "todatetime":
            found += [(f"toDateTime(x, {_text(pattern)})", NUMBERS) for pattern in PATTERNS]
        elif name in TEXT_FUNCTIONS:
            found.append((f"{name}(x)" if count == 1 else f"{name}(x, 'a')", TEXTS))
        elif count == 1:
            found.append((f"{name}(x)", SMALL if name.startswith("fromepoch") else NUMBERS))
        else:
            found.append((f"{name}(x, 7)", [None, 0, 6, 7, 7.00000001, -8, 20]))
    found.append(("NOT (x > 1 AND x < 5 OR x = 9)", [None, 0, 1, 2, 5, 9]))
    found.append(("x <> 0.1", [float("nan"), 0.1, 0.10000000001, 0.2]))
    found.append(("x >= 1", [float("nan"), float("inf"), 1.0]))
    return found


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def pinot(oracle: Any, function: str, values: list[Any]) -> list[Any]:
    factory = oracle.jvm.org.apache.pinot.segment.local.function.FunctionEvaluatorFactory
    evaluator = factory.getExpressionEvaluator(function)
    results = []
    for value in values:
        row = oracle.jvm.org.apache.pinot.spi.data.readers.GenericRow()
        row.putValue("x", value)
        results.append(evaluator.evaluate(row))
    return results


def spark(session: SparkSession, function: str, values: list[Any]) -> list[Any]:
    kind = "string" if any(isinstance(v, str) for v in values) else "bigint"
    if any(isinstance(v, float) for v in values):
        kind, values = "double", [None if v is None else float(v) for v in values]
    frame = session.createDataFrame([(n, value) for n, value in enumerate(values)], f"n int, x {kind}")
    rows = frame.select("n", F.expr(translate(function).sql).alias("r")).collect()
    return [row.r for row in sorted(rows, key=lambda row: row.n)]


@pytest.mark.parametrize(("function", "values"), cases(), ids=[function for function, _ in cases()])
def test_a_function_says_what_pinot_says(
    oracle: Any, session: SparkSession, function: str, values: list[Any]
) -> None:
    assert spark(session, function, values) == pinot(oracle, function, values)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_dates_are_read_as_pinot_reads_them(oracle: Any, session: SparkSession, pattern: str) -> None:
    moments = [0, 1_577_836_799_999, 1_582_934_400_000, -62_135_596_800_000, 253_402_300_799_999]
    texts = spark(session, f"toDateTime(x, {_text(pattern)})", moments)
    function = f"fromDateTime(x, {_text(pattern)})"
    assert spark(session, function, [None, *texts]) == pinot(oracle, function, [None, *texts])


@pytest.mark.parametrize("text", ["2020-1-5", "12020-01-05", "2020-02-30", " 2020-01-05", "2020-01-05x"])
def test_a_date_that_is_nearly_right_is_an_error(session: SparkSession, text: str) -> None:
    with pytest.raises(PySparkException):
        spark(session, "fromDateTime(x, 'yyyy-MM-dd')", [text])
