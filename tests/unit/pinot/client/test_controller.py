from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError, PinotNotFound, SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot import HttpPinotClient, Lineage, PinotConnection, Timeouts, http_client
from pinot_assets.pinot.client.user_rights import NoRights

URL = "http://127.0.0.1:9000"
GENERIC = {"code": 500, "error": "Failed to update the segment lineage during startReplaceSegments."}

Answer = httpx.Response | Callable[[httpx.Request], httpx.Response]


def ok(value: Any = None) -> httpx.Response:
    return httpx.Response(200, text="" if value is None else json.dumps(value))


class Streaming(httpx.BaseTransport):
    """Answers by method and path; takes bodies piece by piece."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.asked: list[httpx.Request] = []
        self.chunks: list[bytes] = []
        self.cluster = HttpPinotClient(PinotConnection(URL), self)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.answers.get(f"{request.method} {request.url.path}", httpx.Response(404))
        self.chunks = list(request.stream)  # type: ignore[arg-type]
        self.asked.append(request)
        return answer(request) if callable(answer) else answer


class Pinot:
    """Answers by method and path; keeps what was asked."""

    def __init__(self, answers: dict[str, Answer], connection: PinotConnection | None = None) -> None:
        self.answers = answers
        self.asked: list[httpx.Request] = []
        self.cluster = HttpPinotClient(connection or PinotConnection(URL), httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        path = request.url.raw_path.decode().partition("?")[0]
        answer = self.answers.get(f"{request.method} {path}")
        if answer is None:
            return httpx.Response(404, json={"code": 404, "error": f"nothing at {path}"})
        return answer(request) if callable(answer) else answer


def lineage(**entries: tuple[str, str, str]) -> httpx.Response:
    return ok(
        {
            "tableNameWithType": "t_OFFLINE",
            "lineageEntries": {
                name: {"state": state, "timestamp": 1, "segmentsFrom": list(a), "segmentsTo": list(b)}
                for name, (a, b, state) in entries.items()
            },
        }
    )


def ideal(*names: str) -> httpx.Response:
    return ok({"OFFLINE": {name: {"s1": "ONLINE"} for name in names}, "REALTIME": None})


# --- lineage calls -----------------------------------------------------------------------------------


def test_start() -> None:
    pinot = Pinot({"POST /segments/t/startReplaceSegments": ok({"segmentLineageEntryId": "e1"})})
    assert pinot.cluster.start_replace_segments("t", {"b", "a"}, {"c"}) == "e1"
    (request,) = pinot.asked
    assert dict(request.url.params) == {"type": "OFFLINE"}
    # No customMap: 0.11 refuses a field that it does not know.
    assert json.loads(request.content) == {"segmentsFrom": ["a", "b"], "segmentsTo": ["c"]}


def test_only_the_forced_calls_force() -> None:
    pinot = Pinot(
        {
            "POST /segments/t/startReplaceSegments": ok({"segmentLineageEntryId": "e1"}),
            "POST /segments/t/revertReplaceSegments": ok(),
        }
    )
    pinot.cluster.force_start_replace_segments("t", [], ["c"])
    pinot.cluster.force_revert_replace_segments("t", "e1")
    pinot.cluster.revert_replace_segments("t", "e1")
    assert [dict(request.url.params) for request in pinot.asked] == [
        {"type": "OFFLINE", "forceCleanup": "true"},
        {"type": "OFFLINE", "segmentLineageEntryId": "e1", "forceRevert": "true"},
        {"type": "OFFLINE", "segmentLineageEntryId": "e1"},
    ]


def test_the_reason_of_a_refused_start_is_looked_up() -> None:
    pinot = Pinot(
        {
            "POST /segments/t/startReplaceSegments": httpx.Response(500, json=GENERIC),
            "GET /segments/t/lineage": lineage(e1=("a", "b", "IN_PROGRESS")),
            "GET /tables/t/idealstate": ideal("a", "b"),
        }
    )
    with pytest.raises(SwitchConflict) as caught:
        pinot.cluster.start_replace_segments("t", ["a"], ["x"])
    assert "entry e1 (IN_PROGRESS) overlaps; Pinot answered: Failed to update" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "path", "reason"),
    [
        (HttpPinotClient.end_replace_segments, "end", "outputs that are not in the table: c"),
        (HttpPinotClient.revert_replace_segments, "revert", "the entry is IN_PROGRESS"),
    ],
)
def test_the_reason_of_a_refused_end_or_revert_is_looked_up(
    call: Callable[[HttpPinotClient, str, str], None], path: str, reason: str
) -> None:
    pinot = Pinot(
        {
            f"POST /segments/t/{path}ReplaceSegments": httpx.Response(500, json=GENERIC),
            "GET /segments/t/lineage": lineage(e1=("a", "c", "IN_PROGRESS")),
            "GET /tables/t/idealstate": ideal("a"),
        }
    )
    with pytest.raises(SwitchConflict, match=reason):
        call(pinot.cluster, "t", "e1")


def test_a_refusal_stands_when_the_reason_cannot_be_looked_up() -> None:
    pinot = Pinot({"POST /segments/t/startReplaceSegments": httpx.Response(500, json=GENERIC)})
    with pytest.raises(SwitchConflict, match="Failed to update the segment lineage"):
        pinot.cluster.start_replace_segments("t", ["a"], ["x"])


def test_a_lost_lineage_call_is_sent_once_and_unknown() -> None:
    def lost(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("lost", request=request)

    pinot = Pinot({"POST /segments/t/endReplaceSegments": lost})
    with pytest.raises(SwitchStateUnknown, match="it may have happened, or may still happen"):
        pinot.cluster.end_replace_segments("t", "e1")
    assert len(pinot.asked) == 1


def test_end_has_a_deadline_of_its_own() -> None:
    connection = PinotConnection(URL, timeouts=Timeouts(call=1, upload=2, end=3))
    pinot = Pinot({"POST /segments/t/endReplaceSegments": ok()}, connection)
    pinot.cluster.end_replace_segments("t", "e1")
    assert 2 < pinot.asked[0].extensions["timeout"]["read"] <= 3


def test_no_lineage_is_an_empty_reply() -> None:
    assert Pinot({"GET /segments/t/lineage": ok()}).cluster.lineage("t") == Lineage()


def test_a_lineage_that_cannot_be_read_is_an_error() -> None:
    pinot = Pinot({"GET /segments/t/lineage": lineage(e1=("a", "b", "PAUSED"))})
    with pytest.raises(PinotError, match="PAUSED"):
        pinot.cluster.lineage("t")


# --- segments ----------------------------------------------------------------------------------------


def test_the_lineage_is_read_after_the_segments() -> None:
    pinot = Pinot(
        {
            "GET /tables/t/idealstate": ideal("a", "b"),
            "GET /segments/t/lineage": lineage(e1=("a", "b", "COMPLETED")),
        }
    )
    assert pinot.cluster.visible_segments("t") == {"b"}
    assert [request.url.path for request in pinot.asked] == ["/tables/t/idealstate", "/segments/t/lineage"]


def test_replicas_are_what_ought_to_be_and_what_is() -> None:
    wanted = {"a": {"s1": "ONLINE", "s2": "ONLINE"}, "b": {"s1": "ONLINE"}}
    there = {"a": {"s1": "ONLINE"}, "b": {"s1": "ERROR"}, "c": {"s3": "ONLINE"}}
    pinot = Pinot(
        {
            "GET /tables/t/idealstate": ok({"OFFLINE": wanted, "REALTIME": None}),
            "GET /tables/t/externalview": ok({"OFFLINE": there, "REALTIME": None}),
        }
    )
    assert pinot.cluster.online_replicas("t", ["a", "b", "c", "d"]) == {
        "a": {"s1": "ONLINE", "s2": "OFFLINE"},
        "b": {"s1": "ERROR"},
        "c": {"s3": "ONLINE"},
        "d": {},
    }


def test_brokers_are_settled_once_servers_have_dropped_what_was_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_client, "POLL_SECONDS", 0.0)
    shown = [{"a": {"s1": "ONLINE"}, "old": {"s1": "ONLINE"}}] * 2 + [{"a": {"s1": "ONLINE"}}]
    views = iter(shown)
    rebuilt: list[str] = []

    def rebuild(request: httpx.Request) -> httpx.Response:
        rebuilt.append(request.url.host)
        return httpx.Response(500) if request.url.host == "b1" else ok("Success")

    pinot = Pinot(
        {
            "GET /tables/t/idealstate": ok({"OFFLINE": {"a": {"s1": "ONLINE"}}, "REALTIME": None}),
            "GET /tables/t/externalview": lambda _: ok({"OFFLINE": next(views), "REALTIME": None}),
            "GET /v2/brokers/tables/t": ok([{"host": "b1", "port": 80}, {"host": "b2", "port": 80}]),
            "PUT /routing/t_OFFLINE": rebuild,
        }
    )
    pinot.cluster.settle_brokers("t", seconds=60)
    assert next(views, None) is None
    assert rebuilt == ["b1", "b2"]  # one that refuses keeps the other from nothing


def test_a_server_that_drops_nothing_is_waited_for_no_longer_than_was_said() -> None:
    stuck = {"old": {"s1": "ONLINE"}}
    pinot = Pinot(
        {
            "GET /tables/t/idealstate": ok({"OFFLINE": {}, "REALTIME": None}),
            "GET /tables/t/externalview": ok({"OFFLINE": stuck, "REALTIME": None}),
            "GET /v2/brokers/tables/t": ok([]),
        }
    )
    pinot.cluster.settle_brokers("t", seconds=0)
    assert pinot.cluster.dropping_segments("t") == {"old"}


def test_a_new_table_has_no_external_view() -> None:
    pinot = Pinot({"GET /tables/t/idealstate": ok({"OFFLINE": {}, "REALTIME": None})})
    assert pinot.cluster.online_replicas("t", ["a"]) == {"a": {}}


def test_segment_metadata() -> None:
    full = {
        "segment.crc": "3170493285",
        "segment.total.docs": "2",
        "segment.start.time": "1357016400000",
        "segment.end.time": "1357102799999",
        "segment.push.time": "1795259634335",
        "segment.download.url": "http://c/segments/t/a",
        "custom.map": '{"k":"v"}',
    }
    bare = {"segment.crc": "1", "segment.total.docs": "2", "segment.start.time": "-1"}
    pinot = Pinot(
        {"GET /segments/t_OFFLINE/a/metadata": ok(full), "GET /segments/t_OFFLINE/b/metadata": ok(bare)}
    )
    a, b = pinot.cluster.segment_metadata("t", "a"), pinot.cluster.segment_metadata("t", "b")
    assert (a.crc, a.total_docs, a.start_ms, a.end_ms) == (3170493285, 2, 1357016400000, 1357102799999)
    assert (a.download_url, a.custom) == ("http://c/segments/t/a", {"k": "v"})
    assert (b.custom, b.start_ms, b.end_ms, b.download_url) == ({}, None, None, "")


def test_names_are_quoted() -> None:
    pinot = Pinot({})
    with pytest.raises(PinotNotFound):
        pinot.cluster.segment_metadata("t", "a b/c?d#é")
    assert pinot.asked[0].url.raw_path == b"/segments/t_OFFLINE/a%20b%2Fc%3Fd%23%C3%A9/metadata"


def test_deleting_names_what_to_delete() -> None:
    pinot = Pinot({"POST /segments/t_OFFLINE/delete": ok({"status": "ok"})})
    with pytest.raises(ValueError, match="every segment"):
        pinot.cluster.delete_segments("t", [])
    assert pinot.asked == []
    pinot.cluster.delete_segments("t", {"b", "a"})
    assert json.loads(pinot.asked[0].content) == ["a", "b"]


UPLOAD = {"tableName": "t", "tableType": "OFFLINE", "allowRefresh": "false"}


def test_metadata_upload() -> None:
    pinot = Pinot({"POST /v2/segments": ok({"status": "ok"})})
    pinot.cluster.uploader("t").metadata("a", b"meta", "s3://bucket/a.tar.gz")
    request = pinot.asked[-1]
    assert dict(request.url.params) == UPLOAD
    assert request.headers["UPLOAD_TYPE"] == "METADATA"
    assert request.headers["DOWNLOAD_URI"] == "s3://bucket/a.tar.gz"
    assert request.headers["COPY_SEGMENT_TO_DEEP_STORE"] == "true"  # R9
    assert request.headers["Content-Type"].startswith("multipart/form-data")
    assert request.content.count(b"Content-Disposition") == 1
    assert b"\r\n\r\nmeta\r\n" in request.content


def test_batch_upload() -> None:
    pinot = Pinot({"POST /segments/batchUpload": ok({"status": "ok"})})
    pinot.cluster.uploader("t").batch("t-2-segments", b"both")
    request = pinot.asked[-1]
    assert dict(request.url.params) == UPLOAD  # Pinot demands table and type here
    assert request.headers["UPLOAD_TYPE"] == "METADATA"
    assert request.headers["COPY_SEGMENT_TO_DEEP_STORE"] == "true"  # R9
    assert "DOWNLOAD_URI" not in request.headers
    assert request.content.count(b"Content-Disposition") == 1
    assert b"\r\n\r\nboth\r\n" in request.content


def test_tar_upload_is_streamed(tmp_path: Path) -> None:
    """A tar is never in memory as a whole, and is whole again when the connection has to be made anew."""
    size = 8 * 1024**2
    tar = tmp_path / "a.tar.gz"
    tar.write_bytes(os.urandom(size))
    refused = [httpx.ConnectError("refused")]

    def take(request: httpx.Request) -> httpx.Response:
        if refused:
            raise refused.pop()
        return ok({"status": "ok"})

    pinot = Streaming({"POST /v2/segments": take})
    pinot.cluster.uploader("t").tar("a", tar)
    assert pinot.asked[-1].headers["UPLOAD_TYPE"] == "SEGMENT"
    whole = b"".join(pinot.chunks)
    assert tar.read_bytes() in whole
    assert int(pinot.asked[-1].headers["Content-Length"]) == len(whole)
    assert max(map(len, pinot.chunks)) <= size // 16


@pytest.mark.parametrize(
    ("version", "takes"), [("0.11.0", False), ("1.2.0", False), ("1.3.0", True), ("1.5.1", True)]
)
def test_batches_from_1_3_on_and_never_after_one_was_refused(version: str, takes: bool) -> None:
    pinot = Pinot({"GET /version": ok({"pinot-controller": version})})
    assert [pinot.cluster.takes_batches(), pinot.cluster.takes_batches()] == [takes, takes]
    assert len(pinot.asked) == 1
    pinot.cluster.give_up_batches()
    assert not pinot.cluster.takes_batches()


@pytest.mark.parametrize(
    ("table", "tenants", "expected"),
    [
        ("t", {}, ("Server_a_1", "Server_b_1", "Server_new_1")),
        ("t", {"server": "gone"}, ("Server_a_1", "Server_b_1")),
        ("t_REALTIME", {}, ("Server_r_1",)),
    ],
)
def test_servers_of_a_table_are_those_that_hold_it_and_those_of_its_tenant(
    table: str, tenants: JsonObject, expected: tuple[str, ...]
) -> None:
    """From 1.5 on Pinot names the first only. A hybrid table's other half has servers of its own."""
    offline = {"tableType": "offline", "instances": ["Server_b_1", "Server_a_1"]}
    told = {"server": [offline, {"tableType": "realtime", "instances": ["Server_r_1"]}], "brokers": []}
    pinot = Pinot(
        {
            f"GET /tables/{table}/instances": ok(told),
            "GET /tenants/DefaultTenant": lambda request: ok(
                {"OfflineServerInstances": ["Server_new_1", "Server_a_1"], "ServerInstances": ["Server_x_1"]}
                if request.url.params["tableType"] == "OFFLINE"
                else {"RealtimeServerInstances": []}
            ),
        }
    )
    assert pinot.cluster.servers_of(table, {"tenants": tenants}) == expected


