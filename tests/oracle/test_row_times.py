"""`rowTimeValueCheck` against Pinot's own builder: which times fail the build, and what the others become."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest
from fakes.processes.other_jvm import java_fails
from oracle.case import DAY_MS, Case

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.errors import BuildError
from pinot_assets.segment.functions.time_format import VALID_FROM_MS, VALID_TO_MS
from pinot_assets.segment.values.normalize import Cut

ALONE: Final[JsonObject] = {"rowTimeValueCheck": True, "segmentTimeValueCheck": False}
"""Without the check of the segment, which would refuse the same values, and some valid ones (5:MINUTES)."""
REPLACED: Final[JsonObject] = {**ALONE, "continueOnError": True}
JANUARY: Final = 1_577_836_800_000


class Times(NamedTuple):
    """Values of a time column.

    :ivar past: valid ones before now, with the first valid one: what Pinot takes for now is then the largest.
    :ivar last: the last valid one.
    :ivar outside: not valid.
    """

    kind: str
    text: str
    past: list[JsonValue]
    last: JsonValue
    outside: list[JsonValue]

    def field(self, **more: JsonValue) -> JsonObject:
        options = {"format": self.text, "granularity": "1:DAYS", "section": "dateTime"}
        return {"dataType": self.kind, **options, **more}


CASES: Final = (
    Times(
        "LONG",
        "1:MILLISECONDS:EPOCH",
        [VALID_FROM_MS, JANUARY, None],
        VALID_TO_MS,
        [VALID_FROM_MS - 1, VALID_TO_MS + 1, 0, -5, 2**62],
    ),
    Times("INT", "1:SECONDS:EPOCH", [VALID_FROM_MS // 1000, JANUARY // 1000], 2**31 - 1, [0, -1]),
    Times("INT", "1:DAYS:EPOCH", [365, JANUARY // DAY_MS], 36_890, [364, 36_891, 2**31 - 1]),
    Times("TIMESTAMP", "TIMESTAMP", [VALID_FROM_MS, JANUARY], VALID_TO_MS, [VALID_TO_MS + 1, 0]),
    Times(
        "STRING",
        "SIMPLE_DATE_FORMAT|yyyy-MM-dd",
        ["1971-01-01", "2020-01-01"],
        "2071-01-01",
        ["1970-12-31", "2071-01-02"],
    ),
    Times(
        "INT", "SIMPLE_DATE_FORMAT|yyyyMMdd", [19_710_101, 20_200_101], 20_710_101, [19_701_231, 20_710_102]
    ),
)
MINUTES: Final = Times("LONG", "5:MINUTES:EPOCH", [105_120, 5_259_456], 10_624_320, [105_119, 10_624_321, -1])
each_case = pytest.mark.parametrize("times", CASES, ids=[f"{times.kind} {times.text}" for times in CASES])
and_minutes = pytest.mark.parametrize(
    "times", [*CASES, MINUTES], ids=lambda times: f"{times.kind} {times.text}"
)


@each_case
def test_a_time_that_is_replaced_becomes_now(case: Case, times: Times) -> None:
    rows = [*times.past, *times.outside, *times.outside, *times.past]
    columns = {"t": (times.field(), rows), "n": ({"dataType": "INT"}, [*range(len(rows))])}
    segment = case.same(columns, time_column="t", ingestion=REPLACED)
    [stats] = [column for column in segment.columns if column.name == "t"]
    assert stats.cut == Cut(0, 0, 2 * len(times.outside))
    assert stats.nulls == 2 * len(times.outside) + rows.count(None)


@and_minutes
def test_a_time_that_is_replaced_becomes_the_default_if_that_is_valid(case: Case, times: Times) -> None:
    field = times.field(defaultNullValue=str(times.past[0]))
    rows = [*times.outside, times.last, *times.past]
    segment = case.same({"t": (field, rows)}, time_column="t", ingestion=REPLACED)
    assert segment.columns[0].nulls == len(times.outside) + rows.count(None)


@and_minutes
def test_alone_the_setting_fails_the_build_and_takes_what_is_valid(case: Case, times: Times) -> None:
    valid = [value for value in (*times.past, times.last) if value is not None]
    case.same({"t": (times.field(), valid)}, time_column="t", ingestion=ALONE)
    for value in times.outside:
        columns = {"t": (times.field(), [*valid, value])}
        with java_fails():  # Pinot builds first
            case.same(columns, time_column="t", ingestion=ALONE)
        with pytest.raises(BuildError, match=f"Time column t holds {value}, which does not lie within 1971"):
            case.ours(columns, time_column="t", ingestion=ALONE)


def test_without_a_time_column_the_setting_has_no_effect(case: Case) -> None:
    case.same({"t": (CASES[0].field(), [0, 5])}, ingestion=ALONE)


@pytest.mark.parametrize("ingestion", [ALONE, REPLACED])
def test_a_text_that_is_no_time_fails_here_whatever_pinot_makes_of_it(
    case: Case, ingestion: JsonObject
) -> None:
    columns = {"t": (CASES[4].field(), ["2020-01-01", "2020-1-5"])}
    with pytest.raises(BuildError, match="holds a value that is no time"):
        case.ours(columns, time_column="t", ingestion=ingestion)
