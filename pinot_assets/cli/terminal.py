"""Print to the terminal safely: the text may come from file names, Pinot or ZooKeeper.

With `--json`, standard output is JSON only, for other programs, and a command asks no question.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, redirect_stdout

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pinot_assets.errors import PinotAssetsError
from pinot_assets.printable import visible

DRY_RUN = "add --yes to do it, or --dry-run to see what it would do"


class Terminal(Console):
    """A console that shows control characters of texts as escapes; only rich itself controls the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Make all output visible text; rich renders everything through this method (`Console.render`)."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def new_console(*, stderr: bool = False) -> Console:
    """Return a console that does not wrap lines: the terminal does, and in a pipe or a log they stay whole.

    Call this at each use: the console then writes to the output of the current command, not of the first one.
    """
    return Terminal(stderr=stderr, soft_wrap=True, highlight=False)


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


def notes_to_stderr(as_json: bool) -> AbstractContextManager[object]:
    """With JSON, redirect notes for people to standard error, so that standard output is JSON only."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def unanswered(hint: str = DRY_RUN) -> PinotAssetsError:
    """Return the error for a question that a command would ask with `--json`: a program cannot answer it.

    :param hint: which options answer the question.
    """
    return PinotAssetsError("with --json nobody is asked", hint=hint)
