"""Print to the terminal safely: the text may come from file names, Pinot or ZooKeeper.

A terminal of any width shows whole words: a long line continues below its own text. In a pipe or a file,
lines stay whole. Where only ASCII can be shown, our marks have stand-ins (`printable.STAND_INS`).

With `--json`, standard output is JSON only, for other programs, and a command asks no question.
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout, suppress
from typing import Final, TextIO

import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from pinot_assets.errors import PinotAssetsError
from pinot_assets.printable import ASCII_STAND_INS, visible

DRY_RUN = "add --yes to do it, or --dry-run to see what it would do"


class Terminal(Console):
    """A console that shows control characters of texts as escapes; only rich itself controls the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Make all output visible text; rich renders everything through this method (`Console.render`)."""
        if isinstance(renderable, Text) and self.is_terminal and _is_soft_wrapped(options):
            renderable = wrapped(renderable, self.width)
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def _is_soft_wrapped(options: ConsoleOptions | None) -> bool:
    """Whether these are the options of `Console.print` with `soft_wrap`, which breaks no lines."""
    return options is not None and options.no_wrap is True and options.overflow == "ignore"


def new_console(*, stderr: bool = False) -> Console:
    """Return a console whose lines are as long as the terminal is wide; in a pipe or a log they stay whole.

    Call this at each use: the console then writes to the output of the current command, not of the first one.
    """
    return Terminal(stderr=stderr, soft_wrap=True, highlight=False, emoji=False)


_BEFORE_TEXT: Final = re.compile(r" *(?:[^\w\s] +|\S+(?: \S+)* {2,})?")
"""The blanks that a line begins with, and a mark of one character, or a label with two blanks after it."""
_LONGEST_LABEL: Final = 32


def wrapped(text: Text, width: int) -> Text:
    """Return the text with line breaks between words; a line continues below its text, right of its label.

    A word that fits no line stays whole where it is, and so does a command: people copy both.

    :param width: columns of the terminal.
    """
    return Text("\n").join(
        part for line in text.split("\n", allow_blank=True) for part in _wrapped_line(line, width)
    )


def _wrapped_line(line: Text, width: int) -> Iterable[Text]:
    plain = line.plain
    if cell_len(plain) <= width or plain.lstrip().startswith("pinot-assets "):
        return (line,)
    before = _BEFORE_TEXT.match(plain)
    indent = before.end() if before is not None else 0
    if indent > min(_LONGEST_LABEL, width // 2):
        indent = min(len(plain) - len(plain.lstrip()) + 2, width // 2)
    starts, begin, left = [], 0, width
    for word in re.finditer(r"\S+", plain):
        fits_a_line = cell_len(word[0]) <= width - indent
        if fits_a_line and word.start() > max(indent, begin) and cell_len(plain[begin : word.end()]) > left:
            starts.append(word.start())
            begin, left = word.start(), width - indent
    parts = list(line.divide(starts))
    for part in parts:
        part.rstrip()
    return (parts[0], *(Text(" " * indent).append_text(part) for part in parts[1:]))


def fit_output(environment: Mapping[str, str]) -> None:
    """Let standard output and error show stand-ins for what their encoding does not have.

    Python takes the locale C for UTF-8 (PEP 538, 540); with the locale C, this shows ASCII.
    """
    locale = environment.get("LC_ALL") or environment.get("LANG")
    is_plain = locale in ("C", "POSIX") and not environment.get("PYTHONIOENCODING")
    for stream in (sys.stdout, sys.stderr):
        _fit(stream, "ascii" if is_plain else None)


def _fit(stream: TextIO, encoding: str | None) -> None:
    if isinstance(stream, io.TextIOWrapper):
        with suppress(OSError):  # Python asks a file for its position, which became a pipe meanwhile
            stream.reconfigure(encoding=encoding or stream.encoding, errors=ASCII_STAND_INS)


def show_json(values: object) -> None:
    """Print the whole answer of a command as JSON, for other programs."""
    typer.echo(json.dumps(values, indent=2, default=str))


def show_answer(as_json: bool, values: object, lines: Iterable[RenderableType]) -> None:
    """Print the answer of a command: as JSON for other programs, otherwise as lines for people."""
    if as_json:
        show_json(values)
        return
    for line in lines:
        new_console().print(line)


def fields(pairs: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """Return a line for each label and its text; the text may have markup."""
    return (f"[bold]{label:<{width}}[/]  {text}" for label, text in pairs)


def table_lines(rows: Sequence[Sequence[str]]) -> Iterator[Text]:
    """Return rows as lines with aligned columns; the first row is the header."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        yield Text("  ".join(cells).rstrip(), "" if number else "bold")


def lines_that_fit(rows: Sequence[Sequence[str]], spare: str) -> Iterator[Text]:
    """As `table_lines`; leave the column `spare` out if the terminal is too narrow for all columns."""
    lines, console = [*table_lines(rows)], new_console()
    if console.is_terminal and max(line.cell_len for line in lines) > console.width:
        place = rows[0].index(spare)
        return table_lines([[*row[:place], *row[place + 1 :]] for row in rows])
    return iter(lines)


def command_line(command: str) -> Text:
    """Return a command as a line of its own, to be copied."""
    return Text.assemble("  ", (command, "bold"))


def notes_to_stderr(as_json: bool) -> AbstractContextManager[object]:
    """With JSON, redirect notes for people to standard error, so that standard output is JSON only."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def unanswered(hint: str = DRY_RUN) -> PinotAssetsError:
    """Return the error for a question that a command would ask with `--json`: a program cannot answer it.

    :param hint: which options answer the question.
    """
    return PinotAssetsError("with --json the command asks no question", hint=hint)
