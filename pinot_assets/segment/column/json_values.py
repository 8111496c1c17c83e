"""JSON values of a schema or table config as Pinot's own classes read them."""

from __future__ import annotations

import math
import re


def is_true(value: object) -> bool:
    """A JSON switch as Jackson reads it: the text "true" counts."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


def number(value: object) -> float | None:
    """A JSON number as Jackson reads a double: one in a text counts; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def java_int(value: object) -> int | None:
    """A JSON number as Jackson reads an int: digits in a text count; None if it is none."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,10}", value.strip()):
        value = int(value)
    if type(value) is not int or not -(2**31) <= value < 2**31:
        return None
    return value
