"""Read the SQL of an audit assertion: several servers must be able to answer it, each for its own rows.

A server answers for its own segments only, and only a broker can merge what servers return for `AVG` or
`DISTINCTCOUNT`. So an assertion asks for COUNT, SUM, MIN and MAX, filtered and grouped. Everything else is
refused by name, or asked of a shadow table (`read_shadow_question`). Only the table's name in the text is
changed, because servers need it with its type; comments are not sent.

A broker answers the whole question about a shadow table: its rows are in a table of their own, so nothing has
to be merged here. Every column of the answer is either a GROUP BY key, or a number that is compared with the
expected one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from pinot_assets.expressions.pinot import check_question, plain_question
from pinot_assets.table_spec.blocks.assertion import Question

_QUERY: Final = re.compile(r"\s*(?:select|with|\()", re.IGNORECASE)


def read_select(text: str) -> exp.Select:
    """Parse a text as one SELECT.

    :raises ValueError: it is no SQL, or not one SELECT.
    """
    if not _QUERY.match(text):  # the parser would log a warning about other statements
        raise ValueError("is not one SELECT")
    try:
        parsed = sqlglot.parse(text)
    except SqlglotError as error:
        first = error.errors[0] if hasattr(error, "errors") and error.errors else {}
        where = f" at line {first['line']}, column {first['col']}" if first.get("line") else ""
        raise ValueError(f"is not SQL that can be read{where}: {first.get('description', error)}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Select):
        raise ValueError("is not one SELECT")
    return parsed[0]


def table_place(select: exp.Select) -> tuple[str, int, int]:
    """Return the table that the SELECT reads, and the start and the end (exclusive) of its name in the text.

    :raises ValueError: it does not read one table by its name.
    """
    tables = list(select.find_all(exp.Table))
    name = tables[0].this if len(tables) == 1 else None
    # The name itself must be in the text: a function, a text or a parameter is refused.
    if not isinstance(name, exp.Identifier) or "start" not in name.meta:
        raise ValueError("does not read one table")
    return tables[0].name, int(name.meta["start"]), int(name.meta["end"]) + 1


def group_keys(select: exp.Select) -> list[exp.Expression]:
    """The expressions of GROUP BY."""
    group = select.args.get("group")
    return list(group.expressions) if group is not None else []


def named_in(*parts: exp.Expr | None) -> frozenset[str]:
    """The names of all columns in these parts."""
    return frozenset(
        column.name for part in parts if part is not None for column in part.find_all(exp.Column)
    )


def null_columns_of(select: exp.Select) -> frozenset[str]:
    """The columns that the SELECT tests for null."""
    tests = (test for test in select.find_all(exp.Is) if isinstance(test.expression, exp.Null))
    return named_in(*tests)


def sql_text(part: exp.Expr) -> str:
    """The SQL of a part without comments, as people read it."""
    return part.sql(comments=False)


def meaning_of(part: exp.Expr) -> str:
    """The SQL of a part with all names in quotes: `a` and `"a"` are the same to Pinot, and here."""
    return part.sql(comments=False, identify=True)


def odd_parts(select: exp.Select, taken: dict[type, set[str]]) -> Iterator[str]:
    """Yield the names of the parts that are not accepted; a query in a query never is.

    :param taken: the accepted parts of a SELECT, a GROUP BY and a table.
    """
    for node in select.find_all(exp.Select, exp.Group, exp.Table):
        for part, value in node.args.items():
            if value and part not in taken[type(node)]:
                yield _PART_NAMES.get(part, part.strip("_").upper())
    if any(node is not select for node in select.find_all(exp.Select)):
        yield "a query in a query"


def odd_keys(select: exp.Select) -> Iterator[str]:
    """Yield each GROUP BY key that is no expression of a column: a number, ROLLUP and the like."""
    for key in group_keys(select):
        if key.find(exp.Column) is None or isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets):
            yield f"GROUP BY {sql_text(key)}"


def qualified_columns(select: exp.Select) -> Iterator[exp.Column]:
    """The columns that are written with the name of their table."""
    return (column for column in select.find_all(exp.Column) if column.table)


FOLDS: Final[dict[type, str]] = {exp.Count: "COUNT", exp.Sum: "SUM", exp.Min: "MIN", exp.Max: "MAX"}
"""Aggregations that can be merged from parts, with Pinot's names."""

_TAKEN: Final[dict[type, set[str]]] = {
    exp.Select: {"expressions", "from_", "where", "group"},
    exp.Group: {"expressions"},
    exp.Table: {"this"},
}
"""Parts of these that servers can answer; all others are refused."""
_PART_NAMES: Final = {
    "alias": "an alias of the table",
    "db": "a database",
    "distinct": "SELECT DISTINCT",
    "joins": "JOIN",
    "order": "ORDER BY",
}
_NO_DOOR: Final = (
    "each server answers for a part of the rows, and the parts of this cannot be combined; `via: "
    "shadow` queries a broker, on a table with only the staged segments"
)


