"""Roles, times and keys of columns that were seen."""

from __future__ import annotations

import pytest

from pinot_assets.infer.column import Column, absent, of_cells
from pinot_assets.infer.draft import merged
from pinot_assets.infer.kinds import Kind
from pinot_assets.infer.proposal import Field, described, propose, words_of
from pinot_assets.segment.types import FieldType


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
    (found,) = propose({"Order Date": Column(Kind.DATE, rows=1)}).fields
    assert (found.name, found.source) == ("Order_Date", "Order Date")
    assert found.transform == "date_format(`Order Date`, 'yyyy-MM-dd')"
    assert "transforms.Order_Date" in found.why


def test_what_was_seen_is_told_without_anybodys_texts() -> None:
    cells = ["alice", "bob", "bob", ""]
    assert described(of_cells(cells, {""})) == "2 values in 4 rows, 1 of them empty"
    assert described(of_cells(["5", "9"], {""})) == "2 values in 2 rows, 5 to 9"
    assert described(absent(1)) == "no value in 1 row"
    assert described(Column(absent(1).kind.JSON, rows=3)) == "3 rows"


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
