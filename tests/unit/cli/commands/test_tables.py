from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.realtime.specs import write_realtime_table
from fakes.tables import SYNC, write_table
from typer.testing import CliRunner, Result

from pinot_assets.cli.commands import tables as tables_commands
from pinot_assets.cli.main import app
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import PinotError, PinotUnreachable, PreflightRefused, SpecError
from pinot_assets.realtime.model.settings import table_settings
from pinot_assets.table_spec import load_tables
from pinot_assets.table_spec.tables.apply import ApplyPlan


class Controller:
    def __init__(self) -> None:
        self.schemas: JsonObject = {}
        self.tables: JsonObject = {}
        self.realtime: JsonObject = {}
        self.refused: set[str] = set()
        self.away_from: str | None = None

    def get_schema(self, name: str) -> JsonObject | None:
        return self.schemas.get(name)

    def put_schema(self, schema: JsonMapping) -> None:
        self.schemas[schema["schemaName"]] = dict(schema)

    def delete_schema(self, name: str) -> None:
        del self.schemas[name]

    def all_segments(self, table: str) -> frozenset[str]:
        return frozenset()

    def validate_table(self, schema: JsonMapping, config: JsonMapping) -> None:
        if config["tableName"] in self.refused:
            raise PinotError("POST /tableConfigs/validate was refused", why="no such tenant")

    def get_table_config(self, table: str) -> JsonObject | None:
        return self.tables.get(table)

    def get_realtime_config(self, table: str) -> JsonObject | None:
        return self.realtime.get(table)

    def create_table(self, config: JsonMapping) -> None:
        if config["tableName"] == self.away_from:
            raise PinotUnreachable("no connection")
        tables = self.realtime if config["tableType"] == "REALTIME" else self.tables
        tables[config["tableName"]] = dict(config)

    update_table = create_table


@pytest.fixture
def controller() -> Controller:
    return Controller()


@pytest.fixture
def gated() -> list[str]:
    """Tables whose change was looked at; a gate refuses while it holds "shut"."""
    return []


@pytest.fixture
def run(controller, folder, gated, monkeypatch):
    @contextmanager
    def open_store() -> Iterator[Controller]:
        yield controller

    def gate(plan: ApplyPlan) -> None:
        if "shut" in gated:
            raise PreflightRefused("the preflight refuses")
        gated.append(plan.spec.name_with_type)

    monkeypatch.setattr(tables_commands, "open_pinot", open_store)
    monkeypatch.setattr(tables_commands, "_gate", gate)

    def invoke(*arguments: str, answer: str | None = None, tables: bool = True) -> Any:
        where = ["--tables", str(folder.path)] if tables else []
        return CliRunner().invoke(app, ["tables", *arguments, *where], input=answer)

    return invoke


def test_validate_shows_what_is_good(run, folder):
    file = folder.spec({"tableMaxNumTasks": "3"})
    result = run("validate")
    assert result.exit_code == 0
    assert "ok flights" in result.output
    assert f"{file}:" in result.output
    assert "note fileIngestion.tableMaxNumTasks" in result.output


def test_validate_shows_every_problem_and_fails(run, folder):
    folder.spec({"inputFormat": "thrift", "input.fs.prop.secretKey": "hunter2[bold]"}, name="a.yaml")
    folder.text("[", "b.yaml")
    result = run("validate")
    assert result.exit_code == 1
    for part in ("a.yaml:", "b.yaml:1: problem: not valid", "inputFormat", "${TABLE_AWS_SECRET_ACCESS_KEY}"):
        assert part in result.output
    assert "hunter2" not in result.output


def test_validate_takes_single_files(run, folder):
    folder.text("[", "bad.yaml")
    good = folder.spec()
    assert run("validate", str(good), tables=False).exit_code == 0
    assert run("validate", str(folder.path / "none.yaml"), tables=False).exit_code == 1


