"""What a spec reaches is refused by `validate` with the line that allows it, and again at the door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pinot_assets.core.installation_policy import UNLIMITED, Layer, Policy
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SettingError, SourceError, SpecError
from pinot_assets.session.detect.listing import KeptParts, resume_listing
from pinot_assets.session.detect.observe import list_source
from pinot_assets.session.stores.clients import open_hints, open_source, open_staging
from pinot_assets.table_spec import TableSpec

KEYS = {"input.fs.prop.accessKey": "${TABLE_KEY}", "input.fs.prop.secretKey": "${TABLE_SECRET}"}
GCS = {"inputDirURI": "gs://lake/in"}
ADLS = "abfss://raw@lake.dfs.evil.example/in"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PINOT_ASSETS_POLICY", "PINOT_ASSETS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name in ("TABLE_KEY", "TABLE_SECRET", "PINOT_PASSWORD", "LAKE_SECRET"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ambient")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")


REFUSED = [
    (
        {"input.fs.prop.accessKey": "${TABLE_KEY}", "input.fs.prop.secretKey": "${PINOT_PASSWORD}"},
        "input.fs.prop.secretKey",
        "never",
        "",
    ),
    ({"input.fs.prop.region": "${LAKE_SECRET}"}, "input.fs.prop.region", "LAKE_SECRET", "variables: ["),
    ({"inputDirURI": "s3://in/${LAKE_SECRET}"}, "inputDirURI", "LAKE_SECRET", "variables: ["),
    ({"inputDirURI": "s3://in/${HOME:-x}"}, "inputDirURI", "HOME", "variables: ["),
    (
        {"input.fs.prop.endpoint": "https://evil.example", **KEYS},
        "input.fs.prop.endpoint",
        "https://evil.example:443",
        "endpoints: [loopback, https://evil.example:443]",
    ),
    (
        {"input.fs.prop.endpoint": "http://127.0.0.1:9"},
        "input.fs.prop.endpoint",
        "own credentials",
        "ambientCredentials: [provider, http://127.0.0.1:9]",
    ),
    ({"inputDirURI": ADLS}, "inputDirURI", "lake.blob.evil.example", "endpoints: ["),
    (
        {**GCS, "input.fs.prop.endpoint": "http://localhost:9"},
        "input.fs.prop.endpoint",
        "own credentials",
        "ambientCredentials: [",
    ),
    (
        {**GCS, "input.fs.prop.gcpKey": "/etc/key.json"},
        "input.fs.prop.gcpKey",
        "literal secret",
        "${TABLE_GCP_KEY}",
    ),
    ({"inputDirURI": "file:///etc/ssl"}, "inputDirURI", "never read", ""),
    ({"inputDirURI": "/proc/self"}, "inputDirURI", "never read", ""),
    ({"inputDirURI": "../.git"}, "inputDirURI", "belongs to the project", "roots: [project, "),
    ({"output.segment.dir.uri": "../.git/x"}, "output.segment.dir.uri", "belongs to the project", "roots: ["),
    ({"inputDirURI": "/srv/lake"}, "inputDirURI", "outside", "roots: [project, /srv/lake"),
    (
        {"output.segment.dir.uri": "/srv/lake"},
        "output.segment.dir.uri",
        "outside",
        "roots: [project, /srv/lake",
    ),
    ({"notificationQueue": "https://evil.example/1/q"}, "notificationQueue", "evil.example", "endpoints: ["),
    (
        {"notificationQueue": "https://evil.example\\@sqs.eu-west-1.amazonaws.com/1/q"},
        "notificationQueue",
        "read differently",
        "without a user",
    ),
    (
        {"notificationQueue": "https://user@sqs.eu-west-1.amazonaws.com/1/q"},
        "notificationQueue",
        "read differently",
        "without a user",
    ),
    (
        {"notificationQueue": "https://sqs.x.amazonaws.com.evil.example/q"},
        "notificationQueue",
        "evil",
        "endpoints",
    ),
    (
        {"notificationQueue": "http://sqs.eu-west-1.amazonaws.com/1/q"},
        "notificationQueue",
        "http://sqs",
        "endpoints",
    ),
]


@pytest.mark.parametrize(("block", "key", "says", "line"), REFUSED)
def test_validate_refuses_and_prints_the_line_that_allows_it(
    folder: Any, block: dict[str, str], key: str, says: str, line: str
) -> None:
    (problem,) = [found for found in folder.problems(block) if found.key == f"fileIngestion.{key}"]
    assert says in problem.reason or says in (problem.fix or "") or says == "never"
    assert line in (problem.fix or "")
    assert "s3cret" not in str(problem)


def open_everything(spec: TableSpec) -> None:
    open_source(spec)
    open_staging(spec)
    if hints := open_hints(spec):
        hints.receive()


@pytest.mark.parametrize(("block", "key", "says", "line"), REFUSED)
def test_the_door_refuses_what_validate_did_not_see(
    folder: Any, block: dict[str, str], key: str, says: str, line: str
) -> None:
    """As after a change of a variable, or on an executor: the spec that comes to it was never checked."""
    spec = folder.unchecked(block)
    with pytest.raises((SourceError, SpecError)) as caught:
        open_everything(spec)
    assert line in str(caught.value)
    assert "s3cret" not in str(caught.value)


ALLOWED = [
    {"input.fs.prop.endpoint": "http://127.0.0.1:9000", **KEYS},
    {"input.fs.prop.region": "${TABLE_REGION}"},
    {"inputDirURI": "gs://lake/in", "input.fs.prop.gcpKey": "${TABLE_GCP_KEY}"},
    {"inputDirURI": "abfss://raw@lake.dfs.core.windows.net/in"},
    {"inputDirURI": "in", "output.segment.dir.uri": "../staging"},
    {"notificationQueue": "https://sqs.eu-west-1.amazonaws.com/1/q"},
    {"notificationQueue": "https://sqs-fips.us-gov-west-1.amazonaws.com/1/q"},
    {"notificationQueue": "https://eu-west-1.queue.amazonaws.com/1/q"},
]


@pytest.mark.parametrize("block", ALLOWED)
def test_what_is_a_tables_own_or_the_clouds_needs_no_policy(folder: Any, block: dict[str, str]) -> None:
    assert folder.problems(block) == []


def test_a_policy_allows_and_both_doors_know_it(
    folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = {
        "input.fs.prop.endpoint": "https://minio.example",
        "input.fs.prop.accessKey": "${LAKE_SECRET}",
        "input.fs.prop.secretKey": "${LAKE_SECRET}",
    }
    assert len(folder.problems(block)) == 3
    policy = tmp_path / "installation"
    policy.write_text("variables: [LAKE_*]\nendpoints: ['https://minio.example']")
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    spec = folder.load(block)
    assert open_source(spec).uri == "s3://flights-in/2013"
    (folder.path / "policy.yaml").write_text("endpoints: []")
    (problem,) = folder.problems(block)
    assert f"in {folder.path / 'policy.yaml'}" in (problem.fix or "")


NARROW = "endpoints: ['https://minio.example']\nambientCredentials: "
AT_MINIO = {"input.fs.prop.endpoint": "https://minio.example", **KEYS}
STAGED_THERE = {name.replace("input.", "output."): text for name, text in AT_MINIO.items()}


@pytest.mark.parametrize("sql", [{"engine": "spark"}, {"filter": "true"}])
@pytest.mark.parametrize("place", [{}, AT_MINIO])
def test_keys_of_a_spec_do_not_let_spark_take_the_machines(
    folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: dict[str, str], place: dict[str, str]
) -> None:
    """Spark reads the bucket of that name by its own settings, whatever store the spec had listed."""
    policy = tmp_path / "installation"
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    policy.write_text(f"{NARROW}[]")
    block = {**STAGED_THERE, **KEYS, **place}
    assert folder.problems(block) == []
    (problem,) = folder.problems(block | sql)
    assert problem.key == "fileIngestion.inputDirURI"
    assert "read by Spark, with this machine's own credentials" in problem.reason
    assert "`ambientCredentials: [provider]`" in problem.fix
    for allowed in ("[provider]", "['https://minio.example']") if place else ("[provider]",):
        policy.write_text(f"{NARROW}{allowed}")
        assert folder.problems(block | sql) == []


def test_a_directory_that_is_a_link_to_elsewhere_is_refused_at_both(folder: Any, tmp_path: Path) -> None:
    outside = tmp_path.parent.parent / "outside-of-this-test"
    (folder.path / "link").symlink_to(outside)
    block = {"inputDirURI": "link", "output.segment.dir.uri": "staging"}
    assert [found.key for found in folder.problems(block)] == ["fileIngestion.inputDirURI"]
    (folder.path / "link").unlink()
    (folder.path / "link").mkdir()
    spec = folder.load(block)
    open_source(spec)
    (folder.path / "link").rmdir()
    (folder.path / "link").symlink_to(outside)
    with pytest.raises(SourceError, match="is outside the folders"):
        open_source(spec)


def test_no_spec_publishes_what_its_project_keeps_beside_data(folder: Any) -> None:
    project = folder.path / "project"
    folder.path = project / "tables"
    for part in (folder.path, project / "in"):
        part.mkdir(parents=True)
    (project / "in" / "a.csv").write_text("v\n1\n")
    (project / ".env").write_text("AWS_SECRET_ACCESS_KEY=s3cret\n")
    (project / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    for pattern in ("glob:**/.env", "glob:**/*.yaml", "glob:**"):
        spec = folder.load({"inputDirURI": "..", "includeFileNamePattern": pattern})
        source = open_source(spec)
        with pytest.raises(SettingError, match="belongs to the project and is not data") as caught:
            list_source(spec, source)
        assert "roots: [project, " in str(caught.value)
        with pytest.raises(SettingError, match="belongs to the project and is not data"):
            resume_listing(spec, source, KeptParts(source), None, lambda: False)
    spec = folder.load({"inputDirURI": "..", "includeFileNamePattern": "glob:**/*.csv"})
    (uri,) = list_source(spec, open_source(spec)).files
    assert uri.endswith("/in/a.csv")


@pytest.mark.parametrize("region", ["a@evil.example/", "evil.example#", "x/../y", "é"])
def test_a_region_does_not_make_another_host_of_the_clouds(folder: Any, region: str) -> None:
    spec = folder.load({"input.fs.prop.region": region})
    with pytest.raises(SourceError, match="not the name of an AWS region"):
        open_source(spec)


def test_a_schema_file_lies_where_files_may_lie(folder: Any) -> None:
    def elsewhere(whole: JsonObject) -> None:
        del whole["schema"]
        whole["schemaFile"] = "/etc/hostname"

    assert "never read" in folder.problems({}, change=elsewhere)[0].reason


GROOVY = {"columnName": "day", "transformFunction": "Groovy({1}, at)"}


def test_code_is_refused_unless_the_installation_allows_it(
    folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_code(whole: JsonObject) -> None:
        whole["table"]["ingestionConfig"] = {"transformConfigs": [GROOVY]}

    folder.realtime(change=with_code)
    (problem,) = folder.check()[1]
    assert problem.key == "table.ingestionConfig.transformConfigs[0].transformFunction"
    assert "allowCode: true" in (problem.fix or "")
    policy = tmp_path / "installation"
    policy.write_text("allowCode: true")
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    assert folder.check()[1] == []


def test_without_layers_everything_but_what_never_is_may_be_reached() -> None:
    assert UNLIMITED.refuses_endpoint("https://anything.example") is None
    assert Policy((Layer(),)).refuses_path("/srv/lake") is None
