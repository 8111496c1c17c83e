"""`status` without a table: a line for each, whatever cannot be read of the others."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.realtime.memory import S1, S2, FakeRealtime
from fakes.realtime.specs import write_realtime_table
from fakes.tables import APPEND, write_files, write_table
from fakes.zookeeper.memory import FakeClient, FakeZooKeeper
from typer.testing import CliRunner, Result

from pinot_assets.cli import table_status
from pinot_assets.cli.commands import status as status_command
from pinot_assets.cli.main import app
from pinot_assets.cli.terminal import Terminal
from pinot_assets.core.waiting import TABLES_AT_A_TIME
from pinot_assets.errors import SessionError
from pinot_assets.pinot import realtime as realtime_client
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.session.detect.table_status import NEEDS_PERSON
from pinot_assets.session.stores import clients
from pinot_assets.settings.environment import Settings
from pinot_assets.source import Inventory, ObjectStore
from pinot_assets.table_spec import TableSpec


class Outside:
    """ZooKeeper and Pinot of these tests.

    :ivar opened: how many connections to ZooKeeper were opened.
    :ivar pinot: has the REALTIME table `clicks`.
    """

    def __init__(self) -> None:
        self.zookeeper = FakeZooKeeper()
        self.opened = 0
        self.pinot = FakeRealtime()
        self.pinot.segment(0, 0)
        self.pinot.segment(0, 1, "IN_PROGRESS", states={S1: "CONSUMING", S2: "CONSUMING"})

    @contextmanager
    def client(self, settings: Settings) -> Iterator[FakeClient]:
        self.opened += 1
        yield self.zookeeper.client()

    def realtime(self, connection: object) -> RealtimePinot:
        return self.pinot.pinot()


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Outside:
    outside = Outside()
    monkeypatch.setattr(clients, "_client", outside.client)
    monkeypatch.setattr(realtime_client, "RealtimePinot", outside.realtime)
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://controller:9000")
    monkeypatch.setenv("PINOT_ZOOKEEPER", "zk:2181")
    monkeypatch.setenv("PINOT_CLUSTER", "test")
    monkeypatch.chdir(tmp_path)
    return outside


def call(*words: str) -> Result:
    return CliRunner().invoke(app, ["status", *words])


def cells(result: Result) -> dict[str, list[str]]:
    """Table → cells of its line; the names of the columns under `table`."""
    return {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}


def test_a_line_for_each_table(outside: Outside, tmp_path: Path) -> None:
    write_table(tmp_path, "events")
    write_realtime_table(tmp_path)
    write_table(tmp_path, "alpha", {**APPEND, "includeFileNamePattern": "glob:none*"})
    write_files(tmp_path, F1="a", F2="b")
    shown = call()
    assert (shown.exit_code, shown.stderr) == (0, "")
    lines = cells(shown)
    assert [*lines] == ["table", "alpha", "clicks_REALTIME", "events"]
    assert lines["table"] == ["mode", "published", "rows", "waiting", "behind", "state"]
    assert lines["alpha"] == ["append", "never", "not", "published"]
    assert lines["clicks_REALTIME"] == ["REALTIME", "200", "consuming"]
    assert lines["events"][:5] == ["sync", "never", "+2", "~0", "-0"]
    assert lines["events"][-2:] == ["not", "published"]
    assert outside.opened == 1, "one connection for all tables"


def test_a_table_has_the_values_that_it_has_alone(outside: Outside, tmp_path: Path) -> None:
    write_table(tmp_path, "events")
    write_files(tmp_path, F1="a")
    [alone] = json.loads(call("--json").stdout)
    assert alone == json.loads(call("events", "--json").stdout)
    assert (alone["table"], alone["state"]) == ("events_OFFLINE", "not published")
    assert alone["source"]["behindSince"].endswith("Z")


def test_a_broken_spec_is_a_line_and_exits_1(outside: Outside, tmp_path: Path) -> None:
    write_table(tmp_path, "events")
    (tmp_path / "tables" / "x.yaml").write_text("[")
    shown = call()
    assert shown.exit_code == 1
    assert cells(shown)["x"] == ["broken"]
    assert "events" in cells(shown)
    assert "x.yaml:" in shown.stderr
    of_json = {one["table"]: one for one in json.loads(call("--json").stdout)}
    assert (of_json["x"]["state"], of_json["x"]["exit"]) == ("broken", 1)
    assert "error" not in of_json["events_OFFLINE"]


def test_a_table_that_cannot_be_read_is_a_line_and_exits_1(outside: Outside, tmp_path: Path) -> None:
    write_table(tmp_path, "events")
    write_table(tmp_path, "away", {**APPEND, "inputDirURI": str(tmp_path / "nowhere")})
    shown = call()
    assert shown.exit_code == 1
    assert cells(shown)["away"] == ["append", "not", "known"]
    assert cells(shown)["events"][-2:] == ["not", "published"]
    assert shown.stderr.startswith("away: ")


def test_a_stream_s_table_that_pinot_does_not_have_is_no_error(outside: Outside, tmp_path: Path) -> None:
    write_realtime_table(tmp_path)
    outside.pinot.refused = {"/tables/clicks": 404}
    shown = call()
    assert (shown.exit_code, cells(shown)["clicks_REALTIME"]) == (0, ["REALTIME", "not", "in", "Pinot"])


def test_a_stream_s_table_of_a_pinot_that_is_away(outside: Outside, tmp_path: Path) -> None:
    write_realtime_table(tmp_path)
    outside.pinot.away = {"/"}
    shown = call()
    assert (shown.exit_code, cells(shown)["clicks_REALTIME"]) == (1, ["REALTIME", "not", "known"])
    [value] = json.loads(call("--json").stdout)
    assert (value["table"], value["mode"], value["state"]) == ("clicks_REALTIME", "REALTIME", "not known")


def test_without_tables_of_streams_no_pinot_is_asked(outside: Outside, tmp_path: Path) -> None:
    write_table(tmp_path, "events")
    call()
    assert outside.pinot.asked == []


def test_a_zookeeper_that_is_away_is_one_error(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_table(tmp_path, "events")

    @contextmanager
    def away(settings: Settings) -> Iterator[FakeClient]:
        raise SessionError("ZooKeeper does not answer")
        yield

    monkeypatch.setattr(clients, "_client", away)
    assert isinstance(call().exception, SessionError)


def test_a_folder_without_a_spec(outside: Outside, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    assert (call().exit_code, call().stdout) == (0, "there is no table spec\n")
    assert json.loads(call("--json").stdout) == []


def test_a_few_tables_are_read_at_a_time(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as may be meet at a barrier; one more at a time would break it."""
    for number in range(2 * TABLES_AT_A_TIME):
        write_table(tmp_path, f"t{number}")
    barrier = threading.Barrier(TABLES_AT_A_TIME)
    under_way = threading.Semaphore(TABLES_AT_A_TIME)
    listed = table_status.list_source

    def counted(spec: TableSpec, source: ObjectStore) -> Inventory:
        assert under_way.acquire(blocking=False)
        barrier.wait(timeout=60)
        under_way.release()
        return listed(spec, source)

    monkeypatch.setattr(table_status, "list_source", counted)
    shown = call()
    assert shown.exit_code == 0, shown.output
    assert len(cells(shown)) == 1 + 2 * TABLES_AT_A_TIME


EVERYTHING = (
    *("events_of_the_day", "append", "3.4 days ago", "123", "12,345", "123,456,789"),
    *("+12 ~1 -0", "3", "4", "3.2 days", "failed"),
)


@pytest.mark.parametrize(
    ("width", "left_out"),
    [(120, set()), (107, {"seq"}), (100, {"seq", "files"}), (80, {"seq", "files", "mode", "published"})],
)
def test_a_narrow_terminal_gets_what_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int, left_out: set[str]
) -> None:
    def screen() -> Terminal:
        return Terminal(force_terminal=True, color_system=None, width=width, soft_wrap=True, highlight=False)

    monkeypatch.setattr(status_command, "new_console", screen)
    status_command._show_table([EVERYTHING])
    head, line = capsys.readouterr().out.splitlines()
    names = {column.name for column in status_command._COLUMNS}
    assert names - set(head.split()) == left_out
    assert line.endswith("failed")
    assert "…" not in line


def test_what_needs_a_person_is_red_as_in_dagster() -> None:
    assert {*NEEDS_PERSON, "failed", "held", "broken", "not known"} <= {
        state for state, style in status_command._STYLES.items() if style == "red"
    }
