"""Pinot 1.5.1 for REALTIME tables: a controller with tables laid into its ZooKeeper, a pauseless cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakes.pauseless.shared import code_allowed, shared, whole
from fakes.pinot.controller import ControllerCluster
from kazoo.client import KazooClient

__all__ = ["code_allowed", "shared", "whole"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerCluster]:
    """A real controller of 1.5.1, with stand-ins for its servers."""
    with ControllerCluster(tmp_path_factory.mktemp("controller")) as cluster:
        yield cluster


@pytest.fixture
def zookeeper(cluster: ControllerCluster) -> Iterator[KazooClient]:
    client = KazooClient(cluster.zookeeper)
    client.start(timeout=15)
    yield client
    client.stop()
    client.close()
