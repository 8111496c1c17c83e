"""The Dagster of `make dev` comes up on the workspace, holds the tables, and stops without a trace."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from fakes.tables import write_table
from fakes.waiting import until

from pinot_assets.local import ui
from pinot_assets.settings.local_stack import StackState

pytestmark = pytest.mark.integration

LOCATIONS = """
{ workspaceOrError { ... on Workspace { locationEntries {
    name
    locationOrLoadError {
      __typename
      ... on PythonError { message }
      ... on RepositoryLocation { repositories { jobs { name } sensors { name } assetNodes { id } } }
} } } } }
"""


@pytest.fixture
def home(stack: StackState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    write_table(tmp_path, "flights")
    monkeypatch.setenv("PINOT_CONTROLLER_URL", stack.controller_url)
    monkeypatch.setenv("PINOT_ZOOKEEPER", stack.zookeeper)
    monkeypatch.setenv("PINOT_ASSETS_TABLES", str(tmp_path / "tables"))
    monkeypatch.setenv("DAGSTER_HOME", "")  # `start` sets it; this puts it back
    home = tmp_path / "home"
    yield home
    ui.stop(home)


def running(home: Path) -> list[psutil.Process]:
    """Processes of this test's Dagster: its daemon, servers and code server all know its folder."""
    mine = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("DAGSTER_HOME") == str(home / "dagster"):
                mine.append(process)
        except psutil.Error:
            continue
    return mine


def location(url: str) -> Any:
    reply = httpx.post(f"{url}/graphql", json={"query": LOCATIONS}, timeout=30).json()
    (entry,) = reply["data"]["workspaceOrError"]["locationEntries"]
    return entry


def test_the_ui_comes_up_with_the_tables_and_goes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.parent)
    url = ui.start(home, home.parent)  # has neither workspace.yaml nor dagster.yaml
    assert url.startswith("http://127.0.0.1:")
    until(lambda: location(url)["locationOrLoadError"] is not None)
    entry = location(url)
    assert entry["name"] == "pinot-assets"
    loaded = entry["locationOrLoadError"]
    assert loaded["__typename"] == "RepositoryLocation", loaded
    (repository,) = loaded["repositories"]
    assert "flights_ingest" in {job["name"] for job in repository["jobs"]}
    sensors = {sensor["name"] for sensor in repository["sensors"]}
    assert sensors >= {"flights_files", "pinot_sessions", "pinot_tables"}
    assert len(repository["assetNodes"]) == 6, "the overview of all tables, too"
    assert {c.laddr.ip for p in running(home) for c in p.net_connections("tcp") if c.status == "LISTEN"} == {
        "127.0.0.1"
    }

    before = {process.pid for process in running(home)}
    assert ui.start(home, home.parent) == url
    assert {process.pid for process in running(home)} == before

    # Killed, it leaves servers and a daemon behind, which would go on launching runs.
    (leader,) = [p for p in running(home) if os.getsid(p.pid) == p.pid]
    os.kill(leader.pid, signal.SIGKILL)
    leader.wait(10)
    assert ui.stop(home)
    until(lambda: running(home) == [], 30)
    assert not ui.stop(home)
