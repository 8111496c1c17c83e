"""Complete answers of a broker; an exception, a silent server or a missing result is an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from pinot_assets.core.json_object import JsonMapping, JsonValue
from pinot_assets.core.untrusted import typed
from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.client_pool import ClientPool
from pinot_assets.pinot.client.http import CallKind, HttpCall

SPARE_SEGMENTS = 100
"""Spare rows in a query's LIMIT: segments may arrive meanwhile, and a broker may still list deleted ones."""


# TABLE_DOES_NOT_EXIST and BROKER_RESOURCE_MISSING in Pinot's QueryErrorCode.
NO_ROUTING = (190, 410)


class NoResult(PinotError):
    """The broker has nothing to query: the table is empty or has no routing yet. The latter was seen for a
    moment after a table was created, and after its segments went ONLINE."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A complete answer.

    :ivar columns: names, in order.
    :ivar types: Pinot's column data types (`LONG`, `STRING`, …).
    :ivar rows: JSON values.
    :ivar servers: number of servers that the broker asked; all of them answered.
    :ivar total_docs: documents in the segments to which the query was routed.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[JsonValue, ...], ...]
    servers: int
    total_docs: int


class Broker:
    """One broker. Thread-safe."""

    def __init__(self, url: str, clients: ClientPool) -> None:
        self.url = url
        self._client = clients.at(url)
        self._deadline = clients.connection.timeouts.call

    def query(
        self, sql: str, options: Mapping[str, str] | None = None, deadline: float | None = None
    ) -> QueryResult:
        """Run a query.

        :param options: Pinot's query options, e.g. `{"timeoutMs": "5000"}`.
        :param deadline: seconds; None is the deadline of an ordinary call.
        :raises NoResult: the table has no routing, or the reply has no result table and no exception.
        :raises PinotError: the reply has an exception, a server did not answer, a GROUP BY was cut off, or
            segments were left out.
        :raises PinotUnreachable: no answer.
        """
        body = {"sql": sql}
        if options:
            body["queryOptions"] = ";".join(f"{key}={value}" for key, value in options.items())
        reply = self._client.send_json(
            HttpCall("POST", "/query/sql", CallKind.READ, deadline or self._deadline, json=body)
        )
        if not isinstance(reply, dict):
            raise PinotError(f"broker {self.url} gave no answer that can be read")
        return _result(self.url, reply)

    def visible_segments(self, table: str, there: int) -> frozenset[str]:
        """Return the names of the segments to which this broker routes queries.

        It queries the virtual column `$segmentName`, because the broker's own `/debug/routingTable` fails
        on 0.11.

        :param there: how many segments the table has.
        :raises PinotError: the answer is not complete.
        """
        sql = f'SELECT DISTINCT $segmentName FROM "{table}_OFFLINE"'
        return frozenset(str(name) for (name,) in self.of_segments(sql, there))

    def of_segments(
        self, sql: str, there: int, options: Mapping[str, str] | None = None
    ) -> tuple[tuple[JsonValue, ...], ...]:
        """Return all rows of a query that has one row for each segment; none if there is nothing to query.

        The LIMIT is no higher than the number of rows can be: a broker with its own limit
        (`pinot.broker.query.response.limit`) refuses a query with a higher LIMIT, however few rows it has.

        :param sql: without LIMIT.
        :param there: how many segments the table has.
        :raises PinotError: the answer is not complete; or it has LIMIT rows, so that some may be missing.
        """
        limit = there + SPARE_SEGMENTS
        try:
            rows = self.query(f"{sql} LIMIT {limit}", options).rows
        except NoResult:
            return ()
        if len(rows) >= limit:
            raise PinotError(
                f"broker {self.url} may have left segments out of its answer",
                why=f"it shows {len(rows):,} or more, and the table has {there:,}",
                hint="many were deleted just now, or came? It is level with the table in a moment",
            )
        return rows

    def rows(self, table: str) -> int:
        """Return how many rows a query of the OFFLINE table sees.

        :raises PinotError: the answer is not complete.
        """
        try:
            ((rows,),) = self.query(f'SELECT COUNT(*) FROM "{table}_OFFLINE"').rows
        except NoResult:
            return 0
        return typed(rows, int)

    def rebuild_routing(self, table: str) -> None:
        """Make the broker read lineage and ideal state of the table again. Idempotent."""
        path = f"/routing/{quote(table, safe='')}_OFFLINE"
        self._client.send(HttpCall("PUT", path, CallKind.READ, self._deadline))


def _result(url: str, reply: JsonMapping) -> QueryResult:
    exceptions = reply.get("exceptions") or []
    if exceptions:
        texts = [f"{e.get('errorCode')} {' '.join(str(e.get('message')).split())[:300]}" for e in exceptions]
        kind = NoResult if all(e.get("errorCode") in NO_ROUTING for e in exceptions) else PinotError
        raise kind(f"broker {url} could not answer a query", why="; ".join(texts))
    asked, answered = reply.get("numServersQueried", 0), reply.get("numServersResponded", 0)
    if answered < asked or reply.get("partialResult"):
        raise PinotError(f"broker {url} gave a partial answer", why=f"{answered} of {asked} servers answered")
    if reply.get("numGroupsLimitReached") or reply.get("groupsTrimmed"):
        raise PinotError(
            f"broker {url} cut off the groups of a query",
            hint="ask for fewer groups, or raise the option numGroupsLimit",
        )
    if left_out := reply.get("numSegmentsPrunedInvalid"):
        raise PinotError(
            f"broker {url} left {left_out} segments out of its answer",
            why="they lack a column that is asked for: it was added after they had been loaded (up to 0.11)",
            hint="reload the table's segments, so that its servers add it",
        )
    table = reply.get("resultTable")
    if not table or table.get("rows") is None:
        raise NoResult(f"broker {url} answered without a result", hint="is the table empty, or just created?")
    return QueryResult(
        columns=tuple(table["dataSchema"]["columnNames"]),
        types=tuple(table["dataSchema"]["columnDataTypes"]),
        rows=tuple(tuple(row) for row in table["rows"]),
        servers=asked,
        total_docs=reply.get("totalDocs", 0),
    )
