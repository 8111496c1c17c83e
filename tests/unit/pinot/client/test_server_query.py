"""The query door of a server, against a server of gRPC's own that records what it is asked."""

from __future__ import annotations

import ssl
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from fakes.certificates import Authority

from pinot_assets.core.connections import BasicAuth, GrpcDoor, PinotConnection, Timeouts, Tls
from pinot_assets.core.untrusted import ANSWER
from pinot_assets.errors import PinotError, PinotUnreachable, SpecError
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.pinot.client import server_query
from pinot_assets.pinot.client.server_query import _METHOD, _REQUEST, _RESPONSE, ask_server

PINOT = PinotConnection("http://127.0.0.1:9000")


def counted(rows: int, queried: int, invalid: int = 0) -> bytes:
    """A DataTable with one LONG."""
    schema = struct.pack(">i", 1) + struct.pack(">i", 1) + b"c" + struct.pack(">i", 4) + b"LONG"
    header, at = struct.pack(">3i", 4, 1, 1), 13 * 4
    sections = [struct.pack(">i", 0), b"", schema, struct.pack(">q", rows), b""]
    for section in sections:
        header += struct.pack(">2i", at, len(section))
        at += len(section)
    told = struct.pack(">5i", 2, 5, queried, 21, invalid)
    return header + b"".join(sections) + struct.pack(">i", len(told)) + told


class Server:
    """Answers every query with one payload; `asked` has the requests."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.asked: list[Any] = []
        self.payload = counted(7, 1)
        self.slow = 0.0
        self.times, self.sent = 1, 0
        self._server = grpc.server(ThreadPoolExecutor(4))
        handler = grpc.unary_stream_rpc_method_handler(
            self._submit, request_deserializer=_REQUEST.FromString, response_serializer=bytes
        )
        service, _, method = _METHOD.lstrip("/").partition("/")
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {method: handler}),)
        )
        if certificate is None:
            self.port = self._server.add_insecure_port("127.0.0.1:0")
        else:
            content = certificate.read_bytes()  # key and certificate
            credentials = grpc.ssl_server_credentials([(content, content)])
            self.port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self.address = f"127.0.0.1:{self.port}"
        self._server.start()

    def _submit(self, request: Any, _: Any) -> Iterator[bytes]:
        self.asked.append(request)
        time.sleep(self.slow)
        for _ in range(self.times):
            self.sent += 1
            yield _RESPONSE(payload=self.payload).SerializeToString()

    def stop(self) -> None:
        self._server.stop(None).wait()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


def test_a_server_is_asked_for_the_named_segments(server: Server) -> None:
    assert ask_server(server.address, "SELECT 1", ["a"], PINOT).rows == ((7,),)
    [asked] = server.asked
    assert (asked.sql, list(asked.segments), asked.metadata["payloadType"]) == ("SELECT 1", ["a"], "sql")


@pytest.mark.parametrize(
    ("host", "address"), [("pinot-1", "pinot-1:8090"), ("10.0.0.1", "10.0.0.1:8090"), ("::1", "[::1]:8090")]
)
def test_a_server_is_asked_at_its_host(host: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(server_query, "ask_server", lambda address, *_: asked.append(address))
    config = {"hostName": f"Server_{host}", "grpcPort": "8090", "adminPort": 8097}
    monkeypatch.setattr(HttpPinotClient, "instance", lambda *_: config)
    HttpPinotClient(PINOT).query_server("Server_x", "SELECT 1", ["a"])
    assert asked == [address]
    assert HttpPinotClient(PINOT)._admin_url("Server_x") == f"http://{address.replace('8090', '8097')}"


def test_answers_without_end_are_left(server: Server) -> None:
    server.payload, server.times = b"x" * (1 << 20), 10_000
    with pytest.raises(PinotError, match="several answers to one query"):
        ask_server(server.address, "SELECT 1", ["a"], PINOT)
    assert server.sent < 1000


def test_an_answer_larger_than_is_read_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ANSWER.variable, "1")
    server.payload = b"x" * (2 << 20)
    with pytest.raises(PinotError, match="RESOURCE_EXHAUSTED"):
        ask_server(server.address, "SELECT 1", ["a"], PINOT)


def test_every_query_has_a_number_of_its_own(server: Server) -> None:
    """Pinot accounts for queries, and ends them, by broker and number."""
    for _ in range(5):
        ask_server(server.address, "SELECT 1", ["a"], PINOT)
    numbers = {int(asked.metadata["requestId"]) for asked in server.asked}
    assert len(numbers) == 5
    assert all(0 <= number < 2**63 for number in numbers)


def test_no_proxy_of_the_environment_is_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "no_grpc_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert ask_server(server.address, "SELECT 1", ["a"], PINOT).rows == ((7,),)


def test_segments_that_a_server_counts_and_leaves_out_are_told(server: Server) -> None:
    server.payload = counted(7, 2, invalid=1)
    with pytest.raises(PinotError, match="left 1 of 2 segments out") as refused:
        ask_server(server.address, "SELECT 1", ["a", "b"], PINOT)
    assert "reload" in str(refused.value.hint)


def test_a_query_may_take_longer_than_another_call(server: Server) -> None:
    server.slow = 0.5
    patient = PinotConnection(PINOT.controller_url, timeouts=Timeouts(call=0.1))
    assert ask_server(server.address, "SELECT 1", ["a"], patient).rows == ((7,),)
    hurried = PinotConnection(PINOT.controller_url, timeouts=Timeouts(query=0.1))
    with pytest.raises(PinotUnreachable, match="did not answer by gRPC"):
        ask_server(server.address, "SELECT 1", ["a"], hurried)


def test_a_server_gives_up_before_it_is_given_up() -> None:
    assert Timeouts().query > 15  # pinot.server.query.executor.timeout


@pytest.mark.parametrize("url", ["https://pinot:9000", "HTTPS://pinot:9000"])
def test_credentials_go_nowhere_unencrypted_where_the_controller_has_tls(server: Server, url: str) -> None:
    secure = PinotConnection(url, auth=BasicAuth("u", "secret"), timeouts=Timeouts(query=1))
    with pytest.raises(PinotUnreachable) as refused:
        ask_server(server.address, "SELECT 1", ["a"], secure)
    assert server.asked == []
    assert "TLS" in str(refused.value.hint)


def test_what_the_system_trusts_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by HTTP; gRPC alone would look into a list of its own."""
    (tmp_path / "system.pem").write_bytes(b"the system's")
    monkeypatch.setenv(ssl.get_default_verify_paths().openssl_cafile_env, str(tmp_path / "system.pem"))
    trusted: list[Any] = []
    monkeypatch.setattr(grpc, "ssl_channel_credentials", lambda *given: trusted.append(given[0]))
    monkeypatch.setattr(grpc, "secure_channel", lambda *_: grpc.insecure_channel("127.0.0.1:1"))
    with pytest.raises(PinotUnreachable):
        ask_server("127.0.0.1:1", "SELECT 1", ["a"], PinotConnection("https://pinot:9000"))
    assert trusted == [b"the system's"]


