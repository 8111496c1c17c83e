"""Loading does nothing but load, in every profile; what Dagster shows of the resources holds no secret."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster_graphql.schema import create_schema
from fakes.project import ROOT
from fakes.tables import write_table

from pinot_assets.errors import PinotAssetsError
from pinot_assets.resources import object_store, profile_resources
from pinot_assets.settings.environment import Profile

SECRETS = {
    "PINOT_TOKEN": "shown-pinot-token",
    "PINOT_PASSWORD": "shown-pinot-password",
    "PINOT_ZOOKEEPER_PASSWORD": "shown-zookeeper-password",
    "AWS_ACCESS_KEY_ID": "shown-access-key",
    "AWS_SECRET_ACCESS_KEY": "shown-secret-key",
    "AWS_SESSION_TOKEN": "shown-session-token",
}


# --- loading ---------------------------------------------------------------------------------------

# Runs Dagster's own command with sockets and processes shut; first it shows that they are.
_OFFLINE = """
import socket, subprocess, sys

REFUSED = {"socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.system",
           "os.exec", "os.fork", "os.forkpty", "os.posix_spawn"}

def guard(event, args):
    # `file`: Python's platform.architecture, which the cron parser inside Dagster calls.
    if event in REFUSED and args[0] != "file":
        raise PermissionError(f"{event} {args!r}")

sys.addaudithook(guard)
for reach in (lambda: socket.create_connection(("127.0.0.1", 9)), lambda: subprocess.run(["true"])):
    try:
        reach()
    except PermissionError:
        continue
    sys.exit("the guard does not hold")

from dagster._cli import main
sys.argv = ["dagster", "definitions", "validate", "-w", "workspace.yaml"]
main()
"""


def test_the_workspace_is_validated_offline_in_seconds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In a profile that lacks everything it needs. Seconds of CPU, which other processes cannot lengthen."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv("PINOT_ASSETS_PROFILE", "production")
    for name in ("PINOT_ASSETS_TABLES", "PINOT_CONTROLLER_URL", "PINOT_ZOOKEEPER"):
        monkeypatch.delenv(name, raising=False)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", _OFFLINE], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert "Validation successful for code location pinot-assets" in done.stdout + done.stderr
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 10


@pytest.mark.parametrize("profile", list(Profile))
def test_every_profile_loads_and_refuses_when_it_is_used(
    profile: Profile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PINOT_ASSETS_HOME", str(tmp_path))
    for name in ("PINOT_CONTROLLER_URL", "PINOT_ZOOKEEPER", "PINOT_ASSETS_SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PINOT_ASSETS_PROFILE", profile.value)
    resources = profile_resources()
    assert resources["pinot"].profile == resources["spark"].profile == profile.value
    assert profile_resources(profile)["pinot"] == resources["pinot"]
    lacks = "no local stack" if profile is Profile.LOCAL else "PINOT_CONTROLLER_URL, PINOT_ZOOKEEPER are not"
    with pytest.raises(PinotAssetsError, match=lacks):
        resources["pinot"].settings()
    with pytest.raises(PinotAssetsError, match=lacks):
        resources["push"].pinot.settings()
    if profile is not Profile.LOCAL:
        for spark in (resources["spark"], resources["push"].spark):
            with pytest.raises(PinotAssetsError, match="PINOT_ASSETS_SPARK_MASTER is not set"):
                _ = spark.spark_session


def test_a_profile_that_does_not_exist_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOT_ASSETS_PROFILE", "prod")
    with pytest.raises(PinotAssetsError, match="no profile prod"):
        profile_resources()


def test_the_object_store_is_where_aws_own_variables_say() -> None:
    store = object_store({"AWS_DEFAULT_REGION": "eu-west-1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9000"})
    assert (store.region_name, store.endpoint_url) == ("eu-west-1", "http://127.0.0.1:9000")
    first = {"AWS_REGION": "us-east-2", "AWS_DEFAULT_REGION": "eu-west-1", "AWS_ENDPOINT_URL_S3": "https://a"}
    assert object_store(first).region_name == "us-east-2"
    assert object_store({**first, "AWS_ENDPOINT_URL": "https://b"}).endpoint_url == "https://a"
    assert object_store({}).endpoint_url is None


# --- what the UI shows -----------------------------------------------------------------------------

# A code location of the environment's profile, and one of a user who names the variables.
_LOCATION = """
from pathlib import Path
import dagster as dg
from dagster_aws.s3 import S3Resource
from pinot_assets.definitions import build_definitions
from pinot_assets.resources import ConsistentPushResource, PinotResource, SparkResource

