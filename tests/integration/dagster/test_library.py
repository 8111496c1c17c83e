"""`pinot_assets` as a library: the code location of docs/library.md, word for word, beside a real Pinot."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from fakes.locations.code_location import QUIET, LocationTable
from fakes.project import ROOT

from pinot_assets.assets.keys import partitions_name
from pinot_assets.assets.partitions import ALL_FILES

pytestmark = pytest.mark.integration

PAGE = ROOT / "docs" / "library.md"
_FILE = re.compile(r"^`([\w/]+\.py)`:\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULES = ("definitions", "resources", "sensors")


@pytest.fixture
def location(table: LocationTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of the page, for a table that no other test has."""
    folder = tmp_path / "location"
    files = dict(_FILE.findall(PAGE.read_text()))
    assert files.keys() == {"definitions.py", "resources/__init__.py", "sensors/__init__.py"}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("flights", table.name))
    shutil.copytree(tmp_path / "tables", folder / "tables")
    monkeypatch.setenv("REPORTS", str(tmp_path))
    policy = tmp_path / "policy.yaml"  # source and staging area lie beside the project here
    policy.write_text(f"roots: [project, {tmp_path}]\n")
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    yield folder
    for module in MODULES:
        sys.modules.pop(module, None)


def assert_valid_without_pinot(location: Path) -> None:
    hidden = ("PINOT_", "AWS_", "S3_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    environment["DAGSTER_HOME"] = str(location.parent)
    environment["PINOT_ASSETS_POLICY"] = os.environ["PINOT_ASSETS_POLICY"]
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-f", "definitions.py"]
    done = subprocess.run(
        command, cwd=location, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_own_assets_follow_a_switch(
    location: Path, table: LocationTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_valid_without_pinot(location)
    for module in MODULES:
        assert module not in sys.modules
    monkeypatch.syspath_prepend(location)
    defs: dg.Definitions = importlib.import_module("definitions").defs
    assert Path(sys.modules["resources"].__file__ or "").is_relative_to(location)

    def ticks() -> int:
        with dg.build_sensor_context(instance=table.instance, cursor=cursor, definitions=defs) as context:
            tick = defs.resolve_sensor_def("after_each_switch").evaluate_tick(context)
        return len(tick.run_requests or [])

    cursor = "0"
    assert ticks() == 0
    table.write(F1="a b")
    table.instance.add_dynamic_partitions(partitions_name(table.spec), [ALL_FILES])
    ingest = defs.resolve_job_def(f"{table.name}_ingest")
    assert ingest.execute_in_process(
        instance=table.instance, run_config=QUIET, partition_key=ALL_FILES
    ).success
    assert table.shown() == ["a", "b"]

    assert ticks() == 1
    assert defs.resolve_job_def("report").execute_in_process(instance=table.instance).success
    assert (location.parent / f"{table.name}.txt").read_text() == "what queries see has changed"
