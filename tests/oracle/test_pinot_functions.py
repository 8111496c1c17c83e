"""Every translated function, in Pinot 1.5.1 and in Spark SQL, on the same values of every type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import pytest
from fakes.processes.other_jvm import java_fails
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.ingest.spark.reader import reading_session
from pinot_assets.segment.config.transforms import NotTranslated, translate
from pinot_assets.segment.functions.pinot_functions import FUNCTIONS
from pinot_assets.segment.functions.time_format import PATTERNS

pytestmark = pytest.mark.spark

MOMENTS = [None, 0, 1, -1, 999, -999, 1_577_836_799_999, 1_609_459_200_000, -86_400_001, 253_402_300_799_999]
TEXTS = [None, "", " a\t", "Straße İI", "\U00010348x", "x'y\\", "\u00a0q\n", "a", "%"]
SMALL = [None, 0, 1, -1, 999, 18_262]

Values = tuple[str, list[Any]]
"""Spark's type of a column and its values."""

WHOLE: list[Values] = [
    ("bigint", MOMENTS),
    ("int", [None, 0, 7, -8, 2**31 - 1, -(2**31)]),
    ("double", [None, 0.0, -0.0, 1.5, -1.5, 1_577_836_799_999.7, -86_400_000.9]),
    ("float", [None, 0.0, 1.5, -1.5, 16_777_216.0, -86_400_128.0]),
    ("decimal(20,3)", [None, Decimal("0.000"), Decimal("1.500"), Decimal("-1577836799999.999")]),
    ("string", [None, "0", "-7", " 8 ", "+9", "1577836799999"]),
]
"""For parameters that are LONG."""
NUMBERS: list[Values] = [
    ("bigint", [None, 0, 6, 7, 8, -7, 2**53 + 1, -(2**63)]),
    ("int", [None, 0, 7, -8, 2**31 - 1]),
    ("double", [None, 0.0, 7.0, 7.00000001, 6.9999998, -7.5, 1e300, 5e-324]),
    ("float", [None, 0.0, 7.0, 0.1, -7.5, 3e38]),
    (
        "decimal(20,3)",
        [None, Decimal("0.000"), Decimal("7.000"), Decimal("-0.100"), Decimal("1234567890123.456")],
    ),
    ("string", [None, "0", "7", " 7.5 ", "-1e3", "0.1", "+.5", "7."]),
]
"""For parameters that are DOUBLE."""
TEXT: list[Values] = [
    ("string", TEXTS),
    ("bigint", [None, 0, -7, 2**53 + 1, -(2**63)]),
    ("int", [None, 0, -7]),
    ("boolean", [None, True, False]),
]
"""For parameters that are STRING: of what Spark and Java write alike."""
FEW: list[Values] = [
    ("bigint", SMALL),
    ("int", [None, 0, 7, -8]),
    ("double", [None, 1.5, -18_262.9]),
    ("float", [None, 1.5, -18_262.5]),
    ("decimal(20,3)", [None, Decimal("1.500"), Decimal("-18262.999")]),
    ("string", [None, "0", "-7", " 8 "]),
]
"""For what multiplies: Pinot's LONGs overflow in silence, Spark's do not."""
KINDS = {"LONG": WHOLE, "DOUBLE": NUMBERS, "STRING": TEXT, "COLUMN": [*WHOLE, *TEXT]}
LITERALS = {
    "LONG": ["7", "1", "-3", "86400000"],
    "DOUBLE": ["7", "0.1", "-7.5", "1e3", "'7'", "9007199254740993"],
    "STRING": ["'a'", "''", "'it''s'", "'%'", "'\\'", "7"],
}


def calls(name: str, count: int) -> tuple[list[str], list[Values]]:
    """Calls of one function on a column x, and the values of x."""
    parameters = FUNCTIONS[name, count].parameters
    kinds = FEW if name.startswith("fromepoch") else KINDS[parameters[0]]
    if name == "todatetime":
        return [f"toDateTime(x, {_text(pattern)})" for pattern in PATTERNS], kinds
    if count == 1:
        return [f"{name}(x)"], kinds
    literals = [text for text in LITERALS[parameters[1]] if kinds is not FEW or len(text) < 3]
    # To Pinot's parser minus is a sign and no function's name.
    call = "x - {}" if name == "minus" else f"{name}(x, {{}})"
    return [call.format(literal) for literal in literals], kinds


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


JAVA = {
    "bigint": "Long",
    "int": "Integer",
    "double": "Double",
    "float": "Float",
    "decimal(20,3)": "math.BigDecimal",
    "string": "String",
    "boolean": "Boolean",
}


class Pinot:
    """Pinot's evaluator, on values of exactly the Java classes that its readers give it."""

    def __init__(self, oracle: Any) -> None:
        self._jvm = oracle.jvm
        self._mapper = self._jvm.com.fasterxml.jackson.databind.ObjectMapper()

    def rows(self, kind: str, values: list[Any]) -> list[Any]:
        """The values as column x of Pinot's rows."""
        return [self._row(kind, value) for value in values]

    def results(self, function: str, rows: list[Any]) -> list[Any]:
        """A function of each of them."""
        factory = self._jvm.org.apache.pinot.segment.local.function.FunctionEvaluatorFactory
        evaluator = factory.getExpressionEvaluator(function)
        return [evaluator.evaluate(row) for row in rows]

    def _row(self, kind: str, value: Any) -> Any:
        # By way of JSON: what py4j is given by itself becomes an Integer, a Long or a Double as it likes.
        classes = self._jvm.java.lang.Class
        name = JAVA[kind] if "." in JAVA[kind] else f"lang.{JAVA[kind]}"
        of = self._mapper.getTypeFactory().constructMapType(
            classes.forName("java.util.HashMap"),
            classes.forName("java.lang.String"),
            classes.forName(f"java.{name}"),
        )
        row = self._jvm.org.apache.pinot.spi.data.readers.GenericRow()
        row.getFieldToValueMap().putAll(self._mapper.readValue(_json(value), of))
        return row


