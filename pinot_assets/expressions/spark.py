"""What `filter` and `transforms` may say in Spark SQL: one expression, of functions that are on the list.

Spark's own tree of the expression is looked at as well, where it is compiled
(`pinot_assets.ingest.spark.expression`). Here it is read without Spark, for the commands that have none.
"""

from __future__ import annotations

from typing import Final

from pinot_assets.expressions.completeness import check_whole
from pinot_assets.expressions.costs import check_costs
from pinot_assets.expressions.spark_functions import ALLOWED, COSTS_OF_SPARK, REFUSED
from pinot_assets.expressions.syntax import (
    END,
    SPARK,
    ExpressionRefused,
    Token,
    read_tokens,
    refuse_reference,
    unknown_function,
    word_before,
    words,
)

_CALLED_BY_GRAMMAR: Final = frozenset(("try_cast", "timestampadd", "timestampdiff"))
"""What is written like a call, is none of Spark's list of functions, and computes with values alone."""
_INSTEAD: Final = "use functions of Spark SQL that make one value of one row, always the same one"
_OPERATORS: Final = words(
    """
    all and any as at between both case collate comment day days distinct div else end escape false for
    from hour hours ilike in interval is leading like local microsecond microseconds millisecond
    milliseconds minute minutes month months nanosecond nanoseconds not null or placing precision
    quarter quarters regexp rlike second seconds some then to trailing true week weeks when with without
    year years zone
    """
)
"""Words that join values, or stand for one."""
_TYPES: Final = words(
    """
    array bigint binary boolean byte char character date dec decimal double float int integer interval
    long map numeric r real short smallint string struct time timestamp timestamp_ltz timestamp_ntz
    tinyint varchar variant void x
    """
)
"""Words before a literal or behind a name that say its type."""
_BESIDE: Final = _OPERATORS | _TYPES
_BEFORE_PARENTHESIS: Final = words(
    """
    and between case character dec distinct div else escape for from ilike in like not numeric or
    placing regexp rlike then timestamp_ltz timestamp_ntz varchar when
    """
)
"""Words that are no function's name where a parenthesis follows."""
_LIKE_ANY: Final = frozenset(("like", "ilike", "rlike", "regexp"))
_WITH_FROM: Final = frozenset(("extract", "trim", "substring", "substr", "overlay"))
"""Functions whose arguments may be joined by FROM."""
_STARTS_QUERY: Final = frozenset(("select", "using"))
_STARTS_TABLE: Final = frozenset(("from", "table", "values"))
_MOVES: Final = words(
    """
    current_date current_time current_timestamp current_user localtime localtimestamp session_user
    """
)
"""Functions that are called without parentheses."""


def check_spark_expression(text: str) -> None:
    """Refuse an expression of Spark SQL that says what it may not say.

    :param text: one expression, as in SELECT.
    :raises ExpressionRefused: it calls a function that is not on the list, reads another table, refers to the
        environment, is written so that parsers differ, may cost more than its rows do, or is not whole.
    """
    refuse_reference(text)
    tokens = [END, *read_tokens(text, SPARK), END, END]
    calls: list[str] = []  # what each open parenthesis belongs to
    for place in range(1, len(tokens) - 2):
        token = tokens[place]
        if token.text == "(" and token.kind == "sign":
            calls.append(_called(tokens, place))
        elif token.text == ")" and token.kind == "sign" and calls:
            calls.pop()
        elif token.text == ":" and token.kind == "sign":
            _check_colon(tokens, place)
        elif token.kind == "word":
            _check_word(tokens, place, calls[-1] if calls else "")
        elif token.is_value and (
            tokens[place - 1].kind in ("number", "quoted") or _closes(tokens[place - 1])
        ):
            raise _no_expression(tokens[place - 1], token)
    check_costs(tokens, COSTS_OF_SPARK)
    check_whole(tokens[1:-2])


def refused_function(name: str) -> ExpressionRefused | None:
    """Why a function may not be called, None if it may."""
    plain = name.lower()
    if name.isascii() and (plain in ALLOWED or plain in _CALLED_BY_GRAMMAR):
        return None
    if name.isascii() and plain in REFUSED:
        return ExpressionRefused(f"calls {name}(), which {REFUSED[plain]}", _INSTEAD)
    return unknown_function(name, ALLOWED, _INSTEAD)


def reads_table(what: str) -> ExpressionRefused:
    """The refusal of a query inside of an expression."""
    return ExpressionRefused(
        f"has {what}, which reads another table",
        "use the columns of the file; put a column's name into backquotes",
    )


def _called(tokens: list[Token], place: int) -> str:
    """The function that a parenthesis belongs to, "" where it is one around values."""
    name, before = word_before(tokens, place), tokens[place - 2]
    if name is None:
        return ""
    if name.name in _BEFORE_PARENTHESIS or (name.name in ("all", "any", "some") and before.name in _LIKE_ANY):
        return ""
    if (refused := refused_function(name.text)) is not None:
        raise refused
    return name.name


def _check_word(tokens: list[Token], place: int, call: str) -> None:
    token, before, after = tokens[place], tokens[place - 1], tokens[place + 1]
    if token.name in _STARTS_QUERY:
        raise reads_table(token.text.upper())
    if before.text == ".":
        return  # a member of a structure
    if token.name in _MOVES and after.text not in ("(", "."):
        raise ExpressionRefused(
            f"asks for {token.text}, which {REFUSED[token.name]}", "put the name of a column into backquotes"
        )
    if token.name in _STARTS_TABLE and _is_operand(after):
        joins = before.name == "distinct" or (call in _WITH_FROM and before.is_value)
        if token.name != "from" or not joins:
            raise reads_table(token.text.upper())
        return
    if (before.is_value or _closes(before)) and token.name not in _BESIDE and before.name not in _BESIDE:
        raise _no_expression(before, token)
    if after.is_value and after.kind != "word" and token.name not in _BESIDE:
        raise _no_expression(token, after)


def _closes(token: Token) -> bool:
    """Whether a value ends with it that is no single word, text or number."""
    return token.kind == "sign" and token.text in (")", "]")


def _is_operand(token: Token) -> bool:
    """Whether a value begins with it, as behind FROM or TABLE; behind a column, an operator does."""
    return (token.is_value and token.name not in _OPERATORS) or token.text == "("


def _check_colon(tokens: list[Token], place: int) -> None:
    """A cast (`::`), a member of a variant, a type of a structure; no parameter, before which is nothing."""
    before = tokens[place - 1]
    if not before.is_value and before.text not in (":", ")", "]"):
        raise ExpressionRefused("has a parameter, which nothing fills in", "write the value")


def _no_expression(one: Token, other: Token) -> ExpressionRefused:
    return ExpressionRefused(
        f"is no expression: nothing joins {one.text[:40]} and {other.text[:40]}",
        "write one expression, as in SELECT",
    )
