"""The first row of a CSV file, as both engines take it apart."""

from __future__ import annotations

import csv

import pytest

from pinot_assets.ingest.contract.csv_settings import CsvSettings


@pytest.mark.parametrize(
    ("settings", "text", "cells", "lines"),
    [
        (CsvSettings(), "a,b\n1,2\n", ["a", "b"], 1),
        (CsvSettings(), '\n\n"a\nb",c\n', ["a\nb", "c"], 4),
        (CsvSettings(), '"a ""b""",c\n', ['a "b"', "c"], 1),
        (CsvSettings(escape="\\"), r'"a\"b",c', ['a"b', "c"], 1),
        (CsvSettings(escape='"'), '"a ""b""",c\n', ['a "b"', "c"], 1),
        (CsvSettings(delimiter="|", quote="'"), "'a|b'|c\n", ["a|b", "c"], 1),
    ],
)
def test_the_first_row(settings: CsvSettings, text: str, cells: list[str], lines: int) -> None:
    assert settings.first_row(text) == (cells, lines)


@pytest.mark.parametrize("text", ["", "\n\n", "a" * 200_000 + ",b\n"])
def test_no_first_row(text: str) -> None:
    with pytest.raises(csv.Error):
        CsvSettings().first_row(text)
