"""Spark with the chart's properties: in the run's process, and what it asks an API server of Kubernetes for.

The API server is one that only notes what it is asked (`kubernetes_api`): no executor starts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from helm.kubernetes_api import DRIVER, KubernetesApi, kubernetes_api
from helm.rendering import NEWEST, OLDEST, pod_of, release

from pinot_assets.core.json_object import JsonObject

START = """
import sys
from pinot_assets.ingest.spark.environment import environment_context
context = environment_context()
print(context.master, context.getConf().get("spark.driver.host"), flush=True)
sys.stdin.read()
context.stop()
"""
"""A run's Spark, without a run: it lives until its standard input ends."""


def start_spark(values: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    """Start Spark with what the chart mounts into a run; paths of the image are those of this machine."""
    for name, text in release(values).data("-project").items():
        here = text.replace("/etc/pinot-assets/project", str(folder))
        (folder / name).write_text(here.replace("/opt/venv/bin/python", sys.executable))
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", START],
        env={
            **os.environ,
            "PINOT_ASSETS_PROFILE": "production",
            "PINOT_ASSETS_SPARK_PROPERTIES": str(folder / "spark.conf"),
            **environment,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_run_has_a_spark_of_its_own_unless_values_say_otherwise(tmp_path: Path) -> None:
    env = {entry["name"]: entry for entry in release("required").pods()["run"].container["env"]}
    master = env["PINOT_ASSETS_SPARK_MASTER"]["value"]
    done, _ = start_spark("required", tmp_path, PINOT_ASSETS_SPARK_MASTER=master).communicate("", 300)
    assert done.split() == ["local[*,4]", "127.0.0.1"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> KubernetesApi:
    """What Spark asked for from its start to its end, with the values of `spark.yaml`."""
    with kubernetes_api(executors=3) as api:
        spark = start_spark(
            "spark",
            tmp_path_factory.mktemp("project"),
            PINOT_ASSETS_SPARK_MASTER=f"k8s://{api.url}",
            RUN_POD_NAME=DRIVER,
            RUN_POD_IP="127.0.0.1",
        )
        try:
            assert api.pods_came.wait(300), "Spark asked for no executors"
        finally:
            spark.communicate("", 300)
        return api


def test_spark_asks_for_the_executors_of_the_values(
    cluster: KubernetesApi, schema_errors: Callable[[Iterable[JsonObject], str], list[str]]
) -> None:
    assert len(cluster.created) == 3
    assert schema_errors(cluster.created, OLDEST) == schema_errors(cluster.created, NEWEST) == []
    made = pod_of(cluster.created[0])
    planned = release("spark").pods()["executor"]
    assert planned.labels.items() <= made.labels.items(), "the network policies select it"
    assert made.spec["securityContext"] == planned.spec["securityContext"]
    assert made.container["securityContext"] == planned.container["securityContext"]
    assert made.spec["serviceAccountName"] in release("spark").of_kind("ServiceAccount")
    assert made.spec["serviceAccountName"].endswith("-executor")
    assert made.spec["automountServiceAccountToken"] is False
    assert made.spec["nodeSelector"] == {"disk": "fast"}
    assert made.spec["imagePullSecrets"] == [{"name": "registry"}]
    assert made.container["image"] == release("spark").pods()["run"].container["image"]
    assert made.container["args"] == ["executor"], "deploy/entrypoint.sh understands it"
    resources = made.container["resources"]
    assert resources["requests"] == {"cpu": "4", "memory": "7168Mi"}
    assert resources["limits"]["memory"] == "7168Mi"
    assert [port["containerPort"] for port in made.container["ports"]] == [7079]


def test_executors_find_the_run_and_end_with_it(cluster: KubernetesApi) -> None:
    for document in cluster.created:
        env = {entry["name"]: entry for entry in pod_of(document).container["env"]}
        assert env["SPARK_DRIVER_URL"]["value"].endswith("@127.0.0.1:7078")
        [owner] = document["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("Pod", DRIVER)


def test_the_role_of_a_run_allows_what_spark_asks_for(cluster: KubernetesApi) -> None:
    [role] = [role for name, role in release("spark").of_kind("Role").items() if name.endswith("-run")]
    allowed = {(verb, kind) for rule in role["rules"] for verb in rule["verbs"] for kind in rule["resources"]}
    assert ("create", "pods") in cluster.asked
    assert cluster.asked <= allowed
