"""Asking the servers what the table spec's assertions ask (W4), past what lineage hides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from pinot_assets.audit import Finding
from pinot_assets.audit.assertions import Answers, Tally, assertion_holds, assertion_unanswered, tally
from pinot_assets.errors import PinotError, PinotUnreachable
from pinot_assets.pinot.data_table import DataTable
from pinot_assets.pinot.port import Pinot, Replicas
from pinot_assets.session.run import Run
from pinot_assets.session.staging import Switch
from pinot_assets.spec.audit_block import Assertion
from pinot_assets.spec.expectation import Side
from pinot_assets.spec.pinot_json import OFFLINE_SUFFIX
from pinot_assets.spec.question import Question

THREADS = 8
"""Servers that are asked at a time."""
AT_A_TIME = 10_000
"""Segments that one request names: a server of 0.11 takes none of more than 4 MiB."""


def assertion_findings(run: Run, switch: Switch) -> tuple[Finding, ...]:
    """One finding for each assertion of the table spec: what was built has to be loaded, and is asked.

    Every replica of the staged segments is asked. What is live is asked of one: queries see it already.
    """
    assertions = run.spec.audit.assertions
    if not assertions:
        return ()
    asking = _Asking(run.edges.pinot, run.spec.name, switch)
    findings = []
    for assertion in assertions:
        run.lease.assert_held()  # a sign of progress, too: many of them take long (R25)
        findings.append(asking.finding(assertion))
    return tuple(findings)


class _Asking:
    """The segments of one switch, and who has them."""

    def __init__(self, pinot: Pinot, table: str, switch: Switch) -> None:
        self._pinot = pinot
        self._table = table + OFFLINE_SUFFIX
        live = pinot.visible_segments(table)
        # A segment that is carried along under a new name stays: the switch brings nothing then.
        leaving = set(switch.segments_from) - {switch.carried}
        self._staged = () if switch.carried else switch.names_to
        self._leaving = sorted(live & leaving)
        self._kept = sorted(live - leaving)
        self._away: dict[str, PinotUnreachable] = {}
        self._replicas = pinot.online_replicas(table, [*self._staged, *live])

    def finding(self, assertion: Assertion) -> Finding:
        try:
            return assertion_holds(assertion, self._answers(assertion))
        except PinotError as error:
            return assertion_unanswered(assertion, error.reason)

    def _answers(self, assertion: Assertion) -> Answers:
        question, expectation = assertion.question, assertion.expectation
        after, of_live = expectation.side is Side.AFTER, expectation.of_live
        turns = max((len(_online(self._replicas, name)) for name in self._staged), default=0)
        return Answers(
            staged=tuple(self._ask(question, self._staged, turn) for turn in range(turns)),
            kept=self._ask(question, self._kept, 0) if after or of_live else {},
            leaving=self._ask(question, self._leaving, 0) if of_live else {},
            live=bool(self._kept or self._leaving),
        )

    def _ask(self, question: Question, names: Sequence[str], turn: int) -> Tally:
        """One answer for all these segments, each asked of one server.

        :param turn: which of a segment's servers, counted from 0, over and over.
        """
        shares = _shares(names, self._replicas, turn)
        sql = question.of(self._table)
        with ThreadPoolExecutor(THREADS, "assertions") as pool:
            tables = pool.map(lambda share: self._ask_server(share[0], sql, share[1]), shares)
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


def _shares(names: Iterable[str], replicas: Replicas, turn: int) -> list[tuple[str, list[str]]]:
    """Which server is asked for which of them."""
    shares: dict[str, list[str]] = {}
    for name in names:
        servers = _online(replicas, name)
        if not servers:
            raise PinotError(f"no server can be asked for {name}", why="none has it ONLINE")
        shares.setdefault(servers[turn % len(servers)], []).append(name)
    return [
        (server, share[at : at + AT_A_TIME])
        for server, share in shares.items()
        for at in range(0, len(share), AT_A_TIME)
    ]


def _online(replicas: Replicas, name: str) -> Sequence[str]:
    return sorted(server for server, state in replicas.get(name, {}).items() if state == "ONLINE")
