from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SpecError
from pinot_assets.table_spec import check_tables, load_tables

# The block of StarTree's description with the two things that this project asks for beyond it.
PASTED = """\
schemaFile: events.schema.json
table:
  {
    "tableName": "events", "tableType": "OFFLINE",
    "segmentsConfig": {"replication": "1"}, "tenants": {}, "tableIndexConfig": {}, "metadata": {},
    "task": {
      "taskTypeConfigsMap": {
        "FileIngestionTask": {
          "input.fs.className": "org.apache.pinot.plugin.filesystem.S3PinotFS",
          "input.fs.prop.region": "eu-west-1",
          "input.fs.prop.secretKey": "${TABLE_AWS_SECRET_ACCESS_KEY}",
          "input.fs.prop.accessKey": "${TABLE_AWS_ACCESS_KEY_ID}",
          "inputDirURI": "s3://events-in/",
          "inputFormat": "json",
          "includeFileNamePattern": "glob:**/*.json.gz",
          "consistentPushEnabled": "true",
          "schedule": "0 */30 * * * ?",
          "output.segment.dir.uri": "s3://events-staging/events"
        }
      }
    }
  }
"""
EVENTS_SCHEMA = {"schemaName": "events", "dimensionFieldSpecs": [{"name": "id", "dataType": "STRING"}]}


def test_a_good_spec_becomes_values(folder):
    spec = folder.load(
        {"consistentPushMaxRetries": "3", "input.fs.prop.region": "eu", "push.mode": "metadata"}
    )
    assert (spec.name, spec.name_with_type, spec.asset_name) == ("flights", "flights_OFFLINE", "flights")
    assert spec.path == folder.path / "flights.yaml"
    assert (spec.ingestion.max_retries, spec.ingestion.push_mode) == (3, "METADATA")
    assert spec.ingestion.input_props == {"region": "eu"}
    assert spec.input_uri() == "s3://flights-in/2013"
    assert spec.staging_uri() == "s3://flights-staging/flights"
    assert spec.schema_json["schemaName"] == "flights"


def test_the_block_of_seed_000_can_be_pasted_at_its_own_place(folder):
    folder.text(PASTED, "events.yaml")
    (folder.path / "events.schema.json").write_text(json.dumps(EVENTS_SCHEMA, indent="\t"))
    specs, problems, notes = folder.check()
    assert problems == []
    (spec,) = specs
    assert spec.mode == "append"
    assert spec.schema_json == EVENTS_SCHEMA
    assert spec.ingestion.include == "glob:**/*.json.gz"
    assert spec.ingestion.schedule == "0 */30 * * * ?"
    assert spec.ingestion.input_props["secretKey"] == "${TABLE_AWS_SECRET_ACCESS_KEY}"
    assert "task" not in spec.table_json
    told = {note.key.rsplit("FileIngestionTask", 1)[-1].removeprefix("."): note.text for note in notes}
    assert "does not know this task type" in told[""]
    assert "scheme of inputDirURI" in told["input.fs.className"]
    assert tuple(notes) == tuple(sorted(spec.notes))


def test_other_tasks_of_the_table_stay(folder):
    def paste(whole: JsonObject) -> None:
        block = whole.pop("fileIngestion")
        whole["table"]["task"] = {"taskTypeConfigsMap": {"FileIngestionTask": block, "PurgeTask": {"a": "b"}}}

    assert folder.load(change=paste).table_json["task"] == {"taskTypeConfigsMap": {"PurgeTask": {"a": "b"}}}


def test_a_block_at_both_places_is_refused(folder):
    def paste(whole: JsonObject) -> None:
        whole["table"]["task"] = {"taskTypeConfigsMap": {"FileIngestionTask": dict(whole["fileIngestion"])}}

    (problem,) = folder.problems(change=paste)
    assert problem.key == "table.task.taskTypeConfigsMap.FileIngestionTask"
    assert "fileIngestion" in problem.reason


def test_no_block_is_refused(folder):
    (problem,) = folder.problems(change=lambda whole: whole.pop("fileIngestion"))
    assert "fileIngestion is missing" in problem.reason


