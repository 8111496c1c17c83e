"""Amounts in sentences."""

from __future__ import annotations


def plural(number: int, what: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def plural_are(number: int, what: str) -> str:
    """`1 row is`, `2,000 rows are`."""
    return f"{plural(number, what)} {'is' if number == 1 else 'are'}"


def counted(number: int, one: str, many: str) -> str:
    """`1 row stands`, `2,000 rows stand`: where the verb is not `is`."""
    return f"{number:,} {one if number == 1 else many}"


def size(count: int) -> str:
    """Bytes for people: `1.2 MB`; powers of 1024."""
    value, sign = float(abs(count)), "-" if count < 0 else ""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if value < 1024 or unit == "TB":
            return f"{sign}{value:,.0f} {unit}" if unit == "B" else f"{sign}{value:,.1f} {unit}"
        value /= 1024
    raise AssertionError(count)
