"""A table config read as Pinot reads it."""

from __future__ import annotations

import pytest

from pinot_assets.pinot.table_config import is_refresh, period_ms, retention_ms, setting

HOUR = 3_600_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1d", 24 * HOUR),
        ("12h", 12 * HOUR),
        ("0d", 0),
        ("1d6h30m", 30 * HOUR + HOUR // 2),
        ("2s", 2000),
        ("7D", 168 * HOUR),
    ],
)
def test_periods(text: str, ms: int) -> None:
    assert period_ms(text) == ms


@pytest.mark.parametrize("text", ["", "1", "soon", "1w", "-1d", "1h2d", "9" * 5000 + "d", "٣d", None, 24])
def test_what_pinot_cannot_read_is_no_period(text: object) -> None:
    assert period_ms(text) is None


def test_the_older_push_type_counts_where_it_stands_alone() -> None:
    batch = {"batchIngestionConfig": {"segmentIngestionType": "append"}}
    assert is_refresh({"segmentsConfig": {"segmentPushType": "refresh"}})
    assert not is_refresh({"segmentsConfig": {"segmentPushType": "REFRESH"}, "ingestionConfig": batch})
    assert not is_refresh({})


def test_a_setting_below_something_that_is_no_mapping() -> None:
    assert setting({"a": [1]}, "a", "b") is None
    assert setting({"a": {"b": 2}}, "a", "b") == 2


@pytest.mark.parametrize(
    ("segments", "ms"),
    [
        ({"retentionTimeUnit": "DAYS", "retentionTimeValue": "7"}, 7 * 24 * HOUR),
        ({"retentionTimeUnit": "hours", "retentionTimeValue": 12}, 12 * HOUR),
        ({"retentionTimeUnit": "DAYS"}, None),
        ({"retentionTimeValue": "7"}, None),
        ({"retentionTimeUnit": "DAYS", "retentionTimeValue": "${DAYS}"}, None),
        ({"retentionTimeUnit": "DAYS", "retentionTimeValue": "-1"}, None),
        ({}, None),
    ],
)
def test_how_long_pinot_keeps_a_segment(segments: dict[str, object], ms: int | None) -> None:
    assert retention_ms({"segmentsConfig": segments}) == ms