def read_question(sql: str) -> Question:
    """Read the SQL of an assertion for servers.

    :raises ValueError: servers cannot answer it, or it is no SELECT; the text says what is wrong and why.
    """
    text = plain_question(sql)
    select = read_select(text)
    for refused in _refused(select):
        raise ValueError(f"has {refused}: {_NO_DOOR}")
    for misread in _misread(select):
        raise ValueError(misread)
    table, start, end = table_place(select)
    check_question(text)
    keys = group_keys(select)
    if not (aggregates := list(_aggregates(select, frozenset(map(meaning_of, keys))))):
        raise ValueError("has no COUNT, SUM, MIN or MAX")
    if len({meaning_of(call) for call in aggregates}) < len(aggregates):
        raise ValueError("has the same value twice")
    return Question(
        text[:start],
        table,
        text[end:],
        tuple(map(sql_text, keys)),
        tuple((sql_text(call), FOLDS[type(call)]) for call in aggregates),
        named_in(select),
        null_columns_of(select),
    )


def _refused(select: exp.Select) -> Iterator[str]:
    """Yield the parts of a SELECT that servers cannot answer."""
    yield from odd_parts(select, _TAKEN)
    for node in select.find_all(exp.Filter, exp.Window):
        yield "FILTER" if isinstance(node, exp.Filter) else "OVER"
    yield from odd_keys(select)
    for call in select.find_all(exp.AggFunc):
        if type(call) not in FOLDS or call.args.get("expressions") or call.find(exp.Distinct) is not None:
            yield sql_text(call)


def _misread(select: exp.Select) -> Iterator[str]:
    """Yield what a server reads differently than a broker does (`AliasApplier` of 0.11, for one)."""
    for column in qualified_columns(select):
        name = sql_text(column)
        dotted = f'"{name}" if its name has a dot'
        yield f"names {name}, which servers do not read as a column: write {column.name}, or {dotted}"
    read = named_in(select.args.get("where"), select.args.get("group"))
    for column in select.expressions:
        if isinstance(column, exp.Alias) and column.alias in read and column.this.name != column.alias:
            yield f"calls {sql_text(column.this)} {column.alias}, which is a column that it also reads"


def _aggregates(select: exp.Select, keys: frozenset[str]) -> Iterator[exp.Expression]:
    for written in select.expressions:
        column = written.unalias()
        if type(column) in FOLDS:
            yield column
        elif meaning_of(column) not in keys:
            text = sql_text(column)
            raise ValueError(
                f"has {text}, which is neither COUNT, SUM, MIN or MAX nor in GROUP BY: {_NO_DOOR}"
            )


_SHADOW_TAKEN: Final = _TAKEN | {exp.Select: _TAKEN[exp.Select] | {"having", "order", "limit", "offset"}}


def read_shadow_question(sql: str) -> Question:
    """Read the SQL of an assertion for a shadow table.

    :raises ValueError: a broker cannot answer it from one table alone, or a column of its answer is neither a
        key nor a value; the text says what is wrong and why.
    """
    text = plain_question(sql)
    select = read_select(text)
    for refused in _refused_of_shadow(select):
        raise ValueError(f"has {refused}, which a shadow table does not answer")
    for column in qualified_columns(select):
        raise ValueError(f"names {sql_text(column)}: write {column.name}, the table has another name there")
    table, start, end = table_place(select)
    check_question(text)
    keys = group_keys(select)
    places = tuple(_places(select, keys))
    values = [column.unalias() for n, column in enumerate(select.expressions) if n not in places]
    for value in values:
        if isinstance(value, exp.Column | exp.Star):
            raise ValueError(f"has {sql_text(value)}, which is neither aggregated nor in GROUP BY")
    if not values:
        raise ValueError("has no value to query")
    if len(set(map(meaning_of, values))) < len(values):
        raise ValueError("has the same value twice")
    made = {column.alias for column in select.expressions if isinstance(column, exp.Alias)}
    read_later = named_in(*(select.args.get(part) for part in ("group", "having", "order")))
    return Question(
        text[:start],
        table,
        text[end:],
        tuple(map(sql_text, keys)),
        tuple((sql_text(value), _fold(value)) for value in values),
        named_in(*select.expressions, select.args.get("where")) | (read_later - made),
        null_columns_of(select),
        places,
        select.args.get("limit") is not None,
        select.args.get("having") is not None,
    )


def _refused_of_shadow(select: exp.Select) -> Iterator[str]:
    yield from odd_parts(select, _SHADOW_TAKEN)
    if select.find(exp.Window) is not None:
        yield "OVER"
    yield from odd_keys(select)


def _places(select: exp.Select, keys: list[exp.Expression]) -> Iterator[int]:
    """Yield the position of each key in the answer, in the order of GROUP BY."""
    for key in keys:
        meaning = meaning_of(key)
        for place, column in enumerate(select.expressions):
            if meaning_of(column.unalias()) == meaning or (column.alias and column.alias == key.name):
                yield place
                break
        else:
            raise ValueError(
                f"groups by {sql_text(key)} without selecting it: the answer would not show which "
                "group is which"
            )


def _fold(value: exp.Expression) -> str:
    """COUNT or SUM if the value is one, because it is 0 for no rows; "" for any other aggregation."""
    if isinstance(value, exp.Sum):
        return "SUM"
    counts = isinstance(value, exp.Func) and sql_text(value).upper().startswith(("COUNT", "DISTINCTCOUNT"))
    return "COUNT" if counts else ""
