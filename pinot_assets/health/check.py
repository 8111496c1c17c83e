"""How a function becomes a check of an OFFLINE table's standing health."""

from __future__ import annotations

from collections.abc import Callable

from pinot_assets.core.check_result import CheckResult, HealthCheck
from pinot_assets.health.table_probe import TableProbe


def check(promise: str) -> Callable[[Callable[[TableProbe], CheckResult]], HealthCheck[TableProbe]]:
    """Make a function a check of its own name."""
    return lambda judge: HealthCheck(judge.__name__, promise, judge)