def test_all_problems_of_all_files_are_in_one_error(folder):
    folder.spec({"inputFormat": "thrift", "consistentPushMaxRetries": "-1"}, name="a.yaml")
    folder.text("schema: [", "b.yaml")
    folder.text("", "c.yml")
    with pytest.raises(SpecError) as caught:
        load_tables(folder.path)
    text = str(caught.value)
    for part in ("a.yaml:", "inputFormat", "consistentPushMaxRetries", "b.yaml:1", "c.yml:1"):
        assert part in text
    assert "4 problems" in text


def test_an_audit_is_looked_at_beside_a_block_with_problems(folder):
    def change(whole):
        whole["audit"] = [{"check": "row_chance"}]

    found = folder.problems({"inputFormat": "thrift"}, change=change)
    assert [problem.key for problem in found] == ["fileIngestion.inputFormat", "audit[0].check"]


def test_problems_name_file_and_line(folder):
    file = folder.spec({"inputFormat": "thrift"})
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if "inputFormat" in text)
    _, (problem,), _ = folder.check()
    assert str(problem).startswith(f"{file}:{line}: fileIngestion.inputFormat: ")


def test_a_key_written_twice_names_both_lines(folder):
    file = folder.spec()
    file.write_text(file.read_text() + "  inputFormat: json\n")
    lines = [n for n, text in enumerate(file.read_text().splitlines(), 1) if "inputFormat" in text]
    _, (problem,), _ = folder.check()
    assert problem.line == lines[1]
    assert f"first in line {lines[0]}" in problem.reason


def test_two_files_for_one_table_are_refused_in_both(folder):
    a, b = folder.spec(name="a.yaml"), folder.spec(name="b.yaml")
    specs, problems, _ = folder.check()
    assert specs == []
    assert {problem.file for problem in problems} == {a, b}


def test_two_tables_with_one_asset_name_are_refused(folder):
    for index, name in enumerate(("day-one", "day_one")):
        folder.spec(change=lambda whole, name=name: _rename(whole, name), name=f"{index}.yaml")
    specs, problems, _ = folder.check()
    assert (specs, len(problems)) == ([], 2)


def _rename(whole: JsonObject, name: str) -> None:
    whole["table"]["tableName"] = whole["schema"]["schemaName"] = name


@pytest.mark.parametrize(
    ("change", "key", "reason"),
    [
        (lambda w: w.update(tabel={}), "tabel", "not a key"),
        (lambda w: w.pop("table"), "", "table is missing"),
        (lambda w: w.pop("schema"), "", "schema is missing"),
        (lambda w: w.update(schemaFile="x.json"), "schemaFile", "used together with schema"),
        (lambda w: (w.pop("schema"), w.update(schemaFile="x.json")), "schemaFile", "not a file"),
        (lambda w: w["table"].update(tableType="REALTIME"), "table.tableType", "consuming"),
        (lambda w: w["table"].update(isDimTable=True), "table.isDimTable", "dimension"),
        (lambda w: _rename(w, "a,b"), "table.tableName", "usable"),
        (lambda w: _rename(w, "a__cp1"), "table.tableName", "usable"),
        (lambda w: _rename(w, "db.flights"), "table.tableName", "usable"),
        (lambda w: w["table"].pop("tenants"), "table", "tenants is missing"),
        (lambda w: w["schema"].update(schemaName="other"), "schema.schemaName", "not the table's name"),
        (lambda w: w["schema"].pop("schemaName"), "schema", "schemaName is missing"),
        (
            lambda w: w["table"]["segmentsConfig"].update(timeColumnName="hour"),
            "table.segmentsConfig.timeColumnName",
            "not in the schema",
        ),
        (
            lambda w: w["table"]["segmentsConfig"].update(timeColumnName="flight"),
            "table.segmentsConfig.timeColumnName",
            "dateTimeFieldSpecs",
        ),
        (
            lambda w: w["table"]["tableIndexConfig"].update(sortedColumn=["carier"]),
            "table.tableIndexConfig.sortedColumn[0]",
            "not in the schema",
        ),
        (
            lambda w: w["schema"]["metricFieldSpecs"].append({"name": "carrier", "dataType": "INT"}),
            "schema.metricFieldSpecs[1]",
            "there twice",
        ),
        (
            lambda w: w["schema"]["metricFieldSpecs"][0].update(dataType="NUMBER"),
            "schema.metricFieldSpecs[0].dataType",
            "unknown type",
        ),
        (
            lambda w: w["schema"]["dimensionFieldSpecs"][0].update(
                singleValueField=False, dataType="BIG_DECIMAL"
            ),
            "schema.dimensionFieldSpecs[0]",
            "carrier: multi-value",
        ),
        (
            lambda w: w["table"].update(task={"taskTypeConfigsMap": {"MergeRollupTask": {}}}),
            "table.task.taskTypeConfigsMap.MergeRollupTask",
            "merges",
        ),
    ],
)
def test_what_is_refused_in_schema_and_table(folder, change, key, reason):
    problems = folder.problems(change=change)
    assert [problem.key for problem in problems] == [key]
    assert reason in problems[0].reason


