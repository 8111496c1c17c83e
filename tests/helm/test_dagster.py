"""Dagster with the chart's files: the instance, the pod of a run, the code server's probe, mounted tables."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import dagster as dg
import grpc
import kubernetes
import pytest
import yaml
from dagster._config import process_config
from dagster._core.instance.ref import InstanceRef
from dagster_postgres import DagsterPostgresStorage
from dagster_postgres.utils import get_conn_string, pg_url_from_config
from fakes.project import ROOT
from grpc_health.v1 import health_pb2, health_pb2_grpc
from helm.rendering import VALUES, release

from pinot_assets.table_spec.tables.load import load_tables

every_values = pytest.mark.parametrize("values", VALUES)


@every_values
def test_runs_are_limited_retried_and_watched_as_the_project_says(values: str) -> None:
    ours, project = release(values).dagster(), yaml.safe_load((ROOT / "dagster.yaml").read_text())
    limit = 9 if values == "everything" else project["concurrency"]["runs"]["max_concurrent_runs"]
    project["concurrency"]["runs"]["max_concurrent_runs"] = limit
    assert {key: ours[key] for key in project} == project
    assert ours.keys() - project.keys() == {"storage", "compute_logs", "run_launcher"}


@every_values
def test_dagster_takes_the_instance_and_runs_in_it_without_a_cluster(
    values: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code location and, without executors, a run have no token: only launching may need one."""
    monkeypatch.setattr(
        kubernetes.config, "load_incluster_config", lambda: pytest.fail("asked for a cluster")
    )
    config = release(values).dagster()
    storage = config.pop("storage")["postgres"]["postgres_db"]
    assert storage["password"] == {"env": "DAGSTER_PG_PASSWORD"}
    assert storage["username"] == {"env": "DAGSTER_PG_USER"}
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(config))

    @dg.job
    def nothing() -> None:
        pass

    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert nothing.execute_in_process(instance=instance).success
        assert instance.run_monitoring_enabled


def test_the_storage_is_what_dagster_postgres_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_PG_USER", "dagster")
    monkeypatch.setenv("DAGSTER_PG_PASSWORD", "p@ss/word")
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(release("everything").dagster()))
    data = InstanceRef.from_dir(str(tmp_path)).storage_data
    assert data is not None
    read = process_config(DagsterPostgresStorage.config_type(), yaml.safe_load(data.config_yaml))
    assert read.value is not None, read.errors
    url = pg_url_from_config(read.value)
    assert url == get_conn_string(
        "dagster", "p@ss/word", "postgres.databases.svc", "ingest", "6432", {"sslmode": "verify-full"}
    )


def test_a_run_gets_its_pod_as_the_values_say() -> None:
    job = release("everything").job()
    spec, template = job["spec"], job["spec"]["template"]
    assert spec["backoffLimit"] == 0, "Dagster's own retries start another run"
    assert template["metadata"]["labels"]["team"] == "data"
    assert template["metadata"]["labels"]["app.kubernetes.io/name"] == "pinot-assets"
    assert template["spec"]["terminationGracePeriodSeconds"] == 300
    assert template["spec"]["nodeSelector"] == {"disk": "fast"}
    assert template["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    [container] = template["spec"]["containers"]
    assert container["image"].startswith("registry.example/pinot-assets@sha256:0123")
    env = {entry["name"]: entry for entry in container["env"]}
    assert env["DAGSTER_HOME"]["value"] == "/opt/dagster"
    assert env["PINOT_ASSETS_LEASE_SECONDS"]["value"] == "60"
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    assert mounts["/opt/dagster/dagster.yaml"]["subPath"] == "dagster.yaml"
    assert {"/etc/pinot-assets/tls", "/srv/project/tables"} <= mounts.keys()


@pytest.mark.parametrize(
    "config",
    [
        {"container_config": {"securityContext": {"privileged": True}}},
        {"container_config": {"image": "registry.example/other"}},
        {"container_config": {"volumeMounts": [{"name": "host", "mountPath": "/host"}]}},
        {"pod_spec_config": {"serviceAccountName": "release-pinot-assets-dagster"}},
        {"pod_spec_config": {"hostNetwork": True}},
        {"pod_template_spec_metadata": {"labels": {"app.kubernetes.io/component": "daemon"}}},
        {"job_spec_config": {"backoffLimit": 5}},
    ],
)
def test_the_tags_of_a_run_change_nothing_of_its_pod(config: dict[str, object]) -> None:
    with pytest.raises(Exception, match="violated the allowed list"):
        release("required").job(**{"dagster-k8s/config": json.dumps(config)})


def test_the_tags_of_a_run_may_ask_for_more_memory() -> None:
    config = {"container_config": {"resources": {"limits": {"memory": "64Gi"}}}}
    job = release("required").job(**{"dagster-k8s/config": json.dumps(config)})
    assert job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] == "64Gi"


def test_table_specs_load_from_a_mounted_config_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As kubelet mounts one: a folder of the moment, a link to it, and a link for each key."""
    monkeypatch.setenv("PINOT_ASSETS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PINOT_ASSETS_STAGING", str(tmp_path / "staging"))
    tables = tmp_path / "project" / "tables"
    moment = tables / "..2026_11_26_10_00_00.123456789"
    moment.mkdir(parents=True)
    (moment / "flights.yaml").write_text((ROOT / "tables" / "flights.yaml").read_text())
    (tables / "..data").symlink_to(moment.name)
    (tables / "flights.yaml").symlink_to("..data/flights.yaml")
    assert [*load_tables(tables)] == ["flights"]


def test_the_code_server_answers_the_probe(tmp_path: Path) -> None:
    container = release("required").pods()["code"].container
    assert "args" not in container
    assert "command" not in container
    text = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", "")
    [words] = [json.loads(line.removeprefix("CMD ")) for line in text.splitlines() if line.startswith("CMD ")]
    assert words[words.index("--port") + 1] == str(container["readinessProbe"]["grpc"]["port"])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words[words.index("--host") + 1], words[words.index("--port") + 1] = "127.0.0.1", str(port)
    program = str(Path(sys.executable).parent / words[0])
    environment = {
        **os.environ, "DAGSTER_HOME": str(tmp_path), "PINOT_ASSETS_TABLES": str(ROOT / "tables"),
    }  # fmt: skip
    asked = {
        container[probe]["grpc"]["service"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")
    }
    server = subprocess.Popen([program, *words[1:]], cwd=tmp_path, env=environment)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            [service] = asked
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service=service), wait_for_ready=True, timeout=300
            )
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    finally:
        server.terminate()
        server.wait(60)
