"""Reads and writes quantities as people write them: `100k` messages, `2h`, `500MB`."""

from __future__ import annotations

import re
from typing import Final

from pinot_assets.errors import TypedWrong

_COUNTS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_BYTES: Final = {
    "": 1,
    "b": 1,
    "k": 2**10,
    "kb": 2**10,
    "m": 2**20,
    "mb": 2**20,
    "g": 2**30,
    "gb": 2**30,
    "t": 2**40,
    "tb": 2**40,
}
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


class QuantityError(TypedWrong):
    """A quantity that cannot be read."""


def parse_count(text: str) -> float:
    """Return a number: of `1500`, `100k`, `2.5M`; or of `100k/s`.

    :raises QuantityError: the text is anything else.
    """
    plain = text.strip().lower().replace(",", "").replace("_", "").removesuffix("/s")
    return _single(text, plain, _COUNTS, "a number such as 1500, 100k or 2.5M")


def parse_size(text: str) -> int:
    """Return bytes: of `800`, `500MB`, `1.5GB`; K, M, G and T are powers of 1,024, as in Pinot's configs.

    :raises QuantityError: the text is anything else.
    """
    return round(_single(text, text.strip().lower(), _BYTES, "a size such as 800, 64KB, 500MB or 1.5GB"))


def parse_duration(text: str) -> float:
    """Return seconds: of `90s`, `2h`, `1h30m`, `1d`. A number without a unit is refused unless it is 0.

    :raises QuantityError: the text is anything else.
    """
    form = "a time with its unit, such as 90s, 15m, 2h, 1h30m or 1d"
    plain = text.strip().lower().replace(" ", "")
    if plain == "0":
        return 0.0
    parts = _PART.findall(plain)
    is_whole = "".join(number + unit for number, unit in parts) == plain
    if not parts or not is_whole or any(unit not in _SECONDS for _, unit in parts):
        raise _refused(text, form)
    return float(sum(float(number) * _SECONDS[unit] for number, unit in parts))


def _single(text: str, plain: str, units: dict[str, int], form: str) -> float:
    match = _PART.fullmatch(plain)
    if match is None or match[2] not in units:
        raise _refused(text, form)
    return float(match[1]) * units[match[2]]


def _refused(text: str, form: str) -> QuantityError:
    return QuantityError(f"{text!r} cannot be read", hint=f"give {form}")


def of_bytes(value: float) -> str:
    """Return bytes as text for people."""
    for unit in ("B", "KB", "MB", "GB"):
        if abs(value) < 1024:
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1024
    return f"{value:,.2f} TB"


def of_seconds(value: float) -> str:
    """Return seconds as text for people."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:,.0f} min" if value < 7_200 else f"{value / 3_600:.1f} h"
