"""Names as Prometheus wants them, and few of them a table."""

from __future__ import annotations

import re

import pytest
from fakes.monitoring.catalogue import FAMILIES

from pinot_assets.metrics.family import Family

LABELS = {"table", "part", "state", "phase", "check", "severity", "kind", "change", "step", "version"}
"""All bounded by the code, by the table specs or, of checks, by both; a file or a segment is none of them."""


def test_no_name_is_given_twice() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_name_follows_prometheus_own_rules(family: Family) -> None:
    assert re.fullmatch(r"pinot_assets_[a-z]+(_[a-z]+)*", family.name)
    assert not re.search(r"_(ms|millis|milliseconds|minutes|hours|kb|mb|megabytes|count|sum)\b", family.name)
    timed = bool({"timestamp", "duration", "age", "lag"} & {*family.name.split("_")})
    assert timed <= family.name.endswith("_seconds")
    assert ("bytes" in family.name) <= family.name.endswith("_bytes")
    assert family.help.endswith(".")
    assert set(family.labels) <= LABELS
    assert "table" in family.labels or family.name == "pinot_assets_build_info"
