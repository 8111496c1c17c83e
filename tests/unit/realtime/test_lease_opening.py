"""Who changes a REALTIME table holds its lease, and knows what time it is."""

from __future__ import annotations

import pytest
from fakes.zookeeper.memory import FakeZooKeeper
from fakes.zookeeper.opened import opened_zookeeper

from pinot_assets.errors import SessionError
from pinot_assets.realtime.lease import OperationsStore, hold_table
from pinot_assets.resources import PinotResource

SETTINGS = PinotResource(
    controller_url="http://controller:9000", zookeeper="127.0.0.1:1", cluster="test"
).settings()


@pytest.fixture
def zookeeper(monkeypatch: pytest.MonkeyPatch) -> FakeZooKeeper:
    return opened_zookeeper(monkeypatch)


def test_a_held_table_says_by_whom(zookeeper: FakeZooKeeper) -> None:
    store = OperationsStore(zookeeper.client(), "test", "t_REALTIME")  # type: ignore[arg-type]
    with hold_table(SETTINGS, "t_REALTIME", "repair") as lease:
        lease.assert_held()
        holder = store.holder()
        assert holder is not None
        assert holder.run == "repair"
    assert store.holder() is None


@pytest.mark.parametrize(("ahead_s", "said"), [(90, r"[89]\d s behind"), (-300, r"[23]\d\d s ahead of")])
def test_a_machine_that_does_not_know_the_time_changes_nothing(
    zookeeper: FakeZooKeeper, ahead_s: int, said: str
) -> None:
    zookeeper.ahead_ms = ahead_s * 1000
    with pytest.raises(SessionError, match=said), hold_table(SETTINGS, "t_REALTIME", "repair"):
        pass
    store = OperationsStore(zookeeper.client(), "test", "t_REALTIME")  # type: ignore[arg-type]
    assert store.holder() is None
