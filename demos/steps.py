"""What the demos under load have in common: files and what queries must answer, steps, the load, its end.

The expected answers are counted from the rows themselves with the standard library (`sample_data.totals`):
nothing of the product has a part in them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
"""One line of the table at the end."""

TABLE: Final = "flights"
LEAST_ANSWERS: Final = 1_000
LEAST_PER_STEP: Final = 40
"""Queries that a step must see before its change and again after it."""


class StoryBroken(PinotAssetsError):
    """A step did not do what it promises."""


@contextmanager
def flights_under_load(home: Path, console: Console) -> Iterator[tuple[HttpPinotClient, QueryLoad]]:
    """A stack of its own, asked for its flights by four threads; stopped and purged at the end.

    :param home: folder for stack, files and tables; removed before and after.
    """
    os.environ["PINOT_ASSETS_DATA"] = str(home / "data")
    os.environ["PINOT_ASSETS_STAGING"] = str(home / "staging")
    with own_stack(home, console) as (_, state):
        (home / "tables").mkdir()
        with (
            HttpPinotClient(load_settings().pinot) as pinot,
            QueryLoad(state.broker_urls, FLIGHTS_SQL, threads=4) as load,
        ):
            yield pinot, load


class Story(Generic[StepT]):
    """Steps that are told one after the other, on one Pinot under load."""

    def __init__(self, console: Console, pinot: HttpPinotClient, load: QueryLoad) -> None:
        self._console = console
        self._pinot = pinot
        self._load = load
        self._steps: list[StepT] = []

    def _require(self, holds: bool, otherwise: str) -> None:
        """:raises StoryBroken: it does not."""
        if not holds:
            raise StoryBroken(f"the demo stops in step {len(self._steps) + 1}", why=otherwise)

    def _require_answer(self, expected: QueryAnswer) -> None:
        """Both brokers, asked apart from the load.

        :raises StoryBroken: one says something else.
        """
        for url in self._pinot.brokers(TABLE):
            found = answer(self._pinot.broker(url).query(FLIGHTS_SQL).rows)
            self._require(found == expected, f"{url} answers {found[:2]}…, expected {expected[:2]}…")

    @contextmanager
    def _under_load(self, key: str, title: str, allowed: Sequence[QueryAnswer]) -> Iterator[None]:
        """One step, which queries see before its change and again after it."""
        self._console.print(f"[bold]({key}) {title}[/]")
        self._load.phase(key, allowed)
        self._load.wait_for(LEAST_PER_STEP)
        yield
        self._load.wait_for(self._load.report().phases[-1].queries + LEAST_PER_STEP)


def show_queries(console: Console, report: LoadReport, answers: int) -> None:
    """Where queries failed first, and whether there were enough of them.

    :param answers: those that count.
    """
    for phase in report.phases:
        if phase.errors:
            console.print(f"({phase.name}) first error: {phase.first_error}", highlight=False)
    if answers < LEAST_ANSWERS:
        console.print(f"too few answers: {answers} of at least {LEAST_ANSWERS}", style="red")


class World:
    """Files of flights, one per day.

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
        """The n-th day of the year, from 0."""
        return self._days[number]

    def path(self, day: date) -> Path:
        """The file of one day."""
        return self._folder / f"flights-{day}.csv.gz"

    def add(self, day: date) -> None:
        """A new file, as the airlines wrote it."""
        self._put(day, self._year[day])

    def rewrite(self, day: date) -> None:
        """The same file with every tenth flight taken out."""
        self._put(day, [row for n, row in enumerate(self._present[day]) if n % 10])

    def delete(self, day: date) -> None:
        """The file goes."""
        self.path(day).unlink()
        del self._present[day]

    def corrupt(self, day: date) -> None:
        """The file loses its second half on the way; the answer to be expected still counts all of it."""
        path = self.path(day)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    def halve(self, day: date) -> None:
        """Every second row of the file gets lost; the answer to be expected still counts all of them."""
        write_flights(self.path(day), self._present[day][::2])

    def repair(self, day: date) -> None:
        """The file arrives whole."""
        self._put(day, self._present[day])

    def replace_all(self, days: Sequence[date]) -> None:
        """Other files altogether."""
        for day in list(self._present):
            self.delete(day)
        for day in days:
            self.add(day)

    def answer(self) -> QueryAnswer:
        """What the load's query must answer when the table equals the directory."""
        counted = totals(row for rows in self._present.values() for row in rows)
        return answer((carrier, *figures) for carrier, figures in counted.items())

    def _put(self, day: date, rows: Sequence[Flight]) -> None:
        write_flights(self.path(day), rows)
        self._present[day] = rows
