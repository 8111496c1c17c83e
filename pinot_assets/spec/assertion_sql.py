"""The SQL of an audit assertion: what several servers can each answer for a part of the rows.

A server answers for its segments alone, and what it sends of `AVG` or `DISTINCTCOUNT` only Pinot's brokers
can merge. So an assertion asks for COUNT, SUM, MIN and MAX, filtered and grouped; everything else is refused
by name. Nothing of the text is rewritten but the table's name, which servers want with its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pinot_assets.spec.question import Question

FOLDS: Final[dict[type, str]] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Min: "MIN",
    exp.Max: "MAX",
}
"""Aggregations whose parts can be put together, by Pinot's name."""

_TAKEN: Final = {
    exp.Select: {"expressions", "from_", "where", "group"},
    exp.Group: {"expressions"},
    exp.Table: {"this"},
}
"""Parts of these that servers can be asked; all others are refused."""
_NAMES: Final = {
    "alias": "an alias of the table",
    "db": "a database",
    "distinct": "SELECT DISTINCT",
    "joins": "JOIN",
    "order": "ORDER BY",
}
_NO_DOOR: Final = "servers answer for a part of the rows each, and this cannot be put together from parts"


def read_question(sql: str) -> Question:
    """Read one assertion's SQL.

    :raises ValueError: it is no SELECT that can be asked of servers; the text says what and why.
    """
    text = sql.strip().rstrip(";").rstrip()
    select = _select(text)
    for refused in _refused(select):
        raise ValueError(f"asks for {refused}: {_NO_DOOR}")
    for misread in _misread(select):
        raise ValueError(misread)
    tables = list(select.find_all(exp.Table))
    if len(tables) != 1 or not _is_name(tables[0].this):
        raise ValueError("does not read one table")
    keys = _keys(select)
    aggregates = list(_aggregates(select, frozenset(map(_meaning, keys))))
    if not aggregates:
        raise ValueError("asks for no COUNT, SUM, MIN or MAX")
    if len({_meaning(call) for call in aggregates}) < len(aggregates):
        raise ValueError("asks twice for the same")
    start, end = (int(tables[0].this.meta[edge]) for edge in ("start", "end"))
    return Question(
        text[:start],
        tables[0].name,
        text[end + 1 :],
        tuple(map(_text, keys)),
        tuple((_text(call), FOLDS[type(call)]) for call in aggregates),
        _named(select),
        frozenset(
            name
            for test in select.find_all(exp.Is)
            if isinstance(test.expression, exp.Null)
            for name in _named(test)
        ),
    )


def _is_name(table: object) -> bool:
    """Whether it is a name that stands in the text: no function, no text, no parameter."""
    return isinstance(table, exp.Identifier) and "start" in table.meta


def _named(part: exp.Expr) -> frozenset[str]:
    return frozenset(column.name for column in part.find_all(exp.Column))


def _text(part: exp.Expr) -> str:
    return part.sql(comments=False)


def _meaning(part: exp.Expr) -> str:
    """The same for `a` and `"a"`, which are the same to Pinot."""
    return part.sql(comments=False, identify=True)


def _select(text: str) -> exp.Select:
    try:
        parsed = sqlglot.parse(text)
    except SqlglotError as error:
        found = error.errors[0] if hasattr(error, "errors") and error.errors else {}
        where = f" at line {found['line']}, column {found['col']}" if found.get("line") else ""
        raise ValueError(f"is no SQL that is understood{where}: {found.get('description', error)}") from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Select):
        raise ValueError("is not one SELECT")
    return parsed[0]


def _keys(select: exp.Select) -> list[exp.Expression]:
    group = select.args.get("group")
    return list(group.expressions) if group is not None else []


def _refused(select: exp.Select) -> Iterator[str]:
    """What of it cannot be asked of servers."""
    for node in select.find_all(exp.Select, exp.Group, exp.Table):
        for part, value in node.args.items():
            if value and part not in _TAKEN[type(node)]:
                yield _NAMES.get(part, part.strip("_").upper())
    if any(node is not select for node in select.find_all(exp.Select)):
        yield "a query in a query"
    for node in select.find_all(exp.Filter, exp.Window):
        yield "FILTER" if isinstance(node, exp.Filter) else "OVER"
    for key in _keys(select):
        if key.find(exp.Column) is None or isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets):
            yield f"GROUP BY {_text(key)}"
    for call in select.find_all(exp.AggFunc):
        if type(call) not in FOLDS or call.args.get("expressions") or call.find(exp.Distinct) is not None:
            yield _text(call)


def _misread(select: exp.Select) -> Iterator[str]:
    """What a server takes for something else than a broker does (`AliasApplier` of 0.11, for one)."""
    for column in select.find_all(exp.Column):
        if column.table:
            name = _text(column)
            dotted = f'"{name}" if its name has a dot'
            yield f"names {name}, which is no column to a server: write {column.name}, or {dotted}"
    read = {
        name for part in ("where", "group") if select.args.get(part) for name in _named(select.args[part])
    }
    for column in select.expressions:
        if isinstance(column, exp.Alias) and column.alias in read and column.this.name != column.alias:
            yield f"calls {_text(column.this)} {column.alias}, which is a column that it reads, too"


def _aggregates(select: exp.Select, keys: frozenset[str]) -> Iterator[exp.Expression]:
    for written in select.expressions:
        column = written.unalias()
        if type(column) in FOLDS:
            yield column
        elif _meaning(column) not in keys:
            text = _text(column)
            raise ValueError(
                f"asks for {text}, which is neither COUNT, SUM, MIN or MAX nor in GROUP BY: {_NO_DOOR}"
            )
