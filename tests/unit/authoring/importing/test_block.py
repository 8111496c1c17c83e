"""`pinot-assets tables import`: what is carried, changed and dropped, and that no secret gets anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from pinot_assets.authoring.importing.block import Secrets, block_of
from pinot_assets.authoring.importing.relative_path import with_absolute_path
from pinot_assets.authoring.importing.settings_found import FoundSettings, ImportNote
from pinot_assets.cli.commands import new_specs
from pinot_assets.cli.main import app
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotAssetsError
from pinot_assets.table_spec.tables.load import load_table

SECRETS = ("hunter2", "AKIAIOSFODNN7EXAMPLE", "swordfish")
SCHEMA = {"schemaName": "air", "dimensionFieldSpecs": [{"name": "a", "dataType": "STRING"}]}
S3 = {
    "inputDirURI": "s3://lake/in/",
    "inputFormat": "csv",
    "includeFileNamePattern": "glob:**/*.csv",
    "input.fs.className": "org.apache.pinot.plugin.filesystem.S3PinotFS",
    "input.fs.prop.region": "eu-central-1",
    "input.fs.prop.accessKey": SECRETS[1],
    "input.fs.prop.secretKey": SECRETS[0],
    "recordReader.prop.delimiter": "|",
    "authToken": SECRETS[2],
}


def table(task: JsonObject, maps: Any = None, kind: str = "REFRESH") -> JsonObject:
    batch = {"segmentIngestionType": kind, "segmentIngestionFrequency": "DAILY"}
    return {
        "tableName": "air_OFFLINE",
        "tableType": "OFFLINE",
        "segmentsConfig": {"replication": "1"},
        "tenants": {},
        "tableIndexConfig": {},
        "metadata": {},
        "task": {"taskTypeConfigsMap": task},
        "ingestionConfig": {"batchIngestionConfig": {**batch, **({"batchConfigMaps": maps} if maps else {})}},
    }


FILE_INGESTION = table(
    {
        "FileIngestionTask": {
            **S3,
            "consistentPushEnabled": "true",
            "schedule": "0 */30 * * * ?",
            "state": "DONE",
        }
    }
)
GENERATION = table(
    {"SegmentGenerationAndPushTask": {"schedule": "0 */10 * * * ?", "tableMaxNumTasks": "10"}, "Other": {}},
    [
        {**S3, "outputDirURI": "s3://lake/out", "push.mode": "metadata", "strange": "1"},
        {"inputDirURI": "s3://lake/2"},
    ],
    kind="APPEND",
)
JOB = {
    "executionFrameworkSpec": {"name": "spark"},
    "jobType": "SegmentCreationAndTarPush",
    "inputDirURI": "s3://lake/in/",
    "includeFileNamePattern": "glob:**/*.csv",
    "outputDirURI": "s3://lake/out",
    "pinotFSSpecs": [
        {"scheme": "file", "className": "LocalPinotFS"},
        {
            "scheme": "s3",
            "className": "S3PinotFS",
            "configs": {"region": "eu-central-1", "accessKey": SECRETS[1], "secretKey": SECRETS[0]},
        },
    ],
    "recordReaderSpec": {"dataFormat": "csv", "configs": {"delimiter": "|"}},
    "tableSpec": {"tableName": "air"},
    "pinotClusterSpecs": [{"controllerURI": "http://pinot.example:9000"}],
    "pushJobSpec": {"pushMode": "tar", "pushAttempts": 2},
}


class Pinot:
    """Holds one table."""

    def get_table_config(self, name: str) -> JsonObject | None:
        return GENERATION if name == "air" else None

    def get_schema(self, name: str) -> JsonObject | None:
        return SCHEMA if name == "air" else None


@contextmanager
def pinot() -> Iterator[Any]:
    yield Pinot()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PINOT_ASSETS_TABLES", raising=False)
    Path("schema.json").write_text(json.dumps(SCHEMA))
    Path("job.yaml").write_text(yaml.safe_dump(JOB))
    Path("config.json").write_text(json.dumps({"OFFLINE": GENERATION}))
    return tmp_path


def call(*words: str) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_specs, "open_pinot", pinot)
        return CliRunner().invoke(app, ["tables", "import", *words])


def lines(*words: str) -> dict[str, str]:
    """The fate of each key."""
    shown = call(*words, "--schema", "schema.json", "--json")
    assert shown.exit_code == 0, shown.output
    values = json.loads(shown.stdout)
    assert values["problems"] == []
    for secret in SECRETS:
        assert secret not in shown.output + Path(values["file"]).read_text()
    fates = [(line["key"], line["fate"]) for line in values["keys"]]
    assert len(fates) == len(dict(fates)), "each key is told of once"
    return dict(fates)


def test_a_file_ingestion_task(folder: Path) -> None:
    Path("config.json").write_text(json.dumps(FILE_INGESTION))
    fates = lines("config.json")
    assert fates["input.fs.prop.secretKey"] == fates["input.fs.prop.accessKey"] == "changed"
    assert fates["authToken"] == fates["state"] == fates["input.fs.className"] == "dropped"
    assert fates["schedule"] == fates["consistentPushEnabled"] == "carried"
    spec = load_table(folder / "tables" / "air.yaml")
    assert spec.ingestion.input_props["secretKey"] == "${TABLE_AWS_SECRET_ACCESS_KEY}"
    assert spec.ingestion.schedule == "0 */30 * * * ?"
    assert spec.mode == "swap", "for the first run: what the task has pushed would stay beside it"
    assert spec.ingestion.ingestion_mode == "append"
    assert "task" not in spec.table_json


def test_segment_generation_and_push(folder: Path) -> None:
    fates = lines("config.json")
    assert fates["batchConfigMaps[1]"] == fates["outputDirURI"] == fates["strange"] == "dropped"
    assert fates["SegmentGenerationAndPushTask.tableMaxNumTasks"] == "dropped"
    assert fates["push.mode"] == fates["schedule"] == "carried"
    assert fates["ingestionMode"] == fates["output.segment.dir.uri"] == "added"
    spec = load_table(folder / "tables" / "air.yaml")
    assert spec.ingestion.input_dir_uri == "s3://lake/in/"
    assert spec.ingestion.reader == {"delimiter": "|"}
    assert spec.ingestion.push_kind == "consistent"
    # Pinot's own task would push the same files again; what else there is stays.
    assert spec.table_json["task"] == {"taskTypeConfigsMap": {"Other": {}}}
    assert "batchConfigMaps" not in spec.table_json["ingestionConfig"]["batchIngestionConfig"]


def test_the_spec_of_a_job(folder: Path) -> None:
    fates = lines("config.json", "--job-spec", "job.yaml")
    assert fates["pinotClusterSpecs"] == fates["executionFrameworkSpec"] == "dropped"
    spec = load_table(folder / "tables" / "air.yaml")
    assert spec.ingestion.input_props == {
        "region": "eu-central-1",
        "accessKey": "${TABLE_AWS_ACCESS_KEY_ID}",
        "secretKey": "${TABLE_AWS_SECRET_ACCESS_KEY}",
    }
    assert spec.ingestion.reader == {"delimiter": "|"}
    assert spec.ingestion.push_mode == "TAR"


def test_a_refresh_table_is_kept_equal_to_its_files(folder: Path) -> None:
    Path("config.json").write_text(json.dumps(table({}, [S3])))
    lines("config.json")
    spec = load_table(folder / "tables" / "air.yaml")
    assert (spec.mode, spec.ingestion.ingestion_mode) == ("swap", "sync")
    assert (
        "# added consistentPushSwapEnabled: for the first run" in (folder / "tables" / "air.yaml").read_text()
    )


def test_an_append_table_cannot_be_swapped_and_that_is_told(folder: Path) -> None:
    Path("config.json").write_text(json.dumps(table({}, [S3], kind="APPEND")))
    fates = lines("config.json")
    assert fates["consistentPushSwapEnabled"] == "to do"
    assert load_table(folder / "tables" / "air.yaml").mode == "append"
    assert "# to do consistentPushSwapEnabled" in (folder / "tables" / "air.yaml").read_text()


def test_from_the_controller_with_a_line_for_each_key(folder: Path) -> None:
    shown = call("--from-controller", "air_OFFLINE", "--out", "mine.yaml")
    assert shown.exit_code == 0
    assert "carried  inputFormat\n" in shown.stdout
    assert "set TABLE_AWS_ACCESS_KEY_ID, TABLE_AWS_SECRET_ACCESS_KEY in the environment" in shown.stdout
    assert load_table(folder / "mine.yaml").name == "air"
    assert "# dropped outputDirURI" in (folder / "mine.yaml").read_text()


def test_takes_no_other_table_with_it(folder: Path) -> None:
    assert call("--from-controller", "air", "--out", "tables/mine.yaml").exit_code == 0
    refused = call("--from-controller", "air").exception
    assert isinstance(refused, PinotAssetsError)
    assert f"the table of {folder / 'tables' / 'mine.yaml'} would then be left out" in str(refused)
    assert [file.name for file in (folder / "tables").iterdir()] == ["mine.yaml"]


def test_what_is_left_to_mend_is_told_and_written(folder: Path) -> None:
    Path("config.json").write_text(json.dumps(table({}, [{**S3, "inputFormat": "thrift"}])))
    shown = call("config.json", "--schema", "schema.json")
    assert shown.exit_code == 1
    assert "problem" in shown.stdout
    assert "inputFormat" in shown.stdout
    assert (folder / "tables" / "air.yaml").is_file()


GOOD = json.dumps(table({}, [S3]))
BOTH = ["config.json", "--schema", "schema.json"]


@pytest.mark.parametrize(
    ("content", "words", "says"),
    [
        ("{", BOTH, "config.json cannot be read as JSON"),
        ("[]", BOTH, "is not a JSON object"),
        ("[" * 5000, BOTH, "nested too deeply"),
        ('{"a":' * 900 + "1" + "}" * 900, BOTH, "nested too deeply"),
        ("{}", BOTH, "no tableName"),
        (json.dumps(table({})), BOTH, "no ingestion to import"),
        (json.dumps(table({}, True)), BOTH, "no ingestion to import"),
        (GOOD, ["config.json"], "--schema"),
        ("", ["nowhere.json"], "cannot be read"),
        ("", ["."], "cannot be read"),
        ("", [], "not clear which table config"),
        ("", ["config.json", "--from-controller", "air"], "not clear which table config"),
        ("", ["--from-controller", "nowhere"], "Pinot has no OFFLINE table nowhere"),
        (GOOD, [*BOTH, "--out", "schema.json"], "exists already"),
        (GOOD, [*BOTH, "--job-spec", "schema.json"], "no inputDirURI"),
        (GOOD, [*BOTH, "--out", "/proc/x/y"], "cannot be written"),
        (json.dumps({**table({}, [S3]), "tableName": "a.b"}), BOTH, "cannot be the name of a table"),
    ],
)
def test_wrong_input_is_a_sentence(content: str, words: list[str], says: str) -> None:
    Path("config.json").write_text(content)
    error = call(*words).exception
    assert isinstance(error, PinotAssetsError)
    assert says in str(error)
    assert not Path("tables").exists()
    assert not any(secret in str(error) for secret in SECRETS)


def test_json_of_a_binary_file_is_a_sentence() -> None:
    Path("config.json").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8 text" in str(call("config.json").exception)


@pytest.mark.parametrize(
    "text",
    [
        "inputDirURI: s3://lake\nconfigs: {secretKey: hunter2 oops: [}\n",
        "inputDirURI: 'hunter2\n",
        "a: hunter2: b\n",
        "secretKey: hunter2\nsecretKey: swordfish\n",
        "a: !hunter2 b\n",
    ],
)
def test_a_job_spec_that_is_no_yaml_tells_the_line_and_nothing_of_it(text: str) -> None:
    Path("config.json").write_text(GOOD)
    Path("job.yaml").write_text(text)
    error = call(*BOTH, "--job-spec", "job.yaml").exception
    assert isinstance(error, PinotAssetsError)
    assert "job.yaml:" in str(error)
    assert not any(secret in str(error) for secret in SECRETS)


def test_different_secrets_become_different_variables(folder: Path) -> None:
    task = {
        **S3,
        "output.fs.prop.secretKey": "another",
        "output.fs.prop.accessKey": SECRETS[1],
        "input.fs.prop.sessionToken": "one",
        "output.fs.prop.sessionToken": "two",
    }
    Path("config.json").write_text(json.dumps(table({"FileIngestionTask": task})))
    shown = call(*BOTH)
    ingestion = load_table(folder / "tables" / "air.yaml").ingestion
    assert ingestion.input_props["secretKey"] == "${TABLE_AWS_SECRET_ACCESS_KEY}"
    assert ingestion.output_props["secretKey"] == "${TABLE_AWS_SECRET_ACCESS_KEY_2}"
    assert (
        ingestion.input_props["accessKey"]
        == ingestion.output_props["accessKey"]
        == "${TABLE_AWS_ACCESS_KEY_ID}"
    )
    assert (ingestion.input_props["sessionToken"], ingestion.output_props["sessionToken"]) == (
        "${TABLE_AWS_SESSION_TOKEN}",
        "${TABLE_AWS_SESSION_TOKEN_2}",
    )
    secrets = (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SECRET_ACCESS_KEY_2",
        "AWS_SESSION_TOKEN",
        "AWS_SESSION_TOKEN_2",
    )
    names = ", ".join(f"TABLE_{name}" for name in secrets)
    assert f"set {names} in the environment" in shown.stdout


def test_a_secret_takes_no_variable_that_stands_for_another(folder: Path) -> None:
    task = {
        **S3,
        "output.fs.prop.accessKey": "${TABLE_KEY}",
        "output.fs.prop.secretKey": "${TABLE_AWS_SECRET_ACCESS_KEY}",
    }
    Path("config.json").write_text(json.dumps(table({"FileIngestionTask": task})))
    call(*BOTH)
    ingestion = load_table(folder / "tables" / "air.yaml").ingestion
    assert ingestion.output_props["secretKey"] == "${TABLE_AWS_SECRET_ACCESS_KEY}"
    assert ingestion.input_props["secretKey"] == "${TABLE_AWS_SECRET_ACCESS_KEY_2}"


def test_the_staging_area_is_not_made_of_a_location_that_is_a_secret(folder: Path) -> None:
    task = {**S3, "inputDirURI": f"s3://key:{SECRETS[0]}@lake/in/"}
    Path("config.json").write_text(json.dumps(table({}, [task])))
    shown = call(*BOTH)
    text = (folder / "tables" / "air.yaml").read_text()
    assert SECRETS[0] not in shown.output + text
    block = yaml.safe_load(text)["fileIngestion"]
    assert block["inputDirURI"] == "${TABLE_INPUT_DIR_URI}"
    assert block["output.segment.dir.uri"] == "${PINOT_ASSETS_STAGING}"


@pytest.mark.parametrize(
    ("location", "staging"),
    [
        ("s3://lake/", None),
        ("s3a://lake", None),
        ("gs://lake//", None),
        ("abfss://files@account.dfs.core.windows.net/", None),
        ("s3://${TABLE_BUCKET}/", None),
        ("${TABLE_PLACE}/", None),
        ("${TABLE_PLACE:-s3://lake}", None),
        ("file:///", None),
        ("/", None),
        ("s3://lake/in/", "s3://lake/in-pinot-staging"),
        ("s3://lake/${TABLE_PREFIX}", "s3://lake/${TABLE_PREFIX}-pinot-staging"),
        ("file:/lake", "file:/lake-pinot-staging"),
        ("/lake", "/lake-pinot-staging"),
        ("lake", "lake-pinot-staging"),
    ],
)
def test_the_staging_area_lies_in_the_bucket_of_the_files(location: str, staging: str | None) -> None:
    """Names of buckets are of the whole world: one that is made up is somebody else's."""
    told: list[ImportNote] = []
    found = FoundSettings("ingestionJobSpec", {"inputDirURI": location, "inputFormat": "csv"}, {})
    block = block_of(found, told, Secrets(told))
    assert block["output.segment.dir.uri"] == (staging or "${PINOT_ASSETS_STAGING}")
    (line,) = (line for line in told if line.key == "output.segment.dir.uri")
    assert ("PINOT_ASSETS_STAGING" in line.why) == (staging is None)


