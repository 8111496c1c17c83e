"""Numbers, times and sizes as words for sentences."""

from __future__ import annotations


def plural(number: int, what: str) -> str:
    """Return `1 row`, `2,000 rows`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def plural_are(number: int, what: str) -> str:
    """Return `1 row is`, `2,000 rows are`."""
    return f"{plural(number, what)} {'is' if number == 1 else 'are'}"


def counted(number: int, one: str, many: str) -> str:
    """Return `1 row stands`, `2,000 rows stand`: for verbs other than `is`."""
    return f"{number:,} {one if number == 1 else many}"


def duration(seconds: float) -> str:
    """Return a time for people: `40 s`, `12 min`, `1.2 h`, `3.4 days`."""
    left = max(0.0, seconds)
    if left < 60:
        return f"{left:.0f} s"
    if left < 3600:
        return f"{left / 60:.0f} min"
    return f"{left / 3600:,.1f} h" if left < 48 * 3600 else f"{left / 86_400:,.1f} days"


def size(count: int) -> str:
    """Return bytes for people: `1.2 MB`, with units of 1024."""
    value, sign = float(abs(count)), "-" if count < 0 else ""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if value < 1024 or unit == "TB":
            return f"{sign}{value:,.0f} {unit}" if unit == "B" else f"{sign}{value:,.1f} {unit}"
        value /= 1024
    raise AssertionError(count)
