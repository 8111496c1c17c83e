"""The preflight: every rule that matters to a change, and whether it may be made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pinot_assets.core.check_result import CheckResult
from pinot_assets.errors import PreflightRefused
from pinot_assets.realtime.preflight import rules_change, rules_cluster, rules_config, rules_time
from pinot_assets.realtime.preflight.facts import Facts

RULES: Final = (*rules_config.RULES, *rules_cluster.RULES, *rules_time.RULES)
"""The rules in the order in which they are answered."""


def judge(facts: Facts) -> tuple[CheckResult, ...]:
    """Whether what the table is to have on would hold: every rule's answer."""
    return tuple(r.answer(facts) for r in RULES if not r.aims or r.aims & facts.aims)


def judge_change(facts: Facts) -> tuple[CheckResult, ...]:
    """The same, and whether Pinot's config may be changed to it at once."""
    return (*judge(facts), *(rule.answer(facts) for rule in rules_change.RULES))


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
