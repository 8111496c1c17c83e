"""A driver's progress on a terminal: notes as lines, builds as a bar."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from pinot_assets.session.receipt import Failure, Receipt


class ConsoleProgress:
    """Shows on stderr, so that stdout stays for results."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> ConsoleProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def note(self, text: str) -> None:
        """One step."""
        self._show(text, "dim")

    def building(self, files: int) -> None:
        """Start the bar."""
        self._task = self._bar.add_task("building", total=files)
        if self._console.is_interactive:
            self._bar.start()

    def built(self, outcome: Receipt | Failure) -> None:
        """One file further."""
        if self._task is not None:
            self._bar.advance(self._task)
        if isinstance(outcome, Failure):
            self._show(f"{outcome.uri}: {outcome.code}: {outcome.reason}", "red")
        if self._bar.finished:
            self._stop()

    def _stop(self) -> None:
        # Elsewhere than on a terminal, stopping a bar prints an empty line.
        if self._console.is_interactive:
            self._bar.stop()

    def _show(self, text: str, style: str) -> None:
        # File names and reasons may hold brackets, which are no markup.
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
