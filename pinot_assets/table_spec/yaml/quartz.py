"""Convert a Quartz cron, as in StarTree's `schedule`, to the five-field cron that Dagster runs.

Both fire at the same instants, or the expression is refused. Quartz counts days of the week from 1 = SUN and
cron from 0; ranges may wrap around (`FRI-MON`, `22-2`); a step continues to the end of the field (`5/15`). So
each field is expanded to the set of its values first. Source: org.quartz.CronExpression 2.3.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class _CronField:
    """One field: its smallest and largest value, names of values, and the largest step of Quartz."""

    label: str
    low: int
    high: int
    largest_step: int
    names: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[int, ...]:
        return tuple(range(self.low, self.high + 1))


_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEK_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_SECONDS: Final = _CronField("seconds", 0, 59, 59)
_MINUTES: Final = _CronField("minutes", 0, 59, 59)
_HOURS: Final = _CronField("hours", 0, 23, 23)
_DAY_OF_MONTH: Final = _CronField("day of month", 1, 31, 31)
_MONTH: Final = _CronField("month", 1, 12, 12, _MONTHS)
_DAY_OF_WEEK: Final = _CronField("day of week", 1, 7, 7, _WEEK_DAYS)
_LONGEST_MONTH: Final = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_ANY: Final = "?"

_PIECE: Final = re.compile(
    r"(?:(?P<all>\*)|(?P<first>[0-9]{1,2})(?:-(?P<last>[0-9]{1,2}))?)?(?:/(?P<step>[0-9]{1,2}))?"
    r"|(?P<first_name>[A-Z]{3})(?:-(?P<last_name>[A-Z]{3}))?"
)
_ONLY_QUARTZ: Final = re.compile(r"L(?:-[0-9]+)?W?|LW|[0-9]+W|(?:[0-9]+|[A-Z]{3})(?:L|#[0-9]+)|C|[0-9]+C")


def normalise_quartz(text: str) -> str:
    """Return the expression with single spaces.

    :raises ValueError: as `to_cron`.
    """
    to_cron(text)
    return " ".join(text.split())


def to_cron(text: str) -> str:
    """Return the five-field cron that fires when a Quartz expression does.

    :raises ValueError: it is no Quartz expression, never fires, or cron cannot express it; says which field.
    """
    fields = text.upper().split()
    if len(fields) == 5:
        raise ValueError(
            "has five fields, as Unix cron; Quartz puts seconds first, and ? for one of the days"
        )
    if len(fields) not in (6, 7):
        raise ValueError(f"has {len(fields)} fields; Quartz cron has six, or seven with the year")
    seconds, minutes, hours, day, month, week_day = fields[:6]
    if fields[6:] not in ([], ["*"]):
        raise ValueError(f"is limited to the year {fields[6]}, which cron cannot express")
    if _values(seconds, _SECONDS) != (0,):
        raise ValueError(f"the field for seconds, {seconds}, is not 0; Dagster starts runs at whole minutes")
    if (day == _ANY) == (week_day == _ANY):
        raise ValueError("Quartz needs ? in exactly one of day of month and day of week")
    days = _DAY_OF_MONTH.all if day == _ANY else _values(day, _DAY_OF_MONTH)
    months = _values(month, _MONTH)
    if all(min(days) > _LONGEST_MONTH.get(m, 31) for m in months):
        raise ValueError("never fires: no such month has such a day")
    week_days = _DAY_OF_WEEK.all if week_day == _ANY else _values(week_day, _DAY_OF_WEEK)
    return " ".join(
        (
            _cron(_values(minutes, _MINUTES), _MINUTES.all),
            _cron(_values(hours, _HOURS), _HOURS.all),
            _cron(days, _DAY_OF_MONTH.all),
            _cron(months, _MONTH.all),
            _cron([d - 1 for d in week_days], [d - 1 for d in _DAY_OF_WEEK.all]),
        )
    )


def _values(text: str, field: _CronField) -> tuple[int, ...]:
    """Every value of one written field, ascending."""
    return tuple(sorted({value for piece in text.split(",") for value in _piece(piece, field)}))


def _piece(text: str, field: _CronField) -> Iterable[int]:
    where = f"the field for {field.label}, {text},"
    if _ONLY_QUARTZ.fullmatch(text):
        raise ValueError(f"{where} uses L, W, # or C, which cron does not know")
    if text == _ANY:
        raise ValueError(f"{where} may not be ?; only day of month or day of week may, and only one of them")
    match = _PIECE.fullmatch(text)
    if match is None or not text:
        raise ValueError(f"{where} is not Quartz cron")
    step = int(match["step"] or 1)
    if not 1 <= step <= field.largest_step:
        raise ValueError(f"{where} has a step that is not between 1 and {field.largest_step}")
    written = [text for text in match.group("first", "last", "first_name", "last_name") if text]
    first, *others = [_value(text, field, where) for text in written] or [field.low, field.high]
    if others:
        last = others[0] if others[0] >= first else others[0] + len(field.all)
    else:
        last = first if match["step"] is None else field.high  # 5/15 continues to the end
    return ((v - field.low) % len(field.all) + field.low for v in range(first, last + 1, step))


def _value(text: str, field: _CronField, where: str) -> int:
    if text in field.names:
        return field.low + field.names.index(text)
    if not text.isdecimal():
        raise ValueError(f"{where} is not Quartz cron")
    if not field.low <= int(text) <= field.high:
        raise ValueError(f"{where} is not between {field.low} and {field.high}")
    return int(text)


def _cron(values: Iterable[int], every: Iterable[int]) -> str:
    """Write values as short as cron can: `*`, `*/15`, `1-5`, or one by one."""
    listed, whole = list(values), list(every)
    if listed == whole:
        return "*"
    if len(listed) > 1 and whole[0] == 0 and listed == whole[:: listed[1]]:
        return f"*/{listed[1]}"
    if len(listed) > 2 and listed == list(range(listed[0], listed[-1] + 1)):
        return f"{listed[0]}-{listed[-1]}"
    return ",".join(map(str, listed))
