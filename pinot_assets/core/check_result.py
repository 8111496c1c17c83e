"""What one check answers: of a table's health, the gate, the preflight, a rebalance, the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Final, Generic, TypeVar

from pinot_assets.errors import PinotAssetsError, SnapshotCorrupt

HOUR_MS = 3_600_000

T = TypeVar("T")
Look = TypeVar("Look")


class Severity(StrEnum):
    """How bad a failed check is."""

    WARN = "WARN"
    """Something needs a person, sooner or later."""
    ERROR = "ERROR"
    """It stops what was asked for (a switch, a change of config); or, of health, queries are wrong, data may
    be lost, or what should have healed by itself has not."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer of one check.

    :ivar expected: the number that has to be met, in the unit that the check says.
    :ivar found: the number that was met.
    :ivar message: one or two sentences with the numbers.
    :ivar next_step: a command, a key of the table spec or a place to look at; empty where the message says
        it, or all is well.
    :ivar severity: counts only when the check failed.
    :ivar numbers: what else is worth a plot; the same keys at every look.
    :ivar known: False when the check could not be made; it has then failed for that reason alone.
    """

    name: str
    passed: bool
    expected: float
    found: float
    message: str
    next_step: str = ""
    severity: Severity = Severity.WARN
    numbers: Mapping[str, float] = field(default_factory=dict)
    known: bool = True

    @property
    def description(self) -> str:
        """Message and next step, for people."""
        return f"{self.message}\n→ {self.next_step}" if self.next_step else self.message

    @property
    def blocks(self) -> bool:
        """Whether it failed, and not only as a warning."""
        return not self.passed and self.severity is Severity.ERROR

    def pick(self, passed: T, warned: T, failed: T) -> T:
        """Whichever of the three says how it came out."""
        return passed if self.passed else failed if self.blocks else warned


def passed(name: str, message: str) -> CheckResult:
    """A check that counts nothing, and found what it asks for."""
    return CheckResult(name, True, 1, 1, message)


def warned(name: str, message: str, next_step: str) -> CheckResult:
    """One that counts nothing, and found something that a person should know."""
    return CheckResult(name, False, 1, 0, message, next_step)


def failed(name: str, message: str, next_step: str) -> CheckResult:
    """One that counts nothing, and did not find what it asks for."""
    return CheckResult(name, False, 1, 0, message, next_step, Severity.ERROR)


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """One thing that is wrong; a check collects them and answers with the worst."""

    text: str
    next_step: str
    severity: Severity = Severity.WARN


def check_result_of(
    name: str,
    problems: Sequence[CheckProblem],
    *,
    expected: float,
    found: float,
    good: str,
    numbers: Mapping[str, float],
) -> CheckResult:
    """A check that passes when there are no problems; else the worst comes first and says what to do.

    :param good: the message of a check that passed.
    """
    if not problems:
        return CheckResult(name, True, expected, found, good, numbers=numbers)
    worst = sorted(problems, key=lambda problem: problem.severity is not Severity.ERROR)
    return CheckResult(
        name=name,
        passed=False,
        expected=expected,
        found=found,
        message="; ".join(problem.text for problem in worst),
        next_step=worst[0].next_step,
        severity=worst[0].severity,
        numbers=numbers,
    )


result_of: Final = partial(check_result_of, "")
"""`check_result_of` without a name, which a `HealthCheck` fills in."""


@dataclass(frozen=True, slots=True)
class HealthCheck(Generic[Look]):
    """One check of a table's standing health: a question to one look at the table.

    :ivar promise: what holds when it passes, one sentence.
    """

    name: str
    promise: str
    judge: Callable[[Look], CheckResult]

    def __call__(self, look: Look) -> CheckResult:
        """Its answer. Never raises."""
        try:
            return replace(self.judge(look), name=self.name)
        except PinotAssetsError as error:
            # A ledger that is damaged is more than something that does not answer.
            severity = Severity.ERROR if isinstance(error, SnapshotCorrupt) else Severity.WARN
            return unknown(self.name, error.reason, error.hint or "", severity)
        except Exception as error:
            # A check that breaks is a failed check with its reason, as the gate is.
            return unknown(self.name, repr(error), "this is a fault of the check itself: please report it")


def problem_if(
    is_wrong: object, text: str, next_step: str, severity: Severity = Severity.WARN
) -> tuple[CheckProblem, ...]:
    """The problem, or none."""
    return (CheckProblem(text, next_step, severity),) if is_wrong else ()


def unknown(name: str, reason: str, next_step: str, severity: Severity = Severity.WARN) -> CheckResult:
    """A check that could not be made."""
    return CheckResult(
        name, False, 0, 0, f"not known: {reason}", next_step or "look again later", severity, known=False
    )


def some(names: Sequence[str], shown: int = 3, between: str = ", ") -> str:
    """The first names, and how many more there are."""
    more = len(names) - shown
    return between.join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def base_name(uri: str) -> str:
    """The last part of a URI."""
    return uri.rsplit("/", 1)[-1]


def hours(ms: float) -> float:
    """Milliseconds as hours, fit for a plot."""
    return round(max(0.0, ms) / HOUR_MS, 2)


def megabytes(size: float) -> str:
    """Bytes for people."""
    return f"{size / 1024**2:,.1f} MB"
