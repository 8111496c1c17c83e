"""What a rule of the preflight is, and how it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pinot_assets.core import check_result
from pinot_assets.core.check_result import CheckResult, unknown
from pinot_assets.realtime.preflight.facts import Aim, Facts

passed: Final = partial(check_result.passed, "")
"""All is well; why. `Rule.answer` puts the rule's name in, here and below."""
warn: Final = partial(check_result.warned, "")
"""The change may be made, and somebody should know this first; why, and what to do."""
refuse: Final = partial(check_result.failed, "")
"""The change is not made; why, and what to do."""

Judge = Callable[[Facts], CheckResult]


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

    def answer(self, facts: Facts) -> CheckResult:
        """Its answer; "not known" is a warning."""
        if (why := facts.not_known(self.needs)) is not None:
            fix = "make it readable and look again, or see to it that it is as docs/guides/realtime.md says"
            return unknown(self.name, why, fix)
        return replace(self.judge(facts), name=self.name)


def rule(*aims: Aim, needs: tuple[str, ...] = ()) -> Callable[[Judge], Rule]:
    """Make a function a rule of its own name.

    :param aims: what it matters to; none for every change.
    """
    return lambda judge: Rule(judge.__name__, frozenset(aims), needs, judge)
