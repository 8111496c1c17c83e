"""What the doctor says of the environment: every wrong setting, with a way out and without a value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.pinot.left_nodes import CLUSTER, left_by_a_table
from fakes.zookeeper.memory import FakeZooKeeper

from pinot_assets import zookeeper
from pinot_assets.cli.doctor import environment
from pinot_assets.cli.doctor import environment as settings
from pinot_assets.cli.doctor.environment import check_environment
from pinot_assets.core.check_result import CheckResult
from pinot_assets.errors import PinotUnreachable, SessionError
from pinot_assets.metrics import pushing

OUTCOMES = ("ok", "warn", "fail")
BOTH = {"PINOT_CONTROLLER_URL": "http://pinot:9000", "PINOT_ZOOKEEPER": "zk:2181", "PINOT_CLUSTER": CLUSTER}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, and a Pinot and a ZooKeeper that answer wherever they are said to be."""
    monkeypatch.chdir(tmp_path)
    server = left_by_a_table(FakeZooKeeper())
    monkeypatch.setattr(zookeeper, "connect", lambda *_, **__: server.client())
    monkeypatch.setattr(settings, "HttpPinotClient", Cluster)
    return tmp_path


class Cluster:
    """A controller that answers."""

    def __init__(self, connection: Any) -> None:
        assert connection.timeouts.call <= 3

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def version(self) -> str:
        return "1.5.1"


def found(env: dict[str, str]) -> list[CheckResult]:
    """What is not well; every check of it says what to do, in one sentence, and shows no value."""
    checks = check_environment(env)
    for check in checks:
        assert check.message.endswith(".")
        assert check.passed == (not check.next_step)
        assert "s3cret" not in f"{check.message} {check.next_step}"
    return [check for check in checks if check.pick(*OUTCOMES) != "ok"]


def the_one(env: dict[str, str]) -> CheckResult:
    (check,) = found(env)
    return check


def said(env: dict[str, str]) -> dict[str, str]:
    return {check.name: check.message for check in check_environment(env)}


def test_without_any_setting_all_is_well() -> None:
    assert found({}) == []
    assert said({}) == {
        "profile": "local, since none is set.",
        "settings": "they name no Pinot, so the local stack is used.",
        "policy": "the defaults apply.",
    }


def test_a_pinot_that_is_named_is_asked_and_so_is_its_zookeeper() -> None:
    assert found(BOTH) == []
    assert said(BOTH)["controller"] == "it answers: Pinot 1.5.1."
    assert said(BOTH)["ZooKeeper"] == f"it answers, and has the cluster {CLUSTER}."


