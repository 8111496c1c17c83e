"""Where brokers part files from stream."""

from __future__ import annotations

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot.table_config import time_boundary_ms

HOUR = 3_600_000
NOON = 1_700_000_000_000


def config(frequency: str | None = None, column: str | None = "at") -> JsonObject:
    batch = {"segmentIngestionFrequency": frequency} if frequency else {}
    return {
        "segmentsConfig": {"timeColumnName": column} if column else {},
        "ingestionConfig": {"batchIngestionConfig": batch},
    }


@pytest.mark.parametrize(
    ("frequency", "hours"), [("DAILY", 24), (None, 24), ("HOURLY", 1), ("hourly", 1), ("WEEKLY", 24)]
)
def test_the_newest_file_less_what_the_next_push_may_bring(frequency: str | None, hours: int) -> None:
    assert time_boundary_ms(config(frequency), [NOON - HOUR, NOON, None]) == NOON - hours * HOUR


def test_the_older_push_frequency_counts_where_it_stands_alone() -> None:
    older = {"segmentsConfig": {"timeColumnName": "at", "segmentPushFrequency": "HOURLY"}}
    assert time_boundary_ms(older, [NOON]) == NOON - HOUR


def test_without_a_time_all_comes_from_the_stream() -> None:
    assert time_boundary_ms(config(column=None), [NOON]) is None
    assert time_boundary_ms(config(), []) is None
    assert time_boundary_ms(config(), [None]) is None


def test_a_sync_that_takes_the_newest_file_away_moves_the_border_back() -> None:
    before, after = [NOON, NOON + 24 * HOUR], [NOON]
    assert time_boundary_ms(config("DAILY"), after) == NOON - 24 * HOUR
    assert time_boundary_ms(config("DAILY"), before) == NOON