def _json(value: Any) -> str:
    if isinstance(value, Decimal):
        return f'{{"x": {value}}}'
    if isinstance(value, float) and not abs(value) < float("inf"):
        value = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    return json.dumps({"x": value})


def spark(
    session: SparkSession, functions: list[str], kinds: list[Values]
) -> dict[tuple[str, int], list[Any]]:
    """What Spark makes of column x, by function and number of its type: each query costs more than rows."""
    padded = zip_longest(*(values for _, values in kinds))
    columns = ", ".join(["n int", *(f"x{number} {kind}" for number, (kind, _) in enumerate(kinds))])
    frame = session.createDataFrame([(n, *row) for n, row in enumerate(padded)], columns)
    asked = [(function, number) for function in functions for number in range(len(kinds))]
    made = [
        # Where there are no more values of this type the column is null, which no function minds.
        F.expr(translate(function).sql.replace("`x`", f"`x{number}`")).alias(f"r{n}")
        for n, (function, number) in enumerate(asked)
    ]
    rows = sorted(frame.select("n", *made).collect(), key=lambda row: row.n)
    return {
        (function, number): [row[f"r{n}"] for row in rows[: len(kinds[number][1])]]
        for n, (function, number) in enumerate(asked)
    }


def differences(
    pinot: Pinot, session: SparkSession, functions: list[str], kinds: list[Values]
) -> list[tuple[Any, ...]]:
    """Function, type, value, what Pinot says and what Spark says, where that is not the same."""
    differing = []
    ours = spark(session, functions, kinds)
    for number, (kind, values) in enumerate(kinds):
        rows = pinot.rows(kind, values)
        for function in functions:
            theirs = pinot.results(function, rows)
            pairs = zip(values, theirs, ours[function, number], strict=True)
            differing += [(function, kind, *pair) for pair in pairs if repr(pair[1]) != repr(pair[2])]
    return differing


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    started = local_session("pinot functions", 1)
    yield reading_session(started)
    started.stop()


@pytest.fixture(scope="module")
def pinot(oracle: Any) -> Pinot:
    return Pinot(oracle)


@pytest.mark.parametrize(("name", "count"), sorted(FUNCTIONS.keys() - {("fromdatetime", 2)}))
def test_a_function_says_what_pinot_says(pinot: Pinot, session: SparkSession, name: str, count: int) -> None:
    assert differences(pinot, session, *calls(name, count)) == []


def test_a_column_may_stand_second_and_calls_in_calls(pinot: Pinot, session: SparkSession) -> None:
    assert differences(pinot, session, ["7 - x", "7 < x", "x + 1 >= x * 2 - 3.5"], NUMBERS) == []
    assert differences(pinot, session, ["concat('a', upper(x))", "length(trim(x))"], TEXT) == []
    assert differences(pinot, session, ["toEpochDays(x) * 2", "year(round(x, 1000))"], WHOLE) == []


def test_logic_and_numbers_that_are_none(pinot: Pinot, session: SparkSession) -> None:
    logic: list[Values] = [("bigint", [None, 0, 1, 2, 5, 9])]
    assert differences(pinot, session, ["NOT (x > 1 AND x < 5 OR x = 9)"], logic) == []
    odd: list[Values] = [("double", [float("nan"), float("inf"), -float("inf"), 0.1, 0.10000000001, 0.2])]
    functions = ["x <> 0.1", "x = 0.1", "x >= 1", "x < 1", "x > 1", "x <= 1"]
    assert differences(pinot, session, functions, odd) == []


@pytest.mark.parametrize("function", ["x = 'deleted'", "'b' > x", "plus(x, '')", "toEpochDays('2020-01-01')"])
def test_texts_that_are_no_numbers_are_refused_where_pinot_fails(pinot: Pinot, function: str) -> None:
    with pytest.raises(NotTranslated, match="is not a"):
        translate(function)
    with java_fails():
        pinot.results(function, pinot.rows("string", ["1"]))


@pytest.mark.parametrize(
    ("function", "kind", "value"),
    [
        ("fromEpochDays(x)", "bigint", 2**62),
        ("divide(x, 0)", "bigint", 1),
        ("round(x, 0)", "bigint", 1),
        ("toEpochDays(x)", "double", 1e300),
        ("toEpochDays(x)", "string", "1.5"),
        ("x > 1", "string", "deleted"),
    ],
)
def test_what_nobody_means_is_an_error(session: SparkSession, function: str, kind: str, value: Any) -> None:
    with pytest.raises(PySparkException):
        spark(session, [function], [(kind, [value])])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_dates_are_read_as_pinot_reads_them(pinot: Pinot, session: SparkSession, pattern: str) -> None:
    moments = [0, 1_577_836_799_999, 1_582_934_400_000, -62_135_596_800_000, 253_402_300_799_999]
    shown = f"toDateTime(x, {_text(pattern)})"
    texts = spark(session, [shown], [("bigint", moments)])[shown, 0]
    function = f"fromDateTime(x, {_text(pattern)})"
    assert differences(pinot, session, [function], [("string", [None, *texts])]) == []


@pytest.mark.parametrize("text", ["2020-1-5", "12020-01-05", "2020-02-30", " 2020-01-05", "2020-01-05x"])
def test_a_date_that_is_nearly_right_is_an_error(session: SparkSession, text: str) -> None:
    with pytest.raises(PySparkException):
        spark(session, ["fromDateTime(x, 'yyyy-MM-dd')"], [("string", [text])])
