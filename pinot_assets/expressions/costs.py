"""Check that an expression stays cheap: patterns match fast, and a few letters do not make huge values.

A short text can ask for much: `repeat(repeat('x', 100000), 100000)`, `sequence(1, 1e9)`, thirty nested `hex`,
a pattern that backtracks for hours. So an argument that decides about size must be a literal within bounds,
and nested calls together may make a value at most `MOST_GROWTH` times longer. The names of functions and
the spelling of texts depend on the dialect; `spark` and `pinot` define theirs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pinot_assets.expressions.regex_cost import check_pattern, check_wildcards
from pinot_assets.expressions.syntax import (
    END,
    ExpressionRefused,
    FunctionCall,
    Token,
    calls_of,
    literal_number,
    literal_text,
    words,
)

MOST_GROWTH: Final = 10_000
"""How many times longer an expression may make a value."""
MOST_IN_ALL: Final = 10 * MOST_GROWTH
"""How many times longer all of its calls together may make values: calls side by side add up."""
MOST_OPERATORS: Final = 1_000
"""Limit of the operators of an expression: parsers and planners recurse for each."""
MOST_EXPONENT: Final = 400
"""Limit of a number's exponent: beyond it only decimals have values, with as many digits."""
UNKNOWN_LENGTH: Final = 100
"""The length that is assumed for a value of a row, where it decides how long another value becomes."""

_JOINING: Final = words("and or not case when between in is like div")
_GRAMMAR: Final = words("in and or not case when then else between")
_FOLDING: Final = 2
"""Position of the first argument of a fold that is called again and again."""
_MOST_DEPTH: Final = 100
"""Limit of nested brackets in a text: the parsers of types and of JSON recurse."""
_LIKES: Final = words("like ilike")
_REGULAR: Final = words("rlike regexp")
_OF_SEVERAL: Final = words("any all some")
_AFTER_PATTERN: Final = words(
    "and or then else end when escape group order having limit offset as is from desc asc nulls filter"
)

Growth = Callable[["FunctionCall", "Dialect"], float]
"""Returns how many times longer a call makes its arguments."""
TextCheck = Callable[[str], None]
"""Raises `ExpressionRefused` for a text that is not allowed."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the check of costs knows about Spark's SQL, or about Pinot's.

    :ivar patterns: functions, and which of their arguments (from 0) are regular expressions.
    :ivar texts: functions, and which of their arguments (negative: from the end) are in a small language
        of their own, such as a JSON path: each must be one literal that passes its check.
    :ivar settings: functions whose arguments all decide about size, each with a check of a call.
    :ivar bounds: functions, which of their arguments are numbers that decide about size, and their limit.
    :ivar growth: functions that make a value longer: by a fixed factor, or by one that depends on the call.
    :ivar folds: functions that call another one, from their third argument on, with its previous result;
        `numeric` are the functions that it may contain.
    :ivar unquoted: returns the value of a text literal.
    :ivar canonical: returns a function's name as these tables have it.
    """

    patterns: Mapping[str, Sequence[int]]
    bounds: Mapping[str, Mapping[int, int]]
    growth: Mapping[str, Growth | float]
    unquoted: Callable[[str], str]
    canonical: Callable[[str], str] = str.lower
    texts: Mapping[str, Mapping[int, TextCheck]] = field(default_factory=dict)
    settings: Mapping[str, Callable[[FunctionCall], None]] = field(default_factory=dict)
    folds: frozenset[str] = frozenset()
    numeric: frozenset[str] = field(default_factory=frozenset)

    @property
    def judged(self) -> frozenset[str]:
        """The functions whose arguments are checked."""
        by_name = (self.patterns, self.texts, self.settings, self.bounds, self.growth)
        return frozenset().union(self.folds, *by_name, _LIKES, _REGULAR)


def check_costs(tokens: Sequence[Token], dialect: Dialect) -> None:
    """Refuse an expression that may cost more time or memory than its rows justify.

    :param tokens: all tokens of the expression.
    :raises ExpressionRefused: it may cost more; the reason names the function.
    """
    operators = 0
    before = END
    for token, after in zip(tokens, [*tokens[1:], END], strict=True):
        is_arrow = token.text == "=" and after.text == ">" and after.start == token.start + 1
        if is_arrow and before.text != "<":
            raise ExpressionRefused("gives an argument by its name", "write the values in their order")
        before = token
        operators += (token.kind == "sign" and token.text not in "()],") or token.name in _JOINING
        if token.kind in ("number", "text"):
            _check_exponent(token)
        if token.kind == "text":
            _check_depth(token)
    if operators > MOST_OPERATORS:
        raise ExpressionRefused(
            f"has more than {MOST_OPERATORS:,} operators", "write IN (…) for a choice of values"
        )
    if _check_call(calls_of(tokens), dialect, 1.0) > MOST_IN_ALL:
        raise ExpressionRefused(
            f"makes values more than {MOST_IN_ALL:,} times longer by all of its calls together",
            "write smaller numbers, or fewer such calls",
        )


