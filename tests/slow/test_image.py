"""The steps that install into the image, in a fresh environment: minutes, so `make test-all` runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(1800)
def test_the_install_steps_of_the_image_make_a_program_that_runs(tmp_path: Path) -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
    steps = [
        line.removeprefix("RUN ") for line in text.splitlines() if line.startswith("RUN") and "pip" in line
    ]
    assert len(steps) == 2
    let_through = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text()
    source, venv = tmp_path / "src", tmp_path / "venv"
    for name in re.findall(r"^!(\S+)", let_through, re.MULTILINE):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    for step in steps:
        command = step.replace("/opt/venv", str(venv))
        done = subprocess.run(
            ["bash", "-c", command], cwd=source, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
    program = [str(venv / "bin" / "pinot-assets")]
    shown = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert shown.stdout.startswith("pinot-assets ")
    for module in (
        "pinot_assets.definitions",
        "datafusion",
        "dagster_k8s",
        "dagster_postgres",
        "pandas",
        "simpy",
    ):
        subprocess.run(
            [str(venv / "bin" / "python"), "-c", f"import {module}"],
            env={**environment, "PINOT_ASSETS_TABLES": str(source / "tables")},
            cwd=tmp_path,
            check=True,
        )
    subprocess.run([str(venv / "bin" / "pip"), "check"], check=True)
