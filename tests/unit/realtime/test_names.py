"""Names of segments that come from a stream."""

from __future__ import annotations

import pytest

from pinot_assets.realtime.names import SegmentName, parse_name


def test_a_name_tells_partition_sequence_and_minute() -> None:
    assert parse_name("clicks__3__14__20260202T0240Z") == SegmentName("clicks", 3, 14, 1_770_000_000_000)


@pytest.mark.parametrize("name", ["clicks_2026-01-01_0", "clicks__0__0__x", "clicks__0__20260202T0240Z", ""])
def test_other_names(name: str) -> None:
    assert parse_name(name) is None
    assert parse_name("clicks__0__0__20261302T0240Z") is None
