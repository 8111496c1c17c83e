"""Roles, times and keys of columns that were seen."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pinot_assets.authoring.infer.column import (
    SampledColumn,
    ValueKind,
    absent,
    of_arrow,
    of_cells,
    of_members,
)
from pinot_assets.authoring.infer.draft import merged
from pinot_assets.authoring.infer.proposal import Field, described, propose, words_of
from pinot_assets.segment.column.types import FieldType


def field(name: str, *cells: str) -> Field:
    (found,) = propose({name: of_cells(cells, {""})}).fields
    return found


@pytest.mark.parametrize(
    ("name", "cells", "data_type", "written"),
    [
        ("at", ["2024-01-05T10:00:00Z"], "TIMESTAMP", "TIMESTAMP"),
        ("at", ["2024-01-05T10:00:00"], "STRING", "1:SECONDS:SIMPLE_DATE_FORMAT:yyyy-MM-dd'T'HH:mm:ss"),
        ("at", ["2026-01-01 10:00:00"], "STRING", "1:SECONDS:SIMPLE_DATE_FORMAT:yyyy-MM-dd HH:mm:ss"),
        (
            "at",
            ["2024-01-05 10:00:00.123"],
            "STRING",
            "1:MILLISECONDS:SIMPLE_DATE_FORMAT:yyyy-MM-dd HH:mm:ss.SSS",
        ),
        ("day", ["2024-01-05", "2024-01-06"], "STRING", "1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd"),
        ("day", ["20240105", "20240106"], "INT", "1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd"),
        ("ts", ["1700000000000"], "LONG", "1:MILLISECONDS:EPOCH"),
        ("event_time", ["1700000000"], "LONG", "1:SECONDS:EPOCH"),
    ],
)
def test_times(name: str, cells: list[str], data_type: str, written: str) -> None:
    found = field(name, *cells)
    assert (found.role, found.data_type, found.format) == (FieldType.DATE_TIME, data_type, written)


@pytest.mark.parametrize(
    ("name", "cells", "role", "data_type"),
    [
        ("year", ["2013", "2014"], FieldType.DIMENSION, "INT"),
        ("sku", ["20240105"], FieldType.DIMENSION, "INT"),
        ("order_id", ["1700000000000"], FieldType.DIMENSION, "LONG"),
        ("time_id", ["1700000000000"], FieldType.DIMENSION, "LONG"),
        ("day", ["2024-01-05", "soon"], FieldType.DIMENSION, "STRING"),
        ("price", ["1.5"], FieldType.METRIC, "DOUBLE"),
        ("count", ["3"], FieldType.METRIC, "INT"),
        ("count", ["3\x1e"], FieldType.METRIC, "INT"),
        ("latitude", ["1.5"], FieldType.DIMENSION, "DOUBLE"),
        ("tags", ["a;b", "c"], FieldType.DIMENSION, "STRING"),
        ("price", ["1.5;2"], FieldType.DIMENSION, "DOUBLE"),
        ("text", ["one; two", "a"], FieldType.DIMENSION, "STRING"),
        ("gone", ["", ""], FieldType.DIMENSION, "STRING"),
    ],
)
def test_dimensions_and_metrics(name: str, cells: list[str], role: FieldType, data_type: str) -> None:
    found = field(name, *cells)
    assert (found.role, found.data_type) == (role, data_type)


def test_the_time_of_the_table_has_a_value_in_every_row_and_the_likeliest_name() -> None:
    times = ["2024-01-05T10:00:00Z", "2024-01-05T10:00:01Z"]
    columns = {
        "updated": of_cells(times, {""}),
        "event_time": of_cells(times, {""}),
        "time": of_cells([times[0], ""], {""}),
    }
    assert propose(columns).time == "event_time"
    del columns["event_time"]
    assert propose(columns).time == "updated"
    del columns["updated"]
    assert propose(columns).time == ""


def test_keys_have_another_value_in_every_row_of_all_files() -> None:
    one = {
        "id": of_cells(["1", "2"], {""}),
        "n": of_cells(["1", "2"], {""}),
        "half": of_cells(["1.5", "2"], {""}),
    }
    two = {
        "id": of_cells(["3", "4"], {""}),
        "n": of_cells(["2", "3"], {""}),
        "half": of_cells(["3", "4"], {""}),
    }
    assert propose(merged([(2, one), (2, two)])).keys == ("id",)
    assert propose(merged([(2, one), (2, {})])).keys == ()


def test_columns_of_several_files_are_one_table() -> None:
    found = merged([(2, {"a": of_cells(["1", "2"], {""})}), (3, {"b": of_cells(["x", "", "y"], {""})})])
    assert {name: (column.rows, column.nulls) for name, column in found.items()} == {"a": (5, 3), "b": (5, 3)}
    proposal = propose(found)
    assert proposal.has_nulls
    assert [f.data_type for f in proposal.fields] == ["INT", "STRING"]


def test_a_blank_in_a_name_makes_another_one_and_a_transform() -> None:
    columns = {
        "a_b": of_cells(["1"], {""}),
        "a b": of_cells(["2", "3"], {""}),
        "made at": of_cells(["2024-01-05T10:00:00Z"], {""}),
        "a.b": of_cells(["x"], {""}),
        "\u3000": of_cells(["x"], {""}),
        "no\u00a0break": of_cells(["x"], {""}),
        "with ` mark": of_cells(["x"], {""}),
    }
    proposal = propose(columns)
    assert {field.name: (field.source, field.transform) for field in proposal.fields} == {
        "a_b": ("", ""),
        "a_b_2": ("a b", "`a b`"),
        "made_at": ("made at", "`made at`"),
        "a.b": ("", ""),
        "c5": ("\u3000", "`\u3000`"),
        "with_mark": ("with ` mark", "`with `` mark`"),
    }
    assert (proposal.time, proposal.keys) == ("made_at", ("a_b_2",))
    assert list(proposal.left_out) == ["no\u00a0break"]  # no blank to Pinot, but outside of ASCII


def test_a_day_with_a_blank_in_its_name_is_made_a_text_of_its_own_column() -> None:
    (found,) = propose({"Order Date": SampledColumn(ValueKind.DATE, rows=1)}).fields
    assert (found.name, found.source) == ("Order_Date", "Order Date")
    assert found.transform == "date_format(`Order Date`, 'yyyy-MM-dd')"
    assert "transforms.Order_Date" in found.why


def test_what_was_seen_is_told_without_anybodys_texts() -> None:
    cells = ["alice", "bob", "bob", ""]
    assert described(of_cells(cells, {""})) == "2 values in 4 rows, 1 of them empty"
    assert described(of_cells(["5", "9"], {""})) == "2 values in 2 rows, 5 to 9"
    assert described(absent(1)) == "no value in 1 row"
    assert described(SampledColumn(absent(1).kind.JSON, rows=3)) == "3 rows"


def test_words_of_names() -> None:
    assert words_of("eventTime_ms") == ["event", "time", "ms"]
    assert words_of("UTCDate2") == ["utc", "date", "2"]


@pytest.mark.parametrize(
    ("name", "cells", "data_type", "says"),
    [
        ("phone", ["+4930123456", "+441234"], "STRING", ""),
        ("zip", ["10115", "80331"], "INT", "make it STRING"),
        ("zip", ["10115", "01067"], "STRING", ""),
        ("postalCode", ["10115"], "INT", "make it STRING"),
        ("n", ["10115"], "INT", ""),
        ("delta", ["-5", "0"], "INT", ""),
    ],
)
def test_digits_that_may_be_codes(name: str, cells: list[str], data_type: str, says: str) -> None:
    found = field(name, *cells)
    assert (found.data_type, bool(found.doubt)) == (data_type, bool(says))
    assert says in found.doubt


def test_a_semicolon_in_an_address_makes_no_list() -> None:
    found = field(
        "url", *["https://a.example/x"] * 9, "https://a.example/x;jsessionid=1", "https://a.example/;v"
    )
    assert (found.multi, found.doubt) == (False, "")


@pytest.mark.parametrize(("lists", "multi"), [(1, False), (10, True)])
def test_lists_are_asked_for_a_share_of_the_cells(lists: int, multi: bool) -> None:
    found = field("tags", *["a;b"] * lists, *["c"] * (100 - lists))
    assert found.multi is multi
    assert found.doubt.startswith(f"{lists} cell")
    assert ("several values" in found.doubt) is multi


def test_numbers_and_texts_together_have_no_span() -> None:
    columns = merged([(1, {"a": of_cells(["1"], {""})}), (1, {"a": of_cells(["x"], {""})})])
    assert described(columns["a"]) == "2 values in 2 rows"


def of_days(*days: int) -> SampledColumn:
    return of_arrow(pa.chunked_array([pa.array(days, pa.date32())]))


def of_moments(unit: str, *moments: int) -> SampledColumn:
    return of_arrow(pa.chunked_array([pa.array(moments, pa.timestamp(unit))]))


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("birth_date", of_cells(["1952-01-01", "2001-01-01"], {""})),
        ("valid_to", of_cells(["2024-01-01", "9999-12-31"], {""})),
        ("created", of_cells(["1969-12-31T23:59:59Z"], {""})),
        ("created", of_cells(["1970-12-31T23:00:00-00:30"], {""})),
        ("created", of_members(["0001-01-01T00:00:00+02:00"])),
        ("day", of_cells(["19520101", "20240101"], {""})),
        ("day", of_days(-6575, 0)),
        ("day", of_days(2_932_896)),
        ("at", of_moments("s", 253_402_300_799)),
        ("at", of_moments("us", -1)),
        ("at", of_moments("ns", -1, 1_700_000_000_000_000_000)),
    ],
)
def test_a_time_that_pinot_takes_for_no_tables_time_is_told_and_not_chosen(
    name: str, column: SampledColumn
) -> None:
    proposal = propose({name: column})
    (found,) = proposal.fields
    assert (proposal.time, found.role) == ("", FieldType.DATE_TIME)
    assert "before 1971 or after 2070" in found.doubt
    beside = propose({name: column, "seen": of_cells(["2024-01-01"] * column.rows, {""})})
    assert beside.time == "seen"
    assert "it is not timeColumnName" in beside.fields[0].why
    assert beside.fields[0].doubt == ""


@pytest.mark.parametrize(
    "column",
    [
        of_cells(["1971-01-01", "2071-01-01"], {""}),
        of_cells(["1971-01-01T00:00:00Z"], {""}),
        of_days(365, 36_890),
        of_moments("ms", 1_700_000_000_000),
    ],
)
def test_times_that_pinot_takes_are_chosen(column: SampledColumn) -> None:
    proposal = propose({"at": column})
    assert (proposal.time, proposal.fields[0].doubt) == ("at", "")


def test_a_time_that_is_far_in_one_file_is_far() -> None:
    near, far = of_cells(["2024-01-01"], {""}), of_cells(["9999-12-31"], {""})
    assert propose(merged([(1, {"day": near}), (1, {"day": far})])).time == ""
    assert propose(merged([(1, {"day": far}), (1, {"day": near})])).time == ""


def test_seconds_that_look_like_an_hour_long_ago_are_seconds() -> None:
    assert field("ts", "1712010101", "1712010102").format == "1:SECONDS:EPOCH"
    assert field("day", "17120101").format == "1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd"


def test_files_whose_texts_have_no_pattern_in_common_make_no_dates() -> None:
    moments, days = of_cells(["2024-01-05T10:00:00Z"], {""}), of_cells(["2024-01-05"], {""})
    for files in ((moments, days), (days, moments)):
        (found,) = propose(merged([(1, {"at": column}) for column in files])).fields
        assert (found.role, found.data_type) == (FieldType.DIMENSION, "STRING")
    nothing = of_cells([""], {""})
    for files in ((nothing, days), (days, nothing)):
        (found,) = propose(merged([(1, {"at": column}) for column in files])).fields
        assert found.role is FieldType.DATE_TIME


@pytest.mark.parametrize(
    "column",
    [
        of_members([[], None]),
        of_arrow(pa.chunked_array([pa.array([None, []], pa.list_(pa.string()))])),
        of_arrow(pa.chunked_array([pa.array([None], pa.list_(pa.string()))])),
        of_arrow(pa.chunked_array([pa.array([[None]], pa.list_(pa.null()))])),
        of_arrow(pa.chunked_array([pa.array([], pa.list_(pa.string()))])),
    ],
)
def test_lists_without_a_value_are_lists(column: SampledColumn) -> None:
    (found,) = propose({"tags": column}).fields
    assert (found.data_type, found.multi) == ("STRING", True)


def odd(cells: list[str]) -> str:
    """The doubt about a csv column of these cells, with its odd value."""
    (field,) = propose({"c": of_cells(cells, {""})}).fields
    return f"{field.data_type}: {field.doubt} {field.odd_value}".strip()


def test_a_few_texts_among_many_numbers_are_told_with_the_first() -> None:
    numbers = [str(n) for n in range(400)]
    assert odd([*numbers[:5], "", "n/a", *numbers, "?"]) == (
        "STRING: STRING because of 2 values in 407, first in row 7; the others are INT n/a"
    )
    assert odd([*numbers, "2.5", "x" * 50]).endswith(f"the others are DOUBLE {'x' * 40}…")
    assert "the others are BOOLEAN no" in odd([*["true"] * 20, "no"])
    moments = [f"2024-01-05T10:00:{n:02}Z" for n in range(20)]
    assert "the others are TIMESTAMP" in odd([*moments, "yesterday"])


@pytest.mark.parametrize(
    "cells",
    [
        [*map(str, range(400))],
        ["a"] * 400,
        [*map(str, range(100)), *["x"] * 5],
        [*map(str, range(5)), "x"],
        ["007", *map(str, range(1, 400)), "0815", "0816", "0817", "0818"],
        [*["a"] * 400, "1"],
        [],
    ],
    ids=["numbers", "texts", "many", "few rows", "codes", "a number among texts", "nothing"],
)
def test_no_column_is_doubted_without_such(cells: list[str]) -> None:
    assert "because of" not in odd(cells)


def test_odd_values_of_several_files_count_together() -> None:
    first, second = of_cells(["1"] * 200, {""}), of_cells([*["2"] * 200, "n/a"], {""})
    columns = [(200, {"c": first.in_file("a.csv")}), (201, {"c": second.in_file("b.csv")})]
    (field,) = propose(merged(columns)).fields
    assert field.doubt == ("STRING because of 1 value in 401, first in row 201 of b.csv; the others are INT")


def test_a_text_among_numbers_of_json_is_told() -> None:
    (field,) = propose({"c": of_members([*range(50), None, "n/a"])}).fields
    assert (field.odd_value, "1 value in 51, first in row 52" in field.doubt) == ("n/a", True)
