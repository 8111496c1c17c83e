"""The demo's source directory: which files lie in it, and what a query must answer for them.

The expected answers are counted from the rows themselves with the standard library (`sample.totals`): nothing
of the product has a part in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from demos.load import QueryAnswer, answer
from pinot_assets.local.sample_data import Flight, first_days, flights, totals, write_flights


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
