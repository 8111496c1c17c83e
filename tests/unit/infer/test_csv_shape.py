"""How a CSV file is written."""

from __future__ import annotations

import pytest

from pinot_assets.build.csv_settings import CsvSettings
from pinot_assets.build.rejected import Unreadable
from pinot_assets.infer.csv_shape import shape_of


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_delimiter_is_the_one_that_all_rows_agree_on(delimiter: str) -> None:
    text = f'a{delimiter}b\n"1{delimiter}1"{delimiter}2\n3{delimiter}4\n'
    shape = shape_of(text)
    assert (shape.delimiter, shape.names, shape.has_header) == (delimiter, ("a", "b"), True)
    assert CsvSettings.from_reader(shape.reader).delimiter == delimiter


@pytest.mark.parametrize(
    "text",
    ["1,x\n2,y\n", "x,y\nx,z\n", "a,a\n1,2\n", "a,\n1,2\n", "2024-01-05,x\n2024-01-06,y\n", "true,x\n"],
)
def test_a_first_row_of_values_is_no_header(text: str) -> None:
    shape = shape_of(text)
    assert not shape.has_header
    assert shape.reader == {"header": "c1,c2"}


def test_a_header_over_nothing_is_one() -> None:
    assert shape_of("a,b\n").has_header


def test_names_that_queries_would_need_quotes_for_are_given_others() -> None:
    shape = shape_of("First Name,2nd,a-b,a b\nx,1,2,3\n")
    assert shape.names == ("First_Name", "c2_2nd", "a_b", "a_b_4")
    settings = CsvSettings.from_reader(shape.reader)
    assert settings.header == shape.names
    assert settings.skip_header


@pytest.mark.parametrize(("word", "null"), [("NULL", "NULL"), ("\\N", "\\N"), ("soon", "")])
def test_a_word_for_null_is_the_only_text_among_numbers(word: str, null: str) -> None:
    assert shape_of(f"a,b\n1,x\n{word},y\n").null == null
    assert shape_of(f"a,b\nz,x\n{word},y\n").null == ""


def test_a_text_without_rows() -> None:
    with pytest.raises(Unreadable):
        shape_of("\n\n")
