"""Wait for the servers and check what they loaded: the second tier of the audit (W4). Also count rows at
every broker, with which a rollback ends."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from pinot_assets.audit.checks import (
    Finding,
    crc_as_built,
    crc_on_servers,
    one_replica_online,
    replicas_online,
    rows_as_built,
    servers_answered,
    sources_unchanged,
)
from pinot_assets.core.check_result import Severity
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import Deadline, poll_until
from pinot_assets.errors import PinotError
from pinot_assets.pinot.lineage import Replicas
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.staging import Switch
from pinot_assets.snapshot.manifest import Snapshot

_NOTED_AFTER_S: Final = 10
"""Seconds after which a note says what the audit waits for."""
_ENDED: Final = frozenset({"ONLINE", "ERROR"})
"""States of a replica that has finished loading, well or badly."""


def server_findings(context: TriggerContext, switch: Switch) -> tuple[Finding, ...]:
    """Wait for the servers, then return the findings about what they loaded.

    With `replicas: one` in the table spec, a server that is down is only a warning and is not waited for.
    """
    pinot, table, outputs = context.pinot, context.table, switch.segments_to
    replicas = _wait_online(context, switch)
    said = pinot.crcs_on_servers(table, _servers(replicas))
    away = {server: error for server, error in said.items() if isinstance(error, PinotError)}
    crcs = {server: there for server, there in said.items() if not isinstance(there, PinotError)}
    rows = pinot.rows_on_servers(table, switch.names_to, crcs.keys())
    every, answered = replicas_online(outputs, replicas), servers_answered(_servers(replicas), away)
    answering: tuple[Finding, ...] = (every, answered)
    if context.spec.audit.replicas != "all":
        one = one_replica_online(outputs, replicas, away)
        every = replace(every, severity=Severity.WARN, at_fault=())
        answering = one, every, replace(answered, severity=Severity.WARN)
    return (
        *answering,
        crc_as_built(outputs, pinot.segment_crcs(table)),
        crc_on_servers(outputs, replicas, crcs),
        rows_as_built(outputs, rows),
        sources_unchanged(switch.segments_from, pinot.visible_segments(table)),
    )


def _wait_online(context: TriggerContext, switch: Switch) -> Replicas:
    deadline, is_noted = Deadline(context.clients, context.clients.waits.online), False

    def is_enough(replicas: Replicas) -> bool:
        nonlocal is_noted
        states = (replicas.get(name) or {"": "MISSING"} for name in switch.names_to)
        # Wait until every replica has finished, well or badly, to find all bad files of a switch at once.
        ended = all(_ENDED.issuperset(each.values()) for each in states)
        if ended or _ask_if_enough(context, switch, replicas):
            return True
        if not is_noted and deadline.waited >= _NOTED_AFTER_S:
            is_noted = True
            finding = replicas_online(switch.segments_to, replicas)
            context.note(f"the servers have {deadline.left:.0f} s more to load: {finding.message}")
        return False

    return poll_until(
        deadline, 0.5, lambda: context.pinot.online_replicas(context.table, switch.names_to), is_enough
    )


def _ask_if_enough(context: TriggerContext, switch: Switch, replicas: Replicas) -> bool:
    """Whether one replica of each segment is there, one is enough, and no server that is up still loads."""
    if (
        context.spec.audit.replicas == "all"
        or not one_replica_online(switch.segments_to, replicas, ()).passed
    ):
        return False
    states = (item for servers in replicas.values() for item in servers.items())
    behind = sorted({server for server, state in states if state not in _ENDED})
    said = context.pinot.crcs_on_servers(context.table, behind)
    return all(isinstance(answer, PinotError) for answer in said.values())


def _servers(replicas: Replicas) -> Collection[str]:
    return sorted({server for servers in replicas.values() for server in servers})


@dataclass(frozen=True, slots=True)
class RowCount:
    """What one broker answered to COUNT(*).

    :ivar rows: None if its answer was not complete; `error` says why.
    :ivar expected: rows of the snapshot's segments, and of other segments of the table, that are visible.
    """

    broker: str
    rows: int | None
    expected: int
    error: str = ""

    @property
    def matches(self) -> bool:
        """Whether queries see the snapshot there."""
        return self.rows == self.expected

    def __str__(self) -> str:
        if self.rows is None:
            return f"{self.broker} gave no complete answer: {self.error}"
        return f"{self.broker} counts {plural(self.rows, 'row')}, {self.expected:,} expected"


def count_at_brokers(clients: TableClients, table: str, snapshot: Snapshot) -> tuple[RowCount, ...]:
    """Ask every broker for its row count until it is right, for at most `Waits.broker` seconds each.

    If the controller does not answer, return that as a wrong count and raise no error: the rollback has
    happened, and after an error a person would repeat it.
    """
    pinot, ours, expected = clients.pinot, snapshot.segments, 0
    try:
        for name in pinot.visible_segments(table):
            expected += ours[name].rows if name in ours else pinot.segment_metadata(table, name).total_docs
        brokers = pinot.brokers(table)
    except PinotError as error:
        return (RowCount("the controller", None, snapshot.rows, error.reason),)
    return tuple(_count(clients, broker, table, expected) for broker in brokers)


def _count(clients: TableClients, broker: str, table: str, expected: int) -> RowCount:
    def look() -> RowCount:
        try:
            return RowCount(broker, clients.pinot.broker_rows(broker, table), expected)
        except PinotError as error:
            return RowCount(broker, None, expected, str(error))

    return poll_until(Deadline(clients, clients.waits.broker), 0.5, look, lambda counted: counted.matches)
