"""Fixtures of the chart's tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import kubernetes
import pytest
import yaml

from pinot_assets.core.json_object import JsonObject


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster's launcher asks its pod for the cluster; here is none, and none is asked."""
    monkeypatch.setattr(kubernetes.config, "load_incluster_config", lambda: None)


@pytest.fixture
def schema_errors(tmp_path: Path) -> Callable[[Iterable[JsonObject], str], list[str]]:
    """Returns what a release's own schemas say against documents; unknown keys are errors."""

    def errors(documents: Iterable[JsonObject], version: str) -> list[str]:
        file = tmp_path / "documents.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        words = [os.environ["KUBERNETES_VALIDATE"], "--strict", "--kubernetes-version", version, str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        lines = (done.stdout + done.stderr).splitlines()
        assert len([line for line in lines if line.startswith("INFO")]) or done.returncode, lines
        return [line for line in lines if not line.startswith("INFO")]

    return errors
