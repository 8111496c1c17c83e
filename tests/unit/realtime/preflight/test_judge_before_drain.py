"""The preflight before pauseless goes on, and a config that is flipped."""

from __future__ import annotations

import pytest
from fakes.realtime.memory import TABLE, FakeRealtime

from pinot_assets.errors import PinotNotFound
from pinot_assets.realtime.operations.pauseless import Goal, flipped
from pinot_assets.realtime.preflight.judge import before_drain
from pinot_assets.realtime.read.stream import StreamRetention


def test_what_refuses_is_said_with_its_reason():
    fake = FakeRealtime()
    fake.segment()
    with fake.pinot() as pinot:
        against = before_drain(pinot, lambda _: StreamRetention(7 * 86_400_000))
        assert against(fake.look(), Goal.ON) == []
        fake.config["segmentsConfig"]["replication"] = "1"
        (refusal,) = against(fake.look(), Goal.ON)
        assert refusal.startswith("peer_scheme: Pinot refuses a peer scheme with replication 1")
        assert against(fake.look(), Goal.OFF) == ()


def test_a_table_that_went_away():
    fake = FakeRealtime()
    state = fake.look()
    fake.refused["/tables/clicks"] = 404
    with fake.pinot() as pinot, pytest.raises(PinotNotFound):
        before_drain(pinot)(state, Goal.ON)


def test_a_stream_at_its_former_place_moves_along():
    config = {"tableName": TABLE, "tableIndexConfig": {"streamConfigs": {"streamType": "kafka"}, "x": 1}}
    assert flipped(config, Goal.ON) == {
        "tableName": TABLE,
        "tableIndexConfig": {"x": 1},
        "ingestionConfig": {
            "streamIngestionConfig": {
                "pauselessConsumptionEnabled": True,
                "streamConfigMaps": [{"streamType": "kafka"}],
            }
        },
    }
    assert "streamConfigs" in config["tableIndexConfig"]
