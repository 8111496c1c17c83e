"""Settings of GCS and ADLS: checked before anything is read, and never shown."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import pytest

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import SourceError
from pinot_assets.source.bucket_settings import bucket_settings
from pinot_assets.source.factory import open_store
from pinot_assets.source.uris import parse_root

ADLS = "abfss://raw@lake.dfs.core.windows.net/x"
GCS = "gs://bucket/x"
PRINCIPAL = {"tenantId": "t", "clientId": "c", "clientSecret": "${PA_SECRET}"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PA_SECRET", "s3cret")


def test_the_account_comes_from_the_uri() -> None:
    settings = bucket_settings(parse_root(ADLS), {"accessKey": "${PA_SECRET}"}, UNLIMITED)
    assert (settings.bucket, settings.allow_http) == ("raw", False)
    assert settings.config == {
        "account_name": "lake",
        "endpoint": "https://lake.blob.core.windows.net",
    }
    assert settings.credentials is not None
    assert settings.credentials() == {"access_key": "s3cret", "expires_at": None}


def test_a_national_cloud_is_its_domain() -> None:
    settings = bucket_settings(parse_root("abfss://raw@lake.dfs.core.chinacloudapi.cn"), {}, UNLIMITED)
    assert settings.config["endpoint"] == "https://lake.blob.core.chinacloudapi.cn"
    assert settings.credentials is None


def test_a_service_principal_goes_before_a_key_of_the_environment() -> None:
    config = bucket_settings(parse_root(ADLS), PRINCIPAL, UNLIMITED).config
    assert config["credential_type"] == "client_secret"
    assert (config["tenant_id"], config["client_id"], config["client_secret"]) == ("t", "c", "s3cret")


@pytest.mark.parametrize(
    ("uri", "props", "told"),
    [
        (ADLS, {"accessKey": "${PA_UNSET}"}, "PA_UNSET is not set"),
        (
            ADLS,
            {"accessKey": "${PA_SECRET}", "sasToken": "${PA_SECRET}"},
            "accessKey, sasToken at the same time",
        ),
        (ADLS, {"accessKey": "${PA_SECRET}", **PRINCIPAL}, "at the same time"),
        (ADLS, {"clientSecret": "${PA_SECRET}"}, "Part of a service principal"),
        (ADLS, {"accountName": "lake"}, "Unknown ADLS setting accountName"),
        (ADLS, {"endpoint": "http://lake.example.org"}, "without TLS"),
        (ADLS, {"endpoint": "https://u:s3cret@example.org"}, "not a plain URL"),
        (GCS, {"region": "eu"}, "Unknown GCS setting region"),
        (GCS, {"endpoint": "http://gcs.example.org"}, "without TLS"),
        (GCS, {"gcpKey": '{"private_key": "s3cret"}'}, "gcpKey holds a key"),
    ],
)
def test_wrong_settings_are_told_without_secrets(uri: str, props: dict[str, str], told: str) -> None:
    with pytest.raises(SourceError, match=told) as caught:
        open_store(uri, props, UNLIMITED)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "props"), [(ADLS, {"accessKey": "${PA_SECRET}"}), (ADLS, PRINCIPAL), (GCS, {})]
)
def test_references_travel_and_secrets_do_not(uri: str, props: dict[str, str]) -> None:
    store = open_store(uri, props, UNLIMITED)
    pickled = pickle.dumps(store)
    assert b"s3cret" not in pickled
    assert pickle.loads(pickled).uri == uri
    settings = (
        bucket_settings(parse_root(ADLS), PRINCIPAL, UNLIMITED),
        bucket_settings(parse_root(GCS), {}, UNLIMITED),
    )
    for text in (repr(store), *map(repr, settings)):
        assert "s3cret" not in text


@pytest.mark.parametrize("content", [None, "", "{", '{"private_key": "s3cret"}'])
def test_a_key_file_that_cannot_be_used_is_not_quoted(tmp_path: Path, content: str | None) -> None:
    key = tmp_path / "key.json"
    if content is not None:
        key.write_text(content)
    with pytest.raises(SourceError, match="credentials for GCS cannot be used") as caught:
        bucket_settings(parse_root(GCS), {"gcpKey": str(key)}, UNLIMITED).client(timedelta(seconds=1))
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_key_file_names_no_endpoint() -> None:
    settings = bucket_settings(parse_root(GCS), {"gcpKey": "/keys/key.json"}, UNLIMITED)
    assert settings.config["base_url"] == "https://storage.googleapis.com"
    elsewhere = {"gcpKey": "/keys/key.json", "endpoint": "https://storage.example"}
    assert bucket_settings(parse_root(GCS), elsewhere, UNLIMITED).config["base_url"] == elsewhere["endpoint"]
    assert "base_url" not in bucket_settings(parse_root(GCS), {}, UNLIMITED).config
