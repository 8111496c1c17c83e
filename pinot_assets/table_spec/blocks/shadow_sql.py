"""The SQL of an assertion that is asked of a shadow table: all that a broker answers of one table.

Its rows stand in a table of their own then, so nothing has to be put together here. Every column of the
answer is either one that it groups by, or a number that is held against what is expected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from pinot_assets.expressions.pinot import check_question, plain_question
from pinot_assets.table_spec.blocks.assertion_query import Question
from pinot_assets.table_spec.blocks.assertion_sql import PART_NAMES
from pinot_assets.table_spec.blocks.select import (
    keys_of,
    meaning_of,
    named_in,
    null_columns_of,
    odd_keys,
    odd_parts,
    qualified_columns,
    read_select,
    table_place,
    text_of,
)

_TAKEN: Final[dict[type, set[str]]] = {
    exp.Select: {"expressions", "from_", "where", "group", "having", "order", "limit", "offset"},
    exp.Group: {"expressions"},
    exp.Table: {"this"},
}


def read_shadow_question(sql: str) -> Question:
    """Read one assertion's SQL.

    :raises ValueError: it is no SELECT that a broker can be asked of one table alone, or not every column of
        its answer is a key or a value; the text says what and why.
    """
    text = plain_question(sql)
    select = read_select(text)
    for refused in _refused(select):
        raise ValueError(f"asks for {refused}, which a shadow table does not answer")
    for column in qualified_columns(select):
        raise ValueError(f"names {text_of(column)}: write {column.name}, the table has another name there")
    table, start, end = table_place(select)
    check_question(text)
    keys = keys_of(select)
    places = tuple(_places(select, keys))
    values = [column.unalias() for n, column in enumerate(select.expressions) if n not in places]
    for value in values:
        if isinstance(value, exp.Column | exp.Star):
            raise ValueError(f"asks for {text_of(value)}, which is neither aggregated nor in GROUP BY")
    if not values:
        raise ValueError("asks for no value")
    if len(set(map(meaning_of, values))) < len(values):
        raise ValueError("asks twice for the same")
    made = {column.alias for column in select.expressions if isinstance(column, exp.Alias)}
    read_later = named_in(*(select.args.get(part) for part in ("group", "having", "order")))
    return Question(
        text[:start],
        table,
        text[end:],
        tuple(map(text_of, keys)),
        tuple((text_of(value), _fold(value)) for value in values),
        named_in(*select.expressions, select.args.get("where")) | (read_later - made),
        null_columns_of(select),
        places,
        select.args.get("limit") is not None,
        select.args.get("having") is not None,
    )


def _refused(select: exp.Select) -> Iterator[str]:
    yield from odd_parts(select, _TAKEN, PART_NAMES)
    if select.find(exp.Window) is not None:
        yield "OVER"
    yield from odd_keys(select)


def _places(select: exp.Select, keys: list[exp.Expression]) -> Iterator[int]:
    """Where each key stands in the answer, in the order of GROUP BY."""
    for key in keys:
        meaning = meaning_of(key)
        for place, column in enumerate(select.expressions):
            if meaning_of(column.unalias()) == meaning or (column.alias and column.alias == key.name):
                yield place
                break
        else:
            raise ValueError(f"groups by {text_of(key)} without asking for it: its groups could not be told")


def _fold(value: exp.Expression) -> str:
    """COUNT and SUM, which are 0 of no rows; else nothing is known of it."""
    if isinstance(value, exp.Sum):
        return "SUM"
    counts = isinstance(value, exp.Func) and text_of(value).upper().startswith(("COUNT", "DISTINCTCOUNT"))
    return "COUNT" if counts else ""
