from __future__ import annotations

import os
import pickle

import pytest

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import SettingError, SourceError
from pinot_assets.source.bucket_settings import bucket_settings
from pinot_assets.source.factory import open_store
from pinot_assets.source.uris import parse_root

ROOT = parse_root("s3://bucket/in")
KEYS = {"accessKey": "${PA_ACCESS}", "secretKey": "${PA_SECRET}"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("PA_ACCESS", "AKIAEXAMPLE")
    monkeypatch.setenv("PA_SECRET", "s3cret")


def test_settings_are_resolved_from_the_environment() -> None:
    settings = bucket_settings(
        ROOT, {**KEYS, "region": "eu-west-1", "endpoint": "https://s3.example.org"}, UNLIMITED
    )
    assert settings.config == {"region": "eu-west-1", "endpoint": "https://s3.example.org"}
    assert settings.allow_http is False
    assert settings.credentials is not None
    keys = settings.credentials()
    assert (keys["access_key_id"], keys["secret_access_key"], keys["token"]) == (
        "AKIAEXAMPLE",
        "s3cret",
        None,
    )


def test_own_keys_are_not_mixed_with_a_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "foreign")
    assert bucket_settings(ROOT, KEYS, UNLIMITED).credentials()["token"] is None


def test_without_keys_the_standard_chain_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIACHAIN")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "chain")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    settings = bucket_settings(ROOT, {}, UNLIMITED)
    assert settings.credentials()["access_key_id"] == "AKIACHAIN"
    assert settings.config["region"] == "eu-north-1"


@pytest.mark.parametrize(
    ("props", "told"),
    [
        ({}, "No AWS credentials"),
        ({"accessKey": "${PA_ACCESS}"}, "Half a key pair"),
        ({"accessKey": "${PA_ACCESS}", "secretKey": "${PA_UNSET:-}"}, "Half a key pair"),
        ({"accessKey": "${PA_ACCESS}", "secretKey": "${PA_UNSET}"}, "PA_UNSET is not set"),
        ({"sessionToken": "${PA_SECRET}"}, "its keys are not"),
        ({**KEYS, "acessKey": "x"}, "Unknown S3 setting acessKey"),
        ({**KEYS, "endpoint": "http://s3.example.org"}, "without TLS"),
        ({**KEYS, "endpoint": "http://127.0.0.1.example.org"}, "without TLS"),
        ({**KEYS, "endpoint": "https://u:s3cret@example.org"}, "not a plain URL"),
        ({**KEYS, "endpoint": "localhost:9000"}, "not a plain URL"),
        ({**KEYS, "endpoint": "http://s3.example.org", "allowHttp": "yes"}, "neither true nor false"),
    ],
)
def test_wrong_settings_are_told_without_secrets(props: dict[str, str], told: str) -> None:
    with pytest.raises(SourceError, match=told) as caught:
        open_store("s3://bucket/in", props, UNLIMITED)
    assert "s3cret" not in str(caught.value)
    assert "AKIAEXAMPLE" not in str(caught.value)


def test_half_of_the_environments_keys_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    with pytest.raises(SettingError, match="Half of this machine's AWS credentials") as caught:
        open_store("s3://bucket/in", {}, UNLIMITED)
    assert "AWS_SECRET_ACCESS_KEY" in str(caught.value)
    assert "AKIAEXAMPLE" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "127.9.9.9", "localhost:9000", "[::1]:9000"])
def test_this_machine_may_be_reached_without_tls(host: str) -> None:
    assert bucket_settings(ROOT, {**KEYS, "endpoint": f"http://{host}"}, UNLIMITED).allow_http is True


def test_allow_http_lets_a_trusted_network_be_used() -> None:
    props = {**KEYS, "endpoint": "http://minio.internal:9000", "allowHttp": "true"}
    assert bucket_settings(ROOT, props, UNLIMITED).allow_http is True


def test_an_endpoint_of_the_environment_is_held_to_the_same_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://s3.example.org")
    with pytest.raises(SourceError, match="without TLS"):
        bucket_settings(ROOT, KEYS, UNLIMITED)


def test_references_travel_and_secrets_do_not() -> None:
    store = open_store("s3://bucket/in", KEYS, UNLIMITED)
    pickled = pickle.dumps(store)
    assert b"PA_SECRET" in pickled
    assert b"s3cret" not in pickled
    assert pickle.loads(pickled).uri == "s3://bucket/in"
    for text in (repr(store), str(store), repr(bucket_settings(ROOT, KEYS, UNLIMITED))):
        assert "s3cret" not in text
        assert "AKIAEXAMPLE" not in text


def test_unpickling_does_not_need_the_secret_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    pickled = pickle.dumps(open_store("s3://bucket/in", KEYS, UNLIMITED))
    monkeypatch.delenv("PA_SECRET")
    store = pickle.loads(pickled)
    with pytest.raises(SourceError, match="PA_SECRET is not set"):
        store.stat("a")