@pytest.mark.parametrize("missing", ["schema", "table"])
def test_what_is_missing_is_the_only_problem_of_a_table_that_is_kept_in_sync(folder, missing):
    problems = folder.problems({"ingestionMode": "sync"}, change=lambda whole: whole.pop(missing))
    assert [problem.reason for problem in problems] == [f"{missing} is missing"]


def test_a_near_column_is_suggested(folder):
    (problem,) = folder.problems(
        change=lambda w: w["table"]["tableIndexConfig"].update(invertedIndexColumns=["carier"])
    )
    assert "carrier" in (problem.fix or "")


def test_the_older_push_type_counts_as_refresh(folder):
    def older(whole: JsonObject) -> None:
        del whole["table"]["ingestionConfig"]
        whole["table"]["segmentsConfig"]["segmentPushType"] = "REFRESH"

    assert folder.load({"ingestionMode": "sync"}, change=older).mode == "sync"


def test_an_empty_folder_is_no_problem_and_a_missing_one_is(tmp_path: Path):
    assert check_tables(tmp_path) == ([], [], [])
    (tmp_path / "file").touch()
    assert check_tables(tmp_path / "none")[1][0].reason == "does not exist"
    assert check_tables(tmp_path / "file")[1][0].reason == "is not a directory"


def test_choose_names_what_there_is(folder):
    folder.spec()
    tables = load_tables(folder.path)
    assert [spec.name for spec in tables.choose([])] == ["flights"]
    with pytest.raises(SpecError, match="did you mean flights"):
        tables.choose(["flihgts"])


# --- never a traceback ---------------------------------------------------------------------------

_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
_PATHS = [
    ("schema",),
    ("schema", "schemaName"),
    ("schema", "dimensionFieldSpecs"),
    ("schema", "dimensionFieldSpecs", 0),
    ("schema", "dimensionFieldSpecs", 0, "name"),
    ("schema", "dimensionFieldSpecs", 0, "dataType"),
    ("schema", "dimensionFieldSpecs", 0, "defaultNullValue"),
    ("schema", "dateTimeFieldSpecs", 0, "format"),
    ("table",),
    ("table", "tableName"),
    ("table", "tableType"),
    ("table", "segmentsConfig"),
    ("table", "segmentsConfig", "timeColumnName"),
    ("table", "tableIndexConfig"),
    ("table", "tableIndexConfig", "noDictionaryColumns"),
    ("table", "fieldConfigList"),
    ("table", "ingestionConfig"),
    ("table", "ingestionConfig", "batchIngestionConfig"),
    ("table", "task"),
    ("table", "task", "taskTypeConfigsMap"),
    ("table", "task", "taskTypeConfigsMap", "FileIngestionTask"),
    ("fileIngestion",),
    *[
        ("fileIngestion", key)
        for key in (
            *("inputDirURI", "inputFormat", "output.segment.dir.uri", "schedule", "consistentPushEnabled"),
            *(
                "consistentPushMaxRetries",
                "includeFileNamePattern",
                "push.mode",
                "minServer",
                "ingestionMode",
            ),
            *(
                "input.fs.prop.secretKey",
                "input.fs.prop.region",
                "recordReader.prop.delimiter",
                "taskMaxNumFiles",
            ),
            *("desiredSegmentSize", "recordReader.prop.header", "recordReader.prop", "input.fs.prop"),
        )
    ],
]


