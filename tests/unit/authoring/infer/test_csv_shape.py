"""How a CSV file is written."""

from __future__ import annotations

import pytest

from pinot_assets.authoring.infer.csv_shape import shape_of
from pinot_assets.core.file_errors import Unreadable
from pinot_assets.ingest.contract.csv_settings import CsvSettings


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_delimiter_is_the_one_that_all_rows_agree_on(delimiter: str) -> None:
    text = f'a{delimiter}b\n"1{delimiter}1"{delimiter}2\n3{delimiter}4\n'
    shape = shape_of(text)
    assert (shape.delimiter, shape.names, shape.has_header) == (delimiter, ("a", "b"), True)
    assert CsvSettings.from_reader(shape.reader).delimiter == delimiter


@pytest.mark.parametrize(
    "text",
    [
        "1,x\n2,y\n",
        "x,y\nx,z\n",
        "2024-01-05,x\n2024-01-06,y\n",
        "true,x\n",
        "2019,2020\n2020,2021\n",
        "5,2020\n6,x\n",
        "Rome,Rome\nBonn,Paris\n",
        "1,x\n2,5\n",
    ],
)
def test_a_first_row_of_values_is_no_header(text: str) -> None:
    shape = shape_of(text)
    assert not shape.has_header
    assert shape.reader == {"header": "c1,c2"}
    assert "no header found" in shape.doubt


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (",a,b\n0,x,y\n1,x,z\n", ("c1", "a", "b")),
        (",a,b\n0,1,2\n", ("c1", "a", "b")),
        ("a,b,c,\n1,2,3,\n", ("a", "b", "c", "c4")),
        ("id,v,v\n1,2,3\n", ("id", "v", "v_3")),
        ("country,2019,2020\nDE,5,7\nFR,6,8\n", ("country", "c2_2019", "c3_2020")),
        ("id,1st,note\n1,x,y\n", ("id", "c2_1st", "note")),
        ("id,when\n7,2024-01-05\n", ("id", "when")),
        ("id,5\n1,2\n3,x\n,z\n", None),
        ("1,NA\n2,5\n", None),
    ],
)
def test_types_tell_a_header(text: str, names: tuple[str, ...] | None) -> None:
    shape = shape_of(text)
    assert shape.has_header is (names is not None)
    if names is not None:
        assert shape.names == names
        assert shape.doubt == ""
        assert CsvSettings.from_reader(shape.reader).header in (None, names)


def test_a_header_among_texts_is_a_doubt() -> None:
    shape = shape_of("Ann,Rome\nBob,Paris\n")
    assert shape.has_header
    assert "taken as the header" in shape.doubt


@pytest.mark.parametrize("delimiter", ["\t", ";", "|", ","])
def test_a_ragged_row_does_not_hide_the_delimiter(delimiter: str) -> None:
    rows = ["a;b;c", *(f"{n};x;2,5" for n in range(30)), "31;x", "32;x;2,5;z"]
    text = "\n".join(rows).replace(",", "." if delimiter == "," else ",").replace(";", delimiter)
    shape = shape_of(text)
    assert (shape.delimiter, shape.names) == (delimiter, ("a", "b", "c"))


def test_decimal_commas_are_no_delimiters() -> None:
    assert shape_of("a;b\n" + "1,5;2,5\n" * 30 + "1,5\n").delimiter == ";"


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
