"""Where a person looks at the rows of a table that was published: a command to type, and Pinot's console."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from pinot_assets.pinot.query_text import console_url, first_rows_query


@dataclass(frozen=True, slots=True)
class FirstQuery:
    """A query for the first rows of a table.

    :ivar command: what to type.
    :ivar console: address of the controller's query console with the query.
    """

    sql: str
    command: str
    console: str


def first_query(table: str, controller_url: str) -> FirstQuery:
    """Return a query for the first rows of a table.

    :param table: raw name, or name with type.
    """
    sql = first_rows_query(table)
    return FirstQuery(sql, shlex.join(["pinot-assets", "query", sql]), console_url(controller_url, sql))
