"""Credentials go only to addresses that were configured, or that the configured ZooKeeper names."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import httpx
import pytest

from pinot_assets.errors import PinotError, SessionError
from pinot_assets.pinot import BasicAuth, HttpPinotClient, PinotConnection, TokenAuth
from pinot_assets.pinot.client.client_pool import LOOK_AGAIN_SECONDS, Guard

HTTP, HTTPS = "http://one:9000", "https://one:9000"
AUTH = BasicAuth("ada", "s3cret")


class ZooKeeper:
    """Names instances, and counts how often it is asked."""

    def __init__(self, *addresses: str) -> None:
        self.named, self.asked, self.down = frozenset(addresses), 0, False

    def addresses(self) -> frozenset[str]:
        self.asked += 1
        if self.down:
            raise SessionError("ZooKeeper at zk:2181 does not answer")
        return self.named


def guard(url: str = HTTP, **connection: Any) -> Guard:
    return Guard(PinotConnection(url, auth=AUTH, **connection))


class Network:
    """Answers everybody who asks anything, and remembers who was given credentials."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {f"/{path}": answer for path, answer in answers.items()}
        self.given: set[str] = set()

    def cluster(self, **connection: Any) -> HttpPinotClient:
        return HttpPinotClient(PinotConnection(HTTP, **connection), httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if "Authorization" in request.headers:
            self.given.add(f"{request.url.host}:{request.url.port}")
        for path, answer in self.answers.items():
            if request.url.host == "one" and request.url.path.startswith(path):
                return httpx.Response(200, json=answer)
        return httpx.Response(200, json={})


SERVER = {"hostName": "Server_evil", "adminPort": "8097", "grpcPort": "8090"}
IDEAL = {"OFFLINE": {"s": {"Server_evil_8098": "ONLINE"}}}
TOLD = {"instances": SERVER, "tables": IDEAL, "v2": [{"host": "evil", "port": 8099}]}


def ask_admin(pinot: HttpPinotClient) -> object:
    return pinot.ask_server("Server_evil_8098", "/health")


def ask_rows(pinot: HttpPinotClient) -> object:
    return pinot.rows_on_servers("t", ["s"], ["Server_evil_8098"])


def ask_grpc(pinot: HttpPinotClient) -> object:
    return pinot.query_server("Server_evil_8098", "SELECT 1", ["s"])


def ask_broker(pinot: HttpPinotClient) -> object:
    (broker,) = pinot.brokers("t")
    return pinot.query_broker(broker, "SELECT 1")


ASK = [ask_admin, ask_rows, ask_grpc, ask_broker]


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("auth", [AUTH, TokenAuth("s3cret")])
def test_an_address_that_only_the_controller_names_gets_none(ask: Any, auth: Any) -> None:
    network = Network(**TOLD)
    with (
        network.cluster(auth=auth, instances=ZooKeeper("good:8097")) as pinot,
        pytest.raises(PinotError, match="Pinot's credentials are not sent to evil:80") as caught,
    ):
        ask(pinot)
    assert "ZooKeeper has no such instance" in str(caught.value.why)
    assert "PINOT_ADDRESSES" in str(caught.value.hint)
    assert network.given == {"one:9000"}


@pytest.mark.parametrize("ask", [ask_admin, ask_rows, ask_broker])
@pytest.mark.parametrize(
    "known",
    [
        {"instances": ZooKeeper("evil:8097", "evil:8099")},
        {"addresses": ("evil:8097", "evil:8099")},
    ],
)
def test_one_that_zookeeper_or_the_installation_names_is_asked(ask: Any, known: Any) -> None:
    network = Network(**TOLD)
    # The answers here say nothing.
    with network.cluster(auth=AUTH, **known) as pinot, suppress(PinotError, KeyError):
        ask(pinot)
    assert len(network.given) == 2


def test_without_credentials_anybody_is_asked() -> None:
    open_guard = Guard(PinotConnection(HTTP, instances=ZooKeeper()))
    assert open_guard.refusal("http://anybody:1") is None


def test_what_is_configured_needs_no_zookeeper() -> None:
    zookeeper = ZooKeeper()
    configured = guard(instances=zookeeper, broker_urls=("http://gate/",))
    assert configured.refusal(HTTP) is configured.refusal("http://gate:80") is None
    assert zookeeper.asked == 0
    assert configured.refusal("http://gate:81") is not None


def test_another_port_of_a_named_host_is_another_address() -> None:
    named = guard(instances=ZooKeeper("good:8098"))
    assert named.refusal("http://GOOD:8098") is None
    assert named.refusal("http://good:9999") is not None


def test_plain_text_gets_none_where_the_controller_speaks_tls() -> None:
    named = guard(HTTPS, instances=ZooKeeper("good:8098"), addresses=("good:8098",))
    assert named.refusal("https://good:8098") is None
    refusal = named.refusal("http://good:8098")
    assert refusal is not None
    assert "uses TLS" in str(refusal.why)
    assert "http://good:8098" in str(refusal.hint)
    allowed = guard(HTTPS, broker_urls=("http://good:8098",))
    assert allowed.refusal("http://good:8098") is None


def test_what_a_distant_controller_calls_itself_is_not_this_machine() -> None:
    zookeeper = ZooKeeper("127.0.0.1:8098")
    assert guard(instances=zookeeper).refusal("http://127.0.0.1:8098") is not None
    assert guard("http://localhost:9000", instances=zookeeper).refusal("http://127.0.0.1:8098") is None


def test_a_zookeeper_that_does_not_answer_names_nobody_and_says_so() -> None:
    zookeeper = ZooKeeper("good:8098")
    zookeeper.down = True
    refusal = guard(instances=zookeeper).refusal("http://good:8098")
    assert refusal is not None
    assert "ZooKeeper at zk:2181 does not answer" in str(refusal.why)
    assert "add good:8098 to PINOT_ADDRESSES" in str(refusal.hint)
    assert "s3cret" not in str(refusal)


def test_zookeeper_is_read_once_and_again_for_one_that_may_have_joined() -> None:
    now, zookeeper = [0.0], ZooKeeper("a:1", "b:1")
    slow = Guard(PinotConnection(HTTP, auth=AUTH, instances=zookeeper), lambda: now[0])
    assert [slow.refusal(f"http://{one}:1") for one in "aabb"] == [None] * 4
    assert zookeeper.asked == 1
    zookeeper.named |= {"c:1"}
    assert slow.refusal("http://c:1") is not None
    now[0] += LOOK_AGAIN_SECONDS
    assert slow.refusal("http://c:1") is None
    assert zookeeper.asked == 2


@pytest.mark.parametrize(
    "url", ["http://evil\\@good:8098", "http://dns:evil%00@good:8098", "http://good:8098\t"]
)
def test_an_address_in_which_two_readers_find_two_hosts_gets_none(url: str) -> None:
    named = guard(
        instances=ZooKeeper("good:8098"), addresses=("good:8098",), broker_urls=("http://good:8098",)
    )
    assert named.refusal(url) is not None
    assert named.refusal("http://good:8098") is None