shipped = build_definitions(Path(__file__).parent / "tables")

pinot = PinotResource(
    controller_url="https://pinot:9000",
    zookeeper="zk:2181",
    username="ada",
    password=dg.EnvVar("PINOT_PASSWORD"),
    token=dg.EnvVar("PINOT_TOKEN"),
    zookeeper_username="zed",
    zookeeper_password=dg.EnvVar("PINOT_ZOOKEEPER_PASSWORD"),
)
s3 = S3Resource(
    aws_access_key_id=dg.EnvVar("AWS_ACCESS_KEY_ID"),
    aws_secret_access_key=dg.EnvVar("AWS_SECRET_ACCESS_KEY"),
    aws_session_token=dg.EnvVar("AWS_SESSION_TOKEN"),
)

@dg.asset
def mine(push: ConsistentPushResource): ...

users = dg.Definitions(
    assets=[mine],
    resources={
        "pinot": pinot,
        "s3": s3,
        "push": ConsistentPushResource(pinot=pinot, spark=SparkResource()),
    },
)
"""
_RESOURCES = """
query ($repository: RepositorySelector!) {
  allTopLevelResourceDetailsOrError(repositorySelector: $repository) {
    __typename
    ... on ResourceDetailsList { results {
      name description
      configFields { name description defaultValueAsJson }
      configuredValues { key value type }
      nestedResources { name resource {
        name description
        configFields { name description defaultValueAsJson }
        configuredValues { key value type }
      } }
    } }
    ... on PythonError { message }
  }
}
"""


@pytest.fixture
def location(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Any]:
    """All that Dagster's web server tells of one code location's resources, and its stored snapshot."""
    write_table(tmp_path, "flights")
    (tmp_path / "location.py").write_text(_LOCATION)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PINOT_ASSETS_PROFILE", "production")
    target = LoadableTargetOrigin(
        executable_path=sys.executable,
        python_file=str(tmp_path / "location.py"),
        attribute=request.param,
        working_directory=str(tmp_path),
    )
    origin = InProcessCodeLocationOrigin(loadable_target_origin=target, location_name="here")
    with (
        dg.DagsterInstance.local_temp(str(tmp_path), overrides={"telemetry": {"enabled": False}}) as instance,
        WorkspaceProcessContext(instance, InProcessWorkspaceLoadTarget(origin)) as process,
    ):
        context = process.create_request_context()
        (repository,) = context.get_code_location("here").get_repositories()
        selector = {"repositoryName": repository, "repositoryLocationName": "here"}
        reply = create_schema().execute(
            _RESOURCES, context_value=context, variable_values={"repository": selector}
        )
        assert reply.errors is None
        snapshot = context.get_code_location("here").get_repository(repository).repository_snap
        yield reply.data, dg.serialize_value(snapshot)


@pytest.mark.parametrize("location", ["shipped", "users"], indirect=True)
def test_what_dagster_shows_and_stores_of_resources_holds_no_secret(location: Any) -> None:
    shown, stored = location
    listed = {found["name"] for found in shown["allTopLevelResourceDetailsOrError"]["results"]}
    assert {"pinot", "push", "s3"} <= listed
    for text in (json.dumps(shown), stored):
        assert "zookeeper_password" in text
        assert [value for value in SECRETS.values() if value in text] == []


@pytest.mark.parametrize("location", ["users"], indirect=True)
def test_a_secret_is_shown_as_its_variable(location: Any) -> None:
    """So the test above looks at the place where secrets would stand."""
    results = location[0]["allTopLevelResourceDetailsOrError"]["results"]
    values = {(r["name"], v["key"]): v for r in results for v in r["configuredValues"]}
    assert values["pinot", "password"] == {"key": "password", "value": "PINOT_PASSWORD", "type": "ENV_VAR"}
    assert values["pinot", "controller_url"]["value"] == '"https://pinot:9000"'
    assert values["s3", "aws_secret_access_key"]["value"] == "AWS_SECRET_ACCESS_KEY"
