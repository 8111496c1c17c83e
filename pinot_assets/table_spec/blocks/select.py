"""The one SELECT that an audit assertion is: read, and never rewritten but for the table's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

_QUERY: Final = re.compile(r"\s*(?:select|with|\()", re.IGNORECASE)


def read_select(text: str) -> exp.Select:
    """Read it.

    :raises ValueError: it is no SQL, or not one SELECT.
    """
    if not _QUERY.match(text):  # of other statements, the parser would warn in the log
        raise ValueError("is not one SELECT")
    try:
        parsed = sqlglot.parse(text)
    except SqlglotError as error:
        found = error.errors[0] if hasattr(error, "errors") and error.errors else {}
        where = f" at line {found['line']}, column {found['col']}" if found.get("line") else ""
        raise ValueError(f"is no SQL that is understood{where}: {found.get('description', error)}") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Select):
        raise ValueError("is not one SELECT")
    return parsed[0]


def table_place(select: exp.Select) -> tuple[str, int, int]:
    """The table that it reads, and where its name stands in the text: first character and the one behind.

    :raises ValueError: it does not read one table by its name.
    """
    tables = list(select.find_all(exp.Table))
    name = tables[0].this if len(tables) == 1 else None
    # A name that stands in the text: no function, no text, no parameter.
    if not isinstance(name, exp.Identifier) or "start" not in name.meta:
        raise ValueError("does not read one table")
    return tables[0].name, int(name.meta["start"]), int(name.meta["end"]) + 1


def keys_of(select: exp.Select) -> list[exp.Expression]:
    """What it groups by."""
    group = select.args.get("group")
    return list(group.expressions) if group is not None else []


def named_in(*parts: exp.Expr | None) -> frozenset[str]:
    """Every column that these name."""
    return frozenset(
        column.name for part in parts if part is not None for column in part.find_all(exp.Column)
    )


def null_columns_of(select: exp.Select) -> frozenset[str]:
    """The columns that it asks whether they are null."""
    tests = (test for test in select.find_all(exp.Is) if isinstance(test.expression, exp.Null))
    return named_in(*tests)


def text_of(part: exp.Expr) -> str:
    """As people read it."""
    return part.sql(comments=False)


def meaning_of(part: exp.Expr) -> str:
    """The same for `a` and `"a"`, which are the same to Pinot."""
    return part.sql(comments=False, identify=True)


def odd_parts(select: exp.Select, taken: dict[type, set[str]], names: dict[str, str]) -> Iterator[str]:
    """Parts of it, by name, that are not taken; a query in a query is none that is.

    :param taken: which parts of a SELECT, a GROUP BY and a table are taken.
    :param names: what people call a part, where it is not sqlglot's own word.
    """
    for node in select.find_all(exp.Select, exp.Group, exp.Table):
        for part, value in node.args.items():
            if value and part not in taken[type(node)]:
                yield names.get(part, part.strip("_").upper())
    if any(node is not select for node in select.find_all(exp.Select)):
        yield "a query in a query"


def odd_keys(select: exp.Select) -> Iterator[str]:
    """What it groups by that is no expression of a column: numbers, ROLLUP and its like."""
    for key in keys_of(select):
        if key.find(exp.Column) is None or isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets):
            yield f"GROUP BY {text_of(key)}"


def qualified_columns(select: exp.Select) -> Iterator[exp.Column]:
    """Columns that are named with their table."""
    return (column for column in select.find_all(exp.Column) if column.table)
