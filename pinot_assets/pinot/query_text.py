"""The text of a person's query: whether it only reads, which tables it may name, and its LIMIT.

Pinot parses the query; these functions only look at it. What is inside texts, quoted names and comments does
not count, except as the name of a table.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlencode

USUAL_LIMIT: Final = 10
"""Rows that Pinot's single-stage engine returns for a query without LIMIT (`pinot.broker.default.query.limit`
from 1.3 on)."""

_NAME: Final = re.compile(r"[\w.-]+")
_HIDDEN: Final = re.compile(
    r"'(?:[^']|'')*'"  # a text
    r'|"(?:[^"]|"")*"'  # a quoted name
    r"|--[^\n]*|//[^\n]*|/\*.*?\*/",  # comments
    re.DOTALL,
)
_LIMIT: Final = re.compile(
    r"\blimit\s+(?:\d+\s*,\s*)?(?P<rows>\d{1,10})(?:\s+offset\s+\d+)?(?:\s+option\s*\([^)]*\))*[\s;]*$",
    re.IGNORECASE,
)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED: Final = """
any asof call case create cross current cursor date define delete describe distinct drop except explain fetch
friday from full grant group grouping having in inner insert intersect interval into join lateral left limit
measure merge minus monday natural new next null offset on order ordinal outer over partition pattern qualify
range right rollup row rows saturday select set skip some stream sunday table tablesample then thursday time
timestamp tuesday union unnest update using values wednesday when where window with
"""
"""Words that are no name without quotes, in the SQL of Pinot 0.11.0, 1.5.1, or both.

Source: https://calcite.apache.org/docs/reference.html#keywords, each tried with Pinot's `CalciteSqlParser`,
which takes many of them as names.
"""
RESERVED_IN_SELECT: Final = "all exists not unique unknown"
"""Those that are no name of a column besides, but one of a table."""


def needs_quotes(name: str) -> bool:
    """Whether a query must write a table's name in double quotes."""
    return name.lower() in RESERVED.split() or _PLAIN_NAME.fullmatch(name) is None


def column_needs_quotes(name: str) -> bool:
    """Whether a query must write a column's name in double quotes."""
    return needs_quotes(name) or name.lower() in RESERVED_IN_SELECT.split()


def of_name(text: str) -> str:
    """Return a query for the first rows of a table if the text is only its name; any other text as it is."""
    name = text.strip()
    return first_rows_query(name) if _NAME.fullmatch(name) else text


def first_rows_query(table: str) -> str:
    """Return a query for some rows of a table."""
    return f'SELECT * FROM "{table}" LIMIT {USUAL_LIMIT}'


def console_url(controller_url: str, sql: str) -> str:
    """Return the address of the controller's query console with this query, which it runs when it is opened.

    Source: `pages/Query.tsx` of pinot-controller, 0.11.0 and newer; an older console opens without the query.
    """
    return f"{controller_url.rstrip('/')}/#/query?{urlencode({'query': sql}, safe='*')}"


def writes(sql: str) -> bool:
    """Whether one of the statements is an INSERT, which a broker hands on to the controller as a task."""
    return any(part.strip().upper().startswith("INSERT") for part in _bare(sql).split(";"))


def possible_tables(sql: str) -> frozenset[str]:
    """Return all words of the query that may name a table, without `_OFFLINE` and `_REALTIME`."""
    return frozenset(
        word.removesuffix("_OFFLINE").removesuffix("_REALTIME")
        for word in _NAME.findall(sql.replace('"', " "))
    )


def limit_of(sql: str) -> int | None:
    """Return the number of rows in the LIMIT at the end of the query; None without one."""
    match = _LIMIT.search(_bare(sql))
    return int(match["rows"]) if match else None


def explains(sql: str) -> bool:
    """Whether the query asks for a plan, which has no LIMIT."""
    return any(part.strip().upper().startswith("EXPLAIN") for part in _bare(sql).split(";"))


def _bare(sql: str) -> str:
    return _HIDDEN.sub(" ", sql)
