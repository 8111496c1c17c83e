"""What an audit assertion asks of servers, as its SQL was read (`assertion_sql`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_GROUPS: Final = 10_000
"""Groups that a server is asked for at the most; without a limit Pinot sends ten."""


@dataclass(frozen=True, slots=True)
class Question:
    """A SELECT that servers can answer for a part of the rows each.

    :ivar before: its text up to the table's name.
    :ivar table: the table that it names.
    :ivar after: its text behind the table's name.
    :ivar keys: expressions of GROUP BY.
    :ivar aggregates: each one's text and how its parts are put together: COUNT, SUM, MIN or MAX.
    :ivar columns: every column that it names.
    :ivar null_columns: those that it asks whether they are null.
    """

    before: str
    table: str
    after: str
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, str], ...]
    columns: frozenset[str]
    null_columns: frozenset[str]

    def of(self, table_with_type: str) -> str:
        """The text for a server.

        :param table_with_type: `orders_OFFLINE`.
        """
        limit = f"\nLIMIT {MOST_GROUPS}" if self.keys else ""
        return f'{self.before}"{table_with_type}"{self.after}{limit}'
