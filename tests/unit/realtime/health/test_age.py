"""A commit that runs is not taken for trouble."""

from __future__ import annotations

import pytest
from fakes.realtime.memory import S1, S2, FakeRealtime

from pinot_assets.realtime.health.consuming import consumption
from pinot_assets.realtime.health.copies import only_copies, replicas
from pinot_assets.realtime.health.serving import answers


@pytest.mark.parametrize(("age_ms", "well"), [(9_000, True), (50_000, False)])
def test_brokers_are_given_ten_seconds(age_ms: int, well: bool) -> None:
    pinot = FakeRealtime()
    pinot.segment(status="IN_PROGRESS", age_ms=age_ms)
    pinot.rows = {broker: {} for broker in pinot.brokers}
    assert answers(pinot.look()).passed is well


@pytest.mark.parametrize(("age_ms", "well"), [(59_000, True), (61_000, False)])
def test_servers_are_given_a_minute(age_ms: int, well: bool) -> None:
    pinot = FakeRealtime()
    pinot.segment(0, 0, url="", age_ms=age_ms, states={S1: "ONLINE", S2: "OFFLINE"})
    pinot.segment(0, 1, "IN_PROGRESS", start=100, end=100, age_ms=age_ms, states={})
    state = pinot.look()
    assert [check(state).passed for check in (only_copies, replicas, consumption)] == [well] * 3
