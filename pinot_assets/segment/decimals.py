"""Exact decimals as Java's `BigDecimal` treats them (spec sections 5 rule 2 and 6.2)."""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,10})?")
_JAVA_BLANKS = "".join(map(chr, range(0x21)))

MAX_SCALE = 32_767
"""Pinot stores the scale in 16 bits and loses the rest of it without a word."""


def parse_decimal(text: str) -> Decimal:
    """`new BigDecimal(text)`, trailing zeros kept.

    :raises ValueError: not a decimal number, or a scale that Pinot cannot store.
    """
    if not _DECIMAL.fullmatch(text):
        raise ValueError("not a decimal number")
    return _checked(Decimal(text))


def stored_decimal(value: Decimal | int | str) -> Decimal:
    """A value as Pinot stores it: trailing zeros stripped, zero with scale 0.

    :raises ValueError: not a decimal number, or a scale that Pinot cannot store.
    """
    number = parse_decimal(value.strip(_JAVA_BLANKS)) if isinstance(value, str) else Decimal(value)
    return _checked(number.normalize(_EXACT)) if number else Decimal(0)


def decimal_bytes(value: Decimal) -> bytes:
    """`BigDecimalUtils.serialize`: two bytes of scale, then the unscaled value in the fewest bytes."""
    exponent = _exponent(value)
    unscaled = int(value.scaleb(-exponent, _EXACT))
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return (-exponent).to_bytes(2, "big", signed=True) + unscaled.to_bytes(length, "big", signed=True)


def _checked(value: Decimal) -> Decimal:
    if abs(_exponent(value)) > MAX_SCALE:
        raise ValueError(f"a scale beyond {MAX_SCALE} cannot be stored")
    return value if value else value.copy_abs()  # Java has no negative zero


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError("not a decimal number")
    return exponent
