"""An audit assertion as values: the question that was read from its SQL (`assertion_sql`), and the
expectation: `= 0`, `>= 1000`, `after >= 0.9 * live`.
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
"""The limit that a question with GROUP BY gets if it has none; without a limit Pinot returns ten groups."""
MOST_WITH_HAVING: Final = 1_000_000
"""The same limit for a question with HAVING, which Pinot applies last: a broker up to 1.0 keeps only five
times as many groups for it, and the groups that it drops may be the ones that the question is about."""


@dataclass(frozen=True, slots=True)
class Question:
    """A SELECT from one table; its answer consists of keys and values.

    :ivar before: its text up to the table's name.
    :ivar table: the table that it names.
    :ivar after: its text after the table's name.
    :ivar keys: the expressions of GROUP BY.
    :ivar aggregates: text of each aggregate, and how its parts are merged: COUNT, SUM, MIN or MAX; "" if only
        a broker can merge them.
    :ivar columns: every column that it names.
    :ivar null_columns: the columns that it tests for null.
    :ivar key_places: positions of the keys in a broker's answer, in their order. A server's has them first.
    :ivar limited: whether its text has a LIMIT.
    :ivar having: whether its text has a HAVING.
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
        """Return the text to send to Pinot. An assertion reaches a server or a broker only through this.

        :param table_with_type: `orders_OFFLINE`.
        :raises SpecError: it asks for something forbidden, even if this object was not read from a spec.
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
    """Which rows an assertion compares."""

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
    :ivar of_live: whether the right side is the value that queries see now, times `bound`.
    """

    text: str
    side: Side
    operator: str
    bound: float
    of_live: bool

    def holds(self, value: float, live: float | None) -> bool:
        """Return whether a value meets the expectation; NaN never does.

        :param live: the answer of the live snapshot, None if nothing is live. Only needed if `of_live`.
        """
        if self.of_live and live is None:
            return False
        bound = self.bound if live is None or not self.of_live else _product(self.bound, live)
        return not math.isnan(value) and not math.isnan(bound) and _HOLDS[self.operator](value, bound)

    def __str__(self) -> str:
        return self.text


def _product(factor: float, live: float) -> float:
    """Multiply as decimals: 0.07 of 100 is 7, and not 7.000000000000001 as with floats."""
    product = factor * live
    return float(Fraction(str(factor)) * Fraction(str(live))) if math.isfinite(product) else product


def read_expectation(text: str) -> Expectation:
    """Read one `expect:`.

    :param text: `[staged | after] [= | != | < | <= | > | >=] <number> | [<factor> *] live`; `= ` and
        `staged ` may be left out.
    :raises ValueError: the text is no comparison.
    """
    if (match := _EXPECT.fullmatch(text.strip())) is None:
        raise ValueError("is not a comparison; write = 0, >= 1000 or after >= 0.9 * live")
    bound = match["number"] or match["factor"] or "1"
    return Expectation(
        " ".join(text.split()),
        Side((match["side"] or "staged").lower()),
        match["operator"] or "=",
        float(bound),
        match["live"] is not None,
    )