def test_no_servers_of_no_table() -> None:
    pinot = Pinot({"GET /tables/t": ok({})})
    with pytest.raises(PinotNotFound, match="there is no OFFLINE table t"):
        pinot.cluster.table_servers("t")


def test_a_table_whose_segments_servers_still_let_go_of_is_made_again_later() -> None:
    busy = {"code": 409, "error": "External view for t_OFFLINE still exists. Please wait"}
    pinot = Pinot({"POST /tables": httpx.Response(409, json=busy)})
    with pytest.raises(PinotError, match="do the same again"):
        pinot.cluster.create_table({"tableName": "t"})
    taken = {"code": 409, "error": "Table config for t_OFFLINE already exists"}
    pinot = Pinot({"POST /tables": httpx.Response(409, json=taken)})
    with pytest.raises(PinotError) as refused:
        pinot.cluster.create_table({"tableName": "t"})
    assert refused.value.hint is None


# --- the rest of the cluster -------------------------------------------------------------------------


def test_version() -> None:
    pinot = Pinot({"GET /version": ok({"pinot-orc": "9.9.9", "pinot-controller": "0.11.0-1b4d6b6b0a27"})})
    assert pinot.cluster.version() == "0.11.0"


def test_a_setting_of_the_controller() -> None:
    config = {"controller.a": "False", "controller.b": None}
    pinot = Pinot({"GET /appconfigs": ok({"jvmConfig": {}, "pinotConfig": config})})
    said = [pinot.cluster.controller_setting(f"controller.{name}") for name in "abc"]
    assert said == ["false", None, None]


