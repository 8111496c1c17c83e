"""Where a hybrid table's brokers part OFFLINE from REALTIME, and how a switch moves it. Pure.

A broker sends the part of a query up to the time boundary to the OFFLINE table and the rest to the REALTIME
one. The boundary is the newest end time of the OFFLINE table's *visible* segments, less an hour for tables
that are pushed hourly, less a day for all others (`TimeBoundaryManager`). So a switch may move it, and a way
back too.
"""

from __future__ import annotations

from collections.abc import Iterable

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.pinot.table_config import setting

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def time_boundary_ms(config: JsonMapping, ends_ms: Iterable[int | None]) -> int | None:
    """The boundary in epoch milliseconds, before it is rounded to the time column's own unit.

    :param config: the OFFLINE table's.
    :param ends_ms: newest time value of each visible segment, None for one without.
    :returns: None without a time column or a segment: then all of the table comes from REALTIME.
    """
    ends = [end for end in ends_ms if end is not None]
    if setting(config, "segmentsConfig", "timeColumnName") is None or not ends:
        return None
    frequency = setting(config, "ingestionConfig", "batchIngestionConfig", "segmentIngestionFrequency")
    if frequency is None:
        frequency = setting(config, "segmentsConfig", "segmentPushFrequency")
    return max(ends) - (HOUR_MS if str(frequency).upper() == "HOURLY" else DAY_MS)
