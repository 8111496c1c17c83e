"""The SQL of an audit assertion: what several servers can each answer for a part of the rows.

A server answers for its segments alone, and what it sends of `AVG` or `DISTINCTCOUNT` only Pinot's brokers
can merge. So an assertion asks for COUNT, SUM, MIN and MAX, filtered and grouped; everything else is refused
by name, or asked of a shadow table (`shadow_sql`). Nothing of the text is rewritten but the table's name,
which servers want with its type; comments are not sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from pinot_assets.expressions.pinot import check_question, plain_question
from pinot_assets.table_spec.blocks.assertion_query import Question
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

FOLDS: Final[dict[type, str]] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Min: "MIN",
    exp.Max: "MAX",
}
"""Aggregations whose parts can be put together, by Pinot's name."""

_TAKEN: Final[dict[type, set[str]]] = {
    exp.Select: {"expressions", "from_", "where", "group"},
    exp.Group: {"expressions"},
    exp.Table: {"this"},
}
"""Parts of these that servers can be asked; all others are refused."""
PART_NAMES: Final = {
    "alias": "an alias of the table",
    "db": "a database",
    "distinct": "SELECT DISTINCT",
    "joins": "JOIN",
    "order": "ORDER BY",
}
_NO_DOOR: Final = (
    "servers answer for a part of the rows each, and this cannot be put together from parts; "
    "`via: shadow` asks a broker, of a table with the staged segments alone"
)


def read_question(sql: str) -> Question:
    """Read one assertion's SQL.

    :raises ValueError: it is no SELECT that can be asked of servers; the text says what and why.
    """
    text = plain_question(sql)
    select = read_select(text)
    for refused in _refused(select):
        raise ValueError(f"asks for {refused}: {_NO_DOOR}")
    for misread in _misread(select):
        raise ValueError(misread)
    table, start, end = table_place(select)
    check_question(text)
    keys = keys_of(select)
    aggregates = list(_aggregates(select, frozenset(map(meaning_of, keys))))
    if not aggregates:
        raise ValueError("asks for no COUNT, SUM, MIN or MAX")
    if len({meaning_of(call) for call in aggregates}) < len(aggregates):
        raise ValueError("asks twice for the same")
    return Question(
        text[:start],
        table,
        text[end:],
        tuple(map(text_of, keys)),
        tuple((text_of(call), FOLDS[type(call)]) for call in aggregates),
        named_in(select),
        null_columns_of(select),
    )


def _refused(select: exp.Select) -> Iterator[str]:
    """What of it cannot be asked of servers."""
    yield from odd_parts(select, _TAKEN, PART_NAMES)
    for node in select.find_all(exp.Filter, exp.Window):
        yield "FILTER" if isinstance(node, exp.Filter) else "OVER"
    yield from odd_keys(select)
    for call in select.find_all(exp.AggFunc):
        if type(call) not in FOLDS or call.args.get("expressions") or call.find(exp.Distinct) is not None:
            yield text_of(call)


def _misread(select: exp.Select) -> Iterator[str]:
    """What a server takes for something else than a broker does (`AliasApplier` of 0.11, for one)."""
    for column in qualified_columns(select):
        name = text_of(column)
        dotted = f'"{name}" if its name has a dot'
        yield f"names {name}, which is no column to a server: write {column.name}, or {dotted}"
    read = named_in(select.args.get("where"), select.args.get("group"))
    for column in select.expressions:
        if isinstance(column, exp.Alias) and column.alias in read and column.this.name != column.alias:
            yield f"calls {text_of(column.this)} {column.alias}, which is a column that it reads, too"


def _aggregates(select: exp.Select, keys: frozenset[str]) -> Iterator[exp.Expression]:
    for written in select.expressions:
        column = written.unalias()
        if type(column) in FOLDS:
            yield column
        elif meaning_of(column) not in keys:
            text = text_of(column)
            raise ValueError(
                f"asks for {text}, which is neither COUNT, SUM, MIN or MAX nor in GROUP BY: {_NO_DOOR}"
            )
