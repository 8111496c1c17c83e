from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError, PinotUnreachable
from pinot_assets.pinot import Broker, NoResult, PinotConnection, QueryResult
from pinot_assets.pinot.client.client_pool import ClientPool

URL = "http://127.0.0.1:8099"
GOOD: JsonObject = {
    "resultTable": {
        "dataSchema": {"columnNames": ["carrier", "count(*)"], "columnDataTypes": ["STRING", "LONG"]},
        "rows": [["UA", 5], ["AA", 2]],
    },
    "exceptions": [],
    "numServersQueried": 2,
    "numServersResponded": 2,
    "numGroupsLimitReached": False,
    "numSegmentsPrunedInvalid": 0,
    "totalDocs": 7,
}


def broker(reply: Any, asked: list[httpx.Request] | None = None) -> Broker:
    def answer(request: httpx.Request) -> httpx.Response:
        if asked is not None:
            asked.append(request)
        return httpx.Response(200, json=reply)

    return Broker(URL, ClientPool(PinotConnection("http://127.0.0.1:9000"), httpx.MockTransport(answer)))


def test_a_whole_answer() -> None:
    asked: list[httpx.Request] = []
    result = broker(GOOD, asked).query("SELECT 1", {"timeoutMs": "500", "useMultistageEngine": "false"})
    assert result == QueryResult(
        columns=("carrier", "count(*)"),
        types=("STRING", "LONG"),
        rows=(("UA", 5), ("AA", 2)),
        servers=2,
        total_docs=7,
    )
    assert json.loads(asked[0].content) == {
        "sql": "SELECT 1",
        "queryOptions": "timeoutMs=500;useMultistageEngine=false",
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"exceptions": [{"errorCode": 305, "message": "2 segments unavailable"}]},
            "305 2 segments unavailable",
        ),
        ({"numServersResponded": 1}, "1 of 2 servers answered"),
        ({"partialResult": True}, "partial"),
        ({"numGroupsLimitReached": True}, "numGroupsLimit"),
        ({"groupsTrimmed": True}, "cut off the groups"),
        ({"numSegmentsPrunedInvalid": 2}, "left 2 segments out"),
    ],
)
def test_a_part_of_an_answer_is_an_error(change: JsonObject, told: str) -> None:
    with pytest.raises(PinotError, match=told):
        broker({**GOOD, **change}).query("SELECT 1")


def test_a_person_is_shown_a_part() -> None:
    asked: list[httpx.Request] = []
    answer = broker({**GOOD, "numServersResponded": 1}, asked).ask("SELECT 1", {"timeoutMs": "1"}, 5.0)
    assert (answer.rows, answer.servers_answered) == ((("UA", 5), ("AA", 2)), 1)
    assert json.loads(asked[0].content) == {"sql": "SELECT 1", "queryOptions": "timeoutMs=1"}


def test_a_person_s_query_is_sent_once() -> None:
    asked = []

    def late(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        raise httpx.ReadTimeout("late", request=request)

    one = Broker(URL, ClientPool(PinotConnection("http://127.0.0.1:9000"), httpx.MockTransport(late)))
    with pytest.raises(PinotUnreachable):
        one.ask("SELECT 1", {}, 5.0)
    assert len(asked) == 1


@pytest.mark.parametrize(
    "table", [None, {"dataSchema": {"columnNames": [], "columnDataTypes": []}, "rows": None}]
)
def test_no_result_is_an_error_of_its_own(table: JsonObject | None) -> None:
    with pytest.raises(NoResult):
        broker({**GOOD, "resultTable": table}).query("SELECT 1")


@pytest.mark.parametrize("reply", [None, [], "text"])
def test_an_answer_of_another_form_is_an_error(reply: Any) -> None:
    with pytest.raises(PinotError):
        broker(reply).query("SELECT 1")


def test_visible_segments() -> None:
    asked: list[httpx.Request] = []
    table = {
        "dataSchema": {"columnNames": ["$segmentName"], "columnDataTypes": ["STRING"]},
        "rows": [["a"], ["b"]],
    }
    assert broker({**GOOD, "resultTable": table}, asked).visible_segments("t", 2) == {"a", "b"}
    assert json.loads(asked[0].content)["sql"] == 'SELECT DISTINCT $segmentName FROM "t_OFFLINE" LIMIT 102'


def test_an_answer_with_as_many_segments_as_were_asked_for_may_lack_some() -> None:
    """A broker whose limit is lower refuses a larger one, so no more are asked for than there may be."""
    schema = {"columnNames": ["$segmentName"], "columnDataTypes": ["STRING"]}

    def shown(number: int) -> Any:
        table = {"dataSchema": schema, "rows": [[f"s{n}"] for n in range(number)]}
        return broker({**GOOD, "resultTable": table}).visible_segments("t", 5)

    assert len(shown(104)) == 104
    with pytest.raises(PinotError, match="it shows 105 segments or more, and the table has 5"):
        shown(105)


def test_an_empty_table_shows_nothing() -> None:
    nothing = {**GOOD, "resultTable": None, "numServersQueried": 0, "numServersResponded": 0}
    assert broker(nothing).visible_segments("t", 2) == frozenset()


def test_a_broker_without_routing_shows_nothing_and_answers_no_query() -> None:
    unrouted = broker({"exceptions": [{"errorCode": 190, "message": "TableDoesNotExistError"}]})
    assert unrouted.visible_segments("t", 2) == frozenset()
    with pytest.raises(NoResult, match="190 TableDoesNotExistError"):
        unrouted.query("SELECT 1")


def test_visible_segments_of_a_broken_broker_is_an_error_not_nothing() -> None:
    with pytest.raises(PinotError, match="427"):
        broker({"exceptions": [{"errorCode": 427, "message": "1 servers not responded"}]}).visible_segments(
            "t", 2
        )


def test_rebuild_routing() -> None:
    asked: list[httpx.Request] = []
    broker("Success", asked).rebuild_routing("t")
    assert (asked[0].method, asked[0].url.path) == ("PUT", "/routing/t_OFFLINE")
