"""Addresses in the instance configs that Helix keeps, of Pinot 0.11 and 1.5."""

from __future__ import annotations

import json

import pytest

from pinot_assets.core.untrusted import DEEPEST, NODE_BYTES
from pinot_assets.zookeeper import addresses_in


def record(**fields: str) -> bytes:
    return json.dumps({"id": "x", "simpleFields": fields, "mapFields": {}, "listFields": {}}).encode()


@pytest.mark.parametrize(
    ("name", "fields", "addresses"),
    [
        (
            "Server_Host_8098",
            {"HELIX_HOST": "Host", "HELIX_PORT": "8098", "adminPort": "8097", "grpcPort": "8090"},
            {"host:8098", "host:8097", "host:8090"},
        ),
        ("Server_h_1", {"HELIX_HOST": "Server_h", "HELIX_PORT": "1", "grpcPort": "-1"}, {"h:1"}),
        ("Broker_::1_8099", {"HELIX_HOST": "::1", "HELIX_PORT": "8099"}, {"[::1]:8099"}),
        ("Broker_b_80", {"HELIX_HOST": "b", "HELIX_PORT": "80", "TLS_PORT": "443"}, {"b:80", "b:443"}),
        ("Controller_c_9000", {"HELIX_HOST": "c", "HELIX_PORT": "9000"}, {"c:9000"}),
        ("Minion_m_9514", {"HELIX_HOST": "m", "HELIX_PORT": "9514"}, set()),
        ("Server_h_1", {"HELIX_PORT": "1"}, set()),
    ],
)
def test_every_door_of_an_instance(name: str, fields: dict[str, str], addresses: set[str]) -> None:
    assert set(addresses_in(name, record(**fields))) == addresses


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b'{"simpleFields": []}', b"[" * 100_000, b"\xff"]
)
def test_what_is_no_record_names_nothing(data: bytes) -> None:
    assert list(addresses_in("Server_h_1", data)) == []


@pytest.mark.parametrize("padding", ["x" * NODE_BYTES, "deep"], ids=["large", "deep"])
def test_a_node_larger_or_deeper_than_what_is_read_names_nothing(padding: str) -> None:
    deep: object = padding
    for _ in range(DEEPEST + 1 if padding == "deep" else 0):
        deep = [deep]
    data = json.dumps({"simpleFields": {"HELIX_HOST": "h", "HELIX_PORT": "1"}, "listFields": deep}).encode()
    assert list(addresses_in("Server_h_1", data)) == []


@pytest.mark.parametrize("port", ["²", "9" * 5000, "٣", "-1", ""])
def test_a_port_that_is_no_number_is_none(port: str) -> None:
    """One server that writes such a node must not keep all commands from all addresses."""
    fields = {"HELIX_HOST": "h", "HELIX_PORT": "1", "grpcPort": port}
    data = json.dumps({"simpleFields": fields}).encode()
    assert list(addresses_in("Server_h_1", data)) == ["h:1"]
