"""A name of a cluster that this ZooKeeper does not have: nothing published is not the answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.pinot.left_nodes import CLUSTER, left_by_a_table
from fakes.zookeeper.memory import FakeZooKeeper
from kazoo.exceptions import ConnectionLoss

from pinot_assets import zookeeper
from pinot_assets.core.connections import PinotConnection
from pinot_assets.errors import SessionError
from pinot_assets.realtime.lease import open_operations
from pinot_assets.session.stores.clients import open_known_stores, open_session_store
from pinot_assets.settings.environment import Settings
from pinot_assets.zookeeper import require_cluster

SPEC: Any = SimpleNamespace(name_with_type="flights_OFFLINE")
Open = Callable[[Settings], AbstractContextManager[Any]]
DOORS: list[Open] = [
    lambda settings: open_session_store(SPEC, settings),
    lambda settings: open_known_stores(settings),
    lambda settings: open_operations(settings, "clicks_REALTIME"),
]


def settings(cluster: str) -> Settings:
    return Settings(PinotConnection("http://127.0.0.1:1"), "127.0.0.1:2", cluster)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeZooKeeper:
    server = left_by_a_table(FakeZooKeeper())
    server.client().ensure_path("/zookeeper/quota")
    monkeypatch.setattr(zookeeper, "connect", lambda *_, **__: server.client())
    return server


@pytest.mark.parametrize("door", DOORS)
def test_whoever_opens_a_tables_nodes_names_the_clusters_that_there_are(
    server: FakeZooKeeper, door: Open
) -> None:
    before = len(server.writes)
    words = "no Pinot cluster pinto in this ZooKeeper"
    with pytest.raises(SessionError, match=words) as refused, door(settings("pinto")):
        pytest.fail("it was opened")
    assert (refused.value.why, refused.value.hint) == (
        f"it has {CLUSTER}",
        f"set PINOT_CLUSTER to {CLUSTER}",
    )
    assert len(server.writes) == before


@pytest.mark.parametrize("door", DOORS)
def test_the_cluster_that_is_there_opens(server: FakeZooKeeper, door: Open) -> None:
    with ExitStack() as stack:
        assert stack.enter_context(door(settings(CLUSTER))) is not None


def test_of_several_all_are_named(server: FakeZooKeeper) -> None:
    server.client().ensure_path("/another/PROPERTYSTORE")
    with pytest.raises(SessionError) as refused:
        require_cluster(server.client(), "pinto")  # type: ignore[arg-type]
    assert refused.value.hint is not None
    assert f"another or {CLUSTER}, the one of the controller" in refused.value.hint


def test_where_there_is_none_the_address_is_in_doubt() -> None:
    with pytest.raises(SessionError) as refused:
        require_cluster(FakeZooKeeper().client(), "pinot")  # type: ignore[arg-type]
    assert refused.value.hint is not None
    assert "chroot in PINOT_ZOOKEEPER" in refused.value.hint


def test_a_silent_zookeeper_is_a_sentence(server: FakeZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> None:
        raise ConnectionLoss

    monkeypatch.setattr(zookeeper, "require_cluster", silent)
    with pytest.raises(SessionError, match="does not answer"), open_session_store(SPEC, settings(CLUSTER)):
        pytest.fail("it was opened")
