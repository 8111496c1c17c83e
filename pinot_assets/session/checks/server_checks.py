"""Looking at what the servers loaded: the second tier of the audit (W4), and the wait before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
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
from pinot_assets.core.deadline import Deadline, poll_until
from pinot_assets.errors import PinotError
from pinot_assets.pinot.segments import Replicas
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Switch

_TOLD_AFTER_S: Final = 10
"""After so long people are told what is waited for."""


def server_findings(context: TriggerContext, switch: Switch) -> tuple[Finding, ...]:
    """What is found on the servers; waits for them first.

    Where the table spec wants `replicas: one`, a server that is down is told, and not waited for.
    """
    pinot, table, outputs = context.clients.pinot, context.spec.name, switch.segments_to
    replicas = _wait_online(context, switch)
    said = pinot.crcs_on_servers(table, _servers(replicas))
    away = {server: error for server, error in said.items() if isinstance(error, PinotError)}
    crcs = {server: there for server, there in said.items() if not isinstance(there, PinotError)}
    rows = pinot.rows_on_servers(table, switch.names_to, crcs.keys())
    return (
        *_online(context, switch, replicas, away),
        crc_as_built(outputs, pinot.segment_crcs(table)),
        crc_on_servers(outputs, replicas, crcs),
        rows_as_built(outputs, rows),
        sources_unchanged(switch.segments_from, pinot.visible_segments(table)),
    )


def _online(
    context: TriggerContext, switch: Switch, replicas: Replicas, away: Mapping[str, PinotError]
) -> tuple[Finding, ...]:
    """Who has it and answers, as far as the table spec's policy wants that known."""
    every = replicas_online(switch.segments_to, replicas)
    answered = servers_answered(_servers(replicas), away)
    if context.spec.audit.replicas == "all":
        return every, answered
    one = one_replica_online(switch.segments_to, replicas, away)
    return one, replace(every, severity=Severity.WARN, at_fault=()), replace(answered, severity=Severity.WARN)


def _wait_online(context: TriggerContext, switch: Switch) -> Replicas:
    deadline, is_told = Deadline(context.clients, context.clients.waits.online), False

    def is_enough(replicas: Replicas) -> bool:
        nonlocal is_told
        if _none_loads(switch, replicas) or _enough(context, switch, replicas):
            return True
        if not is_told and deadline.waited >= _TOLD_AFTER_S:
            is_told = True
            found = replicas_online(switch.segments_to, replicas)
            context.note(f"the servers get {deadline.left:.0f} s more to load: {found.message}")
        return False

    return poll_until(
        deadline,
        0.5,
        lambda: context.clients.pinot.online_replicas(context.spec.name, switch.names_to),
        is_enough,
    )


def _none_loads(switch: Switch, replicas: Replicas) -> bool:
    """Every replica has come to an end, good or bad: all bad files of a switch are found at once."""
    states = [state for name in switch.names_to for state in (replicas.get(name) or {"": "MISSING"}).values()]
    return {"ONLINE", "ERROR"}.issuperset(states)


def _enough(context: TriggerContext, switch: Switch, replicas: Replicas) -> bool:
    """Whether one replica of each segment is there, one is enough, and no server that is up still loads."""
    if (
        context.spec.audit.replicas == "all"
        or not one_replica_online(switch.segments_to, replicas, ()).passed
    ):
        return False
    states = (item for servers in replicas.values() for item in servers.items())
    behind = sorted({server for server, state in states if state not in ("ONLINE", "ERROR")})
    said = context.clients.pinot.crcs_on_servers(context.spec.name, behind)
    return all(isinstance(answer, PinotError) for answer in said.values())


def _servers(replicas: Replicas) -> Collection[str]:
    return sorted({server for servers in replicas.values() for server in servers})
