"""Quartz cron expressions, as StarTree's `schedule` has them: six fields or seven, seconds first."""

from __future__ import annotations

import re
from typing import Final

_FIELDS: Final = ("seconds", "minutes", "hours", "day of month", "month", "day of week", "year")
_DAY_OF_MONTH: Final = 3
_DAY_OF_WEEK: Final = 5
_STEP: Final = r"(?:\*|[0-9A-Z]+(?:-[0-9A-Z]+)?)(?:/[0-9]+)?"
_FIELD: Final = re.compile(rf"{_STEP}(?:,{_STEP})*")
_DAY_FIELD: Final = re.compile(r"\?|L(?:-[0-9]+)?W?|[0-9]+W|[0-9A-Z]+(?:L|#[1-5])")


def check_quartz(text: str) -> str:
    """The expression with single spaces.

    :raises ValueError: it has not the form of a Quartz expression; the message says which field.
    """
    fields = text.upper().split()
    if len(fields) == 5:
        raise ValueError(
            "has five fields, as Unix cron; Quartz puts seconds first, and ? for one of the days"
        )
    if len(fields) not in (6, 7):
        raise ValueError(f"has {len(fields)} fields; Quartz cron has six, or seven with the year")
    for position, field in enumerate(fields):
        is_day = position in (_DAY_OF_MONTH, _DAY_OF_WEEK)
        if not (_FIELD.fullmatch(field) or (is_day and _DAY_FIELD.fullmatch(field))):
            raise ValueError(f"the field for {_FIELDS[position]}, {field}, is not Quartz cron")
    if (fields[_DAY_OF_MONTH] == "?") == (fields[_DAY_OF_WEEK] == "?"):
        raise ValueError("Quartz wants ? in exactly one of day of month and day of week")
    return " ".join(text.split())
