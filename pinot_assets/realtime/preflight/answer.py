"""What one rule of the preflight answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What an answer means for a change."""

    PASS = "pass"
    WARN = "warn"
    """It may be made; somebody should know this first. Also what is not known."""
    REFUSE = "refuse"
    """It is not made."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One rule's answer.

    :ivar rule: its name.
    :ivar reason: one sentence without a final full stop.
    :ivar fix: what to do; None for a pass.
    """

    rule: str
    verdict: Verdict
    reason: str
    fix: str | None = None

    def values(self) -> dict[str, str | None]:
        """As JSON values."""
        return {"rule": self.rule, "verdict": self.verdict.value, "reason": self.reason, "fix": self.fix}


@dataclass(frozen=True, slots=True)
class RuleJudgement:
    """What a rule itself says, before it is known as that rule's."""

    verdict: Verdict
    reason: str
    fix: str | None = None


def passed(reason: str) -> RuleJudgement:
    """All is well."""
    return RuleJudgement(Verdict.PASS, reason)


def warn(reason: str, fix: str) -> RuleJudgement:
    """Allowed, and worth knowing."""
    return RuleJudgement(Verdict.WARN, reason, fix)


def refuse(reason: str, fix: str) -> RuleJudgement:
    """Not allowed."""
    return RuleJudgement(Verdict.REFUSE, reason, fix)