def leaves(value: object, path: str = "") -> Iterator[str]:
    """Paths of the values of a JSON document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{number}]")
    else:
        yield path


def test_no_key_of_a_job_goes_without_a_word(folder: Path) -> None:
    job: JsonObject = json.loads(json.dumps(JOB))
    job["recordReaderSpec"] |= {"className": "CSVRecordReader", "configClassName": "Config"}
    job["pinotFSSpecs"].append({"scheme": "hdfs", "configs": {"hadoop.conf.path": "/etc"}})
    Path("job.yaml").write_text(yaml.safe_dump(job))
    fates = lines("config.json", "--job-spec", "job.yaml")
    taken = {
        "recordReaderSpec.dataFormat": "inputFormat",
        "recordReaderSpec.configs.delimiter": "recordReader.prop.delimiter",
        "pinotFSSpecs[1].configs.region": "input.fs.prop.region",
        "pinotFSSpecs[1].configs.accessKey": "input.fs.prop.accessKey",
        "pinotFSSpecs[1].configs.secretKey": "input.fs.prop.secretKey",
        "pushJobSpec.pushMode": "push.mode",
    }
    for leaf in leaves(job):
        if leaf != "pinotFSSpecs[1].scheme":
            assert any(taken.get(leaf, leaf).startswith(told) for told in fates), leaf
    assert (
        fates["pinotFSSpecs[0]"]
        == fates["pinotFSSpecs[2]"]
        == fates["pinotFSSpecs[1].className"]
        == "dropped"
    )
    assert fates["recordReaderSpec.className"] == fates["pushJobSpec.pushAttempts"] == "dropped"


@pytest.mark.parametrize(("files", "spec"), [("s3a", "s3"), ("s3", "s3a"), ("abfss", "adl2")])
def test_a_store_may_have_several_names(folder: Path, files: str, spec: str) -> None:
    job = {
        **JOB,
        "inputDirURI": f"{files}://lake@a.dfs.core.windows.net/in",
        "pinotFSSpecs": [{"scheme": spec, "configs": {"region": "r"}}],
    }
    Path("job.yaml").write_text(yaml.safe_dump(job))
    call(*BOTH, "--job-spec", "job.yaml")
    assert (
        yaml.safe_load((folder / "tables" / "air.yaml").read_text())["fileIngestion"]["input.fs.prop.region"]
        == "r"
    )


@pytest.mark.parametrize("names", [("OFFLINE", "REALTIME"), ("offline", "realtime")])
def test_the_realtime_half_of_a_table_is_told(names: tuple[str, str]) -> None:
    Path("config.json").write_text(json.dumps(dict.fromkeys(names, GENERATION)))
    assert lines("config.json")[names[1]] == "dropped"


@pytest.mark.parametrize(
    ("location", "fate"),
    [("data/in", "to do"), ("./in", "to do"), ("/lake/in", "carried"), ("s3://l/in", "carried")],
)
def test_a_relative_directory_counts_from_elsewhere_now(folder: Path, location: str, fate: str) -> None:
    Path("job.yaml").write_text(yaml.safe_dump({**JOB, "inputDirURI": location}))
    shown = call("config.json", "--schema", "schema.json", "--job-spec", "job.yaml", "--json")
    told = [line for line in json.loads(shown.stdout)["keys"] if line["key"] == "inputDirURI"]
    assert [line["fate"] for line in told] == [fate]
    if fate == "to do":
        assert "absolute path" in told[0]["why"]


@pytest.mark.parametrize(
    ("job", "data", "base"),
    [
        ("job.yaml", "examples/rawdata", "."),  # started in the folder where it is imported, too
        ("pinot/examples/air/job.yaml", "pinot/examples/rawdata", "pinot"),  # an example of the distribution
        ("pinot/examples/air/job.yaml", "pinot/examples/air/examples/rawdata", "pinot/examples/air"),
    ],
)
def test_a_relative_directory_of_a_job_is_found(folder: Path, job: str, data: str, base: str) -> None:
    Path(data).mkdir(parents=True)
    Path(job).parent.mkdir(parents=True, exist_ok=True)
    Path(job).write_text(yaml.safe_dump({**JOB, "inputDirURI": "examples/rawdata", "pinotFSSpecs": []}))
    shown = call("config.json", "--schema", "schema.json", "--job-spec", job, "--json")
    answer = json.loads(shown.stdout)
    [told] = [line for line in answer["keys"] if line["key"] == "inputDirURI"]
    assert told["fate"] == "changed"
    assert f"exists from {(folder / base).resolve()}" in told["why"]
    block = yaml.safe_load(Path(answer["file"]).read_text())["fileIngestion"]
    assert block["inputDirURI"] == str((folder / data).resolve())
    assert block["output.segment.dir.uri"] == f"{block['inputDirURI']}-pinot-staging"


def test_the_current_folder_comes_first_and_the_disks_own_is_not_searched(folder: Path) -> None:
    for data in ("data", "pinot/data"):
        Path(data).mkdir(parents=True)
    Path("pinot/job.yaml").write_text(yaml.safe_dump({**JOB, "inputDirURI": "data", "pinotFSSpecs": []}))
    shown = call("config.json", "--schema", "schema.json", "--job-spec", "pinot/job.yaml", "--json")
    answer = json.loads(shown.stdout)
    block = yaml.safe_load(Path(answer["file"]).read_text())["fileIngestion"]
    assert block["inputDirURI"] == str((folder / "data").resolve())
    ingestion = FoundSettings("job", {"inputDirURI": "tmp"}, {})
    assert with_absolute_path(ingestion, folder / "job.yaml", folder, []) == ingestion  # there is a /tmp


def test_of_several_tables_a_bad_one_stops_no_other(folder: Path) -> None:
    whole = {"schema": SCHEMA, "offline": FILE_INGESTION}
    other = {**whole, "offline": {**FILE_INGESTION, "tableName": "sea_OFFLINE"}}
    Path("air.json").write_text(json.dumps(whole))
    Path("broken.json").write_text("{")
    Path("none.json").write_text(json.dumps({"tableName": "x"}))
    Path("sea.json").write_text(json.dumps(other))
    files = ["broken.json", "air.json", "none.json", "sea.json", "gone.json"]
    shown = call(*files, "--json")
    assert shown.exit_code == 1
    answers = json.loads(shown.stdout)
    assert [answer.get("from", answer.get("config")) for answer in answers] == [
        *("broken.json", "FileIngestionTask", "none.json", "FileIngestionTask", "gone.json")
    ]
    assert "cannot be read as JSON" in answers[0]["error"]
    assert {path.name for path in Path("tables").iterdir()} == {"air.yaml", "sea.yaml"}
    again = call(*files)
    assert again.exit_code == 1
    assert again.stdout.count("not imported") == len(files)  # the two exist by now


def test_what_belongs_to_one_table_is_not_taken_for_several(folder: Path) -> None:
    refused = call("config.json", "config.json", "--job-spec", "job.yaml").exception
    assert "belong to one table" in str(refused)
    shown = call("--from-controller", "nowhere", "--from-controller", "air", "--json")
    assert [answer.get("error") for answer in json.loads(shown.stdout)] == [
        "Pinot has no OFFLINE table nowhere",
        None,
    ]
