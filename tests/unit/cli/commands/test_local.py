"""`local up|status|down` as a person and as a script see them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.apache_site import pinot_jar
from fakes.tables import write_table
from fakes.toy_stack import Toy, write_distribution
from typer.testing import CliRunner, Result

from pinot_assets.cli import main
from pinot_assets.cli.commands import local
from pinot_assets.cli.commands.local import app
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import LocalStackError
from pinot_assets.local import jars


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
    assert "already up" in run("up").stdout
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
    assert (parts["kafka"]["state"], parts["kafka"]["asked"]) == ("stopped", False)


def test_status_lists_what_was_asked_for(toy: Any, run: Any) -> None:
    def names() -> set[str]:
        return {line.split()[0] for line in run("status").stdout.splitlines()[1:]}

    toy.stack().up()
    assert "kafka" not in names()
    assert "s3" not in names()
    toy.stack().up(kafka=True)
    assert "kafka" in names()
    toy.stack().down()
    assert "kafka" in names(), "its data are there, and the next `up --kafka` brings it back"
    assert "s3" not in names()


class Pinot:
    """A Pinot without a table, and what was made in it."""

    def __init__(self) -> None:
        self.schemas: JsonObject = {}
        self.tables: JsonObject = {}

    def __enter__(self) -> Pinot:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get_schema(self, name: str) -> JsonObject | None:
        return self.schemas.get(name)

    def put_schema(self, schema: JsonMapping) -> None:
        self.schemas[str(schema["schemaName"])] = dict(schema)

    def all_segments(self, table: str) -> frozenset[str]:
        return frozenset()

    def validate_table(self, schema: JsonMapping, config: JsonMapping) -> None:
        pass

    def get_table_config(self, table: str) -> JsonObject | None:
        return self.tables.get(table)

    def create_table(self, config: JsonMapping) -> None:
        self.tables[str(config["tableName"])] = dict(config)


@pytest.fixture
def pinot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pinot:
    pinot = Pinot()
    write_table(tmp_path, "t")
    monkeypatch.chdir(tmp_path)
    for variable in ("PINOT_ASSETS_TABLES", "PINOT_CONTROLLER_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(local, "up", lambda **_: None)
    monkeypatch.setattr(local, "open_pinot", lambda: pinot)
    monkeypatch.setattr(local.ui, "runs_at", lambda _: None)
    monkeypatch.setattr(local.ui, "start", lambda *_: "http://127.0.0.1:3000")
    return pinot


@pytest.mark.parametrize(
    ("words", "answer", "made"),
    [(["dev"], "n\n", []), (["dev"], "y\n", ["t"]), (["dev", "--yes"], "", ["t"])],
)
def test_dev_makes_nothing_in_pinot_without_a_yes(
    pinot: Pinot, words: list[str], answer: str, made: list[str]
) -> None:
    shown = CliRunner().invoke(main.app, words, input=answer)
    assert shown.exit_code == 0, shown.output
    assert "table t_OFFLINE will be created" in shown.stdout
    assert ("Apply?" in shown.stdout) == (words == ["dev"])
    assert [*pinot.schemas] == made
    assert "http://127.0.0.1:3000" in shown.stdout, "the UI starts all the same"
    assert shown.stdout.splitlines()[-1] == "  pinot-assets down"


def test_dev_names_a_table_that_exists_or_how_to_make_one(pinot: Pinot, tmp_path: Path) -> None:
    def commands() -> list[str]:
        shown = CliRunner().invoke(main.app, ["dev", "--yes"])
        return [line.strip() for line in shown.stdout.splitlines() if line.startswith("  pinot-assets")]

    assert commands() == ["pinot-assets run t", "pinot-assets down"]
    write_table(tmp_path, "flights")
    write_table(tmp_path, "airports")
    assert commands()[0] == "pinot-assets run flights"
    for path in (tmp_path / "tables").iterdir():
        path.write_text("[")
    assert commands() == ["pinot-assets init FILES", "pinot-assets down"]


def test_dev_asks_nothing_where_pinot_is_as_the_specs_say(pinot: Pinot) -> None:
    assert CliRunner().invoke(main.app, ["dev", "--yes"]).exit_code == 0
    shown = CliRunner().invoke(main.app, ["dev"], input="")
    assert shown.exit_code == 0, shown.output
    assert "Apply?" not in shown.stdout


def test_an_error_is_one_clear_message_and_exit_code_1(
    toy: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere[17]")
    failed = run("up")
    assert failed.exit_code == 1
    assert isinstance(failed.exception, LocalStackError)
    assert "JAVA_HOME is /nowhere[17], which has no Java" in str(failed.exception)
    assert "unset JAVA_HOME" in (failed.exception.hint or "")
    assert "Traceback" not in failed.stderr


def test_another_release_of_pinot(
    toy: Toy, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = run("up", "--pinot", "1.5.1")
    assert isinstance(refused.exception, LocalStackError)
    assert "PINOT_HOME name two Pinots" in str(refused.exception)
    monkeypatch.delenv("PINOT_HOME")
    wrong = run("up", "--pinot", "newest")
    assert "'newest' is not a release of Apache Pinot" in str(wrong.exception)
    monkeypatch.setenv("PINOT_ASSETS_CACHE", str(toy.home / "cache"))
    write_distribution(toy.home / "cache" / "pinot" / "apache-pinot-1.5.1-bin", "1.5.1")
    assert "The stack is up (Pinot 1.5.1)." in run("up", "--pinot", "1.5.1").stdout


def test_the_first_start_of_mavens_pinot_names_the_way_to_a_newer_one(
    toy: Toy, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--pinot" not in run("up").stdout
    run("down", "--purge")
    monkeypatch.delenv("PINOT_HOME")
    cache = toy.home.with_name("cache")
    monkeypatch.setenv("PINOT_ASSETS_CACHE", str(cache))
    folder = jars._folder(jars.pom("pinot"), cache)
    folder.mkdir(parents=True)
    (folder / "000-pinot-tools-0.11.0.jar").write_bytes(pinot_jar("0.11.0"))
    lines = run("up").stdout.splitlines()
    assert lines[-3:] == [
        "0.11.0 is the newest Pinot that Maven Central has whole. For a newer one:",
        "  pinot-assets local down",
        "  pinot-assets local up --pinot 1.5.1",
    ]
    assert "--pinot" not in run("up").stdout


@pytest.mark.parametrize("command", ["up", "status", "down"])
def test_help_says_what_happens(run: Any, command: str) -> None:
    assert run(command, "--help").exit_code == 0
    assert command in run("--help").stdout
