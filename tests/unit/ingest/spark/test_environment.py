"""Which Spark the environment asks for. That one really builds is shown in the integration tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pinot_assets.errors import PinotAssetsError
from pinot_assets.ingest.spark import jvm
from pinot_assets.ingest.spark.environment import (
    environment_context,
    environment_session,
    environment_settings,
)
from pinot_assets.settings.environment import Profile

DEFAULTS = """\
# like spark-defaults.conf
spark.master            k8s://https://cluster:6443
spark.executor.memory=4g

spark.kubernetes.container.image: registry/pinot-assets:1
spark.executor.extraJavaOptions   -Dkey=value -verbose:gc
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a session of a cluster is asked for; no JVM starts."""
    found: dict[str, str] = {}
    monkeypatch.setenv("PYSPARK_PYTHON", "")  # whatever is set there is put back
    monkeypatch.delenv("PYSPARK_PYTHON")

    def get(builder: Any) -> str:
        found.update(builder._options)
        return "a cluster's"

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", get)
    # Another test's JVM may be alive, and its properties would be the new configuration's defaults.
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.setattr(jvm, "start_jvm", lambda settings, log: None)

    def get_context(conf: Any) -> str:
        found.update(conf.getAll())
        return "a cluster's context"

    monkeypatch.setattr(SparkContext, "getOrCreate", get_context)
    monkeypatch.setattr(jvm, "local_session", lambda name, cores, log: "this machine's")
    monkeypatch.setattr(jvm, "local_context", lambda name, cores, log: "this machine's context")
    monkeypatch.setattr(SparkSession, "builder", SparkSession.Builder())
    return found


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    path = tmp_path / "spark.conf"
    path.write_text(DEFAULTS)
    return path


def test_properties_as_spark_submit_takes_them(properties: Path) -> None:
    assert environment_settings({"PINOT_ASSETS_SPARK_PROPERTIES": str(properties)}) == {
        "spark.master": "k8s://https://cluster:6443",
        "spark.executor.memory": "4g",
        "spark.kubernetes.container.image": "registry/pinot-assets:1",
        "spark.executor.extraJavaOptions": "-Dkey=value -verbose:gc",
    }


def test_the_master_goes_before_the_file_and_own_settings_before_both(
    asked: dict[str, str], properties: Path
) -> None:
    env = {
        "PINOT_ASSETS_SPARK_PROPERTIES": str(properties),
        "PINOT_ASSETS_SPARK_MASTER": "yarn",
        "PINOT_ASSETS_PROFILE": "production",
    }
    session: object = environment_session({"spark.executor.memory": "9g"}, environ=env)
    assert session == "a cluster's"
    assert (asked["spark.master"], asked["spark.executor.memory"]) == ("yarn", "9g")
    assert asked["spark.app.name"] == "pinot-assets"
    assert asked["spark.executorEnv.PYTHONSAFEPATH"] == "1"


def test_a_context_is_asked_for_as_a_session_is(asked: dict[str, str], properties: Path) -> None:
    env = {"PINOT_ASSETS_SPARK_PROPERTIES": str(properties), "PINOT_ASSETS_PROFILE": "production"}
    environment_session(environ=env)
    of_session = dict(asked)
    asked.clear()
    context: object = environment_context(environ=env)
    assert (context, asked) == ("a cluster's context", of_session)


def test_at_home_a_small_spark_of_this_machine_is_the_fallback(asked: dict[str, str]) -> None:
    session: object = environment_session(environ={})
    assert session == "this machine's"
    context: object = environment_context(environ={})
    assert context == "this machine's context"
    assert asked == {}


@pytest.mark.parametrize(
    ("own", "env"),
    [
        ({}, {"PINOT_ASSETS_PROFILE": "staging"}),
        ({}, {"PINOT_ASSETS_PROFILE": "production"}),
        ({"spark.executor.memory": "9g"}, {}),
    ],
)
def test_without_a_master_nothing_is_guessed(
    asked: dict[str, str], own: dict[str, str], env: dict[str, str]
) -> None:
    with pytest.raises(PinotAssetsError, match="PINOT_ASSETS_SPARK_MASTER is not set") as caught:
        environment_session(own, environ=env)
    assert "PINOT_ASSETS_SPARK_PROPERTIES" in str(caught.value.hint)
    assert asked == {}


def test_spark_connect_is_refused(asked: dict[str, str]) -> None:
    with pytest.raises(PinotAssetsError, match="Spark Connect"):
        environment_session({"spark.master": "sc://host"}, Profile.STAGING, {})
    assert asked == {}


@pytest.mark.parametrize("text", ["spark.secret\n", "password=s3cret\n", "-Dspark.a=s3cret\n"])
def test_a_line_that_is_no_property(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spark.conf"
    path.write_text("# first\n" + text)
    with pytest.raises(PinotAssetsError, match=r"line 2 of .*spark\.conf is not a property") as caught:
        environment_settings({"PINOT_ASSETS_SPARK_PROPERTIES": str(path)})
    assert "s3cret" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PinotAssetsError, match=r"cannot be read from .*nowhere"):
        environment_settings({"PINOT_ASSETS_SPARK_PROPERTIES": str(tmp_path / "nowhere")})


@pytest.mark.parametrize(
    ("own", "python"),
    [
        ({"spark.master": "local[2]"}, sys.executable),
        ({"spark.master": "local[2]", "spark.pyspark.python": "/opt/python"}, "/opt/python"),
        ({"spark.master": "yarn", "spark.pyspark.python": "/opt/python"}, "/opt/python"),
        ({"spark.master": "yarn"}, None),
    ],
)
def test_the_python_of_the_workers(asked: dict[str, str], own: dict[str, str], python: str | None) -> None:
    environment_session(own, Profile.STAGING, {})
    assert os.environ.get("PYSPARK_PYTHON") == python


def test_the_environments_python_goes_before(asked: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python3")
    environment_session({"spark.master": "local[2]"}, Profile.STAGING, {})
    assert os.environ["PYSPARK_PYTHON"] == "/usr/bin/python3"
