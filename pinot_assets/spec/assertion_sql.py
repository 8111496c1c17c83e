"""The SQL of an audit assertion: what several servers can each answer for a part of the rows.

A server answers for its segments alone, and what it sends of `AVG` or `DISTINCTCOUNT` only Pinot's brokers
can merge. So an assertion asks for COUNT, SUM, MIN and MAX, filtered and grouped; everything else is refused
by name. Nothing of the text is rewritten but the table's name, which servers want with its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

FOLDS: Final[dict[type, str]] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Min: "MIN",
    exp.Max: "MAX",
}
"""Aggregations whose parts can be put together, by Pinot's name."""

MOST_GROUPS: Final = 10_000
"""Groups that a server is asked for at the most; without a limit Pinot sends ten."""

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


@dataclass(frozen=True, slots=True)
class Question:
    """A SELECT that servers can answer for a part of the rows each.

    :ivar before: its text up to the table's name.
    :ivar table: the table that it names.
    :ivar after: its text behind the table's name.
    :ivar keys: expressions of GROUP BY.
    :ivar aggregates: each one's text and how its parts are put together: COUNT, SUM, MIN or MAX.
    :ivar columns: every column that it names.
    """

    before: str
    table: str
    after: str
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, str], ...]
    columns: frozenset[str]

    def of(self, table_with_type: str) -> str:
        """The text for a server.

        :param table_with_type: `orders_OFFLINE`.
        """
        limit = f"\nLIMIT {MOST_GROUPS}" if self.keys else ""
        return f'{self.before}"{table_with_type}"{self.after}{limit}'


def read_question(sql: str) -> Question:
    """Read one assertion's SQL.

    :raises ValueError: it is no SELECT that can be asked of servers; the text says what and why.
    """
    text = sql.strip().rstrip(";").rstrip()
    select = _select(text)
    for refused in _refused(select):
        raise ValueError(f"asks for {refused}: {_NO_DOOR}")
    tables = list(select.find_all(exp.Table))
    if len(tables) != 1:
        raise ValueError("does not read one table")
    keys = tuple(key.sql() for key in _keys(select))
    aggregates = tuple(_aggregates(select, frozenset(keys)))
    if not aggregates:
        raise ValueError("asks for no COUNT, SUM, MIN or MAX")
    if len(set(aggregates)) < len(aggregates):
        raise ValueError("asks twice for the same")
    start, end = (int(tables[0].this.meta[edge]) for edge in ("start", "end"))
    return Question(
        text[:start],
        tables[0].name,
        text[end + 1 :],
        keys,
        aggregates,
        frozenset(column.name for column in select.find_all(exp.Column)),
    )


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
            yield f"GROUP BY {key.sql()}"
    for call in select.find_all(exp.AggFunc):
        if type(call) not in FOLDS or call.args.get("expressions") or call.find(exp.Distinct) is not None:
            yield call.sql()


def _aggregates(select: exp.Select, keys: frozenset[str]) -> Iterator[tuple[str, str]]:
    for written in select.expressions:
        column = written.unalias()
        fold = FOLDS.get(type(column))
        if fold is not None:
            yield column.sql(), fold
        elif column.sql() not in keys:
            text = column.sql()
            raise ValueError(
                f"asks for {text}, which is neither COUNT, SUM, MIN or MAX nor in GROUP BY: {_NO_DOOR}"
            )
