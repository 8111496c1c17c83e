"""Calls to one broker. What the project itself asks needs a complete answer: an exception, a silent server or
a missing result is an error. A person is shown what there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from pinot_assets.core.json_object import JsonValue
from pinot_assets.core.untrusted import typed
from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.broker_answer import BrokerAnswer, NoResult
from pinot_assets.pinot.client.client_pool import ClientPool
from pinot_assets.pinot.client.http import CallKind, HttpCall

SPARE_SEGMENTS = 100
"""Spare rows in a query's LIMIT: segments may arrive meanwhile, and a broker may still list deleted ones."""


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
        self._redact = clients.connection.redact

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
        answer = self._answer(CallKind.READ, sql, options or {}, deadline or self._deadline)
        if trouble := answer.trouble:
            raise trouble
        if not answer.has_result:
            raise NoResult(
                f"broker {self.url} answered without a result",
                hint="is the table empty, or was it just created?",
            )
        return QueryResult(answer.columns, answer.types, answer.rows, answer.servers, answer.total_docs)

    def ask(self, sql: str, options: Mapping[str, str], deadline: float) -> BrokerAnswer:
        """Return the answer to a person's query, complete or not. The query is sent once.

        :param options: as for `query`.
        :param deadline: seconds.
        :raises NoConnection: nothing was sent.
        :raises PinotUnreachable: no answer.
        :raises PinotError: the answer cannot be read, or is larger than the limit for one reply.
        """
        return self._answer(CallKind.QUERY, sql, options, deadline)

    def _answer(self, kind: CallKind, sql: str, options: Mapping[str, str], deadline: float) -> BrokerAnswer:
        body = {"sql": sql}
        if options:
            body["queryOptions"] = ";".join(f"{key}={value}" for key, value in options.items())
        reply = self._client.send_json(HttpCall("POST", "/query/sql", kind, deadline, json=body))
        if not isinstance(reply, dict):
            raise PinotError(f"the answer of broker {self.url} cannot be read")
        return BrokerAnswer.read(self.url, reply, self._redact)

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
                why=f"it shows {len(rows):,} segments or more, and the table has {there:,}",
                hint="were many segments deleted or added just now? The broker catches up in a moment",
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
