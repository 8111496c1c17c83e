"""The answer of a broker to a query: its rows, and whether anything of it is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from pinot_assets.core.json_object import JsonMapping, JsonValue
from pinot_assets.core.text import plural
from pinot_assets.core.untrusted import reading
from pinot_assets.errors import PinotError

# TABLE_DOES_NOT_EXIST and BROKER_RESOURCE_MISSING in Pinot's QueryErrorCode.
NO_ROUTING: Final = (190, 410)

_LONGEST: Final = 600
"""Characters that are shown of one exception."""
_FRAME: Final = re.compile(r"\s+at |\s*\.\.\.")
"""How a line of a Java stack trace begins that names no error."""
_CLASS: Final = re.compile(r"^(?:Caused by: )?(?:[a-z]\w*\.)+[A-Z][\w$]*(?::\s*|$)")


class NoResult(PinotError):
    """The broker has nothing to query: the table is empty or has no routing yet. The latter was seen for a
    moment after a table was created, and after its segments went ONLINE."""


@dataclass(frozen=True, slots=True)
class QueryException:
    """One exception of a query.

    :ivar code: of Pinot's `QueryErrorCode`.
    :ivar message: in one line, without Java's stack traces.
    """

    code: int
    message: str

    def __str__(self) -> str:
        return f"{self.code} {self.message}"


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """An answer, complete or not.

    :ivar broker: its base URL.
    :ivar columns: names, in order.
    :ivar types: Pinot's column data types (`LONG`, `STRING`, …).
    :ivar rows: JSON values.
    :ivar has_result: False if the broker sent no result table, not even an empty one.
    :ivar servers: number of servers that the broker asked.
    :ivar servers_answered: number of those that answered.
    :ivar segments: number of segments to which the query was routed.
    :ivar segments_left_out: segments that lack a column of the query.
    :ivar docs_scanned: documents that servers read.
    :ivar total_docs: documents in the segments to which the query was routed.
    :ivar time_ms: as the broker measured it.
    :ivar groups_cut: whether groups of a GROUP BY are missing.
    :ivar says_partial: whether the broker itself calls the answer partial.
    """

    broker: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[JsonValue, ...], ...]
    has_result: bool
    exceptions: tuple[QueryException, ...]
    servers: int
    servers_answered: int
    segments: int
    segments_left_out: int
    docs_scanned: int
    total_docs: int
    time_ms: int
    groups_cut: bool
    says_partial: bool

    @classmethod
    def read(cls, broker: str, reply: JsonMapping, redact: Callable[[str], str]) -> BrokerAnswer:
        """Return a broker's reply as an answer.

        :param redact: removes secrets from a text.
        :raises PinotError: the reply has another shape.
        """
        with reading(f"the answer of broker {broker}", PinotError, hint="is a Pinot broker at that address?"):
            table = reply.get("resultTable") or {}
            schema = table.get("dataSchema") or {}
            columns = tuple(map(str, schema.get("columnNames") or ()))
            rows = tuple(tuple(row) for row in table.get("rows") or ())
            if any(len(row) != len(columns) for row in rows):
                raise ValueError(f"it has a row that does not have {plural(len(columns), 'value')}")
            return cls(
                broker=broker,
                columns=columns,
                types=tuple(str(kind) for _, kind in zip(columns, schema["columnDataTypes"], strict=True))
                if columns
                else (),
                rows=rows,
                has_result=table.get("rows") is not None,
                exceptions=tuple(
                    QueryException(
                        int(one.get("errorCode") or 0), redact(message_text(str(one.get("message") or "")))
                    )
                    for one in reply.get("exceptions") or ()
                ),
                servers=int(reply.get("numServersQueried") or 0),
                servers_answered=int(reply.get("numServersResponded") or 0),
                segments=int(reply.get("numSegmentsQueried") or 0),
                segments_left_out=int(reply.get("numSegmentsPrunedInvalid") or 0),
                docs_scanned=int(reply.get("numDocsScanned") or 0),
                total_docs=int(reply.get("totalDocs") or 0),
                time_ms=int(reply.get("timeUsedMs") or 0),
                groups_cut=bool(reply.get("numGroupsLimitReached") or reply.get("groupsTrimmed")),
                says_partial=bool(reply.get("partialResult")),
            )

    @property
    def trouble(self) -> PinotError | None:
        """Why the answer is not complete; None if it is. `NoResult` if the broker has no such table."""
        url = self.broker
        if self.exceptions:
            kind = NoResult if all(one.code in NO_ROUTING for one in self.exceptions) else PinotError
            what = "gave a partial answer" if self.has_result else "could not answer a query"
            return kind(f"broker {url} {what}", why="; ".join(map(str, self.exceptions)))
        if self.servers_answered < self.servers or self.says_partial:
            return PinotError(
                f"broker {url} gave a partial answer",
                why=f"{self.servers_answered:,} of {self.servers:,} servers answered",
            )
        if self.groups_cut:
            return PinotError(
                f"broker {url} cut off the groups of a query",
                hint="query fewer groups, or raise the option numGroupsLimit",
            )
        if self.segments_left_out:
            return PinotError(
                f"broker {url} left {self.segments_left_out} segments out of its answer",
                why="they lack a column of the query: it was added after they had been loaded (up to 0.11)",
                hint="reload the table's segments, so that its servers add it",
            )
        return None


def message_text(message: str) -> str:
    """Return a message of Pinot in one line, without Java's stack traces, class names and repetitions."""
    parts: list[str] = []
    for line in message.splitlines():
        text = "" if _FRAME.match(line) else " ".join(_CLASS.sub("", line).split())
        if text and not any(text in part for part in parts):
            parts.append(text)
    return "".join(_joined(parts))[:_LONGEST]


def _joined(parts: list[str]) -> Iterator[str]:
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        yield part if is_last else f"{part} " if part.endswith(":") else f"{part}; "
