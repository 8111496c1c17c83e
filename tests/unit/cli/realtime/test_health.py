"""`realtime status` and `realtime health`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.realtime.memory import S1, S2, FakeRealtime
from typer.testing import CliRunner

from pinot_assets.cli.realtime import health, table
from pinot_assets.cli.realtime.group import app
from pinot_assets.cli.terminal import Terminal
from pinot_assets.errors import PinotNotFound
from pinot_assets.realtime.health.metrics import segment_rows
from pinot_assets.realtime.model.state import StreamPartition
from pinot_assets.realtime.read import reading


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeRealtime:
    fake = FakeRealtime()
    fake.controller_config["controller.data.dir"] = str(tmp_path)
    (tmp_path / "clicks").mkdir()
    fake.segment(0, 0)
    fake.segment(0, 1, "IN_PROGRESS", start=100, end=200)

    def look(*args: Any, **options: Any) -> Any:
        stream = {0: StreamPartition(0, 0, 200)}
        clock = lambda: fake.now_ms / 1000  # noqa: E731
        return reading.read_state(*args, **options, read_stream=lambda _: stream, clock=clock)

    class Somewhere:
        pinot = None

    monkeypatch.setattr(table, "load_settings", Somewhere)
    monkeypatch.setattr(table, "RealtimePinot", lambda _: fake.pinot())
    monkeypatch.setattr(health, "read_state", look)
    return fake


def run(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, list(words), env={"COLUMNS": "300"})
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.exit_code, found.output


def test_status_shows_every_segment(fake: FakeRealtime) -> None:
    fake.segment(1, 0, url="", states={S1: "ONLINE", S2: "ERROR"})
    code, text = run("status", "clicks")
    assert code == 0
    assert "clicks_REALTIME on Pinot 1.5.1: 2 replicas, pauseless, peers by http" in text
    assert "1 ERROR, 1 ONLINE" in text
    assert "peers only" in text
    assert "10.0 min" in text
    assert f"reset: {S1} has it" in text


def test_the_names_of_segments_can_be_copied_from_a_narrow_terminal(fake: FakeRealtime) -> None:
    text = CliRunner().invoke(app, ["status", "clicks"], env={"COLUMNS": "60"}).output
    assert set(fake.nodes) <= set(text.split())


@pytest.mark.parametrize("columns", [80, 40])
def test_a_terminal_without_room_for_the_columns_shows_a_segment_in_lines(
    fake: FakeRealtime, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def narrow() -> Terminal:
        return Terminal(
            force_terminal=True, color_system=None, width=columns, soft_wrap=True, highlight=False
        )

    monkeypatch.setattr(health, "new_console", narrow)
    text = CliRunner().invoke(app, ["status", "clicks"]).output
    lines = text.splitlines()
    assert set(fake.nodes) <= set(lines)
    assert [line for line in lines if len(line) > columns and " " in line.strip()] == []
    assert "rows" in text


def test_status_as_json(fake: FakeRealtime) -> None:
    _, text = run("status", "clicks_REALTIME", "--json")
    told = json.loads(text)
    assert [row["status"] for row in told["segments"]] == ["DONE", "IN_PROGRESS"]
    assert told["segments"][0]["replicas"] == {S1: "ONLINE", S2: "ONLINE"}
    assert (told["paused"], told["pauseless"]) == (None, True)


def test_health_of_a_table_that_is_well(fake: FakeRealtime) -> None:
    code, text = run("health", "clicks")
    assert code == 0, text
    assert "FAIL" not in text
    assert "segmentsMissingDownloadUrl = 0 (derived)" in text


@pytest.mark.parametrize("command", ["status", "health"])
def test_a_table_that_is_not_there_is_told_with_those_that_are(fake: FakeRealtime, command: str) -> None:
    found = CliRunner().invoke(app, [command, "clickz"])
    assert isinstance(found.exception, PinotNotFound)
    assert "did you mean clicks?" in str(found.exception)


def test_health_fails_with_exit_code_2_and_says_what_to_do(fake: FakeRealtime) -> None:
    fake.kill(S2)
    code, text = run("health", "clicks")
    assert code == 2
    assert f"FAIL servers: 1 server is dead: {S2}" in text
    assert "→" in text


def test_health_as_json(fake: FakeRealtime) -> None:
    fake.kill(S2)
    code, text = run("health", "clicks", "--json")
    told = json.loads(text)
    assert code == 2
    failed = [check["name"] for check in told["checks"] if not check["passed"]]
    assert {"servers", "replicas"} <= set(failed)
    assert told["metrics"][0]["origin"] == "derived"


def test_a_deep_store_that_cannot_be_opened_is_not_known(fake: FakeRealtime) -> None:
    fake.controller_config["controller.data.dir"] = "hdfs://somewhere"
    code, text = run("health", "clicks")
    assert code == 2
    assert "tmp_uploads: not known" in text


def test_notes_of_rows(fake: FakeRealtime) -> None:
    orphan, lost = fake.segment(2, 0), fake.segment(3, 0)
    del fake.ideal[orphan], fake.nodes[lost]
    notes = {row.segment: row.note for row in segment_rows(fake.look())}
    assert (notes[orphan], notes[lost]) == ("not in the ideal state", "it has no node")
