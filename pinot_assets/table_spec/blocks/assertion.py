"""What an audit assertion asks, as its SQL was read (`assertion_sql`), and what it expects: `= 0`, `>= 1000`,
`after >= 0.9 * live`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Final

from pinot_assets.errors import SpecError
from pinot_assets.expressions.pinot import check_question
from pinot_assets.expressions.syntax import ExpressionRefused

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


_NUMBER: Final = r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_EXPECT: Final = re.compile(
    rf"(?:(?P<side>staged|after)\s+)?(?:(?P<operator>=|!=|<=|>=|<|>)\s*)?"
    rf"(?:(?P<number>{_NUMBER})|(?:(?P<factor>{_NUMBER})\s*\*\s*)?(?P<live>live))",
    re.IGNORECASE,
)
_HOLDS: Final[dict[str, Callable[[float, float], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Side(Enum):
    """Which rows an assertion is about."""

    STAGED = "staged"
    """The staged segments, which no query sees yet."""
    AFTER = "after"
    """What queries will see after the switch: the staged segments and the live ones that stay."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A comparison.

    :ivar text: as it is written.
    :ivar side: what is compared.
    :ivar operator: `=`, `!=`, `<`, `<=`, `>` or `>=`.
    :ivar bound: the number on the right, or the factor of `live`.
    :ivar of_live: whether what queries see now is on the right.
    """

    text: str
    side: Side
    operator: str
    bound: float
    of_live: bool

    def holds(self, value: float, live: float | None) -> bool:
        """Whether it holds; of NaN nothing does.

        :param live: what the live snapshot answers; None where nothing is live. Needed if `of_live` alone.
        """
        if self.of_live and live is None:
            return False
        bound = self.bound if live is None or not self.of_live else _product(self.bound, live)
        return not math.isnan(value) and not math.isnan(bound) and _HOLDS[self.operator](value, bound)

    def __str__(self) -> str:
        return self.text


def _product(factor: float, live: float) -> float:
    """As by hand: 0.07 of 100 is 7, and not the 7.000000000000001 of floats."""
    product = factor * live
    return float(Fraction(str(factor)) * Fraction(str(live))) if math.isfinite(product) else product


def read_expectation(text: str) -> Expectation:
    """Read one `expect:`.

    :param text: `[staged | after] [= | != | < | <= | > | >=] <number> | [<factor> *] live`; `= ` and
        `staged ` may be left out.
    :raises ValueError: it is none.
    """
    if (match := _EXPECT.fullmatch(text.strip())) is None:
        raise ValueError("is no comparison; write = 0, >= 1000 or after >= 0.9 * live")
    bound = match["number"] or match["factor"] or "1"
    return Expectation(
        " ".join(text.split()),
        Side((match["side"] or "staged").lower()),
        match["operator"] or "=",
        float(bound),
        match["live"] is not None,
    )
