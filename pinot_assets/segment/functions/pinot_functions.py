"""Pinot's scalar functions that Spark SQL can express: parameters and translation of each.

Source: `DateTimeFunctions`, `StringFunctions`, `ArithmeticFunctions` and the comparison functions of Pinot
1.5.1; tests/oracle compares every function with Pinot itself. Names are those of Pinot's registry: lower
case, without underscores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pinot_assets.segment.functions.time_format import PATTERNS

ArgumentKind = Literal["LONG", "DOUBLE", "STRING", "BOOLEAN", "COLUMN"]
Sign = Literal["*", "DIV"]


@dataclass(frozen=True, slots=True)
class LongSteps:
    """Steps of LONG arithmetic on one column, which need no Spark SQL: most time columns are made so.

    :ivar column: the column, cast to LONG.
    :ivar steps: one after the other: times a number, or divided by one and rounded towards zero.
    """

    column: str
    steps: tuple[tuple[Sign, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Argument:
    """A part of an expression.

    :ivar kind: its type; COLUMN if it is a column, whose type depends on the file.
    :ivar value: the text of a text literal.
    :ivar number: the number of a LONG literal.
    :ivar column: the column's name, if it is a column.
    :ivar long_steps: the same as `sql`, if it is a column or LONG arithmetic on one.
    """

    sql: str
    kind: ArgumentKind
    value: str | None = None
    number: int | None = None
    column: str | None = None
    long_steps: LongSteps | None = None


@dataclass(frozen=True, slots=True)
class Function:
    """One function of Pinot.

    :ivar parameters: the types to which its arguments are cast.
    :ivar sql: translates a call with these arguments; raises a ValueError that says why it cannot.
    """

    parameters: tuple[ArgumentKind, ...]
    sql: Callable[[list[Argument]], Argument]


_NUMBERS: Final = {"LONG": r"[+-]?[0-9]+", "DOUBLE": r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"}
_CASTS: Final = {"LONG": "bigint", "DOUBLE": "double", "STRING": "string"}
_FIRST_MS: Final = -62_135_596_800_000  # year 1
_LAST_MS: Final = 253_402_300_799_999  # year 9999


def _function(result: ArgumentKind, template: str, kind: ArgumentKind, count: int) -> Function:
    """Return a function with `count` arguments, all cast to one kind, for {0}, {1} in the template."""

    def call(arguments: list[Argument]) -> Argument:
        return Argument(template.format(*[_cast(argument, kind) for argument in arguments]), result)

    return Function((kind,) * count, call)


def _of_steps(steps: Sequence[tuple[Sign, int | None]], count: int) -> Function:
    """Return a function of LONG arithmetic; a step without a number takes the second argument."""

    def call(arguments: list[Argument]) -> Argument:
        casts = [_cast(argument, "LONG") for argument in arguments]
        sql = casts[0]
        for sign, number in steps:
            sql = f"({sql} {sign} {casts[1] if number is None else f'{number}L'})"
        numbers = [arguments[1].number if number is None else number for _, number in steps]
        known = [
            (sign, number) for (sign, _), number in zip(steps, numbers, strict=True) if number and number > 0
        ]
        before = arguments[0].long_steps
        if before is None or len(known) < len(steps):
            return Argument(sql, "LONG")
        return Argument(sql, "LONG", long_steps=LongSteps(before.column, (*before.steps, *known)))

    kind: ArgumentKind = "LONG"
    return Function((kind,) * count, call)


def _cast(argument: Argument, kind: ArgumentKind) -> str:
    if kind == "COLUMN" or argument.kind == kind:
        return argument.sql
    if argument.kind in ("BOOLEAN", "DOUBLE") and kind == "STRING":
        raise ValueError(f"a {argument.kind} is used as text")
    if argument.value is not None and not re.fullmatch(_NUMBERS[kind], argument.value.strip()):
        raise ValueError(f"'{argument.value}' is not a {kind}, which is all that it takes")
    return f"cast({argument.sql} AS {_CASTS[kind]})"


def _pattern(argument: Argument) -> str:
    if argument.value not in PATTERNS:
        raise ValueError(f"its pattern must be one of {', '.join(PATTERNS)}")
    return argument.sql


def _from_date_time(arguments: list[Argument]) -> Argument:
    text, pattern = _cast(arguments[0], "STRING"), _pattern(arguments[1])
    return Argument(f"unix_millis(to_timestamp({text}, {pattern}))", "LONG")


def _to_date_time(arguments: list[Argument]) -> Argument:
    millis, pattern = _cast(arguments[0], "LONG"), _pattern(arguments[1])
    shown = f"date_format(timestamp_millis({millis}), {pattern})"
    # Outside of these years Java and Spark write years differently; a failing cast makes SQL raise an error.
    wrong = f"cast(cast(concat('no year of four digits: ', {millis}) AS bigint) AS string)"
    inside = f"{millis} BETWEEN {_FIRST_MS}L AND {_LAST_MS}L"
    return Argument(f"CASE WHEN {inside} THEN {shown} WHEN {millis} IS NOT NULL THEN {wrong} END", "STRING")


# For Spark, NaN equals itself and is above all other numbers; in Java every such comparison is false.
_COMPARED: Final = "(CASE WHEN isnan({{0}}) OR isnan({{1}}) THEN false ELSE {{0}} {sign} {{1}} END)"
# Pinot compares with a tolerance of 1e-7.
_NEAR: Final = "(CASE WHEN isnan(({{0}} - {{1}})) THEN false ELSE abs(({{0}} - {{1}})) {sign} 1e-7D END)"
_OF_TWO_NUMBERS: Final[Mapping[str, tuple[ArgumentKind, str]]] = {
    "plus": ("DOUBLE", "({0} + {1})"),
    "minus": ("DOUBLE", "({0} - {1})"),
    "times": ("DOUBLE", "({0} * {1})"),
    "mult": ("DOUBLE", "({0} * {1})"),
    "divide": ("DOUBLE", "({0} / {1})"),
    "div": ("DOUBLE", "({0} / {1})"),
    "greaterthan": ("BOOLEAN", _COMPARED.format(sign=">")),
    "greaterthanorequal": ("BOOLEAN", _COMPARED.format(sign=">=")),
    "lessthan": ("BOOLEAN", _COMPARED.format(sign="<")),
    "lessthanorequal": ("BOOLEAN", _COMPARED.format(sign="<=")),
    "equals": ("BOOLEAN", _NEAR.format(sign="<")),
    "notequals": ("BOOLEAN", _NEAR.format(sign=">=")),
}
_OF_TEXTS: Final[Mapping[tuple[str, int], tuple[ArgumentKind, str]]] = {
    ("upper", 1): ("STRING", "upper({0})"),
    ("lower", 1): ("STRING", "lower({0})"),
    ("reverse", 1): ("STRING", "reverse({0})"),
    ("concat", 2): ("STRING", "concat({0}, {1})"),
    ("trim", 1): ("STRING", "trim({0})"),  # SQL's trim removes only blanks, no tabs
    ("length", 1): ("LONG", "(octet_length(encode({0}, 'UTF-16BE')) DIV 2)"),  # Java counts UTF-16
    ("startswith", 2): ("BOOLEAN", "startswith({0}, {1})"),
    ("endswith", 2): ("BOOLEAN", "endswith({0}, {1})"),
}
_MS: Final = 0  # in `_OF_UNITS`: the milliseconds of the unit
_OF_UNITS: Final[Mapping[tuple[str, int], tuple[tuple[Sign, int | None], ...]]] = {
    ("toepoch{unit}", 1): (("DIV", _MS),),
    ("toepoch{unit}rounded", 2): (("DIV", _MS), ("DIV", None), ("*", None)),
    ("toepoch{unit}bucket", 2): (("DIV", _MS), ("DIV", None)),
    ("fromepoch{unit}", 1): (("*", _MS),),
    ("fromepoch{unit}bucket", 2): (("*", None), ("*", _MS)),
}
_UNITS: Final = {"seconds": 1000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
_MOMENTS: Final = {
    "year": "year({t})",
    "yearofweek": "extract(YEAROFWEEK FROM {t})",
    "yow": "extract(YEAROFWEEK FROM {t})",
    "quarter": "quarter({t})",
    "month": "month({t})",
    "monthofyear": "month({t})",
    "week": "weekofyear({t})",
    "weekofyear": "weekofyear({t})",
    "dayofyear": "dayofyear({t})",
    "doy": "dayofyear({t})",
    "dayofmonth": "day({t})",
    "day": "day({t})",
    "dayofweek": "(weekday({t}) + 1)",
    "dow": "(weekday({t}) + 1)",
    "hour": "hour({t})",
    "minute": "minute({t})",
    "second": "second({t})",
    "millisecond": "pmod({0}, 1000L)",
}


FUNCTIONS: Final[Mapping[tuple[str, int], Function]] = {
    **{
        (name.format(unit=unit), count): _of_steps(
            [(sign, ms if number == _MS else number) for sign, number in steps], count
        )
        for (name, count), steps in _OF_UNITS.items()
        for unit, ms in _UNITS.items()
    },
    **{
        (name, 1): _function(
            "LONG", f"cast({template} AS bigint)".replace("{t}", "timestamp_millis({0})"), "LONG", 1
        )
        for name, template in _MOMENTS.items()
    },
    **{
        (name, count): _function(result, template, "STRING", count)
        for (name, count), (result, template) in _OF_TEXTS.items()
    },
    **{
        (name, 2): _function(result, template, "DOUBLE", 2)
        for name, (result, template) in _OF_TWO_NUMBERS.items()
    },
    ("round", 2): _of_steps((("DIV", None), ("*", None)), 2),
    ("fromdatetime", 2): Function(("STRING", "STRING"), _from_date_time),
    ("todatetime", 2): Function(("LONG", "STRING"), _to_date_time),
    ("isnull", 1): _function("BOOLEAN", "({0} IS NULL)", "COLUMN", 1),
    ("isnotnull", 1): _function("BOOLEAN", "({0} IS NOT NULL)", "COLUMN", 1),
}
"""The functions, by name and number of arguments."""
