"""Reads values from a table config as Pinot reads them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from pinot_assets.core.json_object import JsonMapping, JsonValue

_COUNT = "([0-9]{1,18})"  # Java's long holds no more digits either
_PERIOD = re.compile(rf"(?:{_COUNT}d)?(?:{_COUNT}h)?(?:{_COUNT}m)?(?:{_COUNT}s)?", re.IGNORECASE)
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1_000)


def setting(config: JsonValue, *path: str) -> JsonValue:
    """Return the value at that path, None if a part of it is missing or is not a mapping."""
    value = config
    for step in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def is_refresh(config: JsonMapping) -> bool:
    """Whether Pinot treats the table as REFRESH; `segmentPushType` (older) counts only without the newer."""
    if (kind := setting(config, "ingestionConfig", "batchIngestionConfig", "segmentIngestionType")) is None:
        kind = setting(config, "segmentsConfig", "segmentPushType")
    return isinstance(kind, str) and kind.upper() == "REFRESH"


def has_transforms(config: JsonMapping) -> bool:
    """Whether the config lets Pinot's functions make columns or drop rows: transformConfigs, filterConfig."""
    made = setting(config, "ingestionConfig", "transformConfigs")
    return bool(made or setting(config, "ingestionConfig", "filterConfig", "filterFunction"))


def period_ms(text: object) -> int | None:
    """Return a period such as `1d`, `12h` or `1d6h30m` in milliseconds; None if Pinot cannot read it.

    In that case Pinot uses its default and logs a warning (`TimeUtils.convertPeriodToMillis`).
    """
    match = _PERIOD.fullmatch(text) if isinstance(text, str) and text else None
    if match is None:
        return None
    return sum(int(count) * unit for count, unit in zip(match.groups(), _UNITS_MS, strict=True) if count)


UNIT_MS: Final = {
    "DAYS": 86_400_000,
    "HOURS": 3_600_000,
    "MINUTES": 60_000,
    "SECONDS": 1_000,
    "MILLISECONDS": 1,
}


def retention_ms(config: JsonMapping) -> int | None:
    """Return how long Pinot keeps a segment after its newest time value; None if it keeps all."""
    segments = setting(config, "segmentsConfig") or {}
    unit = UNIT_MS.get(str(setting(segments, "retentionTimeUnit")).upper())
    value = str(setting(segments, "retentionTimeValue")).strip()
    number = int(value) if value.isascii() and value.isdigit() else 0
    return unit * number if unit and number else None


HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def time_boundary_ms(config: JsonMapping, ends_ms: Iterable[int | None]) -> int | None:
    """Return the time boundary in epoch milliseconds, before Pinot rounds it to the time column's unit.

    :param config: the OFFLINE table's config.
    :param ends_ms: newest time value of each visible segment, None for one without.
    :returns: None without a time column or a segment: then all rows come from the REALTIME table.
    """
    ends = [end for end in ends_ms if end is not None]
    if setting(config, "segmentsConfig", "timeColumnName") is None or not ends:
        return None
    frequency = setting(config, "ingestionConfig", "batchIngestionConfig", "segmentIngestionFrequency")
    if frequency is None:
        frequency = setting(config, "segmentsConfig", "segmentPushFrequency")
    return max(ends) - (HOUR_MS if str(frequency).upper() == "HOURLY" else DAY_MS)


def prunes_segments(config: JsonMapping) -> bool:
    """Whether brokers leave out segments that cannot match a query, by partition or time."""
    return bool(
        setting(config, "routing", "segmentPrunerTypes") or setting(config, "routing", "segmentPrunerType")
    )