def _put(whole: Any, path: tuple[str | int, ...], value: Any) -> None:
    for step in path[:-1]:
        if isinstance(whole, dict) and step not in whole:
            whole[step] = {}
        whole = whole[step]
    whole[path[-1]] = value


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(path=st.sampled_from(_PATHS), value=_anything)
def test_any_value_anywhere_gives_a_spec_or_problems(folder, path, value):
    file = folder.spec(change=lambda whole: _put(whole, path, value))
    specs, problems, _ = folder.check()
    assert bool(problems) != bool(specs)
    assert all(str(problem).startswith(str(file)) and problem.line >= 1 for problem in problems)
    for spec in specs:
        assert len(spec.config_fingerprint("1")) == 64


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(text=st.text(max_size=80) | st.text(alphabet="{}[]:,-?&*!|>%@`'\"# \n\tab01.\\~<", max_size=60))
@example("a: &a [*a]")
@example('a: "\\UFFFFFFFF"')
@example('a: "\\ud800"')
@example("%YAML 1.1\n--- a")
@example("a: !!python/object:os.system {}")
@example("a: !!int x")
@example("a: !!binary x")
@example("? [a]\n: b")
@example("<<: {a: 1}")
@example("a: 1\n---\nb: 2")
@example("[" * 5000)
@example("a: " + "9" * 5000)
@example("a: 1e999")
@example("a: \x00")
@example("schema:\n\ttabs: 1")
def test_any_text_gives_problems(folder, text):
    folder.path.joinpath("x.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    specs, problems, _ = folder.check()
    assert specs == []
    assert problems


def test_bytes_that_are_no_text_are_a_problem(folder):
    (folder.path / "x.yaml").write_bytes(b"a: \xff\xfe")
    assert "UTF-8" in folder.check()[1][0].reason


def test_aliases_of_aliases_end_in_a_problem(folder):
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    folder.text("\n".join(lines))
    assert any("values" in problem.reason for problem in folder.check()[1])


@pytest.mark.parametrize(
    ("key", "fix"), [("schema", "the Pinot schema"), ("table", "the Pinot table config")]
)
def test_an_empty_file_is_told_what_belongs_into_it(folder, key, fix):
    (folder.path / "empty.json").touch()
    (problem,) = folder.problems(change=lambda w: (w.pop(key), w.update({f"{key}File": "empty.json"})))
    assert (problem.file.name, problem.reason) == ("empty.json", "is empty")
    assert problem.fix == f"write {fix} into it"


@pytest.mark.parametrize(
    ("name", "usable"), [("Order Date", "Order_Date"), ("a\tb", "a_b"), ("x ", "x"), ("\u2003", "column")]
)
@pytest.mark.parametrize("kind", ["offline", "realtime"])
def test_a_blank_in_the_name_of_a_column_is_refused_as_pinot_does(folder, kind, name, usable):
    def renamed(whole):
        whole["schema"]["dimensionFieldSpecs"].append({"name": name, "dataType": "STRING"})

    folder.spec(change=renamed) if kind == "offline" else folder.realtime(change=renamed)
    (problem,) = folder.check()[1]
    assert problem.key.startswith("schema.dimensionFieldSpecs[")
    assert "a blank in its name" in problem.reason
    assert problem.fix.startswith(f"name it {usable};")


def with_names_in_other_case(whole: JsonObject) -> None:
    whole["schema"]["dimensionFieldSpecs"] += [{"name": "Carrier", "dataType": "STRING"}]
    whole["schema"]["metricFieldSpecs"] += [{"name": "CARRIER", "dataType": "INT"}]


def test_names_that_brokers_do_not_tell_apart_are_noted(folder):
    found = folder.notes(change=with_names_in_other_case)
    for key in ("schema.dimensionFieldSpecs[2]", "schema.metricFieldSpecs[1]"):
        assert "differs from carrier only in upper and lower case" in found.pop(key)
    assert not any(key.startswith("schema") for key in found)
    folder.realtime(change=with_names_in_other_case, name="flights.yaml")
    _, problems, notes = folder.check()
    assert problems == []
    assert sum("upper and lower case" in note.text for note in notes) == 2