def test_the_stream_beside_a_table() -> None:
    stream = {"tableName": "t_REALTIME"}
    pinot = Pinot({"GET /tables/t": ok({"REALTIME": stream}), "GET /tables/u": ok({})})
    assert [pinot.cluster.get_realtime_config(name) for name in "tuv"] == [stream, None, None]
    assert {request.url.params["type"] for request in pinot.asked} == {"REALTIME"}


@pytest.mark.parametrize("size", [None, {"estimatedSizeInBytes": -1}])
def test_a_size_that_nobody_reported_is_not_zero(size: dict[str, int] | None) -> None:
    with pytest.raises(PinotError, match="no server reported"):
        Pinot({"GET /tables/t/size": ok({"offlineSegments": size})}).cluster.table_bytes("t")


@pytest.mark.parametrize("call", ["GET /tables/t/size", "PUT /tables/t"])
def test_a_refusal_about_a_table_that_is_not_there_says_so(call: str) -> None:
    """As 1.5 refuses: 500 for the size, 400 for an update whose schema is missing too."""

    def ask(answers: dict[str, Answer]) -> None:
        cluster = Pinot({call: httpx.Response(500, json={"error": "it stumbled"}), **answers}).cluster
        cluster.table_bytes("t") if "size" in call else cluster.update_table({"tableName": "t_OFFLINE"})

    with pytest.raises(PinotNotFound, match="no OFFLINE table t"):
        ask({})
    with pytest.raises(PinotError, match="it stumbled") as refusal:
        ask({"GET /tables/t": ok({"OFFLINE": {"tableName": "t_OFFLINE"}})})
    assert not isinstance(refusal.value, PinotNotFound)


