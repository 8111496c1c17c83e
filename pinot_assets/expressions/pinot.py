"""What an assertion may ask Pinot: one SELECT from one table, of functions that are on the list.

A server that is asked by gRPC runs Groovy whatever the brokers forbid, and LOOKUP reads any of its tables.
So the text is read here before it is sent, word by word as Calcite reads it. What the SELECT means is for
`pinot_assets.table_spec.blocks.assertion_sql` to say.
"""

from __future__ import annotations

import re
from typing import Final

from pinot_assets.expressions.completeness import CLAUSES, check_whole
from pinot_assets.expressions.costs import check_costs
from pinot_assets.expressions.pinot_functions import ALLOWED, COSTS_OF_PINOT, PERCENTILE, REFUSED, canonical
from pinot_assets.expressions.syntax import (
    END,
    PINOT,
    ExpressionRefused,
    Token,
    read_tokens,
    refuse_reference,
    unknown_function,
    without_comments,
    word_before,
    words,
)

_INSTEAD: Final = "use functions that Pinot itself has for one row, and its aggregations"
_CLAUSES: Final = frozenset(("where", "group", "having", "order", "limit", "offset"))
"""What may follow the table's name."""
_BEFORE_PARENTHESIS: Final = words(
    """
    and between by case char character decimal distinct else escape for having in like not numeric or
    select then varchar when where
    """
)
"""Words that are no function's name where a parenthesis follows."""
_BEFORE_TEXT: Final = _BEFORE_PARENTHESIS | {"as", "date", "interval", "time", "timestamp"}
"""Words that may touch a text; behind others, Calcite reads it in another spelling (`X'67'`)."""
_OPTIONS: Final = re.compile(r"option\s*\(", re.IGNORECASE)
"""As Pinot 0.11 finds them, wherever they are, and takes them out of the query
(`CalciteSqlParser.extractOptionsFromSql`)."""
_WITH_FROM: Final = frozenset(("extract", "trim", "substring", "overlay"))
_WITHOUT_PARENTHESES: Final = words(
    """
    current_catalog current_date current_default_transform_group current_path current_role current_row
    current_schema current_time current_timestamp current_user localtime localtimestamp session_user
    system_user user
    """
)
"""Functions to Calcite, which are called without parentheses."""


def plain_question(text: str) -> str:
    """The text of an assertion as it is sent: without comments, and without a semicolon at its end.

    :raises ExpressionRefused: it refers to the environment, or parsers differ in where a comment ends.
    """
    refuse_reference(text)
    return without_comments(text, PINOT).strip().rstrip(";").rstrip()


def check_question(text: str) -> None:
    """Refuse a text that asks for what it may not ask.

    :param text: a SELECT, as `plain_question` gives it.
    :raises ExpressionRefused: it calls a function that is not on the list, reads another table than the one
        behind FROM, refers to the environment, is written so that parsers differ, may cost more than its
        rows do, or is not whole.
    """
    refuse_reference(text)
    tokens = [END, *read_tokens(text, PINOT), END, END]
    if _OPTIONS.search(text):
        raise ExpressionRefused("has option( in a text, where Pinot looks for options of the query, too")
    if tokens[1].name != "select":
        raise ExpressionRefused("is not one SELECT")
    calls: list[str] = []  # what each open parenthesis belongs to
    has_table = False
    for place in range(1, len(tokens) - 2):
        token = tokens[place]
        if token.name == "from" and not (calls and calls[-1] in _WITH_FROM):
            if has_table or calls or not _is_table(tokens[place + 1], tokens[place + 2]):
                raise ExpressionRefused("does not read one table by its name")
            has_table = True
        elif token.text == ";" and token.kind == "sign":
            raise ExpressionRefused("has a ;, behind which another statement could stand", "leave it out")
        elif token.text == "(" and token.kind == "sign":
            calls.append(_called(tokens, place))
        elif token.text == ")" and token.kind == "sign" and calls:
            calls.pop()
        elif token.kind == "word":
            _check_word(tokens, place)
    check_costs(tokens, COSTS_OF_PINOT)
    check_whole(tokens[1:-2], CLAUSES)


def refused_function(name: str) -> ExpressionRefused | None:
    """Why a function may not be called, None if it may."""
    if name.isascii():
        plain = canonical(name)
        if plain in ALLOWED or PERCENTILE.fullmatch(plain):
            return None
        if plain in REFUSED:
            return ExpressionRefused(f"calls {name}(), which {REFUSED[plain]}", _INSTEAD)
    return unknown_function(name, ALLOWED, _INSTEAD)


def _called(tokens: list[Token], place: int) -> str:
    """The function that a parenthesis belongs to, "" where it is one around values."""
    name = word_before(tokens, place)
    if name is None:
        return ""
    if name.name in _BEFORE_PARENTHESIS or (name.name == "filter" and tokens[place + 1].name == "where"):
        return ""
    if name.name == "from":  # that of TRIM and EXTRACT; any other one was looked at
        return ""
    if (refused := refused_function(name.text)) is not None:
        raise refused
    return canonical(name.name)


def _check_word(tokens: list[Token], place: int) -> None:
    token, before, after = tokens[place], tokens[place - 1], tokens[place + 1]
    touches = after.start == token.start + len(token.text)
    if after.kind in ("text", "quoted") and touches and token.name not in _BEFORE_TEXT:
        raise ExpressionRefused(
            f"has {token.text} right before a quote, which spells a text or a name in another way"
        )
    if "." in (before.text, after.text):
        return
    if (token.name == "select" and place > 1) or token.name in ("table", "values"):
        raise ExpressionRefused("asks for a query in a query")
    if token.name in _WITHOUT_PARENTHESES and after.text != "(":
        raise ExpressionRefused(
            f"calls {token.text}, which is a function to Pinot",
            f'for a column of that name, write "{token.text}"',
        )


def _is_table(name: Token, after: Token) -> bool:
    """Whether a table's name stands behind FROM, and nothing of a join behind that."""
    return name.kind in ("word", "quoted") and (after is END or after.name in _CLAUSES)