def by_number(position: int, call: FunctionCall, _: Dialect) -> float:
    """The factor is the literal number in one argument (negative: from the end)."""
    return max(1.0, _literal_number(call, position))


def by_text(positions: Sequence[int], call: FunctionCall, dialect: Dialect) -> float:
    """The factor is one more than the length of some arguments, from 0."""
    return 1.0 + sum(_length(call, position, dialect) for position in positions)


def by_separator(call: FunctionCall, dialect: Dialect) -> float:
    """The factor is one more than the length of the first argument, for each of the other arguments."""
    return (1.0 + _length(call, 0, dialect)) * max(1, len(call.arguments) - 1)


def by_options(call: FunctionCall, _: Dialect) -> float:
    """The factor is 2; it is far larger with options, which may set the text between values."""
    return 2 if len(call.arguments) == 1 else 2 * UNKNOWN_LENGTH


def by_range(call: FunctionCall, _: Dialect) -> float:
    """The factor is the number of steps from one literal number to another."""
    start, end = _literal_number(call, 0), _literal_number(call, 1)
    step = abs(_literal_number(call, 2)) if len(call.arguments) > 2 else 1.0
    return max(1.0, abs(end - start) / step) if step else math.inf


def by_digits(call: FunctionCall, _: Dialect) -> float:
    """For format_number: its second argument is a pattern, or the number of digits after the point."""
    pattern = literal_text(call.arguments[1]) if len(call.arguments) > 1 else ""
    return max(1.0, _literal_number(call, 1)) if pattern is None else 1.0


def by_format(call: FunctionCall, dialect: Dialect) -> float:
    """For printf: its literal format sets the width of each value."""
    if (text := literal_text(call.arguments[0])) is None:
        raise ExpressionRefused(f"gives {call.name}() a format that is no text", "write the format itself")
    values = re.findall(r"%([^%a-zA-Z]*)", dialect.unquoted(text))
    return max(1.0, len(values)) + sum(float(width) for one in values for width in re.findall("[0-9]+", one))


def _length(call: FunctionCall, position: int, dialect: Dialect) -> float:
    if position >= len(call.arguments):
        return 0.0
    text = literal_text(call.arguments[position])
    return UNKNOWN_LENGTH if text is None else float(len(dialect.unquoted(text)))


def _check_call(call: FunctionCall, dialect: Dialect, factor: float, fold: str = "") -> float:
    """:param factor: how many times longer the calls around it make its result.
    :returns: how many times longer it and all calls in it make their arguments.
    """
    name = dialect.canonical(call.name)
    if fold and name and name not in dialect.numeric | _GRAMMAR:
        raise ExpressionRefused(
            f"calls {call.name}() in {fold}(), where a value could grow with each step",
            f"only numbers are computed in {fold}()",
        )
    for position in dialect.patterns.get(name, ()):
        if position < len(call.arguments):
            _check_pattern(call.arguments[position], f"{call.name}()", dialect)
    for position, check in dialect.texts.get(name, {}).items():
        if -len(call.arguments) <= position < len(call.arguments):
            _check_text(call.arguments[position], f"{call.name}() a setting", check, dialect)
    if name in dialect.settings:
        dialect.settings[name](call)
    for position, most in dialect.bounds.get(name, {}).items():
        if position < len(call.arguments) and abs(_literal_number(call, position)) > most:
            raise ExpressionRefused(f"gives {call.name}() a number above {most:,}", "write a smaller one")
    growth = dialect.growth.get(name, 1.0)
    own = growth(call, dialect) if callable(growth) else growth
    if own > 1:
        factor *= own
        if not factor <= MOST_GROWTH:
            raise ExpressionRefused(
                f"makes a value more than {MOST_GROWTH:,} times longer by {call.name}()",
                "write smaller numbers, or fewer such calls in each other",
            )
    longer = 1.0
    for position, argument in enumerate(call.arguments):
        within = call.name if name in dialect.folds and position >= _FOLDING else fold
        _check_argument(argument, dialect, within)
        for item in argument:
            if isinstance(item, FunctionCall):
                longer += _check_call(item, dialect, factor, within) - 1
    return own * longer