def test_rows_as_each_server_loaded_them() -> None:
    def instance(port: int) -> httpx.Response:
        return ok({"hostName": "127.0.0.1", "port": "8098", "adminPort": port})

    wanted = {"a": {"s1": "ONLINE", "s2": "ONLINE"}, "b": {"s2": "ONLINE"}}

    def rows(request: httpx.Request) -> httpx.Response:
        if request.url.port == 8082:
            return httpx.Response(404, json={"message": "not loaded", "status": 404})
        return ok({"segmentName": "a", "totalDocs": 500})

    pinot = Pinot(
        {
            "GET /tables/t/idealstate": ok({"OFFLINE": wanted, "REALTIME": None}),
            "GET /instances/s1": instance(8081),
            "GET /instances/s2": instance(8082),
            "GET /tables/t_OFFLINE/segments/a/metadata": rows,
            "GET /tables/t_OFFLINE/segments/b/metadata": rows,
        }
    )
    found = pinot.cluster.rows_on_servers("t", ["a", "b", "c"], ["s1", "s2", "s3"])
    assert found == {"a": {"s1": 500}, "b": {}, "c": {}}
    assert pinot.cluster.rows_on_servers("t", ["a"], ["s2"]) == {"a": {}}


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_refuses_says_which_right_is_missing_there(status: int) -> None:
    """Not the controller's hint: its user is known there, and has the rights that the controller asks for."""
    refused = httpx.Response(status, text="Forbidden")
    pinot = Pinot(
        {
            "GET /tables/t/idealstate": ok({"OFFLINE": {"a": {"s1": "ONLINE"}}, "REALTIME": None}),
            "GET /instances/s1": ok({"hostName": "127.0.0.1", "port": "8098", "adminPort": 8081}),
            "GET /tables/t_OFFLINE/segments/crc": refused,
            "GET /tables/t_OFFLINE/segments/a/metadata": refused,
            "GET /instance/diskUtilization": refused,
        }
    )
    answers = [
        pinot.cluster.crcs_on_servers("t", ["s1"])["s1"],
        pinot.cluster.server_disks(["s1"])["s1"],
    ]
    with pytest.raises(NoRights) as raised:
        pinot.cluster.rows_on_servers("t", ["a"], ["s1"])
    for answer, route in zip([*answers, raised.value], ["crc", "diskUtilization", "metadata"], strict=True):
        assert isinstance(answer, NoRights)
        assert f"{route} was refused with status {status}" in answer.what
        assert "permission admin in the server's access control" in (answer.hint or "")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_brokers_as_the_controller_names_them(scheme: str) -> None:
    found = [
        {"host": "b2", "port": 8099, "instanceName": "x"},
        {"host": "b1", "port": 8099, "instanceName": "y"},
    ]
    pinot = Pinot({"GET /v2/brokers/tables/t": ok(found)}, PinotConnection(f"{scheme}://controller:9000"))
    assert pinot.cluster.brokers("t") == (f"{scheme}://b1:8099", f"{scheme}://b2:8099")
    assert dict(pinot.asked[0].url.params) == {"type": "OFFLINE", "state": "ONLINE"}


