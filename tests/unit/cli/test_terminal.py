"""How lines fit a terminal, and what stands in for marks that it cannot show."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from pinot_assets.cli import terminal
from pinot_assets.cli.driver import ConsoleProgress
from pinot_assets.cli.terminal import (
    Terminal,
    command_line,
    fit_output,
    lines_that_fit,
    new_console,
    table_lines,
    wrapped,
)
from pinot_assets.printable import ASCII_STAND_INS, STAND_INS

LABELLED = "  way back     after the switch: by one revert for 20 h; later by publishing the kept tars again"


def test_a_long_line_goes_on_below_its_text() -> None:
    lines = wrapped(Text(LABELLED), 60).plain.split("\n")
    assert lines == [
        "  way back     after the switch: by one revert for 20 h;",
        "               later by publishing the kept tars again",
    ]


def test_what_follows_a_mark_goes_on_right_of_it() -> None:
    lines = wrapped(Text("✗ row_change: half of the rows are gone"), 24).plain.split("\n")
    assert lines == ["✗ row_change: half of", "  the rows are gone"]


@given(st.lists(st.text("ab", min_size=1, max_size=30), min_size=1, max_size=30), st.integers(20, 90))
def test_no_word_is_broken_or_lost_and_no_line_of_several_words_is_too_wide(
    words: list[str], width: int
) -> None:
    lines = wrapped(Text("  note  " + " ".join(words)), width).plain.split("\n")
    assert " ".join(lines).split() == ["note", *words]
    for line in lines:
        if len(line) > width:
            assert max(map(len, line.split())) > width - len("  note  ")


@pytest.mark.parametrize("text", ["  pinot-assets run t --plan " + "0" * 80, "x" * 200, "short", "", " " * 9])
def test_what_people_copy_and_what_fits_stays(text: str) -> None:
    assert wrapped(Text(text), 80).plain == text


def test_styles_stay_where_they_were() -> None:
    styled = wrapped(Text.assemble("plain ", ("bold " * 20, "bold")), 40)
    bold = " ".join(styled.plain[span.start : span.end] for span in styled.spans if span.style == "bold")
    assert bold.split() == ["bold"] * 20


@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_a_terminal_gets_line_breaks(is_terminal: bool) -> None:
    printed = io.StringIO()
    console = Terminal(file=printed, width=40, force_terminal=is_terminal, soft_wrap=True, no_color=True)
    console.print("word " * 20)
    assert len(printed.getvalue().splitlines()) == (3 if is_terminal else 1)


def test_rows_are_aligned_below_their_header() -> None:
    lines = [line.plain for line in table_lines([("seq", "rows"), ("1", "2,000"), ("12", "3")])]
    assert lines == ["seq  rows", "1    2,000", "12   3"]


@pytest.mark.parametrize(
    ("width", "is_terminal", "head"),
    [(16, True, "seq  by   rows"), (10, True, "seq  rows"), (10, False, "seq  by   rows")],
)
def test_a_terminal_that_is_too_narrow_gets_no_spare_column(
    monkeypatch: pytest.MonkeyPatch, width: int, is_terminal: bool, head: str
) -> None:
    monkeypatch.setattr(terminal, "new_console", lambda: Terminal(width=width, force_terminal=is_terminal))
    lines = [line.plain for line in lines_that_fit([("seq", "by", "rows"), ("1", "ann", "2")], "by")]
    assert lines[0] == head
    assert ("ann" in lines[1]) is ("by" in head)


def test_a_command_is_a_line_of_its_own() -> None:
    assert command_line("pinot-assets run t").plain == "  pinot-assets run t"


def test_each_mark_that_this_program_prints_has_a_stand_in() -> None:
    for mark, stand_in in STAND_INS.items():
        assert stand_in.isascii()
        assert mark.encode("ascii", ASCII_STAND_INS) == stand_in.encode()
    assert "é\udc80".encode("ascii", ASCII_STAND_INS) == b"\\xe9\\udc80"


@pytest.mark.parametrize(
    ("encoding", "environment", "shown"),
    [
        ("utf-8", {"LANG": "de_DE.UTF-8"}, "✓"),
        ("utf-8", {}, "✓"),
        ("utf-8", {"LANG": "C"}, "ok"),
        ("utf-8", {"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}, "ok"),
        ("utf-8", {"LANG": "C", "PYTHONIOENCODING": "utf-8"}, "✓"),
        ("ascii", {"LANG": "de_DE.UTF-8"}, "ok"),
        ("latin-1", {}, "ok"),
    ],
)
def test_marks_are_what_the_output_can_show(
    encoding: str, environment: dict[str, str], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding=encoding, write_through=True)
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setattr("sys.stderr", stream)
    fit_output(environment)
    stream.write("✓")
    assert written.getvalue().decode(encoding) == shown


def test_stand_ins_bring_back_nothing_that_steers() -> None:
    """`visible` writes out what steers; stand-ins do not bring it back."""
    assert not any(re.search(r"[\x00-\x1f]", stand_in) for stand_in in STAND_INS.values())


def test_a_bar_fits_a_narrow_terminal_and_leaves_nothing_out() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    with ConsoleProgress(console) as progress:
        progress.building(dict.fromkeys(range(12_345), 1 << 20))
        progress.moving(123_456_789)
        with console.capture() as shown:
            console.print(progress._live.get_renderable())
    lines = shown.get().splitlines()
    assert max(map(len, lines)) <= 80
    assert "0 of 12,345 files, 123,456,789 rows" in " ".join(" ".join(lines).split())


def test_colons_around_a_word_stay(capsys: pytest.CaptureFixture[str]) -> None:
    """Rich shows `:b:` as a picture, and addresses and file names have colons."""
    new_console().print("a:b:c")
    assert capsys.readouterr().out == "a:b:c\n"
