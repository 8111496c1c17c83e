"""`query`: rows for people and programs, what is missing of an answer, and who is asked."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import typer
from typer.testing import CliRunner, Result

from pinot_assets.cli.commands import query as query_command
from pinot_assets.cli.main import app
from pinot_assets.core.connections import PinotConnection
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError, PinotUnreachable, TypedWrong
from pinot_assets.pinot import HttpPinotClient

ODD = 'Main[z] "am"\nRhein, \x1b[2J'
GOOD: JsonObject = {
    "resultTable": {
        "dataSchema": {
            "columnNames": ["shop", "amount", "tags"],
            "columnDataTypes": ["STRING", "LONG", "STRING_ARRAY"],
        },
        "rows": [["Bonn", 12345, ["a", "ü"]], [ODD, None, []]],
    },
    "exceptions": [],
    "numServersQueried": 2,
    "numServersResponded": 2,
    "numSegmentsQueried": 3,
    "numDocsScanned": 1234,
    "totalDocs": 5678,
    "timeUsedMs": 7,
}
PART = {
    **GOOD,
    "numServersResponded": 1,
    "exceptions": [{"errorCode": 427, "message": "1 servers [S_O] not responded"}],
}
REFUSED = {"exceptions": [{"errorCode": 710, "message": "UnknownColumnError:\n\tat a.B(C.java:1)"}]}
ABSENT = {"exceptions": [{"errorCode": 190, "message": "TableDoesNotExistError"}]}

Answer = Callable[[httpx.Request], httpx.Response]


class FakeCluster:
    """A controller with three brokers, of which each answers the same.

    :ivar reply: what brokers answer.
    :ivar down: ports of brokers that cannot be reached; `late` ones do not answer.
    """

    def __init__(self) -> None:
        self.reply: JsonObject = GOOD
        self.down: set[int] = set()
        self.late: set[int] = set()
        self.asked: list[httpx.Request] = []
        self.tables = {"sales": [1, 2], "clicks": [2, 3]}

    def handle(self, request: httpx.Request) -> httpx.Response:
        if request.url.host == "controller":
            named = {"tables": self.tables, "tenants": {"T": [1, 2, 3]}}[request.url.path.rpartition("/")[2]]
            value = {
                name: [{"host": "broker", "port": port} for port in ports] for name, ports in named.items()
            }
            return httpx.Response(200, json=value)
        self.asked.append(request)
        if request.url.port in self.down:
            raise httpx.ConnectError("refused", request=request)
        if request.url.port in self.late:
            raise httpx.ReadTimeout("late", request=request)
        return httpx.Response(200, json=self.reply)

    @property
    def sent(self) -> JsonObject:
        """The body of the last query."""
        body: JsonObject = json.loads(self.asked[-1].content)
        return body

    @property
    def ports(self) -> list[int | None]:
        """Brokers that were asked, each once, in order."""
        return list(dict.fromkeys(request.url.port for request in self.asked))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCluster:
    cluster = FakeCluster()

    def client(connection: PinotConnection) -> HttpPinotClient:
        return HttpPinotClient(connection, httpx.MockTransport(cluster.handle))

    monkeypatch.setattr(query_command, "HttpPinotClient", client)
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://controller:9000")
    monkeypatch.setenv("PINOT_ZOOKEEPER", "zk:2181")
    monkeypatch.chdir(tmp_path)
    return cluster


def call(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["query", *words], input=given)


def error_of(result: Result) -> Exception:
    assert isinstance(result.exception, Exception)
    return result.exception


# --- what is shown -------------------------------------------------------------------------------


def test_rows_for_people(cluster: FakeCluster) -> None:
    shown = call("SELECT * FROM sales LIMIT 5")
    assert shown.exit_code == 0
    head, first, second, *summary = shown.stdout.splitlines()
    assert head.split() == ["shop", "amount", "tags"]
    assert first.endswith('   12345  ["a", "ü"]'), "numbers stand at the right edge"
    assert 'Main[z] "am"\\nRhein, \\x1b[2J' in second
    assert "  NULL  []" in second
    assert summary == [
        "2 rows in 7 ms from http://broker:1",
        "2 of 2 servers answered, 3 segments, 1,234 of 5,678 documents scanned",
    ]
    assert shown.stderr == ""


def test_rows_for_programs(cluster: FakeCluster) -> None:
    shown = call("SELECT * FROM sales LIMIT 5", "--json")
    values = json.loads(shown.stdout)
    assert values == {
        "sql": "SELECT * FROM sales LIMIT 5",
        "columns": [
            {"name": "shop", "type": "STRING"},
            {"name": "amount", "type": "LONG"},
            {"name": "tags", "type": "STRING_ARRAY"},
        ],
        "rows": [["Bonn", 12345, ["a", "ü"]], [ODD, None, []]],
        "limited": False,
        "timeMs": 7,
        "broker": "http://broker:1",
        "partial": False,
        "exceptions": [],
        "servers": {"asked": 2, "answered": 2},
        "segments": 3,
        "docsScanned": 1234,
        "totalDocs": 5678,
    }


def test_csv_is_read_back_as_it_was(cluster: FakeCluster) -> None:
    shown = call("SELECT * FROM sales LIMIT 5", "--csv")
    text = shown.stdout_bytes.decode()
    assert text.startswith("shop,amount,tags\r\n")
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == [
        ["Bonn", "12345", '["a", "ü"]'],
        [ODD, "", "[]"],
    ]
    assert shown.stderr == ""


def test_csv_steers_no_terminal(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    with pytest.raises(typer.Exit):
        query_command.query("SELECT * FROM sales LIMIT 5", as_csv=True)
    assert "\x1b" not in screen.getvalue()
    assert 'Rhein, \\x1b[2J"' in screen.getvalue()
    assert screen.getvalue().startswith("shop,amount,tags\r\nBonn,")


def test_json_and_csv_exclude_each_other(cluster: FakeCluster) -> None:
    assert isinstance(error_of(call("sales", "--json", "--csv")), TypedWrong)
    assert cluster.asked == []


# --- what is missing -----------------------------------------------------------------------------


def test_a_part_is_shown_loudly_and_exits_2(cluster: FakeCluster) -> None:
    cluster.reply = PART
    shown = call("SELECT * FROM sales LIMIT 5")
    assert shown.exit_code == 2
    assert "Bonn" in shown.stdout
    assert "1 of 2 servers answered" in shown.stdout
    assert "partial: " in shown.stderr
    assert "427 1 servers [S_O] not responded" in shown.stderr
    values = json.loads(call("SELECT * FROM sales LIMIT 5", "--json").stdout)
    assert (values["partial"], values["exit"]) == (True, 2)
    assert values["exceptions"] == [{"code": 427, "message": "1 servers [S_O] not responded"}]
    assert len(values["rows"]) == 2
    as_csv = call("SELECT * FROM sales LIMIT 5", "--csv")
    assert (as_csv.exit_code, "427" in as_csv.stderr) == (2, True)


def test_an_exception_is_shown_in_words_and_exits_1(cluster: FakeCluster) -> None:
    cluster.reply = REFUSED
    shown = call("SELECT nope FROM sales")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "710 UnknownColumnError" in shown.stderr
    assert "C.java" not in shown.stderr
    values = json.loads(call("SELECT nope FROM sales", "--json").stdout)
    assert (values["partial"], values["rows"], values["exit"]) == (False, [], 1)
    assert values["exceptions"][0]["code"] == 710
    assert "710" in values["why"]


def test_a_table_that_is_not_there_gets_the_name_that_was_meant(cluster: FakeCluster) -> None:
    cluster.reply = ABSENT
    shown = call("SELECT * FROM salse")
    assert shown.exit_code == 1
    assert "sales" in shown.stderr.splitlines()[-1]
    assert "clicks, sales" in call("SELECT * FROM wholly_else").stderr


def test_a_table_without_rows_is_no_error(cluster: FakeCluster) -> None:
    cluster.reply = {"exceptions": [], "numServersQueried": 0, "numServersResponded": 0}
    shown = call("sales")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert shown.stdout.startswith("0 rows in 0 ms from ")


ROWS = {"dataSchema": {"columnNames": ["a"], "columnDataTypes": ["INT"]}, "rows": [[n] for n in range(10)]}


@pytest.mark.parametrize(
    ("words", "notes"),
    [
        (["SELECT a FROM sales LIMIT 10"], True),
        (["SELECT a FROM sales"], True),
        (["SELECT a FROM sales LIMIT 11"], False),
        (["EXPLAIN PLAN FOR SELECT a FROM sales"], False),
        (["SELECT a FROM sales", "--multistage"], False),
        (["SELECT a FROM sales LIMIT 10", "--multistage"], True),
    ],
)
def test_rows_that_a_limit_may_have_cut_off(cluster: FakeCluster, words: list[str], notes: bool) -> None:
    cluster.reply = {**GOOD, "resultTable": ROWS}
    shown = call(*words)
    assert ("note: " in shown.stderr, shown.exit_code) == (notes, 0)
    as_json = call(*words, "--json")
    assert (json.loads(as_json.stdout)["limited"], as_json.stderr) == (notes, "")


# --- what is sent, and to whom -------------------------------------------------------------------


def test_a_table_s_name_asks_for_its_first_rows(cluster: FakeCluster) -> None:
    call("sales")
    assert cluster.sent == {"sql": 'SELECT * FROM "sales" LIMIT 10', "queryOptions": "timeoutMs=15000"}


def test_options_of_the_query(cluster: FakeCluster) -> None:
    call("SELECT 1", "--timeout", "0.5", "--multistage")
    assert cluster.sent["queryOptions"] == "timeoutMs=500;useMultistageEngine=true"


def test_standard_input_is_read_and_limited(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    call("-", given="SELECT 'ü' FROM sales\n")
    assert cluster.sent["sql"] == "SELECT 'ü' FROM sales\n"
    monkeypatch.setattr(query_command, "SPEC_BYTES", 10)
    assert isinstance(error_of(call("-", given="SELECT 1 FROM sales")), TypedWrong)
    assert len(cluster.asked) == 1


def test_no_query_is_not_sent(cluster: FakeCluster) -> None:
    for words, given in ([" "], None), (["-"], "\n"):
        assert isinstance(error_of(call(*words, given=given)), TypedWrong)
    assert cluster.asked == []


@pytest.mark.parametrize(
    "sql", ["INSERT INTO sales FROM FILE 'x'", "SET a=1; insert into sales FROM FILE 'x'"]
)
def test_an_insert_is_not_sent(cluster: FakeCluster, sql: str) -> None:
    assert isinstance(error_of(call(sql)), TypedWrong)
    assert cluster.asked == []


@pytest.mark.parametrize(
    ("sql", "port"),
    [
        ("SELECT * FROM sales", 1),
        ("SELECT * FROM clicks_REALTIME", 2),
        ("SELECT * FROM sales JOIN clicks", 2),
        ("SELECT 1", 1),
    ],
)
def test_a_broker_is_asked_that_serves_every_table(cluster: FakeCluster, sql: str, port: int) -> None:
    call(sql)
    assert cluster.ports == [port]


def test_a_broker_that_is_down_is_passed_over(cluster: FakeCluster) -> None:
    cluster.down = {1}
    shown = call("SELECT * FROM sales LIMIT 5", "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["broker"]) == (0, "http://broker:2")
    cluster.down = {1, 2}
    assert isinstance(error_of(call("sales")), PinotUnreachable)


def test_a_query_that_was_sent_is_not_sent_to_another_broker(cluster: FakeCluster) -> None:
    cluster.late = {1}
    assert isinstance(error_of(call("sales")), PinotUnreachable)
    assert cluster.ports == [1]


def test_no_broker_is_online(cluster: FakeCluster) -> None:
    cluster.tables["sales"] = []
    assert isinstance(error_of(call("sales")), PinotError)


def test_the_broker_that_is_named_is_asked_and_no_other(cluster: FakeCluster) -> None:
    cluster.down = {9}
    assert isinstance(error_of(call("sales", "--broker", "http://broker:9")), PinotUnreachable)
    assert cluster.ports == [9]


def test_a_named_broker_gets_no_credentials_that_nobody_granted_it(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PINOT_USER", "ada")
    monkeypatch.setenv("PINOT_PASSWORD", "s3cret")
    monkeypatch.setenv("PINOT_ADDRESSES", "broker:3")
    error = error_of(call("sales", "--broker", "http://127.0.0.1:9"))
    assert "credentials are not sent" in str(error)
    assert cluster.asked == []
    assert call("sales", "--broker", "http://broker:3").exit_code == 0


@pytest.mark.parametrize("address", ["broker:9", "ftp://broker", "http://ada:s3cret@broker:9"])
def test_what_is_no_address_is_not_repeated(cluster: FakeCluster, address: str) -> None:
    error = error_of(call("sales", "--broker", address))
    assert isinstance(error, TypedWrong)
    assert "s3cret" not in str(error)