def test_brokers_behind_a_gateway() -> None:
    pinot = Pinot({}, PinotConnection(URL, broker_urls=("https://gateway/",)))
    assert pinot.cluster.brokers("t") == ("https://gateway/",)
    assert pinot.asked == []


def test_what_is_registered_is_read_from_zookeeper() -> None:
    answers: dict[str, Answer] = {
        "GET /cluster/info": ok({"clusterName": "pinot"}),
        "GET /zk/ls": ok(["a", "half"]),
        "GET /segments/t": ok([{"OFFLINE": ["a"]}]),
    }
    pinot = Pinot(answers)
    assert pinot.cluster.registered_segments("t") == {"a", "half"}
    assert pinot.asked[-1].url.params["path"] == "/pinot/PROPERTYSTORE/SEGMENTS/t_OFFLINE"
    answers["GET /zk/ls"] = httpx.Response(403, text="no")
    assert pinot.cluster.registered_segments("t") == {"a"}


def test_a_segment_whose_metadata_has_gone_has_no_crc() -> None:
    pinot = Pinot({"GET /segments/t/crc": ok({"a": "7", "b": "null", "c": None})})
    assert pinot.cluster.segment_crcs("t") == {"a": 7}


# --- brokers for a person's query ----------------------------------------------------------------


def instances(*ports: int) -> list[dict[str, object]]:
    return [{"host": "b", "port": port, "instanceName": f"Broker_b_{port}"} for port in ports]


BROKERS: dict[str, Answer] = {
    "GET /v2/brokers/tables": ok({"sales": instances(2, 1), "clicks": instances(3)}),
    "GET /v2/brokers/tenants": ok({"one": instances(2, 1), "two": instances(3, 1)}),
}


def test_brokers_of_every_table_and_of_the_cluster() -> None:
    pinot = Pinot(BROKERS)
    assert pinot.cluster.brokers_by_table() == {
        "sales": ("http://b:1", "http://b:2"),
        "clicks": ("http://b:3",),
    }
    assert pinot.cluster.all_brokers() == ("http://b:1", "http://b:2", "http://b:3")
    assert {request.url.params["state"] for request in pinot.asked} == {"ONLINE"}


def test_brokers_that_are_configured_take_the_place_of_those_that_the_controller_names() -> None:
    pinot = Pinot(BROKERS, PinotConnection(URL, broker_urls=("https://gateway/",)))
    assert pinot.cluster.brokers_by_table()["clicks"] == ("https://gateway/",)
    assert pinot.cluster.all_brokers() == ("https://gateway/",)
