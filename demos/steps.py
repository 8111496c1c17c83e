"""What the demos under load have in common: how a step fails, and what is said of queries at the end."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from rich.console import Console

from demos.load import FLIGHTS_SQL, LoadReport, QueryAnswer, answer
from pinot_assets.errors import PinotAssetsError
from pinot_assets.pinot import HttpPinotClient

StepT = TypeVar("StepT")
"""One line of the table at the end."""

TABLE: Final = "flights"
LEAST_ANSWERS: Final = 1_000
LEAST_PER_STEP: Final = 40
"""Queries that a step must see before its change and again after it."""


class StoryBroken(PinotAssetsError):
    """A step did not do what it promises."""


class Story(Generic[StepT]):
    """Steps that are told one after the other, on one Pinot."""

    def __init__(self, pinot: HttpPinotClient) -> None:
        self._pinot = pinot
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


def show_queries(console: Console, report: LoadReport, answers: int) -> None:
    """Where queries failed first, and whether there were enough of them.

    :param answers: those that count.
    """
    for phase in report.phases:
        if phase.errors:
            console.print(f"({phase.name}) first error: {phase.first_error}", highlight=False)
    if answers < LEAST_ANSWERS:
        console.print(f"too few answers: {answers} of at least {LEAST_ANSWERS}", style="red")
