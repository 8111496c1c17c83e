"""Makes a function a health check of an OFFLINE table."""

from __future__ import annotations

from collections.abc import Callable

from pinot_assets.core.check_result import CheckResult, HealthCheck
from pinot_assets.health.table_probe import TableProbe


def check(promise: str) -> Callable[[Callable[[TableProbe], CheckResult]], HealthCheck[TableProbe]]:
    """Return a decorator that makes a function a check with the function's name."""
    return lambda judge: HealthCheck(judge.__name__, promise, judge)
