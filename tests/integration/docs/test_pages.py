"""Every command of the pages is typed, in the order in which they stand, on a real Pinot.

Pages of one story are read one after the other, at one table. What a page says that a command prints is
printed. A command that is not run says why on its page; unit/docs lists those.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.pages import ROOT, STORIES, Block, shell_blocks
from fakes.processes.shell import Line, Shell, Typed

from pinot_assets.local.sample_data import first_days, write_days
from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.settings.local_stack import StackState

pytestmark = pytest.mark.integration

_WILD = re.compile(
    r"(cp\d+-[0-9a-f]{6}|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: UTC)?|[0-9a-f]{8}(?:-[0-9a-f]{4,12}){4}|…)"
)
"""What is another one each time: a session, an instant, a lineage entry, and what the page leaves out."""


class Story:
    """A folder with the stack of the tests beside it, and a table of its own name.

    :ivar name: what the pages call the table.
    """

    def __init__(self, folder: Path, stack: StackState, name: str) -> None:
        self.folder, self.name = folder, name
        self.table = f"{name}_{time.time_ns()}"
        self.pinot = HttpPinotClient(PinotConnection(stack.controller_url))
        for inner in ("tables", "dagster"):
            (folder / inner).mkdir(parents=True)
        (folder / ".pinot-assets").symlink_to(stack.home)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PINOT_", "DAGSTER_"))}
        for variable, inner in (("DAGSTER_HOME", "dagster"), ("PINOT_ASSETS_DATA", "data")):
            environment[variable] = str(folder / inner)
        environment |= {"PINOT_ASSETS_STAGING": str(folder / "staging"), "COLUMNS": "200"}
        self.shell = Shell(folder, environment, self.resolve)

    def renamed(self, text: str) -> str:
        """With the table's own name for the one in the page."""
        return re.sub(rf"\b{self.name}(?=\b|_)", self.table, text)

    def resolve(self, word: str) -> str:
        """A segment's name stands for one that is there."""
        if not re.fullmatch(rf"{self.table}__cp\d+-[0-9a-f]{{6}}_\d+_\d+_\d+", word):
            return word
        return min(self.pinot.all_segments(self.table))

    def type(self, *commands: str) -> None:
        """Commands that no page tells of."""
        for typed in self.shell.type([Line(self.renamed(command)) for command in commands]):
            assert typed.code == 0, typed.output

    def read(self, page: str) -> None:
        """Type what stands in a page, and compare what it prints."""
        blocks = [block for block in shell_blocks(ROOT / page) if not block.not_run]
        assert blocks, f"{page} has nothing to be run"
        lines, owners = [], []
        for block in blocks:
            commands = [self.renamed(command) for command in block.commands()]
            codes = [0] * (len(commands) - 1) + [block.exit_code]
            lines += [Line(*both) for both in zip(commands, codes, strict=True)]
            owners += [block] * len(commands)
        typed = self.shell.type(lines)
        for block, one in zip(owners, typed, strict=True):
            assert one.code == one.line.code, f"{block.place}: {one.line.text}\n{one.output}"
            assert "Traceback" not in one.output, one.output
        for block in blocks:
            printed = [one for owner, one in zip(owners, typed, strict=True) if owner is block]
            self._compare(block, printed)

    def _compare(self, block: Block, printed: list[Typed]) -> None:
        output = " ".join(" ".join(one.output for one in printed).split())
        for line in block.shown:
            pieces = _WILD.split(" ".join(self.renamed(line).split()))
            pattern = "".join(re.escape(piece) if n % 2 == 0 else ".+?" for n, piece in enumerate(pieces))
            assert re.search(pattern, output), f"{block.place}: {line}\nis not in\n{output}"

    def close(self) -> None:
        """Take the table away."""
        if self.pinot.get_table_config(self.table) is not None:
            self.pinot.delete_table(self.table)
        if self.pinot.get_schema(self.table) is not None:
            self.pinot.delete_schema(self.table)
        self.pinot.close()


@contextmanager
def open_story(folder: Path, stack: StackState, name: str) -> Iterator[Story]:
    story = Story(folder, stack, name)
    try:
        yield story
    finally:
        story.close()


def test_sales(stack: StackState, tmp_path: Path) -> None:
    with open_story(tmp_path, stack, "sales") as story:
        for page in STORIES["sales"]:
            story.read(page)


def test_flights(stack: StackState, tmp_path: Path) -> None:
    """The table of the repository, of which a former run has published all files but the last."""
    with open_story(tmp_path, stack, "flights") as story:
        spec = story.renamed((ROOT / "tables" / "flights.yaml").read_text())
        (tmp_path / "tables" / f"{story.table}.yaml").write_text(spec)
        last = [
            path.rename(path.with_name(story.renamed(path.name)))
            for path in write_days(tmp_path / "data" / story.table, "csv", first_days(5))
        ][-1]
        content = last.read_bytes()
        last.unlink()
        (tmp_path / "data" / "events").mkdir()
        (tmp_path / "data" / "events" / "monday.csv").write_text("id,at\na,2026-01-05T10:00:00Z\n")
        story.type("pinot-assets tables apply flights", "pinot-assets run flights")
        last.write_bytes(content)
        for page in STORIES["flights"]:
            story.read(page)


def test_clicks(kafka_stack: StackState, tmp_path: Path) -> None:
    """First from files, then from a stream."""
    files, stream = STORIES["clicks"]
    with open_story(tmp_path / "files", kafka_stack, "clicks") as story:
        folder = tmp_path / "files" / "data" / story.table
        folder.mkdir(parents=True)
        (folder / "monday.csv").write_text(
            "id,at,count\na,2026-01-05T10:00:00Z,3\nb,2026-01-05T11:00:00Z,4\n"
        )
        story.read(files)
    with open_story(tmp_path / "stream", kafka_stack, "clicks") as story:
        story.read(stream)
