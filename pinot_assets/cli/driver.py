"""Open the driver of a command, and show its progress on a terminal: notes as lines, builds as a bar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from pinot_assets.cli.terminal import new_console
from pinot_assets.core.interrupts import saying
from pinot_assets.lineage_events.sending import lineage_after
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients
from pinot_assets.session.values.report import WARNING, Pace
from pinot_assets.settings.environment import load_settings
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.table_spec import TableSpec


class ConsoleProgress:
    """Show a driver's progress on stderr, because stdout is for results."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20, table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            # Only this column goes on in a second line where the terminal is narrow.
            TextColumn("{task.fields[pace]}", table_column=Column(no_wrap=False)),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._pace = Pace({})

    def __enter__(self) -> ConsoleProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def note(self, text: str) -> None:
        """Print one step as a line."""
        self._show(text, "yellow" if text.startswith(WARNING) else "dim")

    def building(self, sizes: Mapping[int, int]) -> None:
        """Start the bar."""
        self._pace = Pace(sizes)
        self._task = self._bar.add_task("building", total=len(sizes), pace=self._pace)
        if self._console.is_interactive:
            self._bar.start()

    def moving(self, rows: int) -> None:
        """Count rows of unfinished files; the bar refreshes itself."""
        self._pace.moving(rows)

    def built(self, outcome: Receipt | Failure) -> None:
        """Advance the bar by one file. It counts failed files; the command names them at its end."""
        self._pace.built(outcome)
        if self._task is not None:
            self._bar.advance(self._task)
        if self._pace.done == self._pace.files:
            self._stop()
            self._show(f"built {self._pace}", "dim")

    def _stop(self) -> None:
        # If stderr is no terminal, stopping a bar would print an empty line.
        if self._console.is_interactive:
            self._bar.stop()

    def _show(self, text: str, style: str) -> None:
        # File names and reasons may contain brackets, which rich must not read as markup.
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def open_driver(spec: TableSpec, command: str) -> Iterator[Driver]:
    """Yield the driver of a table for a command; release its lease and close its connections at the end."""
    # Imported here: importing PySpark takes half of the start-up time, and most commands never build.
    from pinot_assets.ingest.spark.builder import SparkBuilder
    from pinot_assets.ingest.spark.environment import environment_context, environment_session
    from pinot_assets.metrics.pushing import pushed_after  # Prometheus' library

    settings = load_settings()
    with (
        saying("what was done so far is stored, run it again to go on"),
        ConsoleProgress(new_console(stderr=True)) as progress,
        open_clients(spec, settings, SparkBuilder(environment_session, environment_context)) as clients,
    ):
        driver = Driver(spec, clients, f"pinot-assets {command}", progress)
        controller = settings.pinot.controller_url
        with lineage_after(driver, controller, progress.note), pushed_after(driver, progress.note):
            yield driver
