"""The image recipe and what is said around it: without a container engine, as far as that goes."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from fakes.project import ROOT

from pinot_assets.settings.variables import VARIABLES

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm/pinot-assets"
SPARK = {
    "SPARK_EXECUTOR_MEMORY": "2g",
    "SPARK_DRIVER_URL": "spark://driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "4",
    "SPARK_APPLICATION_ID": "app-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "pod-3",
    "SPARK_HOME": "/spark",
    **{f"SPARK_JAVA_OPT_{n}": f"-Dn={n} -Dspace" for n in range(11)},
}


def instructions() -> list[str]:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_what_the_image_copies_is_there_and_let_through() -> None:
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    let_through = [line[1:] for line in ignore if line.startswith("!")]
    assert [name for name in let_through if not (ROOT / name).exists()] == []
    copied = [
        line.split()[1:-1] for line in instructions() if line.startswith("COPY") and "--from" not in line
    ]
    sources = [source for group in copied for source in group if source != "."]
    assert sources
    assert [s for s in sources if not any(fnmatch.fnmatch(s, name) for name in let_through)] == []


def test_the_image_can_do_all_that_an_extra_brings() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (recipe,) = re.findall(r"deploy/build\.in (.*)\\", (ROOT / "Makefile").read_text())
    of_persons = {"dev", "sample"}  # for somebody's own machine
    assert {*re.findall(r"--extra (\w+)", recipe)} == extras.keys() - of_persons
    image = pins(DEPLOY / "requirements.lock")
    wanted = {re.split(r"[\[<>=]", line)[0] for name in extras.keys() - of_persons for line in extras[name]}
    assert wanted <= image.keys()


def pins(lock: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Name → its line, and the hashes that it may have."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for part in re.split(r"\n(?=\S)", lock.read_text()):
        if (line := part.split("\\", 1)[0].strip()) and not line.startswith("#"):
            found[line.partition("==")[0].partition("[")[0]] = (
                line,
                frozenset(re.findall(r"sha256:\w{64}", part)),
            )
    return found


def test_the_image_is_built_of_the_locked_files() -> None:
    locked, image = pins(ROOT / "requirements.lock"), pins(DEPLOY / "requirements.lock")
    assert image["dagster"][0] == "dagster==1.13.27"
    for name, (line, hashes) in image.items():
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==[\w.]+", line), line
        version = re.search(r"==[\w.]+", line)
        assert version is not None
        assert version[0] in locked[name][0]
        assert hashes
        assert hashes == locked[name][1]
    assert not {"mypy", "pytest", "ruff", "playwright", "moto"} & image.keys()


def test_nothing_is_fetched_into_the_image_that_the_lock_does_not_name() -> None:
    installs = [line for line in instructions() if "pip install" in line]
    dependencies, package = installs
    assert "--require-hashes --requirement deploy/requirements.lock" in dependencies
    for option in ("--no-deps", "--no-build-isolation", "--no-index"):
        assert option in package
    assert "setuptools" in pins(DEPLOY / "requirements.lock"), "what builds the package"


def test_the_base_image_can_be_pinned_and_no_digest_is_made_up() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert text.index("ARG BASE=") < text.index("FROM")
    assert not re.search(r"sha256:[0-9a-f]", text + (ROOT / "docs" / "deploy.md").read_text())


def test_another_base_may_have_another_python() -> None:
    """Only the default of BASE names a version; where Spark lies is asked of the Python that is there."""
    lines = [line for line in instructions() if not line.startswith("ARG BASE=")]
    assert [line for line in lines if re.search(r"python3\.\d", line)] == []
    (link,) = [line for line in lines if "ln -s" in line]
    assert link.split()[-1] == "/opt/venv/spark"
    (code,) = re.findall(r"python -c '([^']+)'", link)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (Path(found.stdout.strip()) / "bin" / "spark-submit").is_file()


def test_the_image_needs_no_root_and_writes_where_it_may() -> None:
    lines = instructions()
    user = lines.index("USER 1000:1000")
    assert not any(line.startswith(("RUN", "COPY", "USER")) for line in lines[user + 1 :])
    (environment,) = [line for line in lines if line.startswith("ENV")]
    for setting in ("HOME=/tmp", "TMPDIR=/tmp", "PYTHONDONTWRITEBYTECODE=1"):
        assert setting in environment.split()


@pytest.fixture
def entrypoint(
    executable: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    """Runs the image's entry point; answers the words of the command that it ends in."""
    for name in ("java", "dagster"):
        stand_in = executable(f"bin/{name}", f"echo {name}; printf '%s\\n' \"$@\"")
    monkeypatch.setenv("PATH", str(stand_in.parent), prepend=os.pathsep)

    def run(*words: str, **environment: str) -> list[str]:
        done = subprocess.run(
            [DEPLOY / "entrypoint.sh", *words],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    return run


def test_the_image_runs_commands_as_they_are(entrypoint: Callable[..., list[str]]) -> None:
    assert entrypoint("dagster", "api", "a b") == ["dagster", "api", "a b"]


def test_the_image_is_an_executor_of_spark_on_kubernetes(entrypoint: Callable[..., list[str]]) -> None:
    java, *words = entrypoint("executor", **SPARK)
    assert java == "java"
    assert words[:11] == [f"-Dn={n} -Dspace" for n in range(11)], "in the order of their numbers, unbroken"
    assert words[11:14] == ["-Xms2g", "-Xmx2g", "-cp"]
    backend, *options = words[15:]
    assert backend.endswith(".KubernetesExecutorBackend")
    assert dict(zip(options[::2], options[1::2], strict=True)) == {
        "--driver-url": "spark://driver:7078",
        "--executor-id": "3",
        "--cores": "4",
        "--app-id": "app-1",
        "--hostname": "10.0.0.7",
        "--resourceProfileId": "0",
        "--podName": "pod-3",
    }


def test_the_values_may_name_every_variable_that_the_chart_does_not_set() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    plain = {*schema["env"]["propertyNames"]["anyOf"][0]["enum"]}
    secret = {*schema["secretEnv"]["propertyNames"]["anyOf"][0]["enum"]} - plain
    every = {v.name: v.kind for group in VARIABLES.values() for v in group}
    assert secret == {name for name, kind in every.items() if kind == "secret"} | {"PINOT_ASSETS_WEBHOOK_URL"}
    local = {v.name for v in VARIABLES["The local stack"]} - {"PINOT_ASSETS_DATA", "PINOT_ASSETS_STAGING"}
    chart = {
        *("PINOT_ASSETS_TABLES", "PINOT_ASSETS_POLICY"),
        *("PINOT_ASSETS_SPARK_MASTER", "PINOT_ASSETS_SPARK_PROPERTIES"),
    }
    of_clouds = {v.name for v in VARIABLES["S3"]}
    assert plain == every.keys() - secret - local - chart - of_clouds


def test_the_chart_sets_an_instance_up_as_the_project_does() -> None:
    """Its values are compared where Helm is; a setting that it lacks is noticed without Helm."""
    instance = (CHART / "templates/instance.yaml").read_text().partition("dagster.yaml: |")[2]
    ours = set(re.findall(r"^    (\w+):", instance, re.MULTILINE))
    assert yaml.safe_load((ROOT / "dagster.yaml").read_text()).keys() - ours == set()
