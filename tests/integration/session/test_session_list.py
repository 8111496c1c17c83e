"""`session list` and `session show`: the kept sessions, read without a lease, whatever state they are in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pinot_assets.cli import main
from pinot_assets.errors import SessionError

pytestmark = pytest.mark.integration


@pytest.fixture
def world(make_addressed_world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """P1 and P2 are published; then P1 is gone, F1 built and F2 failed, once more on the retry."""
    world = make_addressed_world("sync")
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PINOT_ZOOKEEPER", world.zookeeper)
    world.write("P1", "P2")
    world.run()
    world.remove("P1")
    world.write("F1", "F2")
    world.builder.failing = {"F2"}
    world.run()
    world.run()
    return world


def call(world: Any, *arguments: str) -> Result:
    command, *rest = arguments
    tables = ["--tables", str(world.folder / "tables")]
    return CliRunner().invoke(main.app, ["session", command, world.table, *rest, *tables])


def test_the_two_newest_are_listed_newest_first(world: Any) -> None:
    shown = call(world, "list")
    assert shown.exit_code == 0
    newest, error, oldest = shown.stdout.splitlines()
    assert newest.startswith("cp2  sync, IN_PROGRESS, open, retryCount 1, attempt 1, begun 20")
    assert newest.endswith("2 files: 1 done, 1 failed, 1 removal")
    assert "F2: as the test wants it" in error
    assert oldest.startswith("cp1  sync, DONE, PUBLISHED, retryCount 0, attempt 0, begun 20")
    assert f"entry {world.read_snapshot().lineage_entry_id}" in oldest


def test_list_as_json(world: Any) -> None:
    with world.driver() as driver:
        driver.take()  # somebody is at work: no lease is needed to look
        values = json.loads(call(world, "list", "--json").stdout)
    assert values["leaseHolder"].startswith("run-")
    assert [(s["node"], s["state"], s["outcome"]) for s in values["sessions"]] == [
        ("cp2", "IN_PROGRESS", ""),
        ("cp1", "DONE", "PUBLISHED"),
    ]
    assert values["sessions"][0]["retryCount"] == 1


def test_show_takes_the_newest_a_node_or_an_id(world: Any) -> None:
    newest, oldest = world.read_session(), world.read_sessions()[0]
    assert json.loads(call(world, "show", "--json").stdout)["id"] == newest.id
    assert json.loads(call(world, "show", "cp1", "--json").stdout)["id"] == oldest.id
    assert json.loads(call(world, "show", oldest.id, "--json").stdout)["id"] == oldest.id
    shown = call(world, "show").stdout
    for line in ("state      IN_PROGRESS", "outcome    open", "retries    retryCount 1 of 3"):
        assert line in shown
    published = call(world, "show", "cp1").stdout
    assert f"entry      {oldest.lineage_entry_id}, its end was sent" in published
    assert "audit      passed at 20" in published


def test_every_file_with_what_became_of_it(world: Any) -> None:
    values = json.loads(call(world, "show", "--files", "--json").stdout)
    files = {state["uri"].rsplit("/", 1)[-1]: state for state in values["fileStates"]}
    assert {name: state["status"] for name, state in files.items()} == {
        "F1": "done",
        "F2": "failed",
        "P1": "removed",
    }
    assert (files["F1"]["rows"], len(files["F1"]["segments"])) == (1, 1)
    assert world.staging.store.read(files["F1"]["receipt"])
    assert files["F2"]["failure"] == "UNREADABLE: as the test wants it"
    assert len(files["F2"]["planned"]) == 12
    shown = call(world, "show", "--files").stdout
    assert f"done     {files['F1']['uri']}  version" in shown
    assert "UNREADABLE: as the test wants it" in shown


def test_a_session_that_was_given_up_keeps_its_story(world: Any) -> None:
    world.clear()
    values = json.loads(call(world, "show", "cp2", "--files", "--json").stdout)
    assert values["outcome"] == "CLEARED"
    assert {s["uri"].rsplit("/", 1)[-1]: s["status"] for s in values["fileStates"]}["F2"] == "failed"


def test_a_node_that_cannot_be_read_hides_no_other(world: Any) -> None:
    with world.store() as store:
        store.zk.set(f"{store.path}/cp2", b"{torn")
    shown = call(world, "list")
    assert shown.exit_code == 0
    torn, whole = shown.stdout.splitlines()
    assert torn.startswith("cp2  cannot be read: ")
    assert whole.startswith("cp1  sync, DONE, PUBLISHED")
    values = json.loads(call(world, "list", "--json").stdout)["sessions"]
    assert values[0]["node"] == "cp2"
    assert values[0]["unreadable"]
    asked = call(world, "show")
    assert isinstance(asked.exception, SessionError)
    assert "ZooKeeper browser" in str(asked.exception)
    assert call(world, "show", "cp1").exit_code == 0


def test_a_session_that_is_not_kept(world: Any) -> None:
    asked = call(world, "show", "cp9")
    assert isinstance(asked.exception, SessionError)
    assert "the newest are kept: cp1, cp2" in str(asked.exception)


def test_a_table_without_sessions(make_addressed_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_addressed_world("sync")
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PINOT_ZOOKEEPER", world.zookeeper)
    assert call(world, "list").stdout == f"{world.table} has had no session yet\n"
    assert isinstance(call(world, "show").exception, SessionError)
