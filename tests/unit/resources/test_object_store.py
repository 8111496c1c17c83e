"""What an S3 resource says, told to the executors: addresses as they are, secrets as references only."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster_aws.s3 import S3Resource
from fakes.tables import write_table

from pinot_assets.errors import SpecError
from pinot_assets.resources import with_object_store
from pinot_assets.resources.object_store import object_store_defaults
from pinot_assets.session.stores.clients import open_hints, open_source
from pinot_assets.source.notifications import SqsHints
from pinot_assets.table_spec import TableSpec

HERE = S3Resource(
    region_name="eu-central-1",
    endpoint_url=dg.EnvVar("STORE_URL"),
    aws_access_key_id=dg.EnvVar("STORE_KEY"),
    aws_secret_access_key=dg.EnvVar("STORE_SECRET"),
    aws_session_token=dg.EnvVar("STORE_TOKEN"),
)
MY_KEYS = {"accessKey": "${TABLE_KEY}", "secretKey": "${TABLE_SECRET}"}
KEYS = {"accessKey": "${STORE_KEY}", "secretKey": "${STORE_SECRET}", "sessionToken": "${STORE_TOKEN}"}


def completed(folder: Path, props: dict[str, str], s3: S3Resource = HERE) -> TableSpec:
    options = {f"input.fs.prop.{name}": value for name, value in props.items()}
    options |= {"consistentPushEnabled": "true"}
    spec = write_table(folder, "flights", options)
    return with_object_store(spec, s3)


def test_a_table_that_says_nothing_gets_all_of_it(tmp_path: Path) -> None:
    ingestion = completed(tmp_path, {}).ingestion
    assert ingestion.input_props == {"region": "eu-central-1", "endpoint": "${STORE_URL}", **KEYS}
    assert ingestion.output_props == ingestion.input_props


def test_what_a_table_says_goes_before(tmp_path: Path) -> None:
    own = {"endpoint": "https://localhost:9000", "region": "us-west-2", **MY_KEYS}
    spec = completed(tmp_path, own)
    assert spec.ingestion.input_props == own
    assert spec.ingestion.output_props["endpoint"] == "${STORE_URL}"


def test_a_tables_keys_are_not_mixed_with_others(tmp_path: Path) -> None:
    """A session token belongs to its keys."""
    props = completed(tmp_path, MY_KEYS).ingestion.input_props
    assert props == {"region": "eu-central-1", "endpoint": "${STORE_URL}", **MY_KEYS}


def test_plaintext_is_allowed_to_one_endpoint_only(tmp_path: Path) -> None:
    s3 = S3Resource(endpoint_url="http://minio:9000", use_ssl=False)
    assert completed(tmp_path, {}, s3).ingestion.input_props["allowHttp"] == "true"
    own = {"endpoint": "http://localhost:9000", **MY_KEYS}
    assert completed(tmp_path, own, s3).ingestion.input_props == own


def test_an_empty_resource_changes_nothing(tmp_path: Path) -> None:
    spec = write_table(tmp_path, "flights")
    assert with_object_store(spec, S3Resource()) == spec


@pytest.mark.parametrize(
    "fields",
    [
        {"aws_secret_access_key": "s3cret"},
        {"aws_access_key_id": "s3cret"},
        {"aws_session_token": "s3cret"},
        {"endpoint_url": "https://me:s3cret@minio:9000"},
        {"profile_name": "mine"},
        {"use_unsigned_session": True},
        {"verify": False},
    ],
)
def test_what_executors_cannot_or_must_not_be_told_is_refused(fields: dict[str, str | bool]) -> None:
    with pytest.raises(SpecError, match="of the resource `s3`") as caught:
        object_store_defaults(S3Resource(**fields))
    assert "s3cret" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("uri", ["gs://lake/in", "abfss://raw@lake.dfs.core.windows.net", "${TABLE_PLACE}"])
def test_another_cloud_gets_none_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    monkeypatch.setenv("TABLE_PLACE", "gs://lake/in")
    spec = write_table(tmp_path, "flights", {"consistentPushEnabled": "true", "inputDirURI": uri})
    ingestion = with_object_store(spec, HERE).ingestion
    assert ingestion.input_props == {}
    assert ingestion.output_props["region"] == "eu-central-1"


def test_the_resources_keys_go_to_no_endpoint_that_a_table_spec_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where this machine's own credentials may go there."""
    policy = tmp_path / "installation.yaml"
    policy.write_text("ambientCredentials: [provider, 'http://localhost:9000']")
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    props = completed(tmp_path, {"endpoint": "http://localhost:9000"}).ingestion.input_props
    assert props == {"endpoint": "http://localhost:9000", "region": "eu-central-1"}


AMAZON = "https://sqs.eu-central-1.amazonaws.com/1/q"
MINIO = "https://minio.example"


@pytest.mark.parametrize(
    ("endpoint", "queue", "are_sent"),
    [
        (MINIO, AMAZON, False),
        (MINIO, "https://queue.example.org/1/q", False),
        (MINIO, f"{MINIO}/1/q", True),
        (MINIO, f"{MINIO}:9324/1/q", False),
        ("https://s3.eu-central-1.amazonaws.com", AMAZON, True),
        ("https://s3.eu-central-1.amazonaws.com.example.org", AMAZON, False),
        ("", AMAZON, True),
        ("", "https://queue.example.org/1/q", False),
    ],
)
def test_the_resources_keys_go_to_no_queue_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str, queue: str, are_sent: bool
) -> None:
    """A table spec names the queue, at an address that it may reach; whose keys those are it does not say."""
    policy = tmp_path / "installation.yaml"
    policy.write_text(
        f"endpoints: ['{MINIO}', '{MINIO}:9324', 'https://queue.example.org']\n"
        f"ambientCredentials: [provider, '{MINIO}', '{MINIO}:9324', 'https://queue.example.org']"
    )
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    for name, value in (("STORE_URL", endpoint), ("STORE_KEY", "theirs"), ("STORE_SECRET", "s")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STORE_TOKEN", "t")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "machines")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    s3 = HERE if endpoint else HERE.model_copy(update={"endpoint_url": None})
    options = {"consistentPushEnabled": "true", "inputDirURI": "s3://lake/in", "notificationQueue": queue}
    hints = open_hints(with_object_store(write_table(tmp_path, "flights", options), s3))
    assert isinstance(hints, SqsHints)
    credentials = hints._client._request_signer._credentials
    assert credentials.access_key == ("theirs" if are_sent else "machines")
    assert credentials.token == ("t" if are_sent else None)


def test_what_the_resource_says_needs_no_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the code location's word: its endpoint, its variables, and this machine's credentials there."""
    for name, value in (("STORE_URL", "https://minio.example"), ("STORE_KEY", "k"), ("STORE_SECRET", "s")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STORE_TOKEN", "")
    options = {"consistentPushEnabled": "true", "inputDirURI": "s3://lake/in"}
    options["output.segment.dir.uri"] = "s3://lake/staging"
    spec = with_object_store(write_table(tmp_path, "flights", options), HERE)
    assert open_source(spec).uri == "s3://lake/in"
    s3 = S3Resource(endpoint_url="https://minio.example")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    spec = with_object_store(write_table(tmp_path, "flights", options), s3)
    assert open_source(spec).uri == "s3://lake/in"
