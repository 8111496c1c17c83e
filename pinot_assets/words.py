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
