"""A local stack with Kafka, and REALTIME tables on it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fakes.controller import ControllerCluster
from fakes.exporter import Exporters
from fakes.kafka_table import Clicks, schema, table_config
from fakes.pauseless import PauselessCluster, pauseless_cluster
from kazoo.client import KazooClient

from pinot_assets.local import Stack, StackState
from pinot_assets.pinot.connection import PinotConnection
from pinot_assets.pinot.realtime import RealtimePinot


@pytest.fixture(scope="session")
def kafka_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Home of a stack with Kafka, whose servers may be killed and brought up again.

    `PINOT_ASSETS_TEST_KAFKA_HOME` names the home of one that runs already; that one is left running.
    """
    if running := os.environ.get("PINOT_ASSETS_TEST_KAFKA_HOME"):
        yield Path(running)
        return
    own = Stack(tmp_path_factory.mktemp("kafka-stack"))
    try:
        own.up(kafka=True, segment_store=True)
        yield own.home
    finally:
        own.down(purge=True)


@pytest.fixture
def kafka_stack(kafka_home: Path) -> StackState:
    """All of it runs."""
    return Stack(kafka_home).up(kafka=True)


@pytest.fixture
def clicks(kafka_stack: StackState) -> Iterator[Clicks]:
    """A table with two replicas and a peer scheme; 500 rows make a segment."""
    from kafka.admin import KafkaAdminClient, NewTopic

    name = f"clicks{uuid.uuid4().hex[:8]}"
    admin = KafkaAdminClient(bootstrap_servers=kafka_stack.kafka_bootstrap)
    try:
        admin.create_topics([NewTopic(name, num_partitions=2, replication_factor=1)])
    finally:
        admin.close()
    with httpx.Client(base_url=kafka_stack.controller_url, timeout=30, trust_env=False) as controller:
        controller.post("/schemas", json=schema(name)).raise_for_status()
        made = controller.post("/tables", json=table_config(name, kafka_stack.kafka_bootstrap))
        assert made.status_code == 200, made.text
        with RealtimePinot(PinotConnection(kafka_stack.controller_url)) as pinot:
            yield Clicks(kafka_stack, name, pinot)
        controller.delete(f"/tables/{name}", params={"type": "realtime"}).raise_for_status()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerCluster]:
    """A real controller of 1.5.1, with stand-ins for its servers."""
    with ControllerCluster(tmp_path_factory.mktemp("controller")) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PauselessCluster]:
    """A pauseless cluster for all that leave it as it was; `whole` has it whole."""
    with pauseless_cluster(tmp_path_factory.mktemp("pauseless"), exporters=Exporters()) as cluster:
        yield cluster


@pytest.fixture
def whole(shared: PauselessCluster) -> PauselessCluster:
    """The same with both its servers well, whatever the test before it did to them."""
    for server in shared.servers:
        server.open_gate()
        if server.process is not None and not shared.stored:
            server.kill()
    shared.stored = True
    for server in shared.servers:
        if server.process is None:
            shared.start(server)
    shared.until_ready()
    return shared


@pytest.fixture
def zookeeper(cluster: ControllerCluster) -> Iterator[KazooClient]:
    client = KazooClient(cluster.zookeeper)
    client.start(timeout=15)
    yield client
    client.stop()
    client.close()
