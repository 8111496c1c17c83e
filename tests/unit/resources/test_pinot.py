"""Where the resource `pinot` finds its cluster."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from pinot_assets.core.connections import BasicAuth, Tls, TokenAuth, Waits, ZooKeeperAccess
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import ConsistentPushResource, PinotResource, SparkResource
from pinot_assets.settings.environment import FIELDS, PROFILE

HERE = {"controller_url": "http://pinot:9000", "zookeeper": "zk:2181"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*FIELDS.values(), PROFILE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PINOT_ASSETS_HOME", str(tmp_path))


def test_left_empty_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://elsewhere:9000")
    monkeypatch.setenv("PINOT_ZOOKEEPER", "zk9:2181")
    settings = PinotResource().settings()
    assert (settings.pinot.controller_url, settings.zookeeper) == ("http://elsewhere:9000", "zk9:2181")


def test_its_own_settings_win() -> None:
    resource = PinotResource(
        controller_url="https://pinot:9443",
        zookeeper="zk:2181/chroot",
        cluster="prod",
        broker_urls=["https://b1:8099"],
        ca_bundle="ca.pem",
        client_cert="me.pem",
        client_key="me.key",
    )
    settings = resource.settings()
    assert (settings.zookeeper, settings.cluster) == ("zk:2181/chroot", "prod")
    assert settings.pinot.broker_urls == ("https://b1:8099",)
    tls = settings.pinot.tls
    assert (tls.ca_bundle, tls.client_cert, tls.client_key) == ("ca.pem", "me.pem", "me.key")
    assert settings.pinot.auth is None


def test_credentials() -> None:
    basic = PinotResource(**HERE, username="ada", password="s3cret")
    assert basic.settings().pinot.auth == BasicAuth("ada", "s3cret")
    assert PinotResource(**HERE, token="t0ken").settings().pinot.auth == TokenAuth("t0ken")


def test_zookeeper_has_a_user_and_tls_of_its_own() -> None:
    resource = PinotResource(
        **HERE, zookeeper_username="zed", zookeeper_password="zecret", zookeeper_client_cert="zme.pem"
    )
    assert resource.settings().zookeeper_access == ZooKeeperAccess(
        "zed", "zecret", Tls(client_cert="zme.pem")
    )
    assert PinotResource(**HERE, zookeeper_tls=True).settings().zookeeper_access.tls == Tls()


def test_the_lease_and_the_longest_write() -> None:
    assert PinotResource(**HERE).settings().waits == Waits()
    settings = PinotResource(**HERE, lease_seconds=12, write_seconds=6).settings()
    assert settings.waits == Waits(lease=12, pinot_write=6)


def test_production_may_be_allowed_plaintext() -> None:
    resource = PinotResource(**HERE, profile="production", allow_http=True, allow_open_zookeeper=True)
    assert resource.settings().pinot.controller_url == "http://pinot:9000"


def test_secrets_do_not_show() -> None:
    resource = PinotResource(
        **HERE, username="ada", password="s3cret", token="t0ken", zookeeper_password="s3cret"
    )
    with pytest.raises(PinotAssetsError) as caught:
        resource.settings()
    for text in (
        repr(resource),
        str(resource),
        str(caught.value),
        repr(PinotResource(**HERE, token="t0ken")),
    ):
        assert "s3cret" not in text
        assert "t0ken" not in text


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"controller_url": "http://pinot:9000"}, "pinot.zookeeper is not set"),
        ({"zookeeper": "zk:2181"}, "pinot.controller_url is not set"),
        ({"token": "t"}, "pinot.controller_url, pinot.zookeeper are not set"),
        ({**HERE, "username": "ada"}, "pinot.password is not set"),
        ({**HERE, "password": "p"}, "pinot.username is not set"),
        ({**HERE, "username": "ada", "password": "p", "token": "t"}, "both pinot.token and pinot.username"),
        ({**HERE, "zookeeper_username": "ada"}, "pinot.zookeeper_password is not set"),
        ({**HERE, "profile": "production"}, "pinot.allow_http"),
        ({"profile": "staging"}, "PINOT_CONTROLLER_URL, PINOT_ZOOKEEPER are not set"),
        ({"profile": "prod"}, "no profile prod"),
    ],
)
def test_halves_and_contradictions_are_refused(settings: dict[str, str], says: str) -> None:
    """Never the environment's cluster with half of other settings."""
    with pytest.raises(PinotAssetsError, match=says) as caught:
        PinotResource(**settings).settings()
    assert caught.value.hint


@dg.asset
def mine(pinot: PinotResource, push: ConsistentPushResource) -> None:
    auth = pinot.settings().pinot.auth
    assert auth == push.pinot.settings().pinot.auth == BasicAuth("ada", "s3cret")


def resources(pinot: PinotResource, nested: PinotResource) -> JsonObject:
    return {"pinot": pinot, "push": ConsistentPushResource(pinot=nested, spark=SparkResource())}


def test_a_secret_that_a_variable_names_reaches_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET", "s3cret")
    pinot = PinotResource(**HERE, username="ada", password=dg.EnvVar("MY_SECRET"))
    for given in (resources(pinot, pinot), resources(pinot, pinot.model_copy())):
        definitions = dg.Definitions([mine], resources=given)
        with dg.DagsterInstance.ephemeral() as instance:
            job = definitions.resolve_implicit_global_asset_job_def()
            assert job.execute_in_process(instance=instance, raise_on_error=True).success


@pytest.mark.parametrize("field", ["password", "token", "zookeeper_password"])
@pytest.mark.parametrize("where", ["itself", "nested"])
def test_a_secret_that_is_written_out_is_refused_before_it_is_shown(field: str, where: str) -> None:
    plain, secret = PinotResource(**HERE), PinotResource(**HERE, **{field: "s3cret"})

    def load() -> None:
        given = resources(secret, plain) if where == "itself" else resources(plain, secret)
        dg.Definitions([mine], resources=given).get_repository_def()

    with pytest.raises(PinotAssetsError, match=f"`{field}` of the resource `pinot`") as caught:
        load()
    assert "s3cret" not in str(caught.value)
    assert "dg.EnvVar" in str(caught.value.hint)
