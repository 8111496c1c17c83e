"""The real stack, on its own so that it may be broken: up, found, killed, repaired, down, up again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import httpx
import psutil
import pytest
from botocore.exceptions import ClientError
from kazoo.client import KazooClient

from pinot_assets.local.processes import forget_instance
from pinot_assets.local.stack import PartStatus, Stack
from pinot_assets.settings.local_stack import StackState, load_state

pytestmark = pytest.mark.integration

TABLE = {
    "tableName": "kept",
    "tableType": "OFFLINE",
    "segmentsConfig": {"schemaName": "kept", "replication": "2"},
    "tenants": {},
    "tableIndexConfig": {},
    "metadata": {},
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("own"))
    try:
        stack.up()
        yield stack
    finally:
        stack.purge()


def parts(stack: Stack) -> dict[str, PartStatus]:
    return {part.name: part for part in stack.status()}


def address(stack: Stack) -> StackState:
    state = load_state(stack.home)
    assert state is not None
    return state


@contextmanager
def zookeeper(state: StackState) -> Iterator[KazooClient]:
    client = KazooClient(state.zookeeper)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def kill(part: PartStatus) -> int:
    assert part.pid is not None
    os.kill(part.pid, signal.SIGKILL)
    return part.pid


def create_table(state: StackState) -> None:
    """Works only when brokers and servers are registered and tagged."""
    schema = {"schemaName": "kept", "dimensionFieldSpecs": [{"name": "a", "dataType": "STRING"}]}
    with httpx.Client(base_url=state.controller_url, timeout=30) as controller:
        controller.post("/schemas", json=schema).raise_for_status()
        controller.post("/tables", json=TABLE).raise_for_status()


def assert_serves(state: StackState) -> None:
    """Every broker answers for the table, once it has heard of it."""
    for broker in state.broker_urls:
        deadline = time.monotonic() + 30
        while True:
            answer = httpx.post(
                f"{broker}/query/sql", json={"sql": "select count(*) from kept"}, timeout=30
            ).json()
            if answer.get("exceptions") == [] or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        assert answer["exceptions"] == []


def listening(pid: int) -> dict[int, str]:
    connections = psutil.Process(pid).net_connections("tcp")
    return {c.laddr.port: c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}


def test_everything_is_ready_and_listens_on_loopback_where_it_can_be_told(own: Stack) -> None:
    own_parts = parts(own)
    assert {name for name, part in own_parts.items() if part.state == "ready"} == {
        "zookeeper", "controller", "broker-1", "broker-2", "server-1", "server-2",
    }  # fmt: skip
    for part in own_parts.values():
        if part.pid is None:
            continue
        doors = listening(part.pid)
        assert set(part.ports.values()) == set(doors)
        open_to_all = {port for port, ip in doors.items() if ip not in ("127.0.0.1", "::ffff:127.0.0.1")}
        assert open_to_all <= {part.ports.get("netty"), part.ports.get("grpc")}


def test_a_second_up_finds_the_first(own: Stack) -> None:
    before, state = parts(own), address(own)
    assert Stack(own.home).up() == state
    assert parts(own) == before


def test_up_repairs_after_kill_9_and_nothing_is_forgotten(own: Stack) -> None:
    state, before = address(own), parts(own)
    create_table(state)
    with zookeeper(state) as client:
        client.create("/kept", b"value")
        broker = kill(before["broker-2"])
        live = set(client.get_children("/pinot/LIVEINSTANCES"))
        forget_instance(state.zookeeper, broker)
        assert live - set(client.get_children("/pinot/LIVEINSTANCES")) == {
            f"Broker_127.0.0.1_{before['broker-2'].ports['http']}"
        }
    kill(before["server-1"])
    kill(before["zookeeper"])
    killed = {"server-1", "broker-2", "zookeeper"}
    while {name for name, part in parts(own).items() if part.state == "dead"} != killed:
        time.sleep(0.1)

    assert own.up() == state
    after = parts(own)
    assert {name for name in after if after[name].pid != before[name].pid} == killed
    with zookeeper(state) as client:
        assert client.get("/kept")[0] == b"value"
    assert_serves(state)


def test_down_leaves_others_alone_and_a_later_up_has_the_data(own: Stack) -> None:
    state, before = address(own), parts(own)
    sleep = [sys.executable, "-c", "import time; time.sleep(300)"]
    with subprocess.Popen([*sleep, "-Dpinot.assets.part=another/server-1"]) as foreign:
        try:
            own.down()
            assert foreign.poll() is None
        finally:
            foreign.kill()
    assert load_state(own.home) is None
    for part in before.values():
        if part.pid is not None:
            assert not psutil.pid_exists(part.pid) or psutil.Process(part.pid).status() == "zombie"

    with_s3_and_kafka = own.up(kafka=True, s3=True)
    optional = {"kafka_bootstrap": None, "s3_endpoint": None, "s3_access_key": None, "s3_secret_key": None}
    assert replace(with_s3_and_kafka, **optional) == state
    assert_serves(state)
    assert_s3_serves_its_key_only(with_s3_and_kafka)
    for name in ("kafka", "s3"):
        pid = parts(own)[name].pid
        assert pid is not None
        assert set(listening(pid).values()) <= {"127.0.0.1", "::ffff:127.0.0.1"}


def assert_s3_serves_its_key_only(state: StackState) -> None:
    assert state.s3_access_key is not None

    def client(secret: str | None) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=state.s3_endpoint,
            aws_access_key_id=state.s3_access_key,
            aws_secret_access_key=secret,
            region_name="us-east-1",
        )

    good = client(state.s3_secret_key)
    good.create_bucket(Bucket="bucket")
    good.put_object(Bucket="bucket", Key="a/b.txt", Body=b"x")
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        client("wrong").get_object(Bucket="bucket", Key="a/b.txt")


def test_the_home_shows_no_secret_to_others(own: Stack) -> None:
    secret = address(own).s3_secret_key
    assert secret is not None
    files = [path for folder in (own.home, own.home / "conf", own.home / "logs") for path in _files(folder)]
    holding = [path for path in files if secret in path.read_text(errors="replace")]
    assert own.home / "state.json" in holding
    assert {path.stat().st_mode & 0o077 for path in holding} == {0}
    for part in own.status():
        assert part.pid is None or secret not in " ".join(psutil.Process(part.pid).cmdline())


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()]
