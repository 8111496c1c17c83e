"""What the demos under load share: the files, the expected answers, the steps, the load and its result.

The expected answers are counted from the rows themselves with the standard library (`sample_data.totals`),
without any code of the project's readers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Final, Generic, TypeVar

from rich.console import Console

from demos.load import FLIGHTS_SQL, LoadReport, QueryAnswer, QueryLoad, answer
from demos.stack import own_stack
from pinot_assets.errors import PinotAssetsError
from pinot_assets.local.sample_data import Flight, first_days, flights, totals, write_flights
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.settings.environment import load_settings

StepT = TypeVar("StepT")
"""The type of one line of the table at the end."""

TABLE: Final = "flights"
LEAST_ANSWERS: Final = 1_000
LEAST_PER_STEP: Final = 40
"""Number of queries that must complete before a step's change, and again after it."""


class StoryBroken(PinotAssetsError):
    """A step did not do what it promises."""


@contextmanager
def flights_under_load(
    home: Path, console: Console, release: str | None = None
) -> Iterator[tuple[HttpPinotClient, QueryLoad]]:
    """Start a stack for the demo and query its flights from four threads; stop and purge it at the end.

    :param home: folder for stack, files and tables; removed before and after.
    :param release: a release of Apache Pinot; None for that of a new local stack.
    """
    os.environ["PINOT_ASSETS_DATA"] = str(home / "data")
    os.environ["PINOT_ASSETS_STAGING"] = str(home / "staging")
    with own_stack(home, console, release=release) as (_, state):
        (home / "tables").mkdir()
        with (
            HttpPinotClient(load_settings().pinot) as pinot,
            QueryLoad(state.broker_urls, FLIGHTS_SQL, threads=4) as load,
        ):
            yield pinot, load


class Story(Generic[StepT]):
    """The steps of a demo, one after the other, on one Pinot under load."""

    def __init__(self, console: Console, pinot: HttpPinotClient, load: QueryLoad) -> None:
        self._console = console
        self._pinot = pinot
        self._load = load
        self._steps: list[StepT] = []

    def _require(self, holds: bool, otherwise: str) -> None:
        """:raises StoryBroken: the condition does not hold."""
        if not holds:
            raise StoryBroken(f"the demo stops in step {len(self._steps) + 1}", why=otherwise)

    def _require_answer(self, expected: QueryAnswer) -> None:
        """Query both brokers, separately from the load.

        :raises StoryBroken: one of them gives another answer.
        """
        for url in self._pinot.brokers(TABLE):
            found = answer(self._pinot.broker(url).query(FLIGHTS_SQL).rows)
            self._require(found == expected, f"{url} answers {found[:2]}…, expected {expected[:2]}…")

    @contextmanager
    def _under_load(self, key: str, title: str, allowed: Sequence[QueryAnswer]) -> Iterator[None]:
        """Run one step, with enough queries of the load before its change and after it."""
        self._console.print(f"[bold]({key}) {title}[/]")
        self._load.phase(key, allowed)
        self._load.wait_for(LEAST_PER_STEP)
        yield
        self._load.wait_for(self._load.report().phases[-1].queries + LEAST_PER_STEP)


def show_queries(console: Console, report: LoadReport, answers: int) -> None:
    """Print the first error of each phase, and whether there were too few answers.

    :param answers: number of answers that count.
    """
    for phase in report.phases:
        if phase.errors:
            console.print(f"({phase.name}) first error: {phase.first_error}", highlight=False)
    if answers < LEAST_ANSWERS:
        console.print(f"too few answers: {answers} of at least {LEAST_ANSWERS}", style="red")


class World:
    """The files of flights, one per day, and the answer that queries must give.

    :param folder: the table's input directory.
    :param days: how many days of the year the demo may use.
    """

    def __init__(self, folder: Path, days: int) -> None:
        self._folder = folder
        self._year = flights(first_days(days))
        self._days = list(self._year)
        self._present: dict[date, Sequence[Flight]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def day(self, number: int) -> date:
        """Return the n-th day of the year, from 0."""
        return self._days[number]

    def path(self, day: date) -> Path:
        """Return the path of one day's file."""
        return self._folder / f"flights-{day}.csv.gz"

    def add(self, day: date) -> None:
        """Write a new file with all flights of the day."""
        self._put(day, self._year[day])

    def rewrite(self, day: date) -> None:
        """Write the file again, without every tenth flight."""
        self._put(day, [row for n, row in enumerate(self._present[day]) if n % 10])

    def delete(self, day: date) -> None:
        """Delete the file."""
        self.path(day).unlink()
        del self._present[day]

    def corrupt(self, day: date) -> None:
        """Cut off the second half of the file; the expected answer still counts the whole file."""
        path = self.path(day)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    def halve(self, day: date) -> None:
        """Drop every second row of the file; the expected answer still counts all rows."""
        write_flights(self.path(day), self._present[day][::2])

    def repair(self, day: date) -> None:
        """Write the complete file."""
        self._put(day, self._present[day])

    def replace_all(self, days: Sequence[date]) -> None:
        """Delete all files, and write those of other days."""
        for day in list(self._present):
            self.delete(day)
        for day in days:
            self.add(day)

    def answer(self, keeps: Callable[[Flight], bool] = lambda _: True) -> QueryAnswer:
        """Return the answer of the load's query for a table that has exactly these files.

        :param keeps: whether the table has a row of its file.
        """
        counted = totals(row for rows in self._present.values() for row in rows if keeps(row))
        return answer((carrier, *figures) for carrier, figures in counted.items())

    def _put(self, day: date, rows: Sequence[Flight]) -> None:
        write_flights(self.path(day), rows)
        self._present[day] = rows
