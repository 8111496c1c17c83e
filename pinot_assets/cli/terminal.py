"""The one door to the terminal: what is printed there may come from file names, Pinot or ZooKeeper.

And how a command answers other programs: standard output is JSON alone, and nobody is asked.
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
    """A console on which nothing but rich itself steers."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """See `Console.render`; everything that is shown passes here."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def new_console(*, stderr: bool = False) -> Console:
    """Long lines are the terminal's to wrap: in a pipe or a log they stay whole.

    Made at each use: the output of today's command, not of the one that imported this first.
    """
    return Terminal(stderr=stderr, soft_wrap=True, highlight=False)


def show_json(values: object) -> None:
    """The whole answer of a command, for other programs."""
    typer.echo(json.dumps(values, indent=2, default=str))


def show_answer(as_json: bool, values: object, lines: Iterable[RenderableType]) -> None:
    """The answer of a command: plain JSON for other programs, lines for people otherwise."""
    if as_json:
        show_json(values)
        return
    for line in lines:
        new_console().print(line)


def fields(pairs: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    """A line for each label and its text, which may have markup."""
    return (f"[bold]{label:<{width}}[/]  {text}" for label, text in pairs)


def notes_to_stderr(as_json: bool) -> AbstractContextManager[object]:
    """With JSON, notes for people go to standard error, so that standard output is JSON alone."""
    return redirect_stdout(sys.stderr) if as_json else nullcontext()


def refuse_to_ask(as_json: bool, is_answered: bool, hint: str = DRY_RUN) -> None:
    """Whoever reads JSON answers no question.

    :param is_answered: what the question would ask stands in the command.
    :param hint: what to add, of options that the command has.
    :raises PinotAssetsError: it does not.
    """
    if as_json and not is_answered:
        raise PinotAssetsError("with --json nobody is asked", hint=hint)
