"""What people see of each command on a terminal of 80 columns: in colours, without, and in ASCII."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.processes.shell import call
from fakes.processes.terminal import COLUMNS, Seen, on_terminal
from fakes.tables import write_files, write_table

from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.settings.local_stack import StackState

pytestmark = pytest.mark.integration

COLOURS = {"LANG": "C.UTF-8"}
PLAIN = {"LANG": "C.UTF-8", "NO_COLOR": "1"}
ASCII = {"LANG": "C", "PYTHONIOENCODING": "ascii"}
LOCALE_C = {"LANG": "C"}
MODES = (COLOURS, PLAIN, ASCII, LOCALE_C)
READERS = ("plan", "history", "status", "snapshots")
"""Commands whose lines are whole in a pipe, so that they can be compared with what the terminal shows."""
_COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3|4|9)\d")


class Person:
    """Somebody at a terminal, with one table."""

    def __init__(self, folder: Path, stack: StackState) -> None:
        self.folder, self.table = folder, f"terminal_{time.time_ns()}"
        write_table(folder, self.table)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PINOT_", "LC_", "NO_COLOR"))}
        self._environment = kept | {
            "PINOT_CONTROLLER_URL": stack.controller_url,
            "PINOT_ZOOKEEPER": stack.zookeeper,
        }

    def sees(self, mode: dict[str, str], *words: str, code: int = 0) -> Seen:
        """What a command leaves on the terminal; it must end with this code."""
        encoding = mode.get("PYTHONIOENCODING", "utf-8")
        seen = on_terminal(words, str(self.folder), self._environment | mode, encoding)
        assert seen.code == code, seen.text
        assert "Traceback" not in seen.text
        assert max(map(len, seen.lines), default=0) <= COLUMNS
        if mode is not COLOURS:
            assert not _COLOUR.search(seen.raw) or mode is not PLAIN, seen.raw
        if mode in (ASCII, LOCALE_C):
            assert seen.raw.isascii(), seen.raw
        return seen

    def pipes(self, *words: str) -> str:
        """What the same command writes into a pipe."""
        code, out, err = call(words, str(self.folder), self._environment | COLOURS)
        assert code == 0, err
        return out


@pytest.fixture
def person(stack: StackState, tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path, stack)
    yield person
    with HttpPinotClient(PinotConnection(stack.controller_url)) as pinot:
        if pinot.get_table_config(person.table) is not None:
            pinot.delete_table(person.table)
        pinot.delete_schema(person.table)


def words_of(text: str) -> list[str]:
    """Words but for what changes by itself from one look to the next: room, and the time of day."""
    return re.sub(r"\nroom\n.*?\n\n|\d\d:\d\d:\d\d", "\n", text, flags=re.DOTALL).split()


def without_asked_by(listed: str) -> str:
    """A list without the column for which 80 columns may have no room; other text as it is."""
    lines = listed.splitlines()
    head = next((line for line in lines if "asked by" in line), None)
    if head is None:
        return listed
    begin = head.index("asked by")
    later = head[begin:].removeprefix("asked by")
    end = len(head) - len(later.lstrip()) if later.strip() else None
    return "\n".join(line[:begin] + ("" if end is None else line[end:]) for line in lines)


def test_everything_fits_the_terminal(person: Person) -> None:
    table = person.table
    person.sees(COLOURS, "tables", "apply", table, "--yes")
    write_files(person.folder, F1="a b", F2="c")
    plan = person.sees(PLAIN, "plan", table)
    assert plan.screen[-4].startswith(f"→ a new session builds {2} files")
    assert plan.screen[-1].startswith(f"  pinot-assets run {table} --plan ") or len(table) + 70 > COLUMNS
    run = person.sees(PLAIN, "run", table)
    assert "switched: 2 files, 2 segments, 3 rows are visible" in run.lines
    assert re.search(r"^✓ \d+ checks passed$", run.text, re.MULTILINE)
    write_files(person.folder, F2="c d", F3="e")
    person.sees(COLOURS, "run", table, "--verbose")
    write_files(person.folder, F4="f")
    run = person.sees(ASCII, "run", table)
    assert re.search(r"^ok \d+ checks passed$", run.text, re.MULTILINE)

    (person.folder / "source" / "F5.csv").write_bytes(b"v\n\xff\xfe broken \xff\n")
    failed = person.sees(PLAIN, "run", table, code=2)
    assert "".join(failed.lines).count("F5.csv") == 1, failed.text
    assert failed.lines[-1] == f"  pinot-assets run {table}"
    assert "not switched, queries still see the former state" in failed.text
    for mode in MODES:
        watched = person.sees(mode, "watch", table, "--once", code=2)
        assert " failed " in " ".join(watched.text.split())
    for command in READERS:
        piped = person.pipes(command, table)
        for mode in (COLOURS, PLAIN):
            printed = person.sees(mode, command, table).printed
            shown = "\n".join(printed)
            whole = piped if "asked by" in shown else without_asked_by(piped)
            assert words_of(shown) == words_of(whole), "no word is broken"
            for line in printed:
                is_command = line.startswith("  pinot-assets ")
                assert len(line) <= COLUMNS or is_command or max(map(len, line.split())) > COLUMNS // 2, line
        for mode in (ASCII, LOCALE_C):
            seen = person.sees(mode, command, table).text
            assert "\\u" not in seen, "each mark of ours has a stand-in"
    for mode in MODES:
        seen = on_terminal(("doctor",), str(person.folder), person._environment | mode)
        assert "Python 3." in seen.text
        assert max(map(len, seen.lines)) <= COLUMNS
