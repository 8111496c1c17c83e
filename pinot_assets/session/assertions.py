"""Asking what the table spec's assertions ask (W4), past what lineage hides: servers, or a shadow table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pinot_assets.audit import Finding
from pinot_assets.audit.assertions import (
    Answers,
    Tally,
    as_expected,
    assertion_holds,
    assertion_unanswered,
    nothing_live,
    tally,
)
from pinot_assets.errors import PinotError, PinotUnreachable
from pinot_assets.pinot.data_table import DataTable
from pinot_assets.pinot.port import Pinot, Replicas
from pinot_assets.session.receipt import Output
from pinot_assets.session.run import Run
from pinot_assets.session.shadow import ShadowTable, ask_table
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
    """One finding for each assertion of the table spec, in its order: what was built has to be loaded, and is
    asked.

    Every replica of the staged segments is asked. What is live is asked of one: queries see it already.
    """
    assertions = run.spec.audit.assertions
    if not assertions:
        return ()
    sides = _sides(run.edges.pinot, run.spec.name, switch)
    servers = _Servers(run.edges.pinot, run.spec.name, sides)
    findings: dict[int, Finding] = {}
    with ShadowTable(run) as shadow:
        ways = {"servers": servers.finding, "shadow": _ByShadow(run, shadow, sides).finding}
        for number in sorted(range(len(assertions)), key=lambda n: _cost(assertions[n])):
            run.lease.assert_held()  # a sign of progress, too: many of them take long (R25)
            assertion = assertions[number]
            try:
                findings[number] = ways[assertion.via](assertion)
            except PinotError as error:
                findings[number] = assertion_unanswered(assertion, error.reason)
    return tuple(findings[number] for number in range(len(assertions)))


def _cost(assertion: Assertion) -> int:
    """Servers first; a shadow table is filled with what is staged, and then with what stays."""
    return (assertion.via == "shadow") + (assertion.expectation.side is Side.AFTER)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The segments of one switch.

    :ivar staged: what it brings.
    :ivar leaving: live ones that it takes away.
    :ivar kept: live ones that stay.
    """

    staged: tuple[Output, ...]
    leaving: tuple[str, ...]
    kept: tuple[str, ...]

    @property
    def live(self) -> tuple[str, ...]:
        """What queries see now."""
        return (*self.kept, *self.leaving)


def _sides(pinot: Pinot, table: str, switch: Switch) -> _Sides:
    live = pinot.visible_segments(table)
    # A segment that is carried along under a new name stays: the switch brings nothing then.
    leaving = set(switch.segments_from) - {switch.carried}
    staged = () if switch.carried else switch.segments_to
    return _Sides(staged, tuple(sorted(live & leaving)), tuple(sorted(live - leaving)))


class _ByShadow:
    """Full SQL, asked through a broker: of the shadow table, and of the table itself for what is live."""

    def __init__(self, run: Run, shadow: ShadowTable, sides: _Sides) -> None:
        self._run = run
        self._shadow = shadow
        self._sides = sides

    def finding(self, assertion: Assertion) -> Finding:
        expectation = assertion.expectation
        after = expectation.side is Side.AFTER
        if expectation.of_live and not self._sides.live:
            return nothing_live(assertion)
        if not after and not self._sides.staged:
            return as_expected(assertion, (), None)
        if self._sides.staged:
            self._shadow.fill(self._sides.staged)
        if after and self._sides.kept:
            self._shadow.fill(self._kept_outputs())
        question, live = assertion.question, None
        if expectation.of_live:
            live = ask_table(self._run.edges.pinot, self._run.spec.name, question)
        return as_expected(assertion, (self._shadow.ask(question),), live)

    def _kept_outputs(self) -> list[Output]:
        """The tars of what stays, as the ledger has them.

        :raises PinotError: somebody else's segment stays, whose tar nobody here knows.
        """
        current = self._run.current_snapshot()
        known = current.segments if current is not None else {}
        foreign = [name for name in self._sides.kept if name not in known]
        if foreign:
            raise PinotError(
                f"a shadow table cannot hold what {self._run.spec.name} will be",
                why=f"{len(foreign)} segments that stay were not published from here, first {foreign[0]}",
                hint="ask what is staged, or the servers",
            )
        return [known[name] for name in self._sides.kept]


class _Servers:
    """Parts of an answer, each asked of a server that has the segments."""

    def __init__(self, pinot: Pinot, table: str, sides: _Sides) -> None:
        self._pinot = pinot
        self._table = table + OFFLINE_SUFFIX
        self._staged = tuple(output.segment for output in sides.staged)
        self._leaving, self._kept = sides.leaving, sides.kept
        self._away: dict[str, PinotUnreachable] = {}
        self._replicas = pinot.online_replicas(table, [*self._staged, *sides.live])

    def finding(self, assertion: Assertion) -> Finding:
        return assertion_holds(assertion, self._answers(assertion))

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
