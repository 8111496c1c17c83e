"""Show a driver's progress on standard error: a live line on a terminal, else a line every ten seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final

from rich.console import Console

from pinot_assets.session.values.progress import Count, Pace, RunPhase
from pinot_assets.session.values.report import WARNING
from pinot_assets.snapshot.receipt import Failure, Receipt

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

EVERY_S: Final = 10.0
"""Seconds between two lines where there is no terminal."""
START_SPARK: Final = "starting Spark"


class ConsoleProgress:
    """Show a driver's progress on stderr, because stdout is for results.

    :param every: seconds between two lines where there is no terminal.
    """

    def __init__(self, console: Console, every: float = EVERY_S) -> None:
        self._console, self._every = console, every
        self._live = live_line(console) if console.is_interactive else None
        self._task: TaskID | None = None
        self._what, self._how_far = "", ""
        self._count, self._pace = Count(RunPhase.CONNECT), Pace({})
        self._begun = self._said = time.monotonic()
        self._over = threading.Event()

    def __enter__(self) -> ConsoleProgress:
        if self._live is None:
            threading.Thread(target=self._say_now_and_then, name="progress", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self.rest()

    def note(self, text: str) -> None:
        """Print one step as a line."""
        self._show(text, "yellow" if text.startswith(WARNING) else "dim")

    def begin(self, phase: RunPhase, total: int = 0) -> None:
        """Show a phase, and its bar if the total is known."""
        self._count = Count(phase, total)
        self._begin(phase, total or None)

    def advance(self, done: int) -> None:
        """Show how many things of the phase are done."""
        self._count.done = done
        self._update(str(self._count), done)

    def rest(self) -> None:
        """Show no phase."""
        self._what = ""
        if self._live is not None:
            self._live.stop()
            if self._task is not None:
                self._live.remove_task(self._task)
                self._task = None

    @contextmanager
    def starting_spark(self) -> Iterator[None]:
        """Show that Spark starts, in place of the build that needs it."""
        before = self._what
        self._rename(START_SPARK)
        try:
            yield
        finally:
            self._rename(before)

    def building(self, sizes: Mapping[int, int]) -> None:
        """Show the files to build."""
        self._pace = Pace(sizes)
        self._begin(RunPhase.BUILD, len(sizes))
        self._update(str(self._pace), 0)

    def moving(self, rows: int) -> None:
        """Count rows of unfinished files."""
        self._pace.moving(rows)
        self._update(str(self._pace), self._pace.done)

    def built(self, outcome: Receipt | Failure) -> None:
        """Count a file; the command names the failed ones at its end."""
        self._pace.built(outcome)
        self._update(str(self._pace), self._pace.done)
        if self._pace.done == self._pace.files:
            self.rest()
            self._show(f"built {self._pace}", "dim")

    def _begin(self, what: str, total: int | None) -> None:
        self.rest()
        self._what, self._how_far, self._begun = what, "", time.monotonic()
        if self._live is not None:
            self._task = self._live.add_task(what, total=total, how_far="")
            self._live.start()

    def _rename(self, what: str) -> None:
        self._what = what
        if self._live is not None and self._task is not None:
            self._live.update(self._task, description=what)

    def _update(self, how_far: str, done: int) -> None:
        self._how_far = how_far
        if self._live is not None and self._task is not None:
            self._live.update(self._task, completed=done, how_far=how_far)

    def _say_now_and_then(self) -> None:
        while not self._over.wait(self._every / 10):
            now = time.monotonic()
            if self._what and now - max(self._said, self._begun) >= self._every:
                how_far = f": {self._how_far}" if self._how_far else ""
                self._show(f"{self._what}{how_far} ({now - self._begun:.0f} s)", "dim")

    def _show(self, text: str, style: str) -> None:
        self._said = time.monotonic()
        # File names and reasons may contain brackets, which rich must not read as markup.
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def live_line(console: Console) -> Progress:
    """Return the line of a terminal that shows the phase, its bar, the time and how far it is."""
    # Where there is no terminal, a command that has nothing to do must not pay for this import.
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20, table_column=Column(no_wrap=True)),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        # Only this column continues in a second line where the terminal is narrow.
        TextColumn("{task.fields[how_far]}", table_column=Column(no_wrap=False)),
        console=console,
        transient=True,
    )
