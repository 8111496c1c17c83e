"""The commands that pages show: blocks fenced as `bash`, the comments before them, what they say is printed.

CONTRIBUTING.md tells the convention. Nothing is run here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fakes.project import ROOT

PAGES: Final = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
PROGRAMS: Final = ("pinot-assets", "make", "dagster")
"""What a test can look up. Others (`export`, `rm`, `docker`) are the shell's business."""

STORIES: Final = {
    "sales": ("docs/tutorial.md", "docs/guides/consistent-push.md"),
    "flights": (
        "README.md",
        "docs/local-stack.md",
        "docs/guides/receipts.md",
        "docs/simulate.md",
        "docs/guides/plan.md",
        "docs/stuck.md",
    ),
    "clicks": ("docs/guides/start-from-files.md", "docs/guides/realtime.md"),
}
"""A table's name in the pages, and the pages that tests/integration/docs reads one after the other."""

_FENCE: Final = re.compile(r" *```(\w*)")
_NOT_RUN: Final = re.compile(r"<!-- not run: (.+) -->")
_EXITS: Final = re.compile(r"<!-- exits with (\d+) -->")
_SPAN: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_SEPARATORS: Final = frozenset(("&&", "||", "|", ";", "&", "(", ")"))


@dataclass(frozen=True)
class Block:
    """What one fence holds, or what stands indented in place of one.

    :ivar line: of its first line in the page, from 1.
    :ivar language: as the fence says; empty without.
    :ivar exit_code: of its last command; the ones before it succeed.
    :ivar not_run: why no test runs it; empty where one does.
    :ivar shown: what the page says that it prints: the `text` block right after it.
    """

    page: Path
    line: int
    language: str
    lines: tuple[str, ...]
    exit_code: int = 0
    not_run: str = ""
    shown: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """`docs/tutorial.md:17`."""
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"

    def commands(self) -> Iterator[str]:
        """Its shell commands, one a line, or several lines that belong together."""
        waiting: list[str] = []
        end_of_here = ""
        for line in self.lines:
            if not waiting and (not line.strip() or line.lstrip().startswith("#")):
                continue
            waiting.append(line)
            if here := re.search(r"<<-?\s*['\"]?(\w+)['\"]?", line):
                end_of_here = here[1]
            if line.endswith("\\") or (end_of_here and line.strip() != end_of_here):
                continue
            yield "\n".join(waiting)
            waiting, end_of_here = [], ""
        assert not waiting, f"{self.place}: a command that does not end: {waiting}"


def blocks(page: Path) -> list[Block]:
    """All blocks of a page in order."""
    collected: list[Block] = []
    not_run, exit_code, after_bash = "", 0, False
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if said := _NOT_RUN.fullmatch(line.strip()):
            not_run = said[1]
        elif said := _EXITS.fullmatch(line.strip()):
            exit_code = int(said[1])
        elif fence := _FENCE.match(line):
            start = number
            while not _FENCE.match(lines[number]):
                number += 1
            inside = tuple(lines[start:number])
            number += 1
            if fence[1] == "text" and after_bash:
                collected[-1] = _showing(collected[-1], inside)
            else:
                collected.append(Block(page, start + 1, fence[1], inside, exit_code, not_run))
            not_run, exit_code, after_bash = "", 0, fence[1] == "bash"
        elif re.match(r"    \S", line) and not lines[number - 2].strip():
            start = number - 1
            while number < len(lines) and re.match(r"    |\s*$", lines[number]):
                number += 1
            collected.append(Block(page, start + 1, "", tuple(text[4:] for text in lines[start:number])))
            after_bash = False
        elif line.strip():
            after_bash = False
    return collected


def shell_blocks(page: Path) -> list[Block]:
    """The blocks of a page that are commands to be typed."""
    return [block for block in blocks(page) if block.language == "bash"]


def simple_commands(text: str) -> Iterator[list[str]]:
    """The programs with their words that a line of shell calls, each by itself; assignments left out."""
    first = text.partition("<<")[0].replace("\\\n", " ")
    lexer = shlex.shlex(first, posix=True, punctuation_chars="();&|")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word not in _SEPARATORS:
            words.append(word)
            continue
        while words and re.match(r"\w+=", words[0]):
            words.pop(0)
        if words:
            yield words
        words = []


def spans(page: Path) -> Iterator[str]:
    """Code within the text of a page that names one of the programs: `pinot-assets run <table>`."""
    fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield from (span for span in _SPAN.findall(line) if span.split()[0] in PROGRAMS)


def _showing(block: Block, lines: tuple[str, ...]) -> Block:
    return Block(block.page, block.line, block.language, block.lines, block.exit_code, block.not_run, lines)
