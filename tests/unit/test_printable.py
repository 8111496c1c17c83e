from __future__ import annotations

import io
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

import pinot_assets
from pinot_assets.cli.progress import ConsoleProgress
from pinot_assets.cli.terminal import Terminal
from pinot_assets.errors import PinotError
from pinot_assets.printable import visible

STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
HOSTILE = [
    "\x1b[2J\x1b[1;1H",
    "\x1b]0;title\x07",
    "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
    "\x9b31m",
    "a\rb",
    "a\x08b",
    "\u202egnp.exe",
    "\u2066x\u2069",
    "\udc80",
    "\x00",
    "\x7f",
]


@given(st.text(st.characters()))
def test_nothing_steers_afterwards_and_the_rest_is_as_it_was(text: str) -> None:
    shown = visible(text)
    assert STEERING.search(shown) is None
    shown.encode()
    if STEERING.search(text) is None and not re.search("[\U000e0000-\U000e007f]", text):
        assert shown == text
    assert visible(shown) == shown


@pytest.mark.parametrize("text", ["a\tb\nc", "日本語", "עברית", "naïve 👩‍👩‍👧", "back\\slash", "100 %"])
def test_what_people_write_stays(text: str) -> None:
    assert visible(text) == text


def test_what_would_steer_is_written_out() -> None:
    assert visible("\x1b[31mred\u202e") == "\\x1b[31mred\\u202e"


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_an_error_says_nothing_that_steers(text: str) -> None:
    error = PinotError(f"a {text}", why=f"b {text}", hint=f"c {text}")
    for said in (str(error), error.in_one_line, error.args[0], str(pickle.loads(pickle.dumps(error)))):
        assert STEERING.search(said) is None


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_nothing_that_is_printed_steers(text: str) -> None:
    printed = io.StringIO()
    terminal = Terminal(file=printed, width=60)
    table = Table(title=Text(text))
    table.add_column(Text(text))
    table.add_row(text, style=None)
    terminal.print(text, markup=False)
    terminal.print(Text(text), Panel(Text(text)), table)
    with ConsoleProgress(terminal) as progress:
        progress.note(text)
    shown = printed.getvalue()
    assert STEERING.search(shown) is None
    shown.encode()


def test_colours_of_our_own_stay() -> None:
    printed = io.StringIO()
    Terminal(file=printed, force_terminal=True, color_system="standard", highlight=False).print(
        "[red]error[/]: \x1b[2J"
    )
    assert printed.getvalue() == "\x1b[31merror\x1b[0m: \\x1b[2J\n"


def test_there_is_one_door_to_the_terminal() -> None:
    folder = Path(pinot_assets.__file__).parent
    others = [
        path.name
        for path in folder.rglob("*.py")
        if path.name != "terminal.py" and re.search(r"\bConsole\(|\brich import print\b", path.read_text())
    ]
    assert others == []
