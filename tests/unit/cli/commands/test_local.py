"""`local up|status|down` as a person and as a script see them."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest
from typer.testing import CliRunner

from pinot_assets.cli.commands.local import app
from pinot_assets.errors import LocalStackError


@pytest.fixture
def run(toy: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PINOT_ASSETS_HOME", str(toy.home))
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_up_twice_a_repair_and_down(toy: Any, run: Any) -> None:
    first = run("up")
    assert first.exit_code == 0
    assert "The stack is up (Pinot 1.2.3)." in first.stdout
    assert toy.stack().up().controller_url in first.stdout
    assert "controller is ready" in first.stderr
    assert "runs already" in run("up").stdout
    os.kill(toy.pids()["broker-2"], signal.SIGKILL)
    while "broker-2" in toy.pids():
        pass
    assert "Repaired: broker-2 (" in run("up").stdout
    down = run("down")
    assert down.exit_code == 0
    assert "data are kept" in down.stdout
    assert toy.pids() == {}


def test_optional_parts_and_purge(toy: Any, run: Any) -> None:
    assert "S3" in run("up", "--s3").stdout
    assert "deleted" in run("down", "--purge").stdout
    assert not toy.home.exists()


def test_status_for_people_and_for_scripts(toy: Any, run: Any) -> None:
    toy.lacks = {"server-1": []}
    toy.stack().up()
    shown = run("status")
    assert shown.exit_code == 0
    assert [line.split()[:2] for line in shown.stdout.splitlines()[1:3]] == [
        ["zookeeper", "ready"],
        ["controller", "ready"],
    ]
    parts = {part["name"]: part for part in json.loads(run("status", "--json").stdout)}
    assert parts["controller"]["state"] == "ready"
    assert parts["controller"]["pid"] == toy.pids()["controller"]
    assert parts["kafka"]["state"] == "stopped"


def test_an_error_is_one_clear_message_and_exit_code_1(
    toy: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere[17]")
    failed = run("up")
    assert failed.exit_code == 1
    assert isinstance(failed.exception, LocalStackError)
    assert "JAVA_HOME is /nowhere[17], which holds no Java" in str(failed.exception)
    assert "unset JAVA_HOME" in (failed.exception.hint or "")
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize("command", ["up", "status", "down"])
def test_help_says_what_happens(run: Any, command: str) -> None:
    assert run(command, "--help").exit_code == 0
    assert command in run("--help").stdout
