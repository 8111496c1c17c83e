"""Where an installation finds its Pinot."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from pinot_assets.core.connections import (
    BasicAuth,
    GrpcDoor,
    PinotConnection,
    Timeouts,
    Tls,
    TokenAuth,
    Waits,
    ZooKeeperAccess,
)
from pinot_assets.errors import PinotAssetsError
from pinot_assets.local import parts
from pinot_assets.settings.environment import (
    Profile,
    Settings,
    load_profile,
    load_settings,
    tables_directory,
)
from pinot_assets.settings.local_stack import ProcessRecord, Record, save_record
from pinot_assets.zookeeper import ZooKeeperInstances, acl_of

OPEN = {"PINOT_ASSETS_ALLOW_OPEN_ZOOKEEPER": "true"}
PRODUCTION = {"PINOT_ASSETS_PROFILE": "production", **OPEN}
BOTH = {"PINOT_CONTROLLER_URL": "http://pinot:9000", "PINOT_ZOOKEEPER": "zk1:2181,zk2:2181/chroot"}


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PINOT_ASSETS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_from_the_environment() -> None:
    assert load_settings(BOTH) == Settings(
        PinotConnection(
            "http://pinot:9000", instances=ZooKeeperInstances("zk1:2181,zk2:2181/chroot", "pinot")
        ),
        "zk1:2181,zk2:2181/chroot",
        "pinot",
    )


def test_everything_that_the_environment_can_say() -> None:
    settings = load_settings(
        {
            **BOTH,
            "PINOT_CLUSTER": "prod",
            "PINOT_BROKER_URLS": " http://b1:8099, http://b2:8099 ,",
            "PINOT_CA_BUNDLE": "ca.pem",
            "PINOT_CLIENT_CERT": "me.pem",
            "PINOT_CLIENT_KEY": "me.key",
            "PINOT_USER": "ada",
            "PINOT_PASSWORD": "s3cret",
        }
    )
    assert settings.cluster == "prod"
    assert settings.pinot.broker_urls == ("http://b1:8099", "http://b2:8099")
    assert settings.pinot.tls == Tls("ca.pem", True, "me.pem", "me.key")
    assert settings.pinot.auth == BasicAuth("ada", "s3cret")
    assert "s3cret" not in repr(settings)


FILES = {"PINOT_GRPC_CA_BUNDLE": "s.pem", "PINOT_GRPC_CLIENT_CERT": "c.pem", "PINOT_GRPC_CLIENT_KEY": "c.key"}


@pytest.mark.parametrize(
    ("said", "door"),
    [
        ({}, GrpcDoor()),
        ({"PINOT_GRPC_TLS": "true"}, GrpcDoor(True)),
        ({"PINOT_GRPC_TLS": "False"}, GrpcDoor(False)),
        (FILES, GrpcDoor(True, Tls("s.pem", True, "c.pem", "c.key"))),
        ({"PINOT_GRPC_SERVER_NAME": "pinot"}, GrpcDoor(True, Tls(), "pinot")),
    ],
)
def test_the_door_of_the_servers(said: dict[str, str], door: GrpcDoor) -> None:
    assert load_settings({**BOTH, **said}).pinot.grpc == door


def test_the_door_of_the_servers_is_as_the_controllers_unless_it_is_said() -> None:
    own = {"PINOT_CA_BUNDLE": "ca.pem", "PINOT_CLIENT_CERT": "me.pem", "PINOT_CLIENT_KEY": "me.key"}
    secure = load_settings({**BOTH, **own, "PINOT_CONTROLLER_URL": "https://pinot:9000"}).pinot
    assert (secure.grpc_is_secure, secure.grpc_tls) == (True, Tls("ca.pem", True, "me.pem", "me.key"))
    both = load_settings({**BOTH, **own, **FILES}).pinot
    assert (both.grpc_is_secure, both.grpc_tls) == (True, Tls("s.pem", True, "c.pem", "c.key"))
    assert not load_settings(BOTH).pinot.grpc_is_secure


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"PINOT_GRPC_TLS": "no"}, "PINOT_GRPC_TLS is neither true nor false"),
        ({"PINOT_GRPC_CLIENT_KEY": "c.key"}, "PINOT_GRPC_CLIENT_CERT is not set"),
        ({"PINOT_GRPC_TLS": "false", "PINOT_GRPC_CA_BUNDLE": "s.pem"}, "there are settings for TLS"),
    ],
)
def test_settings_of_that_door_that_contradict(said: dict[str, str], text: str) -> None:
    with pytest.raises(PinotAssetsError, match=text):
        load_settings({**BOTH, **said})


def test_production_leaves_no_node_of_zookeeper_open_unless_that_is_allowed() -> None:
    said = {**BOTH, "PINOT_CONTROLLER_URL": "https://pinot:9000"}
    with pytest.raises(PinotAssetsError, match="PINOT_ZOOKEEPER_USER is not set") as caught:
        load_settings(said, Profile.PRODUCTION)
    assert "PINOT_ASSETS_ALLOW_OPEN_ZOOKEEPER" in str(caught.value.hint)
    user = {"PINOT_ZOOKEEPER_USER": "zed", "PINOT_ZOOKEEPER_PASSWORD": "zecret"}
    assert acl_of(load_settings({**said, **user}, Profile.PRODUCTION).zookeeper_access) is not None
    assert acl_of(load_settings({**said, **OPEN}, Profile.PRODUCTION).zookeeper_access) is None
    assert acl_of(load_settings(said, Profile.STAGING).zookeeper_access) is None


def test_production_asks_no_server_in_plaintext_unless_that_is_allowed() -> None:
    said = {**BOTH, **OPEN, "PINOT_CONTROLLER_URL": "https://pinot:9000", "PINOT_GRPC_TLS": "false"}
    with pytest.raises(PinotAssetsError, match="by gRPC without TLS"):
        load_settings(said, Profile.PRODUCTION)
    allowed = load_settings({**said, "PINOT_ASSETS_ALLOW_HTTP": "true"}, Profile.PRODUCTION)
    assert not allowed.pinot.grpc_is_secure


def test_the_lease_and_the_longest_write() -> None:
    settings = load_settings({**BOTH, "PINOT_ASSETS_LEASE_SECONDS": "12", "PINOT_ASSETS_WRITE_SECONDS": "6"})
    assert settings.waits == Waits(lease=12, pinot_write=6)
    assert settings.pinot.timeouts == Timeouts(connect=2, call=6, upload=6, end=6)
    assert load_settings(BOTH).pinot.timeouts == Timeouts()


def test_how_long_a_run_may_stand_still_and_hold_its_table() -> None:
    settings = load_settings({**BOTH, "PINOT_ASSETS_STALL_MINUTES": "5", "PINOT_ASSETS_HOLD_HOURS": "2"})
    assert settings.waits == Waits(stall=300, hold=7200)
    with pytest.raises(PinotAssetsError, match="PINOT_ASSETS_STALL_MINUTES is not a number of minutes"):
        load_settings({**BOTH, "PINOT_ASSETS_STALL_MINUTES": "0.5"})


@pytest.mark.parametrize("seconds", ["0", "-3", "soon", "nan", "1e9"])
def test_what_is_no_time(seconds: str) -> None:
    with pytest.raises(PinotAssetsError, match="PINOT_ASSETS_LEASE_SECONDS is not a number of seconds"):
        load_settings({**BOTH, "PINOT_ASSETS_LEASE_SECONDS": seconds})


@pytest.mark.parametrize("lease", ["19", "20"])
def test_a_write_never_outlives_the_lease(lease: str) -> None:
    with pytest.raises(PinotAssetsError, match="a write to Pinot may take 20 s, and the lease lasts"):
        load_settings({**BOTH, "PINOT_ASSETS_LEASE_SECONDS": lease})


def test_a_token() -> None:
    assert load_settings({**BOTH, "PINOT_TOKEN": "t0ken"}).pinot.auth == TokenAuth("t0ken")


@pytest.mark.parametrize("half", list(BOTH))
@pytest.mark.parametrize("other", [{}, {"PINOT_CONTROLLER_URL": "", "PINOT_ZOOKEEPER": ""}])
def test_one_half_is_refused_and_the_other_named(half: str, other: dict[str, str]) -> None:
    (missing,) = set(BOTH) - {half}
    with pytest.raises(PinotAssetsError, match=f"{missing} is not set") as caught:
        load_settings({**other, half: BOTH[half]})
    assert f"set {missing}" in str(caught.value.hint)


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


PAIRS = [
    ("PINOT_USER", "PINOT_PASSWORD"),
    ("PINOT_PASSWORD", "PINOT_USER"),
    ("PINOT_ZOOKEEPER_USER", "PINOT_ZOOKEEPER_PASSWORD"),
    ("PINOT_ZOOKEEPER_PASSWORD", "PINOT_ZOOKEEPER_USER"),
    ("PINOT_CLIENT_KEY", "PINOT_CLIENT_CERT"),
    ("PINOT_GRPC_CLIENT_KEY", "PINOT_GRPC_CLIENT_CERT"),
    ("PINOT_ZOOKEEPER_CLIENT_KEY", "PINOT_ZOOKEEPER_CLIENT_CERT"),
]


@pytest.mark.parametrize("addresses", [{}, BOTH], ids=["local stack", "addresses"])
@pytest.mark.parametrize(("given", "lacking"), PAIRS)
def test_half_of_a_pair_is_refused_whichever_pinot_is_meant(
    home: Path, addresses: dict[str, str], given: str, lacking: str
) -> None:
    run_a_stack(home)
    with pytest.raises(PinotAssetsError) as caught:
        load_settings({**addresses, given: "s3cret"})
    assert (caught.value.what, caught.value.hint) == (
        f"{lacking} is not set",
        f"set {lacking}, or unset {given}",
    )
    assert "s3cret" not in str(caught.value)


def test_without_any_pinot_the_error_shows_both_ways() -> None:
    with pytest.raises(PinotAssetsError, match="there is no Pinot to connect to") as caught:
        load_settings({})
    assert "pinot-assets local up" in str(caught.value)
    assert "PINOT_ZOOKEEPER" in str(caught.value)


def run_a_stack(home: Path) -> dict[str, dict[str, int]]:
    """The record of one; its ports by part and purpose."""
    ports = {part.name: dict.fromkeys(part.ports, 20_000 + n) for n, part in enumerate(parts.PINOT)}
    me = ProcessRecord(pid=os.getpid(), create_time=psutil.Process().create_time())
    save_record(home, Record(ports=ports, processes={part.name: me for part in parts.PINOT}))
    return ports


def test_the_local_stack_is_the_fallback(home: Path) -> None:
    ports = run_a_stack(home)
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


# --- ZooKeeper -------------------------------------------------------------------------------------


def test_zookeeper_has_a_user_and_tls_of_its_own() -> None:
    settings = load_settings(
        {
            **BOTH,
            "PINOT_ZOOKEEPER_USER": "zed",
            "PINOT_ZOOKEEPER_PASSWORD": "zecret",
            "PINOT_ZOOKEEPER_CA_BUNDLE": "zca.pem",
            "PINOT_ZOOKEEPER_CLIENT_CERT": "zme.pem",
            "PINOT_ZOOKEEPER_CLIENT_KEY": "zme.key",
        }
    )
    tls = Tls("zca.pem", True, "zme.pem", "zme.key")
    access = ZooKeeperAccess("zed", "zecret", tls)
    assert settings.zookeeper_access == access
    instances = ZooKeeperInstances("zk1:2181,zk2:2181/chroot", "pinot", access)
    assert settings.pinot == PinotConnection("http://pinot:9000", instances=instances)
    assert "zecret" not in repr(settings)


@pytest.mark.parametrize(("said", "tls"), [("true", Tls()), ("TRUE", Tls()), ("false", None), ("", None)])
def test_tls_that_trusts_the_system(said: str, tls: Tls | None) -> None:
    assert load_settings({**BOTH, "PINOT_ZOOKEEPER_TLS": said}).zookeeper_access.tls == tls


def test_addresses_that_get_credentials() -> None:
    said = {**BOTH, "PINOT_ADDRESSES": " Broker.example:8099, [::1]:8098,"}
    assert load_settings(said).pinot.addresses == ("broker.example:8099", "[::1]:8098")


@pytest.mark.parametrize(
    "wrong", ["http://broker:8099", "broker", "me:pw@broker:1", "::1:80", "broker:99999999"]
)
def test_what_is_no_such_address(wrong: str) -> None:
    with pytest.raises(PinotAssetsError, match="PINOT_ADDRESSES contains"):
        load_settings({**BOTH, "PINOT_ADDRESSES": wrong})


# --- profiles --------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [Profile.STAGING, Profile.PRODUCTION])
def test_away_from_home_nothing_is_guessed(profile: Profile, home: Path) -> None:
    """Even where the local stack runs; and everything that is missing is named at once."""
    run_a_stack(home)
    secrets = {"PINOT_USER": "ada", "PINOT_ZOOKEEPER_PASSWORD": "zecret"}
    with pytest.raises(PinotAssetsError) as caught:
        load_settings({"PINOT_ASSETS_PROFILE": profile.value, **secrets})
    missing = ("PINOT_CONTROLLER_URL", "PINOT_ZOOKEEPER", "PINOT_PASSWORD", "PINOT_ZOOKEEPER_USER")
    assert caught.value.what == f"{', '.join(missing)} are not set"
    assert "zecret" not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"PINOT_CONTROLLER_URL": "http://pinot:9000"},
        {"PINOT_CONTROLLER_URL": "https://pinot", "PINOT_BROKER_URLS": "https://b1,http://b2:8099"},
    ],
)
def test_production_speaks_no_plaintext_unless_it_may(given: dict[str, str]) -> None:
    env = {**BOTH, **given}
    with pytest.raises(PinotAssetsError, match="without TLS") as caught:
        load_settings({**env, **PRODUCTION})
    assert "PINOT_ASSETS_ALLOW_HTTP" in str(caught.value.hint)
    for more in (
        {**PRODUCTION, "PINOT_ASSETS_ALLOW_HTTP": "true"},
        {"PINOT_ASSETS_PROFILE": "staging"},
        {},
    ):
        assert load_settings({**env, **more}).pinot.controller_url == given["PINOT_CONTROLLER_URL"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000", "http://localhost:9000", "http://[::1]:9000"])
def test_this_machine_may_be_reached_without_tls(url: str) -> None:
    env = {**BOTH, "PINOT_CONTROLLER_URL": url, **PRODUCTION}
    assert load_settings(env).pinot.controller_url == url


def test_the_profile() -> None:
    assert load_profile({}) is Profile.LOCAL
    assert load_profile({"PINOT_ASSETS_PROFILE": "staging"}) is Profile.STAGING
    assert load_profile({"PINOT_ASSETS_PROFILE": "staging"}, "production") is Profile.PRODUCTION
    with pytest.raises(PinotAssetsError, match="no profile prod") as caught:
        load_profile({"PINOT_ASSETS_PROFILE": "prod"})
    assert "local or staging or production" in str(caught.value.hint)


@pytest.mark.parametrize("flag", ["PINOT_ZOOKEEPER_TLS", "PINOT_ASSETS_ALLOW_HTTP"])
def test_a_flag_that_is_none(flag: str) -> None:
    with pytest.raises(PinotAssetsError, match=f"{flag} is neither true nor false"):
        load_settings({**BOTH, "PINOT_CONTROLLER_URL": "https://pinot", flag: "yes", **PRODUCTION})


@pytest.mark.parametrize("part", ["", "ZOOKEEPER_"])
def test_a_key_without_its_certificate(part: str) -> None:
    with pytest.raises(PinotAssetsError, match=f"PINOT_{part}CLIENT_CERT is not set"):
        load_settings({**BOTH, f"PINOT_{part}CLIENT_KEY": "me.key"})


@pytest.mark.parametrize("wrong", ["http://zk:2181", "me:s3cret@zk:2181", "zk:2181,tcp://zk2:2181/chroot"])
def test_a_zookeeper_that_is_a_url_or_has_a_user_is_refused_before_it_is_looked_for(wrong: str) -> None:
    with pytest.raises(PinotAssetsError, match="PINOT_ZOOKEEPER is not an address of ZooKeeper") as caught:
        load_settings({**BOTH, "PINOT_ZOOKEEPER": wrong})
    assert "s3cret" not in str(caught.value)
    assert "host:port" in str(caught.value.hint)
