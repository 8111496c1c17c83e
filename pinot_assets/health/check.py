"""What a check of a table's standing health is: a question to one look at the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pinot_assets.core.check_result import CheckResult, Severity, unknown
from pinot_assets.errors import PinotAssetsError, SnapshotCorrupt
from pinot_assets.health.table_probe import TableProbe


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One check.

    :ivar promise: what holds when it passes, one sentence.
    """

    name: str
    promise: str
    judge: Callable[[TableProbe], CheckResult]

    def __call__(self, probe: TableProbe) -> CheckResult:
        """Its answer. Never raises."""
        try:
            return replace(self.judge(probe), name=self.name)
        except PinotAssetsError as error:
            # A ledger that is damaged is more than something that does not answer.
            severity = Severity.ERROR if isinstance(error, SnapshotCorrupt) else Severity.WARN
            return unknown(self.name, error.reason, error.hint or "", severity)
        except Exception as error:
            # A check that breaks is a failed check with its reason, as the gate is.
            return unknown(self.name, repr(error), "this is a fault of the check itself: please report it")


def check(promise: str) -> Callable[[Callable[[TableProbe], CheckResult]], HealthCheck]:
    """Make a function a check of its own name."""
    return lambda judge: HealthCheck(judge.__name__, promise, judge)
