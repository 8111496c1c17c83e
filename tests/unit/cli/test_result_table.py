from __future__ import annotations

import pytest
from rich.cells import cell_len

from pinot_assets.cli.result_table import ResultColumn, layout

COLUMNS = (ResultColumn("shop"), ResultColumn("rows", is_number=True))


def test_numbers_stand_at_the_right_edge() -> None:
    table = layout(COLUMNS, [["Bonn", "7"], ["Köln", "12345"]], None)
    assert table.head == "shop   rows"
    assert table.lines == ("Bonn      7", "Köln  12345")
    assert not table.is_cut


def test_wide_characters_are_counted_as_they_are_shown() -> None:
    table = layout((ResultColumn("a"), ResultColumn("b")), [["日本", "x"], ["ab", "y"]], None)
    assert table.lines == ("日本  x", "ab    y")


def test_the_widest_text_is_cut_and_no_number() -> None:
    table = layout(COLUMNS, [["x" * 50, "123456789012"]], 30)
    assert table.lines == (f"{'x' * 15}…  123456789012",)
    assert table.is_cut
    assert all(cell_len(line) <= 30 for line in (table.head, *table.lines))


def test_what_leaves_the_process_whole_is_not_cut() -> None:
    assert layout(COLUMNS, [["x" * 500, "1"]], None).lines == (f"{'x' * 500}     1",)


def test_columns_that_do_not_fit_have_a_line_each() -> None:
    columns = [ResultColumn(f"column{number}") for number in range(9)]
    table = layout(columns, [[str(number) * 40 for number in range(9)]], 40)
    assert table.head == ""
    assert table.lines[0] == "row 1"
    assert table.lines[1] == f"  column0  {'0' * 28}…"
    assert len(table.lines) == 10
    assert all(cell_len(line) <= 40 for line in table.lines)
    assert table.is_cut


@pytest.mark.parametrize(
    ("value", "shown"), [("a\nb\tc", "a\\nb\\tc"), ("\x1b[2J", "\\x1b[2J"), ("[red]x", "[red]x")]
)
def test_a_value_stays_in_its_line_and_steers_no_terminal(value: str, shown: str) -> None:
    assert layout((ResultColumn("a"),), [[value]], None).lines == (shown,)


def test_no_rows_leave_the_names() -> None:
    table = layout(COLUMNS, [], 80)
    assert (table.head, table.lines) == ("shop  rows", ())
