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
_RESERVED: Final = """
abs all allocate allow alter and any are array as asensitive asof asymmetric at atomic authorization avg
begin between bigint binary bit blob boolean both by call called cardinality cascaded case cast ceil
ceiling char character check classifier clob close coalesce collate collect column commit condition
connect constraint contains convert corr corresponding count create cross cube current cursor cycle date
datetime day deallocate dec decimal declare default define delete deref describe deterministic disallow
disconnect distinct double drop dynamic each element else empty end equals escape every except exec
execute exists exp explain extend external extract false fetch filter float floor for foreign free friday
from full function fusion get global grant group grouping groups having hold hour identity import in
indicator initial inner inout insensitive insert int integer intersect intersection interval into is join
lag language large lateral lead leading left like limit ln local localtime localtimestamp lower match
matches max measure measures member merge method min minus minute mod modifies module monday month
multiset national natural nchar nclob new next no none normalize not ntile null nullif numeric of offset
old omit on one only open or order ordinal out outer over overlaps overlay parameter partition pattern
per percent period permute portion position power precedes precision prepare prev primary procedure
qualify range rank reads real recursive ref references referencing release reset result return returns
revoke right rollback rollup row rows running saturday savepoint scope scroll search second seek select
sensitive set show similar skip smallint some specific specifictype sql sqlexception sqlstate sqlwarning
sqrt start static stream submultiset subset substring succeeds sum sunday symmetric system table
tablesample then thursday time timestamp tinyint to trailing translate translation treat trigger trim
true truncate tuesday uescape union unique unknown unnest update upper upsert user using value values
varbinary varchar varying versioning wednesday when whenever where window with within without year
"""
"""Reserved words of Calcite's SQL, which Pinot parses; not those with an underscore, which name functions.

Source: https://calcite.apache.org/docs/reference.html#keywords
"""


def needs_quotes(name: str) -> bool:
    """Whether a query must write a table's name in double quotes."""
    return name.lower() in _RESERVED.split() or _PLAIN_NAME.fullmatch(name) is None


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
