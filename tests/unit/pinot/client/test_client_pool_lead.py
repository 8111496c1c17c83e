from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot import BasicAuth, PinotConnection, Tls, TokenAuth
from pinot_assets.pinot.client.client_pool import TRY_AGAIN_SECONDS, ClientPool, LeadControllers, lead_of

ONE, TWO = "http://one:9000", "http://two:9000"
STAT = {"czxid": 77, "ctime": 1_700_000_000_000, "mzxid": 80}


class Cluster:
    """Controllers by host: path → answer; hosts that are not there refuse connections."""

    def __init__(self, **answers: JsonObject) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.now = 0.0

    def leads(self, url: str = ONE, **connection: Any) -> LeadControllers:
        doors = ClientPool(PinotConnection(url, **connection), httpx.MockTransport(self._answer))
        return LeadControllers(doors, lambda: self.now)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.url.host}{request.url.path}")
        if request.url.host not in self.answers:
            raise httpx.ConnectError("refused", request=request)
        answer = self.answers[request.url.host].get(request.url.path)
        return httpx.Response(404) if answer is None else httpx.Response(200, text=json.dumps(answer))


def of_leader(name: str | None) -> JsonObject:
    entry = {"leadControllerId": name, "tableNames": ["t"]}
    return {
        "leadControllerResourceEnabled": True,
        "leadControllerEntryMap": {"leadControllerResource_3": entry},
    }


def controllers(lead: str | None, *names: str, **stats: Any) -> Cluster:
    one = {
        "/instances": {"instances": [*names, "Broker_b_8099", "Server_s_8098"]},
        "/leader/tables/t": of_leader(lead),
        "/cluster/info": {"clusterName": "pinot"},
        "/zk/stat": STAT,
    }
    return Cluster(one=one, **{host: {"/zk/stat": stat} for host, stat in stats.items()})


SEVERAL = ("Controller_one_9000", "Controller_two_9000")


def test_the_lead_of_several_is_taken() -> None:
    assert controllers("Controller_two_9000", *SEVERAL, two=STAT).leads().of("t") == TWO


def test_one_controller_alone_is_the_one_that_was_configured() -> None:
    """It may stand behind a gateway that its own address leads around."""
    cluster = controllers("Controller_two_9000", "Controller_two_9000", two=STAT)
    assert cluster.leads().of("t") == ONE
    assert cluster.asked == ["one/instances"]


@pytest.mark.parametrize("stat", [{**STAT, "czxid": 78}, {**STAT, "ctime": 1}, {}, None])
def test_a_controller_of_another_cluster_is_not_taken(stat: Any) -> None:
    assert controllers("Controller_two_9000", *SEVERAL, two=stat).leads().of("t") == ONE


def test_a_lead_that_cannot_be_reached_is_not_tried_again_at_once() -> None:
    cluster = controllers("Controller_two_9000", *SEVERAL)
    leads = cluster.leads()
    assert [leads.of("t"), leads.of("t")] == [ONE, ONE]
    assert 1 <= sum(asked.startswith("two") for asked in cluster.asked) <= 3  # and its quick retries


def test_one_unlucky_moment_is_not_for_ever() -> None:
    cluster = controllers("Controller_two_9000", *SEVERAL)
    leads = cluster.leads()
    assert leads.of("t") == ONE
    cluster.answers["two"] = {"/zk/stat": STAT}
    cluster.now += TRY_AGAIN_SECONDS - 1
    assert leads.of("t") == ONE
    cluster.now += 2
    assert leads.of("t") == TWO


LOOPBACK = ["localhost", "LOCALHOST", "my.localhost", "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::"]


@pytest.mark.parametrize("host", LOOPBACK)
def test_what_a_controller_calls_localhost_is_not_asked(host: str) -> None:
    """It is another machine here, or ours."""
    cluster = controllers(f"Controller_{host}_9000", *SEVERAL, **{host.lower(): STAT})
    assert cluster.leads().of("t") == ONE
    assert {asked.partition("/")[0] for asked in cluster.asked} == {"one"}


@pytest.mark.parametrize(
    "configured", ["http://localhost:9000", "http://127.0.0.1:9000", "http://[::1]:9000"]
)
def test_on_one_machine_localhost_is_the_lead(configured: str) -> None:
    cluster = controllers("Controller_localhost_9001", *SEVERAL)
    host = str(urlsplit(configured).hostname)
    cluster.answers |= {host: cluster.answers["one"], "localhost": cluster.answers["one"]}
    assert cluster.leads(configured).of("t") == "http://localhost:9001"


class Named:
    """A ZooKeeper that names these."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = frozenset(addresses)

    def addresses(self) -> frozenset[str]:
        return self._addresses


SECURE, SECURE_TWO = "https://one:9000", "https://two:9000"


@pytest.mark.parametrize("auth", [BasicAuth("u", "secret"), TokenAuth("secret")])
def test_credentials_go_to_no_lead_that_zookeeper_does_not_name(auth: BasicAuth | TokenAuth) -> None:
    cluster = controllers("Controller_two_9000", *SEVERAL, two=STAT)
    others = Named("two:9001", "one:9000")
    assert cluster.leads(auth=auth).of("t") == ONE
    assert cluster.leads(SECURE, auth=auth, tls=Tls(verify=False)).of("t") == SECURE
    assert cluster.leads(SECURE, auth=auth, instances=others).of("t") == SECURE
    assert not any(asked.startswith("two") for asked in cluster.asked)
    assert cluster.leads(SECURE, auth=auth, instances=Named("two:9000")).of("t") == SECURE_TWO


def test_the_configured_controller_that_leads_is_not_asked_who_it_is() -> None:
    cluster = controllers("Controller_one_9000", *SEVERAL)
    assert cluster.leads(auth=TokenAuth("secret")).of("t") == ONE
    assert "one/zk/stat" not in cluster.asked


@pytest.mark.parametrize("lead", [None, "", "nobody", "Controller_two_x"])
def test_no_lead_is_the_configured_one(lead: str | None) -> None:
    assert controllers(lead, *SEVERAL, two=STAT).leads().of("t") == ONE


def test_a_controller_that_tells_nothing_is_used_as_it_is() -> None:
    assert Cluster(one={}).leads().of("t") == ONE
    assert Cluster().leads().of("t") == ONE


def test_the_lead_moves() -> None:
    cluster = controllers("Controller_two_9000", *SEVERAL, two=STAT)
    leads = cluster.leads()
    assert leads.of("t") == TWO
    cluster.answers["one"]["/leader/tables/t"] = of_leader("Controller_one_9000")
    assert leads.of("t") == ONE


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("Controller_pinot-0.pinot.svc_9000", "https://pinot-0.pinot.svc:9000"),
        ("pinot_0_9000", "https://pinot_0:9000"),  # up to some release without its prefix
        ("Controller_::1_9000", "https://[::1]:9000"),
    ],
)
def test_the_address_in_a_name(name: str, url: str) -> None:
    assert lead_of(of_leader(name), "https") == url


@pytest.mark.parametrize(
    "reply",
    [
        None,
        {},
        {"leadControllerEntryMap": {}},
        of_leader("Controller_two_²"),
        of_leader(f"Controller_two_{'9' * 20}"),
    ],
)
def test_no_answer_names_nobody(reply: Any) -> None:
    assert lead_of(reply, "http") is None