def _check_argument(argument: Sequence[Token | FunctionCall], dialect: Dialect, fold: str) -> None:
    """Check the patterns after LIKE and RLIKE; refuse an operator that joins texts in a fold."""
    for place, item in enumerate(argument):
        if isinstance(item, FunctionCall):
            name = item.name
            before = argument[place - 1] if place else None
            is_like = isinstance(before, Token) and before.name in _LIKES
            is_alone = len(item.arguments) == 1
            patterns = item.arguments[1:2] if name in _LIKES and not is_alone else []
            if (name in _LIKES | _REGULAR and is_alone) or (name in _OF_SEVERAL and is_like):
                patterns = item.arguments
            for pattern in patterns:
                _check_pattern(pattern, name.upper(), dialect)
        elif item.name in _LIKES | _REGULAR and _is_operator(argument, place):
            _check_behind(argument[place + 1 :], item.text.upper(), dialect)
        elif fold and item.text == "|" and item.kind == "sign":
            raise ExpressionRefused(f"joins texts in {fold}()", f"only numbers are computed in {fold}()")


def _is_operator(argument: Sequence[Token | FunctionCall], place: int) -> bool:
    """Whether LIKE is an operator between values, and not the name of a column or a member."""
    if place == 0 or place + 1 >= len(argument):
        return False
    before, after = argument[place - 1], argument[place + 1]
    if isinstance(before, Token) and before.kind == "sign":
        return False
    return not (isinstance(after, Token) and (after.kind == "sign" or after.name in _AFTER_PATTERN)) and not (
        isinstance(after, FunctionCall) and after.name in _OF_SEVERAL
    )


def _check_behind(rest: Sequence[Token | FunctionCall], what: str, dialect: Dialect) -> None:
    """Check the pattern of an operator: it is one text, and nothing after it changes that text."""
    joined = rest[1] if len(rest) > 1 else None
    if isinstance(joined, FunctionCall) or (
        joined is not None and joined.name not in _AFTER_PATTERN and joined.text not in ("=", "<", ">", "!")
    ):
        raise _no_literal(f"{what} a pattern")
    _check_pattern(rest[:1], what, dialect)


def _check_pattern(argument: Sequence[Token | FunctionCall], what: str, dialect: Dialect) -> None:
    """:param what: the operator in upper case, or the function."""
    check = check_wildcards if what.lower() in _LIKES | _OF_SEVERAL else check_pattern
    _check_text(argument, f"{what} a pattern", check, dialect)


def _check_text(
    argument: Sequence[Token | FunctionCall], what: str, check: TextCheck, dialect: Dialect
) -> None:
    if (text := literal_text(argument)) is None:
        raise _no_literal(what)
    try:
        check(dialect.unquoted(text))
    except ExpressionRefused as refused:
        raise ExpressionRefused(f"gives {what} that {refused.reason}", refused.fix) from None


def _no_literal(what: str) -> ExpressionRefused:
    return ExpressionRefused(
        f"gives {what} that is not one text", "write the text itself, which can be read before it runs"
    )


def _literal_number(call: FunctionCall, position: int) -> float:
    arguments = call.arguments
    number = literal_number(arguments[position]) if -len(arguments) <= position < len(arguments) else None
    if number is None:
        raise ExpressionRefused(
            f"gives {call.name}() a size that is not one number", "write the number itself, not an expression"
        )
    return number


def _check_depth(token: Token) -> None:
    depth = 0
    for char in re.findall(r"[\[({<\])}>]", token.text):
        depth = max(0, depth + (1 if char in "[({<" else -1))
        if depth > _MOST_DEPTH:
            raise ExpressionRefused(f"has a text with more than {_MOST_DEPTH} brackets in each other")


def _check_exponent(token: Token) -> None:
    text = token.text.strip("'\"")
    if token.kind == "text" and not re.fullmatch(r"\s*[+-]?[0-9.]+[eE][+-]?[0-9]+\s*", text):
        return
    match = re.search(r"[0-9.][eE][+-]?([0-9]+)", text)
    if match is not None and (len(match[1]) > 4 or int(match[1]) > MOST_EXPONENT):
        raise ExpressionRefused(f"has a number with an exponent above {MOST_EXPONENT}", "write a smaller one")
