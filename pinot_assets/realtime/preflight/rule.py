"""What a rule of the preflight is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pinot_assets.realtime.preflight.answer import Answer, RuleJudgement, Verdict
from pinot_assets.realtime.preflight.facts import Aim, Facts

Judge = Callable[[Facts], RuleJudgement]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    :ivar aims: what it matters to; empty for every change.
    :ivar needs: facts without which it cannot judge.
    """

    name: str
    aims: frozenset[Aim]
    needs: tuple[str, ...]
    judge: Judge

    def answer(self, facts: Facts) -> Answer:
        """Its answer; "not known" is a warning."""
        if (why := facts.not_known(self.needs)) is not None:
            fix = "make it readable and look again, or see to it that it is as docs/guides/realtime.md says"
            return Answer(self.name, Verdict.WARN, f"not known: {why}", fix)
        judged = self.judge(facts)
        return Answer(self.name, judged.verdict, judged.reason, judged.fix)


def rule(*aims: Aim, needs: tuple[str, ...] = ()) -> Callable[[Judge], Rule]:
    """Make a function a rule of its own name.

    :param aims: what it matters to; none for every change.
    """
    return lambda judge: Rule(judge.__name__, frozenset(aims), needs, judge)