@pytest.mark.parametrize(
    ("env", "name", "outcome", "says", "way_out"),
    [
        ({"PINOT_ASSETS_PROFILE": "prod"}, "profile", "fail", "no profile prod", "local or staging"),
        ({"PINOT_USER": "s3cret"}, "settings", "fail", "PINOT_PASSWORD is not set", "or unset PINOT_USER"),
        ({**BOTH, "PINOT_PASSWORD": "s3cret"}, "settings", "fail", "PINOT_USER is not set", "set PINOT_USER"),
        (
            {**BOTH, "PINOT_CONTROLLER_URL": "pinot:9000"},
            "settings",
            "fail",
            "not an http address",
            "http://host",
        ),
        (
            {**BOTH, "PINOT_ZOOKEEPER": "http://me:s3cret@zk:2181"},
            "settings",
            "fail",
            "PINOT_ZOOKEEPER is not an address of ZooKeeper",
            "host:port[,host:port…][/chroot]",
        ),
        ({**BOTH, "PINOT_ZOOKEEPER": ""}, "settings", "fail", "PINOT_ZOOKEEPER is not set", "set PINOT_ZOO"),
        (
            {**BOTH, "PINOT_CLUSTER": "pinto"},
            "ZooKeeper",
            "fail",
            f"it has {CLUSTER}",
            f"PINOT_CLUSTER to {CLUSTER}",
        ),
        (
            {**BOTH, "PINOT_CA_BUNDLE": "/no.pem"},
            "settings",
            "fail",
            "cannot be used (/no.pem)",
            "readable PEM",
        ),
        (
            {"PINOT_TOKEN": "s3cret"},
            "settings",
            "warn",
            "PINOT_TOKEN is set and not used",
            "PINOT_CONTROLLER_URL",
        ),
        ({"PINOT_ASSETS_LEASE_SECONDS": "soon"}, "settings", "fail", "not a number of seconds", "1 to 3600"),
        (
            {"PINOT_ASSETS_POLICY": "/no.yaml"},
            "policy",
            "fail",
            "the policy /no.yaml cannot",
            "docs/security.md",
        ),
        ({"PINOT_ASSETS_TABLES": "/no"}, "tables", "fail", "/no is not a folder", "PINOT_ASSETS_TABLES"),
        (
            {"PINOT_ASSETS_SPARK_MASTER": "sc://x"},
            "Spark",
            "fail",
            "Spark Connect is not",
            "PINOT_ASSETS_SPARK",
        ),
        (
            {"PINOT_ASSETS_SPARK_PROPERTIES": "/no"},
            "Spark",
            "fail",
            "cannot be read from /no",
            "spark-defaults",
        ),
        (
            {"PINOT_ASSETS_MAX_COLUMNS": "many"},
            "limits",
            "fail",
            "is not a number",
            "PINOT_ASSETS_MAX_COLUMNS=",
        ),
        (
            {"AWS_ENDPOINT_URL": "minio:9000"},
            "addresses",
            "fail",
            "AWS_ENDPOINT_URL is not an address",
            "https://host",
        ),
        (
            {"PINOT_ASSETS_WEBHOOK_URL": "s3cret"},
            "addresses",
            "fail",
            "WEBHOOK_URL is not an address",
            "https://",
        ),
        ({"AWS_ACCESS_KEY_ID": "s3cret"}, "credentials", "fail", "AWS_SECRET_ACCESS_KEY is not", "or unset"),
        (
            {"PINOT_ASSETS_PUSHGATEWAY_PASSWORD": "s3cret"},
            "credentials",
            "fail",
            "PINOT_ASSETS_PUSHGATEWAY_USER is not",
            "or unset",
        ),
        (
            {"PINOT_ASSETS_POLCIY": "s3cret"},
            "variables",
            "warn",
            "nothing reads it",
            "did you mean PINOT_ASSETS_POLICY?",
        ),
        ({"PINOT_CONTROLER_URL": "s3cret"}, "variables", "warn", "nothing reads it", "PINOT_CONTROLLER_URL?"),
        ({"PINOT_ASSETS_ALL_WELL": "x"}, "variables", "warn", "nothing reads it", "configuration.md"),
    ],
)
def test_each_wrong_setting_is_told_with_the_way_out(
    env: dict[str, str], name: str, outcome: str, says: str, way_out: str
) -> None:
    check = the_one(env)
    assert (check.name, check.pick(*OUTCOMES)) == (name, outcome)
    assert says in check.message
    assert way_out in check.next_step


def test_production_needs_addresses_and_a_spark() -> None:
    assert {check.name: check.pick(*OUTCOMES) for check in found({"PINOT_ASSETS_PROFILE": "production"})} == {
        "settings": "fail",
        "Spark": "fail",
    }


def test_variables_of_others_are_left_alone() -> None:
    assert found({"PINOT_JAVA_OPTS": "-Xmx1g", "TABLE_KEY": "x", "HOME": "/", "AWS_PROFILE": "lake"}) == []


def test_a_limit_of_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOT_ASSETS_MAX_REPLY_MIB", "plenty")
    assert "PINOT_ASSETS_MAX_REPLY_MIB is not a number of MiB" in the_one({}).message


def test_a_controller_and_a_zookeeper_that_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(self: Cluster) -> str:
        raise PinotUnreachable("no connection", hint="is Pinot running there?")

    @contextmanager
    def away(*_: object, timeout_s: float, **__: object) -> Iterator[None]:
        assert timeout_s <= 3
        raise SessionError("ZooKeeper at zk:2181 does not answer", hint="check PINOT_ZOOKEEPER")
        yield

    monkeypatch.setattr(Cluster, "version", silent)
    monkeypatch.setattr(settings, "cluster_client", away)
    controller, keeper = found(BOTH)
    assert (controller.name, controller.message) == ("controller", "no connection.")
    assert (keeper.name, keeper.next_step) == ("ZooKeeper", "check PINOT_ZOOKEEPER")


def test_a_store_where_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    check = the_one({"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"})
    assert (check.name, check.pick(*OUTCOMES)) == ("addresses", "warn")
    assert "nothing answers at the address of AWS_ENDPOINT_URL_S3" in check.message


def test_a_root_that_is_not_there(project: Path) -> None:
    policy = project / "p.yaml"
    policy.write_text("roots:\n- project\n- /gone\n")
    check = the_one({"PINOT_ASSETS_POLICY": str(policy)})
    assert (check.name, check.pick(*OUTCOMES)) == ("policy", "warn")
    assert check.message.startswith("roots[1]: /gone does not exist on this machine")
    assert check.next_step == f"mount the file, or correct line 3 of {policy}"
    policy.write_text("roots: [project]")
    assert said({"PINOT_ASSETS_POLICY": str(policy)})["policy"] == "PINOT_ASSETS_POLICY can be read."


def test_the_halves_of_the_gateways_user_are_those_that_a_run_reads() -> None:
    assert (pushing.USER, pushing.PASSWORD) in environment._HALVES
