"""Evaluate the table spec's assertions (W4) on hidden segments: ask servers, or a shadow table."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pinot_assets.audit.assertions import (
    Answers,
    Tally,
    as_expected,
    assertion_holds,
    assertion_unanswered,
    nothing_live,
    tally,
)
from pinot_assets.audit.checks import Finding
from pinot_assets.core.text import counted
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import PinotError, PinotUnreachable, SpecError
from pinot_assets.pinot.api import PinotClient
from pinot_assets.pinot.client.data_table import DataTable
from pinot_assets.session.checks.shadow import ShadowTable, ask_table
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Switch
from pinot_assets.snapshot.receipt import Output, Receipt
from pinot_assets.table_spec.blocks.assertion import Question, Side
from pinot_assets.table_spec.blocks.audit import Assertion
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX

THREADS = 8
"""Servers that are asked at the same time."""
AT_A_TIME = 10_000
"""Segments that one request names: a server of 0.11 accepts no request of more than 4 MiB."""


def assertion_findings(
    context: TriggerContext, switch: Switch, receipts: Iterable[Receipt]
) -> tuple[Finding, ...]:
    """Return one finding for each assertion, in the order of the table spec; the segments must be loaded. If
    no segment is added or removed, assertions about the table after the switch are left out.

    Every replica of the staged segments is asked; with `replicas: one`, only those on servers that answer.
    Of live segments, one replica is asked: queries see them already.

    :param receipts: the receipts that the session's plan accepted.
    """
    sides_asked = {Side.STAGED} | ({Side.AFTER} if switch.segments_from or switch.segments_to else set())
    assertions = [a for a in context.spec.audit.assertions if a.expectation.side in sides_asked]
    if not assertions:
        return ()
    sides = switch_segments_of(context.pinot, context.table, switch, receipts)
    servers = Servers(context.pinot, context.table, sides, context.spec.audit.replicas)
    # Servers first; a shadow table is filled with what is staged, and then with what stays.
    costs = [(a.via == "shadow") + (a.expectation.side is Side.AFTER) for a in assertions]
    findings: dict[int, Finding] = {}
    with ShadowTable(context) as shadow:
        for number in sorted(range(len(assertions)), key=costs.__getitem__):
            context.lease.assert_held()  # a sign of progress, too: many of them take long (R25)
            assertion = assertions[number]
            try:
                findings[number] = (
                    servers.finding(assertion)
                    if assertion.via == "servers"
                    else _finding_of_shadow(context, shadow, sides, assertion)
                )
            except (PinotError, SpecError) as error:  # the latter: TLS files that went since the trigger
                findings[number] = assertion_unanswered(assertion, error.in_one_line)
    return tuple(findings[number] for number in range(len(assertions)))


def refuse_unaskable(context: TriggerContext) -> None:
    """Check, before anything is built, that servers can be asked if an assertion needs them.

    :raises SpecError: the settings of this machine do not allow it.
    """
    if any(assertion.via == "servers" for assertion in context.spec.audit.assertions):
        context.pinot.require_server_queries()


def _finding_of_shadow(
    context: TriggerContext, shadow: ShadowTable, sides: SwitchSegments, assertion: Assertion
) -> Finding:
    """Full SQL, asked through a broker: of the shadow table, and of the table itself for what is live."""
    question, expectation = assertion.question, assertion.expectation
    after = expectation.side is Side.AFTER
    if expectation.of_live and not sides.live:
        return nothing_live(assertion)
    if not after and not sides.staged and not sides.of_files:
        return as_expected(assertion, (), None)
    if sides.staged:
        shadow.fill(sides.staged)
    if after and sides.kept:
        shadow.fill(_kept_outputs(context, sides.kept))
    pinot, table = context.pinot, context.table
    live = ask_table(pinot, table, question) if expectation.of_live else None
    return as_expected(assertion, (shadow.ask(question),), live)


def _kept_outputs(context: TriggerContext, kept: Sequence[str]) -> list[Output]:
    """The tars of what stays, as the ledger has them.

    :raises PinotError: a foreign segment stays, whose tar is unknown here.
    """
    current = context.current_snapshot()
    known = current.segments if current is not None else {}
    if foreign := [name for name in kept if name not in known]:
        raise PinotError(
            f"no shadow table can have the segments that {context.table} will have",
            why=f"{counted(len(foreign), 'segment that stays was', 'segments that stay were')} not "
            f"published by pinot-assets, first {foreign[0]}",
            hint="query what is staged, or the servers",
        )
    return [known[name] for name in kept]


@dataclass(frozen=True, slots=True)
class SwitchSegments:
    """The segments of one switch.

    :ivar staged: segments that it adds.
    :ivar leaving: live segments that it removes.
    :ivar kept: live segments that stay.
    :ivar of_files: whether any file was read for the session; it may have had no rows.
    """

    staged: tuple[Output, ...]
    leaving: tuple[str, ...]
    kept: tuple[str, ...]
    of_files: bool

    @property
    def live(self) -> tuple[str, ...]:
        """What queries see now."""
        return (*self.kept, *self.leaving)


def switch_segments_of(
    pinot: PinotClient, table: str, switch: Switch, receipts: Iterable[Receipt]
) -> SwitchSegments:
    """Return the segments that a switch adds, removes and keeps.

    :param receipts: the receipts of its session's plan.
    """
    live = pinot.visible_segments(table)
    # The placeholder segment stays under a new name: such a switch adds no rows.
    leaving = set(switch.segments_from) - {switch.carried}
    staged = () if switch.carried else switch.segments_to
    of_files = any(receipt.sha256 for receipt in receipts)  # one that could not be read was skipped
    return SwitchSegments(staged, tuple(sorted(live & leaving)), tuple(sorted(live - leaving)), of_files)


class Servers:
    """Who has the segments of a switch, and what they answer.

    :param policy: whether every replica of what is staged has to answer, or those do that can.
    """

    def __init__(
        self, pinot: PinotClient, table: str, sides: SwitchSegments, policy: Literal["all", "one"]
    ) -> None:
        self._pinot = pinot
        self._table = table + OFFLINE_SUFFIX
        self._policy = policy
        self._staged = tuple(output.segment for output in sides.staged)
        self._sides = sides
        self._away: dict[str, PinotUnreachable] = {}
        self._replicas = pinot.online_replicas(table, [*self._staged, *sides.live])

    def finding(self, assertion: Assertion) -> Finding:
        """Whether the assertion holds.

        :raises PinotError: a server that has to answer does not, or none of those that may.
        """
        question, expectation = assertion.question, assertion.expectation
        after, of_live = expectation.side is Side.AFTER, expectation.of_live
        staged = tuple(self._by_each_replica(question))
        answers = Answers(
            staged=staged or (({},) if self._sides.of_files else ()),
            kept=self._by_one(question, self._sides.kept, 0) if after or of_live else {},
            leaving=self._by_one(question, self._sides.leaving, 0) if of_live else {},
            live=bool(self._sides.live),
        )
        finding = assertion_holds(assertion, answers)
        away = [f"{server} is left out: {error.what}" for server, error in sorted(self._away.items())]
        return replace(finding, message="; ".join([finding.message, *away]))

    def _by_each_replica(self, question: Question) -> Iterator[Tally]:
        """An answer for all that is staged, as often as a segment has replicas that are to answer."""
        turn = 0
        turns = max((len(self._online(name)) for name in self._staged), default=0)
        while self._staged and turn < max(1, turns):
            if self._policy == "all":
                yield self._ask(question, self._shares(self._staged, turn, ()))
            else:
                yield self._by_one(question, self._staged, turn)
            turn += 1

    def _by_one(self, question: Question, names: Sequence[str], turn: int) -> Tally:
        """Return one answer; if a server does not answer, ask another one instead."""
        while True:
            away = len(self._away)
            try:
                return self._ask(question, self._shares(names, turn, self._away))
            except PinotUnreachable:
                if len(self._away) == away:
                    raise  # no further server failed, so asking again is useless

    def _ask(self, question: Question, shares: Sequence[tuple[str, list[str]]]) -> Tally:
        """One answer for all segments, each asked of one server."""
        sql = question.of(self._table)
        tables = in_threads(
            lambda share: self._ask_server(share[0], sql, share[1]), shares, THREADS, "assertions"
        )
        return tally(question, tables)

    def _ask_server(self, server: str, sql: str, names: Sequence[str]) -> DataTable:
        """What a server answers; one that did not answer an assertion is not waited for with the next."""
        if (away := self._away.get(server)) is not None:
            raise away
        try:
            return self._pinot.query_server(server, sql, names)
        except PinotUnreachable as error:
            self._away[server] = error
            raise

    def _shares(
        self, names: Iterable[str], turn: int, without: Container[str]
    ) -> list[tuple[str, list[str]]]:
        """Which server is asked for which of them.

        :param turn: which of a segment's servers, counted from 0, over and over.
        :param without: servers to replace by the next one. The turns of the others do not change, so that a
            server that fails meanwhile does not cause another one to be skipped.
        :raises PinotError: a segment has no server left to ask.
        """
        shares: dict[str, list[str]] = {}
        for name in names:
            servers = self._online(name)
            first = turn % max(1, len(servers))
            server = next((s for s in (*servers[first:], *servers[:first]) if s not in without), None)
            if server is None:
                away = [
                    self._away[server].what for server in self._replicas.get(name, {}) if server in self._away
                ]
                raise PinotError(
                    f"no server can answer for {name}", why="; ".join(away) or "none has it ONLINE"
                )
            shares.setdefault(server, []).append(name)
        return [
            (server, share[at : at + AT_A_TIME])
            for server, share in shares.items()
            for at in range(0, len(share), AT_A_TIME)
        ]

    def _online(self, name: str) -> Sequence[str]:
        return sorted(s for s, state in self._replicas.get(name, {}).items() if state == "ONLINE")
