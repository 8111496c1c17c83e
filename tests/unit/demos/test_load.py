from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from demos.load import QueryLoad, answer
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotAssetsError

BEFORE = answer([["AA", 10, 100.0], ["UA", 20, 200.0]])
AFTER = answer([["AA", 11, 110.0], ["UA", 22, 220.0]])
HALF = answer([["AA", 11, 110.0], ["UA", 20, 200.0]])


def result(rows: Any) -> JsonObject:
    return {"resultTable": {"rows": rows}, "exceptions": []}


@contextmanager
def broker(reply: Callable[[], tuple[int, bytes]]) -> Iterator[str]:
    """A broker whose answer `reply` decides."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/query/sql"
            assert asked == {"sql": "SELECT 1"}
            status, body = reply()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def always(rows: Any) -> Callable[[], tuple[int, bytes]]:
    return lambda: (200, json.dumps(result(rows)).encode())


def test_both_brokers_are_asked_and_both_sides_allowed() -> None:
    hits: Counter[str] = Counter()

    def reply(name: str, rows: Any) -> Callable[[], tuple[int, bytes]]:
        def counted() -> tuple[int, bytes]:
            hits[name] += 1
            return 200, json.dumps(result(rows)).encode()

        return counted

    with broker(reply("one", BEFORE)) as one, broker(reply("two", AFTER)) as two:
        with QueryLoad([one, two], "SELECT 1", pause_s=0.001) as load:
            load.phase("switch", allowed=[BEFORE, AFTER])
            load.wait_for(40)
        report = load.report()
    [phase] = report.phases
    assert (phase.mixed, phase.errors) == (0, 0)
    assert phase.queries == sum(phase.counts) >= 40
    assert phase.counts[0] == hits["one"] > 0
    assert phase.counts[1] == hits["two"] > 0


def test_a_mix_is_seen() -> None:
    rows = [BEFORE]
    with broker(lambda: always(rows[0])()) as url, QueryLoad([url], "SELECT 1", pause_s=0.001) as load:
        load.phase("control", allowed=[BEFORE, AFTER])
        load.wait_for(5)
        rows[0] = HALF
        time.sleep(0.1)
        rows[0] = AFTER
        load.wait_for(load.report().queries + 5)
        report = load.report()
    assert report.mixed > 0
    assert report.phases[0].first_mixed == HALF
    assert report.phases[0].counts[0] > 0
    assert report.phases[0].counts[1] > 0


def test_an_old_answer_after_the_switch_is_mixed() -> None:
    with broker(always(BEFORE)) as url, QueryLoad([url], "SELECT 1", pause_s=0.001) as load:
        load.phase("a", allowed=[BEFORE])
        load.wait_for(5)
        load.phase("b", allowed=[AFTER])
        load.wait_for(5)
        a, b = load.report().phases
    assert a.mixed == 0
    assert b.mixed == b.queries >= 5


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((500, b"boom"), "500"),
        ((200, b"not json"), "JSONDecodeError"),
        ((200, b"[]"), "AttributeError"),
        (
            (200, json.dumps(result(BEFORE) | {"exceptions": [{"errorCode": 305}]}).encode()),
            "305",
        ),
    ],
)
def test_no_answer_is_an_error_and_not_an_answer(reply: tuple[int, bytes], said: str) -> None:
    with broker(lambda: reply) as url, QueryLoad([url], "SELECT 1", pause_s=0.001) as load:
        load.phase("a", allowed=[BEFORE])
        load.wait_for(4)
        [phase] = load.report().phases
    assert phase.errors == phase.queries >= 4
    assert phase.mixed == 0
    assert phase.first_error is not None
    assert said in phase.first_error


def test_no_result_table_is_an_empty_answer_which_the_phase_may_allow_or_not() -> None:
    reply = (200, json.dumps({"exceptions": []}).encode())
    with broker(lambda: reply) as url, QueryLoad([url], "SELECT 1", pause_s=0.001) as load:
        load.phase("before the first push", allowed=[(), BEFORE])
        load.wait_for(3)
        load.phase("later", allowed=[BEFORE])
        load.wait_for(3)
        first, later = load.report().phases
    assert (first.mixed, first.errors) == (0, 0)
    assert later.mixed == later.queries >= 3


def test_an_unreachable_broker_is_an_error() -> None:
    with broker(always(BEFORE)) as gone:
        pass
    with QueryLoad([gone], "SELECT 1", pause_s=0.001) as load:
        load.phase("a", allowed=[BEFORE])
        load.wait_for(4)
    assert load.report().errors == load.report().queries >= 4


def test_a_query_under_way_belongs_to_the_phase_in_which_it_was_asked() -> None:
    asked, go = threading.Event(), threading.Event()

    def slow() -> tuple[int, bytes]:
        asked.set()
        go.wait(10)
        return always(BEFORE)()

    with broker(slow) as url, QueryLoad([url], "SELECT 1", threads=1) as load:
        load.phase("a", allowed=[BEFORE])
        assert asked.wait(10)
        changed = threading.Thread(target=load.phase, args=("b", [AFTER]))
        changed.start()
        changed.join(0.2)
        assert changed.is_alive()
        go.set()
        changed.join(10)
        assert not changed.is_alive()
        a = load.report().phases[0]
    assert (a.counts, a.mixed) == ([1], 0)


def test_nothing_is_asked_before_the_first_phase() -> None:
    hits: list[int] = []

    def reply() -> tuple[int, bytes]:
        hits.append(1)
        return always(BEFORE)()

    with broker(reply) as url, QueryLoad([url], "SELECT 1"):
        time.sleep(0.1)
    assert hits == []


def test_waiting_has_an_end() -> None:
    with broker(always(BEFORE)) as url, QueryLoad([url], "SELECT 1", pause_s=1) as load:
        load.phase("a", allowed=[BEFORE])
        with pytest.raises(PinotAssetsError, match="of 1000 queries"):
            load.wait_for(1000, timeout_s=0.2)


def test_whole_numbers_equal_the_floats_that_pinot_makes_of_them() -> None:
    assert answer([["AA", 10, 100]]) == BEFORE[:1]


def test_a_load_without_brokers_is_refused() -> None:
    with pytest.raises(PinotAssetsError, match="at least one broker"):
        QueryLoad([], "SELECT 1")
