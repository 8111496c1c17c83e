"""One look at a table `t` for the checks of its health, with the readings that a test gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pinot_assets.health.table_probe import TableProbe


def looked(
    now_ms: int = 0,
    *,
    mode: str = "sync",
    max_retries: int = 3,
    freshness_hours: float | None = None,
    **readings: object,
) -> TableProbe:
    """What a check sees; a reading that is not given cannot be made.

    :param readings: by the name of the method of `TableProbe`.
    """
    spec: Any = SimpleNamespace(
        name="t",
        mode=mode,
        ingestion=SimpleNamespace(max_retries=max_retries),
        dagster=SimpleNamespace(freshness_hours=freshness_hours),
    )
    ports: Any = None
    probe = TableProbe(spec, ports, now_ms)
    probe.readings |= readings
    return probe
