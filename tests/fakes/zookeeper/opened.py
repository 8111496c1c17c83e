"""The ZooKeeper that operations on REALTIME tables open, in memory."""

from __future__ import annotations

import pytest
from fakes.zookeeper.memory import FakeZooKeeper

from pinot_assets import zookeeper


def opened_zookeeper(monkeypatch: pytest.MonkeyPatch) -> FakeZooKeeper:
    """One with a Pinot cluster `test`, for all that `realtime.opening` opens in this test."""
    made = FakeZooKeeper()
    made.client().ensure_path("/test/PROPERTYSTORE")
    monkeypatch.setattr(zookeeper, "connect", lambda *_, **__: made.client())
    monkeypatch.setattr(zookeeper, "close_client", lambda client: client.stop())
    return made
