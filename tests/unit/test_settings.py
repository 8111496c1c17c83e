"""Where an installation finds its Pinot."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from pinot_assets.errors import PinotAssetsError
from pinot_assets.local import parts
from pinot_assets.local.state import ProcessRecord, Record, save_record
from pinot_assets.pinot.connection import BasicAuth, PinotConnection, Tls, TokenAuth
from pinot_assets.settings import Settings, load_settings, tables_directory

BOTH = {"PINOT_CONTROLLER_URL": "http://pinot:9000", "PINOT_ZOOKEEPER": "zk1:2181,zk2:2181/chroot"}


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PINOT_ASSETS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_from_the_environment() -> None:
    assert load_settings(BOTH) == Settings(
        PinotConnection("http://pinot:9000"), "zk1:2181,zk2:2181/chroot", "pinot"
    )


def test_everything_that_the_environment_can_say() -> None:
    settings = load_settings(
        {
            **BOTH,
            "PINOT_CLUSTER": "prod",
            "PINOT_BROKER_URLS": " http://b1:8099, http://b2:8099 ,",
            "PINOT_CA_BUNDLE": "ca.pem",
            "PINOT_USER": "ada",
            "PINOT_PASSWORD": "s3cret",
        }
    )
    assert settings.cluster == "prod"
    assert settings.pinot.broker_urls == ("http://b1:8099", "http://b2:8099")
    assert settings.pinot.tls == Tls(ca_bundle="ca.pem")
    assert settings.pinot.auth == BasicAuth("ada", "s3cret")
    assert "s3cret" not in repr(settings)


def test_a_token() -> None:
    assert load_settings({**BOTH, "PINOT_TOKEN": "t0ken"}).pinot.auth == TokenAuth("t0ken")


@pytest.mark.parametrize("half", list(BOTH))
@pytest.mark.parametrize("other", [{}, {"PINOT_CONTROLLER_URL": "", "PINOT_ZOOKEEPER": ""}])
def test_one_half_is_refused_and_the_other_named(half: str, other: dict[str, str]) -> None:
    (missing,) = set(BOTH) - {half}
    with pytest.raises(PinotAssetsError, match=f"{missing} is not set") as caught:
        load_settings({**other, half: BOTH[half]})
    assert f"export {missing}=" in str(caught.value.hint)


@pytest.mark.parametrize(
    "secrets",
    [
        {"PINOT_TOKEN": "t0ken", "PINOT_USER": "ada", "PINOT_PASSWORD": "s3cret"},
        {"PINOT_PASSWORD": "s3cret"},
    ],
)
def test_secrets_do_not_show_in_errors(secrets: dict[str, str]) -> None:
    with pytest.raises(PinotAssetsError) as caught:
        load_settings({**BOTH, **secrets})
    assert "s3cret" not in str(caught.value)
    assert "t0ken" not in str(caught.value)


def test_without_any_pinot_the_error_shows_both_ways() -> None:
    with pytest.raises(PinotAssetsError, match="no Pinot to talk to") as caught:
        load_settings({})
    assert "pinot-assets local up" in str(caught.value)
    assert "PINOT_ZOOKEEPER" in str(caught.value)


def test_the_local_stack_is_the_fallback(home: Path) -> None:
    ports = {part.name: dict.fromkeys(part.ports, 20_000 + n) for n, part in enumerate(parts.PINOT)}
    me = ProcessRecord(pid=os.getpid(), create_time=psutil.Process().create_time())
    save_record(home, Record(ports=ports, processes={part.name: me for part in parts.PINOT}))
    settings = load_settings({"PINOT_CONTROLLER_URL": "", "PINOT_ZOOKEEPER": ""})
    assert settings == Settings(
        PinotConnection(f"http://127.0.0.1:{ports['controller']['http']}"),
        f"127.0.0.1:{ports['zookeeper']['client']}",
        "pinot",
    )


def test_the_directory_of_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert tables_directory({}) == tmp_path / "tables"
    assert tables_directory({"PINOT_ASSETS_TABLES": ""}) == tmp_path / "tables"
    assert tables_directory({"PINOT_ASSETS_TABLES": "/elsewhere"}) == Path("/elsewhere")
