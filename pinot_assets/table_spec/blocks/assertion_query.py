"""What an audit assertion asks, as its SQL was read (`assertion_sql`, `shadow_sql`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pinot_assets.errors import SpecError
from pinot_assets.expressions.pinot import check_question
from pinot_assets.expressions.refused import ExpressionRefused

MOST_GROUPS: Final = 10_000
"""Groups that are asked for at the most; without a limit Pinot sends ten."""
MOST_WITH_HAVING: Final = 1_000_000
"""The limit beside HAVING, which Pinot looks at last: a broker up to 1.0 keeps five times as many groups for
it and forgets the others, which might be what is asked for."""


@dataclass(frozen=True, slots=True)
class Question:
    """A SELECT from one table, whose answer is keys and values.

    :ivar before: its text up to the table's name.
    :ivar table: the table that it names.
    :ivar after: its text behind the table's name.
    :ivar keys: expressions of GROUP BY.
    :ivar aggregates: each one's text and how its parts are put together: COUNT, SUM, MIN or MAX; "" for what
        only a broker puts together.
    :ivar columns: every column that it names.
    :ivar null_columns: those that it asks whether they are null.
    :ivar key_places: where a broker's answer has the keys, in their order. A server's has them in front.
    :ivar limited: whether its text says how many groups it wants.
    :ivar having: whether it leaves groups out by what they come to.
    """

    before: str
    table: str
    after: str
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, str], ...]
    columns: frozenset[str]
    null_columns: frozenset[str]
    key_places: tuple[int, ...] = ()
    limited: bool = False
    having: bool = False

    def of(self, table_with_type: str) -> str:
        """The text for Pinot: the only way from an assertion to a server or a broker.

        :param table_with_type: `orders_OFFLINE`.
        :raises SpecError: it asks for what no assertion may ask, however this question was made.
        """
        most = MOST_WITH_HAVING if self.having else MOST_GROUPS
        limit = f"\nLIMIT {most}" if self.keys and not self.limited else ""
        text = f'{self.before}"{table_with_type}"{self.after}{limit}'
        try:
            check_question(text)
        except ExpressionRefused as refused:
            raise SpecError(f"an assertion about {self.table} {refused.reason}", hint=refused.fix) from None
        return text
