"""The result of one check: of a table's health, the gate, the preflight, a rebalance, the machine."""

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
    """It stops what was asked for (a switch, a change of config). For a health check: queries are wrong, data
    may be lost, or something did not heal by itself as it should."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    :ivar expected: the number that is required; the check decides its unit.
    :ivar found: the number that was found.
    :ivar message: one or two sentences with the numbers.
    :ivar next_step: a command, a key of the table spec or a place to look at; empty if the message has it, or
        if the check passed.
    :ivar severity: only matters if the check failed.
    :ivar numbers: other numbers worth a plot; the same keys each time.
    :ivar known: False if the check could not be made; that alone is then the reason why it failed.
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
        """Return message and next step as one text for people."""
        return f"{self.message}\n→ {self.next_step}" if self.next_step else self.message

    @property
    def blocks(self) -> bool:
        """Whether it failed with severity ERROR, not only as a warning."""
        return not self.passed and self.severity is Severity.ERROR

    def pick(self, passed: T, warned: T, failed: T) -> T:
        """Return the argument for this result."""
        return passed if self.passed else failed if self.blocks else warned


def passed(name: str, message: str) -> CheckResult:
    """Return a passed check that has no numbers."""
    return CheckResult(name, True, 1, 1, message)


def warned(name: str, message: str, next_step: str) -> CheckResult:
    """Return a failed check without numbers that only warns: a person should know of it."""
    return CheckResult(name, False, 1, 0, message, next_step)


def failed(name: str, message: str, next_step: str) -> CheckResult:
    """Return a failed check without numbers that blocks."""
    return CheckResult(name, False, 1, 0, message, next_step, Severity.ERROR)


@dataclass(frozen=True, slots=True)
class CheckProblem:
    """One thing that is wrong. A check collects them, and its result has the worst one's severity."""

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
    """Return a check that passes without problems; else the worst comes first and gives the next step.

    :param good: the message of a passed check.
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
"""`check_result_of` without a name; `HealthCheck` fills the name in."""


@dataclass(frozen=True, slots=True)
class HealthCheck(Generic[Look]):
    """One health check of a table: it judges what was read of the table.

    :ivar promise: one sentence that is true if the check passes.
    """

    name: str
    promise: str
    judge: Callable[[Look], CheckResult]

    def __call__(self, look: Look) -> CheckResult:
        """Return the check's result. Never raises."""
        try:
            return replace(self.judge(look), name=self.name)
        except PinotAssetsError as error:
            # A damaged ledger is worse than a service that does not answer.
            severity = Severity.ERROR if isinstance(error, SnapshotCorrupt) else Severity.WARN
            return unknown(self.name, error.reason, error.hint or "", severity)
        except Exception as error:
            # As at the gate, a check that breaks counts as failed, with the reason.
            return unknown(self.name, repr(error), "this is a fault of the check itself: please report it")


def problem_if(
    is_wrong: object, text: str, next_step: str, severity: Severity = Severity.WARN
) -> tuple[CheckProblem, ...]:
    """Return the problem if there is one, else none."""
    return (CheckProblem(text, next_step, severity),) if is_wrong else ()


def unknown(name: str, reason: str, next_step: str, severity: Severity = Severity.WARN) -> CheckResult:
    """Return the result of a check that could not be made."""
    return CheckResult(
        name, False, 0, 0, f"not known: {reason}", next_step or "look again later", severity, known=False
    )


def some(names: Sequence[str], shown: int = 3, between: str = ", ") -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - shown
    return between.join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def base_name(uri: str) -> str:
    """Return the last part of a URI."""
    return uri.rsplit("/", 1)[-1]


def hours(ms: float) -> float:
    """Return milliseconds as hours for a plot: two digits, not negative."""
    return round(max(0.0, ms) / HOUR_MS, 2)


def megabytes(size: float) -> str:
    """Return bytes as a text for people, in MB of 1024² bytes."""
    return f"{size / 1024**2:,.1f} MB"
