"""Amounts in sentences."""

from __future__ import annotations


def plural(number: int, what: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def plural_are(number: int, what: str) -> str:
    """`1 row is`, `2,000 rows are`."""
    return f"{plural(number, what)} {'is' if number == 1 else 'are'}"