def test_validate_takes_the_names_of_tables(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flights").mkdir()  # its data
    folder.spec(name="any.yaml")
    folder.text("[", "bad.yaml")
    good = run("validate", "flights")
    assert (good.exit_code, "ok flights" in good.output, "bad.yaml" in good.output) == (0, True, False)
    assert run("validate", "flights_OFFLINE").exit_code == 0
    bad = run("validate", "bad")
    assert (bad.exit_code, "bad.yaml:" in bad.output, "any.yaml" in bad.output) == (1, True, False)


def test_validate_knows_a_name_that_is_nearly_right(run, folder):
    folder.spec()
    result = run("validate", "fligths")
    assert isinstance(result.exception, SpecError)
    assert "there is no table spec for fligths" in str(result.exception)
    assert "did you mean flights?" in str(result.exception)


def test_validate_takes_folders(run, folder, tmp_path):
    folder.spec()
    folder.text("[", "bad.yaml")
    result = run("validate", str(folder.path), tables=False)
    assert (result.exit_code, "ok flights" in result.output, "bad.yaml:" in result.output) == (1, True, True)
    (tmp_path / "data").mkdir()
    empty = run("validate", str(tmp_path / "data"))
    assert isinstance(empty.exception, SpecError)
    assert f"there is no *.yaml in {tmp_path / 'data'}" in str(empty.exception)


def test_validate_says_that_there_is_nothing(run, folder):
    result = run("validate")
    assert isinstance(result.exception, SpecError)
    assert f"there is no *.yaml in {folder.path}" in str(result.exception)


def test_apply_asks_first(run, folder, controller):
    folder.spec()
    refused = run("apply", answer="n\n")
    assert (refused.exit_code, controller.schemas, controller.tables) == (1, {}, {})
    assert "will be created" in refused.output
    assert run("apply", answer="y\n").exit_code == 0
    assert list(controller.tables) == list(controller.schemas) == ["flights"]


def test_apply_shows_the_difference(run, folder, controller):
    folder.spec()
    run("apply", "--yes")
    folder.spec(change=lambda w: w["table"]["segmentsConfig"].update(replication="3"))
    result = run("apply", "--dry-run")
    assert result.exit_code == 0
    assert "table.segmentsConfig.replication" in result.output
    assert '"3"' in result.output
    assert controller.tables["flights"]["segmentsConfig"]["replication"] == "2"
    assert "applied flights" in run("apply", "flights", "--yes").output
    assert controller.tables["flights"]["segmentsConfig"]["replication"] == "3"
    assert "up to date" in run("apply").output


def test_apply_refuses_bad_specs_and_unknown_names(run, folder, controller):
    folder.spec()
    assert isinstance(run("apply", "flihgts").exception, SpecError)
    folder.text("[", "flights.yaml")
    assert isinstance(run("apply", "--yes").exception, SpecError)
    assert controller.tables == {}


def several(folder, *names: str) -> None:
    for name in names:

        def change(whole, name=name):
            whole["schema"]["schemaName"] = whole["table"]["tableName"] = name

        folder.spec(change=change, name=f"{name}.yaml")


def test_a_broken_file_keeps_no_other_table_from_being_applied(run, folder, controller):
    several(folder, "a", "c", "d")
    folder.text("[", "b.yaml")
    controller.refused.add("c")
    result = run("apply", "--yes")
    assert result.exit_code == 1
    assert list(controller.tables) == list(controller.schemas) == ["a", "d"]
    assert "applied a" in result.stdout
    assert f"not applied: left out: {folder.path / 'b.yaml'}:1: " in result.stderr
    assert "not applied: c_OFFLINE: Pinot would not accept c_OFFLINE" in result.stderr
    again = json.loads(run("apply", "--dry-run", "--json").stdout)
    assert [(one["table"], one["applied"], one.get("exit")) for one in again] == [
        ("a_OFFLINE", False, None),
        ("c_OFFLINE", False, 1),
        ("d_OFFLINE", False, None),
        ("b", False, 1),
    ]


def test_one_named_table_is_applied_beside_broken_files(run, folder, controller):
    several(folder, "a")
    folder.text("[", "b.yaml")
    assert run("apply", "a", "--yes").exit_code == 0
    assert list(controller.tables) == ["a"]
    assert "b.yaml:1" in str(run("apply", "b", "--yes").exception)
    both = run("apply", "a", "b", "--yes")
    assert (both.exit_code, "left out" in both.stderr) == (1, True)


def test_once_pinot_is_away_the_rest_is_not_tried_and_named(run, folder, controller):
    several(folder, "a", "b", "c")
    controller.away_from = "b"
    result = run("apply", "--yes")
    assert result.exit_code == 1
    assert list(controller.tables) == ["a"]
    assert "not applied: b_OFFLINE: no connection" in result.stderr
    assert "not applied: c_OFFLINE: it was not tried: Pinot went away" in result.stderr


def test_a_preflight_that_refuses_keeps_no_other_table_from_being_applied(run, folder, controller, gated):
    folder.spec()
    folder.realtime()
    gated.append("shut")
    assert run("apply", "--yes").exit_code == 2
    assert list(controller.tables) == ["flights"]
    assert not controller.realtime


def test_what_stays_for_good_is_told_with_the_difference(run, folder):
    folder.spec()
    run("apply", "--yes")
    folder.spec(change=lambda w: w["schema"]["dimensionFieldSpecs"].append({"name": "x", "dataType": "INT"}))
    shown = run("apply", "--dry-run").stdout
    assert "cannot be undone: Pinot never removes a column from a schema: the column x" in shown
    (told,) = json.loads(run("apply", "--dry-run", "--json").stdout)
    assert len(told["cannotBeTakenBack"]) == 1


def test_a_table_to_start_from_is_good_as_it_stands(run, folder, tmp_path, monkeypatch):
    policy = tmp_path / "policy" / "of-brokers.yaml"
    policy.parent.mkdir()
    policy.write_text("endpoints: ['kafka://kafka-1:9092', 'kafka://kafka-2']")
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    assert run("init", "web-hits").exit_code == 0
    made = run("init", "clicks", "--table-type", "realtime", "--brokers", "kafka-1:9092,kafka-2:9092")
    assert (made.exit_code, f"wrote {folder.path / 'clicks.yaml'}" in made.output) == (0, True)
    validated = run("validate")
    assert validated.exit_code == 0
    notes = [line for line in validated.output.splitlines() if " note " in line]
    assert [line for line in notes if "web-hits does not exist" not in line] == []
    clicks = load_tables(folder.path).realtime["clicks"]
    (stream,) = table_settings(clicks.table_json).streams
    assert stream["stream.kafka.broker.list"] == "kafka-1:9092,kafka-2:9092"
    assert table_settings(clicks.table_json).bypasses
    assert "${TABLE_KAFKA_JAAS_CONFIG}" in (folder.path / "clicks.yaml").read_text()


def test_a_spec_that_is_there_is_not_begun_anew(run, folder):
    file = folder.spec()
    before = file.read_text()
    refused = run("init", file.stem)
    assert isinstance(refused.exception, SpecError)
    assert "exists already" in str(refused.exception)
    assert file.read_text() == before


@pytest.mark.parametrize("name", ["../other", "no/such", "a.b", ""])
def test_no_table_is_begun_under_a_name_that_pinot_does_not_take(run, folder, name):
    refused = run("init", name)
    assert isinstance(refused.exception, SpecError)
    assert list(folder.path.iterdir()) == []


def test_no_table_is_begun_that_would_be_the_policy_of_its_folder(run, folder):
    folder.spec()
    refused = run("init", "policy")
    assert isinstance(refused.exception, SpecError)
    assert "is the policy of its folder" in str(refused.exception)
    assert run("validate").exit_code == 0


def test_no_table_is_begun_that_would_take_another_one_with_it(run, folder):
    """A file may be called otherwise than its table, and both halves of a hybrid table have one schema."""
    before = folder.spec(name="files.yaml").read_text()
    for kind in ("offline", "realtime"):
        refused = run("init", "flights", "--table-type", kind)
        assert isinstance(refused.exception, SpecError)
        assert f"the table of {folder.path / 'files.yaml'} would then be left out" in str(refused.exception)
    assert [file.name for file in folder.path.iterdir()] == ["files.yaml"]
    assert (folder.path / "files.yaml").read_text() == before
    assert list(load_tables(folder.path)) == ["flights"]


def listed(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["tables", "list", "--tables", str(folder / "tables"), *options])


DAILY = {
    **SYNC,
    "inputDirURI": "${TABLE_LAKE}/in",
    "schedule": "0 0 4 * * ?",
    "scheduleTimezone": "Europe/Berlin",
}


def test_tables_are_listed_as_their_files_have_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLE_LAKE", str(tmp_path / "lake"))
    write_table(tmp_path, "daily", DAILY)
    write_realtime_table(tmp_path)
    result = listed(tmp_path, "--json")
    assert result.exit_code == 0
    clicks, daily = json.loads(result.stdout)
    assert clicks == {
        "table": "clicks",
        "type": "REALTIME",
        "mode": None,
        "source": "kafka: t",
        "file": str(tmp_path / "tables" / "clicks.yaml"),
        "schedule": None,
        "timezone": None,
    }
    assert (daily["type"], daily["mode"], daily["source"]) == ("OFFLINE", "sync", "${TABLE_LAKE}/in")
    assert (daily["schedule"], daily["timezone"]) == ("0 0 4 * * ?", "Europe/Berlin")
    for_people = listed(tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in for_people] == ["table", "clicks", "daily"]
    assert for_people[2].endswith("  0 0 4 * * ?")


def test_a_broken_spec_is_listed_as_broken(tmp_path: Path) -> None:
    write_table(tmp_path, "daily")
    (tmp_path / "tables" / "a.yaml").write_text("[")
    result = listed(tmp_path)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1].split()[:2] == ["a", "broken"]
    assert "a.yaml:" in result.stderr
    broken, daily = json.loads(listed(tmp_path, "--json").stdout)
    assert (broken["table"], broken["type"], broken["exit"]) == ("a", "broken", 1)
    assert daily["table"] == "daily"


