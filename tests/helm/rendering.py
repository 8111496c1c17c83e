"""The chart as Helm renders it, and the pods that come of it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import kubernetes
import yaml
from dagster import DagsterRun
from dagster._config import process_config
from dagster._core.utils import make_new_run_id
from dagster_k8s.job import construct_dagster_k8s_job, get_job_name_from_run_id
from dagster_k8s.launcher import K8sRunLauncher
from fakes.project import ROOT

from pinot_assets.core.json_object import JsonObject

CHART: Final = ROOT / "deploy" / "helm" / "pinot-assets"
VALUES: Final = {path.stem: path for path in sorted((Path(__file__).parent / "values").glob("*.yaml"))}
NEWEST: Final = "1.37.0"
OLDEST: Final = "1.27.0"
"""Of the releases of Kubernetes whose schemas the validator brings; the chart asks for the older one."""


def helm(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the helm that `make helm-test` built."""
    return subprocess.run([os.environ["HELM"], *words], capture_output=True, text=True, check=False)


def template(*options: str) -> subprocess.CompletedProcess[str]:
    """Render the chart as the release `release` of the namespace `ingestion`."""
    words = ("--namespace", "ingestion", "--kube-version", NEWEST, *options)
    return helm("template", "release", str(CHART), *words)


@dataclass(frozen=True)
class Pod:
    """A pod that the release makes, by itself, by Dagster's launcher or by Spark.

    :ivar component: its label `app.kubernetes.io/component`.
    """

    component: str
    labels: JsonObject
    spec: JsonObject

    @property
    def container(self) -> JsonObject:
        """Its only container."""
        container: JsonObject
        [container] = self.spec["containers"]
        return container


class Release:
    """What the chart makes of values."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.documents: list[JsonObject] = [document for document in yaml.safe_load_all(text) if document]

    def of_kind(self, kind: str) -> dict[str, JsonObject]:
        """Return the documents of a kind by their names."""
        return {d["metadata"]["name"]: d for d in self.documents if d["kind"] == kind}

    def data(self, config_map: str) -> JsonObject:
        """Return what a config map holds, by the end of its name."""
        found: JsonObject
        [found] = [d["data"] for name, d in self.of_kind("ConfigMap").items() if name.endswith(config_map)]
        return found

    def dagster(self) -> JsonObject:
        """Return dagster.yaml."""
        read: JsonObject = yaml.safe_load(self.data("-instance")["dagster.yaml"])
        return read

    def job(self, **tags: str) -> JsonObject:
        """Return the job that Dagster's launcher makes of a run with these tags."""
        config = process_config(K8sRunLauncher.config_type(), self.dagster()["run_launcher"]["config"])
        assert config.value is not None, config.errors
        launcher = K8sRunLauncher.from_config_value(None, {**config.value, "k8s_client_batch_api": object()})
        run = DagsterRun(job_name="flights_push", run_id=make_new_run_id(), tags=tags)
        context = launcher.get_container_context_for_run(run)
        job = construct_dagster_k8s_job(
            job_config=context.get_k8s_job_config(None, launcher),
            args=["dagster", "api", "execute_run"],
            job_name=get_job_name_from_run_id(run.run_id),
            component="run_worker",
            user_defined_k8s_config=context.run_k8s_config,
            labels={"dagster/run-id": run.run_id},
        )
        made: JsonObject = kubernetes.client.ApiClient().sanitize_for_serialization(job)
        return made

    def deployed(self) -> dict[str, Pod]:
        """Return the pods of the deployments, by component."""
        pods = (d["spec"]["template"] for d in self.of_kind("Deployment").values())
        return {pod.component: pod for pod in map(pod_of, pods)}

    def pods(self) -> dict[str, Pod]:
        """Return all pods, those of runs and Spark's executors included, by component."""
        made = [pod_of(self.job()["spec"]["template"])]
        if executor := self.data("-project").get("executor.yaml"):
            made.append(pod_of(yaml.safe_load(executor)))
        return self.deployed() | {pod.component: pod for pod in made}


def pod_of(document: JsonObject) -> Pod:
    """Return the pod that a document, or the template in one, describes."""
    labels = document["metadata"]["labels"]
    return Pod(labels["app.kubernetes.io/component"], labels, document["spec"])


@cache
def release(values: str) -> Release:
    """Return the release of one of the files in `values`."""
    done = template("--values", str(VALUES[values]))
    assert done.returncode == 0, done.stderr
    return Release(done.stdout)