def test_a_certificate_that_is_not_there_is_named(tmp_path: Path) -> None:
    tls = Tls(ca_bundle=str(tmp_path / "ca.pem"))
    with pytest.raises(SpecError, match=r"ca\.pem"):
        ask_server("127.0.0.1:1", "SELECT 1", ["a"], PinotConnection("https://pinot:9000", tls=tls))


@pytest.mark.parametrize("tls", [Tls(verify=False), Tls(ca_bundle="/no such.pem")])
def test_settings_that_ask_nobody_are_found_without_asking(tls: Tls) -> None:
    with pytest.raises(SpecError):
        HttpPinotClient(PinotConnection("https://127.0.0.1:1", tls=tls)).require_server_queries()
    HttpPinotClient(PinotConnection("https://127.0.0.1:1")).require_server_queries()
    HttpPinotClient(PinotConnection("http://127.0.0.1:1")).require_server_queries()


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Server]:
    """A server with a certificate for 127.0.0.1, of an authority whose own is `ours.pem`."""
    Authority(tmp_path, "ours").issue("server")
    Authority(tmp_path, "other")
    server = Server(tmp_path / "server.pem")
    yield server
    server.stop()


def through(door: GrpcDoor, url: str = "http://127.0.0.1:9000", **more: Any) -> PinotConnection:
    return PinotConnection(url, timeouts=Timeouts(query=5), grpc=door, **more)


def test_servers_have_a_certificate_of_their_own(secured: Server, tmp_path: Path) -> None:
    """Whatever the controller speaks."""
    for url in ("http://127.0.0.1:9000", "https://127.0.0.1:9000"):
        ours = through(GrpcDoor(True, Tls(str(tmp_path / "ours.pem"))), url, tls=Tls("no such.pem"))
        assert ask_server(secured.address, "SELECT 1", ["a"], ours).rows == ((7,),)


def test_the_controllers_authority_is_trusted_where_there_is_no_other(
    secured: Server, tmp_path: Path
) -> None:
    ours = through(GrpcDoor(True), tls=Tls(str(tmp_path / "ours.pem")))
    assert ask_server(secured.address, "SELECT 1", ["a"], ours).rows == ((7,),)


def test_a_certificate_of_another_authority_is_not_trusted(secured: Server, tmp_path: Path) -> None:
    other = through(GrpcDoor(True, Tls(str(tmp_path / "other.pem"))), auth=BasicAuth("u", "secret"))
    with pytest.raises(PinotUnreachable) as refused:
        ask_server(secured.address, "SELECT 1", ["a"], other)
    assert "PINOT_GRPC_CA_BUNDLE" in str(refused.value.hint)
    assert secured.asked == []


def test_a_certificate_made_out_to_another_name(secured: Server, tmp_path: Path) -> None:
    tls, address = Tls(str(tmp_path / "ours.pem")), f"localhost:{secured.port}"
    with pytest.raises(PinotUnreachable):
        ask_server(address, "SELECT 1", ["a"], through(GrpcDoor(True, tls)))
    named = through(GrpcDoor(True, tls, "127.0.0.1"))
    assert ask_server(address, "SELECT 1", ["a"], named).rows == ((7,),)


def test_a_server_without_tls_behind_a_controller_with_it(server: Server) -> None:
    plain = through(GrpcDoor(False), "https://127.0.0.1:9000")
    assert ask_server(server.address, "SELECT 1", ["a"], plain).rows == ((7,),)
