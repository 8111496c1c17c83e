"""Asking what the table spec's assertions ask (W4), past what lineage hides: servers, or a shadow table."""

from __future__ import annotations

from collections.abc import Iterable

from pinot_assets.audit.assertions import (
    as_expected,
    assertion_unanswered,
    nothing_live,
)
from pinot_assets.audit.checks import Finding
from pinot_assets.core.text import counted
from pinot_assets.errors import PinotError, SpecError
from pinot_assets.session.checks.shadow import ShadowTable, ask_table
from pinot_assets.session.checks.staged_queries import Servers, SwitchSegments, switch_segments_of
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Switch
from pinot_assets.snapshot.receipt import Output, Receipt
from pinot_assets.table_spec.blocks.audit import Assertion
from pinot_assets.table_spec.blocks.expectation import Side


def assertion_findings(
    context: TriggerContext, switch: Switch, receipts: Iterable[Receipt]
) -> tuple[Finding, ...]:
    """One finding for each assertion of the table spec, in its order: what was built has to be loaded, and is
    asked. Where no segment comes or goes, those about what queries will see are left out: they see it.

    Every replica of the staged segments is asked; where the table spec wants `replicas: one`, those on
    servers that answer. What is live is asked of one: queries see it already.

    :param receipts: those that the session's plan accepted.
    """
    sides_asked = {Side.STAGED} | ({Side.AFTER} if switch.segments_from or switch.segments_to else set())
    assertions = [a for a in context.spec.audit.assertions if a.expectation.side in sides_asked]
    if not assertions:
        return ()
    sides = switch_segments_of(context.clients.pinot, context.spec.name, switch, receipts)
    servers = Servers(context.clients.pinot, context.spec.name, sides, context.spec.audit.replicas)
    findings: dict[int, Finding] = {}
    with ShadowTable(context) as shadow:
        ways = {"servers": servers.finding, "shadow": _ByShadow(context, shadow, sides).finding}
        for number in sorted(range(len(assertions)), key=lambda n: _cost(assertions[n])):
            context.lease.assert_held()  # a sign of progress, too: many of them take long (R25)
            assertion = assertions[number]
            try:
                findings[number] = ways[assertion.via](assertion)
            except (PinotError, SpecError) as error:  # the latter: TLS files that went since the trigger
                findings[number] = assertion_unanswered(assertion, error.in_one_line)
    return tuple(findings[number] for number in range(len(assertions)))


def refuse_unaskable(context: TriggerContext) -> None:
    """Look before anything is built whether servers can be asked, where the table spec asks them.

    :raises SpecError: the settings of this machine do not let them be.
    """
    if any(assertion.via == "servers" for assertion in context.spec.audit.assertions):
        context.clients.pinot.require_server_queries()


def _cost(assertion: Assertion) -> int:
    """Servers first; a shadow table is filled with what is staged, and then with what stays."""
    return (assertion.via == "shadow") + (assertion.expectation.side is Side.AFTER)


class _ByShadow:
    """Full SQL, asked through a broker: of the shadow table, and of the table itself for what is live."""

    def __init__(self, context: TriggerContext, shadow: ShadowTable, sides: SwitchSegments) -> None:
        self._run = context
        self._shadow = shadow
        self._sides = sides

    def finding(self, assertion: Assertion) -> Finding:
        expectation = assertion.expectation
        after = expectation.side is Side.AFTER
        if expectation.of_live and not self._sides.live:
            return nothing_live(assertion)
        if not after and not self._sides.staged and not self._sides.of_files:
            return as_expected(assertion, (), None)
        if self._sides.staged:
            self._shadow.fill(self._sides.staged)
        if after and self._sides.kept:
            self._shadow.fill(self._kept_outputs())
        question, live = assertion.question, None
        if expectation.of_live:
            live = ask_table(self._run.clients.pinot, self._run.spec.name, question)
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
                why=f"of what stays {counted(len(foreign), 'segment was', 'segments were')} not published "
                f"from here, first {foreign[0]}",
                hint="ask what is staged, or the servers",
            )
        return [known[name] for name in self._sides.kept]
