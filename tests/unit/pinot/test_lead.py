from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from pinot_assets.pinot import PinotConnection
from pinot_assets.pinot.http import Doors
from pinot_assets.pinot.lead import Leads, lead_of

ONE, TWO = "http://one:9000", "http://two:9000"
STAT = {"czxid": 77, "ctime": 1_700_000_000_000, "mzxid": 80}


class Cluster:
    """Controllers by host: path → answer; hosts that are not there refuse connections."""

    def __init__(self, **answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def leads(self) -> Leads:
        return Leads(Doors(PinotConnection(ONE), httpx.MockTransport(self._answer)))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.url.host}{request.url.path}")
        if request.url.host not in self.answers:
            raise httpx.ConnectError("refused", request=request)
        answer = self.answers[request.url.host].get(request.url.path)
        return httpx.Response(404) if answer is None else httpx.Response(200, text=json.dumps(answer))


def of_leader(name: str | None) -> dict[str, Any]:
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


def test_a_lead_that_cannot_be_reached_is_tried_once() -> None:
    cluster = controllers("Controller_two_9000", *SEVERAL)
    leads = cluster.leads()
    assert [leads.of("t"), leads.of("t")] == [ONE, ONE]
    assert 1 <= sum(asked.startswith("two") for asked in cluster.asked) <= 3  # and its quick retries


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


@pytest.mark.parametrize("reply", [None, {}, {"leadControllerEntryMap": {}}])
def test_no_answer_names_nobody(reply: Any) -> None:
    assert lead_of(reply, "http") is None