def test_json_schema_is_printed(run):
    assert json.loads(run("json-schema", tables=False).output)["title"] == "pinot-assets table spec"


def test_both_kinds_are_shown(run, folder):
    folder.spec()
    folder.realtime()
    output = run("validate").output
    assert "flights.yaml): append, csv" in output
    assert "flights-realtime.yaml): REALTIME" in output


def test_a_realtime_table_passes_the_gate_before_it_is_made(run, folder, controller, gated):
    folder.spec()
    folder.realtime()
    assert run("apply", "--yes").exit_code == 0
    assert gated == ["flights_REALTIME"]
    assert controller.realtime["flights"]["tableType"] == "REALTIME"
    assert controller.tables["flights"]["tableType"] == "OFFLINE"
    assert run("apply", "--yes").exit_code == 0
    assert gated == ["flights_REALTIME"]  # nothing to change, nothing to ask


def test_a_gate_that_refuses_keeps_everything_as_it_is(run, folder, controller, gated):
    folder.realtime()
    gated.append("shut")
    result = run("apply", "--yes")
    assert isinstance(result.exception, PreflightRefused)
    assert not controller.realtime
    assert not controller.schemas


def test_the_policy_of_a_folder_is_no_table_spec(run, folder):
    good = folder.spec()
    policy = folder.text("variables: []", "policy.yaml")
    for arguments in ((), (str(good), str(policy))):
        result = run("validate", *arguments, tables=not arguments)
        assert result.exit_code == 0
        assert "ok flights" in result.output


def test_validate_tells_of_a_root_that_is_not_there(run, folder, tmp_path):
    folder.spec()
    (folder.path / "policy.yaml").write_text(f"endpoints: []\nroots: [project, {tmp_path}/gone]")
    shown = run("validate")
    assert shown.exit_code == 0
    assert f"policy.yaml:2: note roots[1]: {tmp_path}/gone does not exist on this machine" in shown.output
