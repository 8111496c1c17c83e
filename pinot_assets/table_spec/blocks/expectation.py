"""What an audit assertion expects: `= 0`, `>= 1000`, `after >= 0.9 * live`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Final

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
    found = _EXPECT.fullmatch(text.strip())
    if found is None:
        raise ValueError("is no comparison; write = 0, >= 1000 or after >= 0.9 * live")
    bound = found["number"] or found["factor"] or "1"
    return Expectation(
        " ".join(text.split()),
        Side((found["side"] or "staged").lower()),
        found["operator"] or "=",
        float(bound),
        found["live"] is not None,
    )
