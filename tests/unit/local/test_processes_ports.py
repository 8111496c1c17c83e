"""Free ports are free, taken ones are told with their holder."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator

import pytest

from pinot_assets.errors import LocalStackError
from pinot_assets.local import processes


@pytest.fixture(params=["127.0.0.1", "0.0.0.0"])
def taken(request: pytest.FixtureRequest) -> Iterator[int]:
    with socket.create_server((request.param, 0)) as server:
        yield server.getsockname()[1]


def test_a_picked_port_can_be_listened_on_and_is_no_outgoing_one() -> None:
    port = processes.free_port(())
    assert port in processes._RANGE
    with socket.create_server(("127.0.0.1", port)):
        assert not processes.is_free_port(port)
    assert processes.is_free_port(port)


@pytest.mark.parametrize(
    ("outgoing", "ports"),
    [
        ("32768\t60999\n", range(20_000, 32_000)),
        ("30000\t60999\n", range(20_000, 30_000)),
        ("16000\t65535\n", range(8_000, 16_000)),
        ("1024\t65535\n", range(20_000, 32_000)),
        ("", range(20_000, 32_000)),
    ],
)
def test_outgoing_connections_do_not_take_the_ports_of_parts_that_are_down(
    outgoing: str, ports: range
) -> None:
    assert processes.port_range(outgoing) == ports


def test_a_port_that_someone_listens_on_is_taken_and_its_holder_named(taken: int) -> None:
    assert not processes.is_free_port(taken)
    assert str(os.getpid()) in processes.port_holder(taken)


def test_no_port_is_picked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_RANDOM", random.Random())
    monkeypatch.setattr(processes, "_RANGE", range(20_000, 20_001))
    monkeypatch.setattr(processes, "is_free_port", lambda port: True)
    assert processes.free_port(()) == 20_000
    with pytest.raises(LocalStackError, match="no free port"):
        processes.free_port({20_000})
