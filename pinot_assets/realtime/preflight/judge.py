"""The preflight: every rule that matters to a change, and whether it may be made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pinot_assets.core.check_result import CheckResult
from pinot_assets.core.text import plural_are
from pinot_assets.errors import PinotNotFound, PreflightRefused
from pinot_assets.pinot.realtime.reads import RealtimeReads
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.operations.pauseless import Goal, Preflight
from pinot_assets.realtime.preflight import rules_settings, rules_time
from pinot_assets.realtime.preflight.facts import Aim, Facts, Rule, passed, refuse, rule
from pinot_assets.realtime.preflight.gather import ReadRetention, gather
from pinot_assets.realtime.read.stream import read_retention

RULES: Final = (*rules_settings.RULES, *rules_time.RULES)
"""The rules in the order in which they are answered."""


def judge(facts: Facts) -> tuple[CheckResult, ...]:
    """Whether what the table is to have on would hold: every rule's answer."""
    return tuple(r.answer(facts) for r in RULES if not r.aims or r.aims & facts.aims)


@rule()
def pauseless_is_drained(facts: Facts) -> CheckResult:
    """A commit would begin in one protocol and end in the other (docs/design/realtime.md#point-8)."""
    if facts.held is None or facts.held.pauseless is facts.wanted.pauseless:
        return passed("pauseless consumption stays as it is")
    raw = facts.table.removesuffix("_REALTIME")
    if facts.wanted.pauseless:
        return refuse(
            "pauseless consumption would be turned on while segments are being consumed, which would then be "
            "committed half one way, half the other",
            f"pinot-assets realtime pauseless enable {raw}, then this",
        )
    return refuse(
        "pauseless consumption would be turned off while segments are being committed "
        f"({facts.committing} now): those stay COMMITTING, and nothing uploads them any more",
        f"pinot-assets realtime pauseless disable {raw}, then this",
    )


@rule(needs=("peers_only",))
def scheme_is_not_needed(facts: Facts) -> CheckResult:
    """A segment with an empty URL can be had from peers alone (docs/design/realtime.md#s6-download)."""
    if facts.held is None or facts.held.peer_scheme is None or facts.wanted.peer_scheme is not None:
        return passed("the peer scheme is not taken away")
    waiting = facts.peers_only + facts.committing
    if waiting:
        return refuse(
            f"{plural_are(waiting, 'segment')} not in the deep store: "
            "without the peer scheme no server can load it",
            f"pinot-assets realtime repair {facts.table.removesuffix('_REALTIME')} --apply, then again",
        )
    return passed("every segment is in the deep store, so that no server needs a peer")


RULES_OF_CHANGE: Final[tuple[Rule, ...]] = (pauseless_is_drained, scheme_is_not_needed)
"""Rules of a change that is made by `tables apply`, at once: what must not be changed so, and what must stay.

Only that command asks them: turning pauseless consumption on or off has its own way (`operations.pauseless`).
"""


def judge_change(facts: Facts) -> tuple[CheckResult, ...]:
    """The same, and whether Pinot's config may be changed to it at once."""
    return (*judge(facts), *(rule.answer(facts) for rule in RULES_OF_CHANGE))


def verdict(answer: CheckResult) -> str:
    """What an answer means for a change, in one word."""
    return answer.pick("pass", "warn", "refuse")


def summary(answers: Iterable[CheckResult]) -> str:
    """`18 rules: 2 refuse (version, peer_scheme), 3 warn`."""
    found = list(answers)
    refused = [answer.name for answer in found if answer.blocks]
    warned = sum(not answer.passed for answer in found) - len(refused)
    parts = [f"{len(refused)} refuse ({', '.join(refused)})"] if refused else []
    parts += [f"{warned} warn"] if warned else []
    return f"{len(found)} rules: {', '.join(parts) or 'all pass'}"


def refuse_unless_safe(table: str, answers: Iterable[CheckResult]) -> None:
    """What stands before every change of a REALTIME table's config.

    :raises PreflightRefused: a rule refuses; the text lists each with its fix.
    """
    refused = [answer for answer in answers if answer.blocks]
    if refused:
        listed = "".join(f"\n  {a.name}: {a.message}\n    → {a.next_step}" for a in refused)
        raise PreflightRefused(
            f"the preflight of {table} refuses this config:{listed}",
            hint=f"nothing was changed; `pinot-assets realtime preflight {table.removesuffix('_REALTIME')}` "
            "shows all rules",
        )


def before_drain(pinot: RealtimeReads, read_stream: ReadRetention = read_retention) -> Preflight:
    """Why pauseless must not go on. Off it may always go: draining is what keeps that from losing anything.

    :param read_stream: what a stream keeps, by its config.
    """

    def against(state: RealtimeState, goal: Goal) -> Sequence[str]:
        if goal is Goal.OFF:
            return ()
        config = pinot.table_config(state.table)
        if config is None:
            raise PinotNotFound(f"there is no table {state.table}")
        answers = judge(gather(pinot, state.table, config, Aim.PAUSELESS, read_stream))
        return [f"{one.name}: {one.message}" for one in answers if one.blocks]

    return against
