"""What a directory of table specs becomes in Dagster, and that it is packed and deployed whole."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster_cloud_cli.config.models import load_dagster_cloud_yaml
from fakes.tables import SWAP, write_table

from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.definitions import build_definitions
from pinot_assets.errors import SpecError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def definitions(tmp_path: Path) -> dg.Definitions:
    write_table(tmp_path, "flights")
    write_table(tmp_path, "web-hits", SWAP)
    return build_definitions(tmp_path / "tables")


def test_every_table_becomes_assets_a_job_and_a_sensor(definitions: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(definitions)
    repository = definitions.get_repository_def()
    keys = {key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()}
    tables = ("flights", "web_hits")
    own = {f"{t}/{name}" for t in tables for name in ("source_files", "segments", "snapshot")}
    assert keys == own | set(tables)
    jobs = {job.name: job for job in repository.get_all_jobs() if not job.name.startswith("__")}
    names = ("ingest", "rollback", "resume", "clear", "gc", "plan", "health")
    assert set(jobs) == {f"{table}_{name}" for table in tables for name in names}
    assert jobs["web_hits_ingest"].tags[TABLE_TAG] == "web-hits"
    sensors = {sensor.name: sensor for sensor in repository.sensor_defs}
    assert set(sensors) == {f"{t}_{name}" for t in tables for name in ("files", "session", "health")}
    for kind in ("files", "session"):
        assert {sensors[f"{t}_{kind}"].job_name for t in tables} == {f"{t}_ingest" for t in tables}
    assert {s.default_status for s in sensors.values()} == {dg.DefaultSensorStatus.STOPPED}


def test_the_gate_stands_between_segments_and_snapshot(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    segments, snapshot = dg.AssetKey(["flights", "segments"]), dg.AssetKey(["flights", "snapshot"])
    assert graph.get(snapshot).parent_keys == {segments}
    (check,) = graph.get_check_keys_for_assets({segments, snapshot})
    assert (check.asset_key, check.name) == (segments, "consistent_push")
    assert graph.get_check_spec(check).blocking


def test_all_steps_of_a_run_share_one_process(definitions: dg.Definitions) -> None:
    """The driver of a run holds the lease in that process; a job by hand (the implicit one) too."""
    for job in ("flights_ingest", "__ASSET_JOB"):
        assert definitions.resolve_job_def(job).executor_def is dg.in_process_executor


def test_without_tables_there_is_an_empty_location(tmp_path: Path) -> None:
    dg.Definitions.validate_loadable(build_definitions(tmp_path))


def test_bad_specs_are_listed_all_at_once(tmp_path: Path) -> None:
    write_table(tmp_path, "good")
    for name in ("bad1", "bad2"):
        path = tmp_path / "tables" / f"{name}.yaml"
        shutil.copyfile(tmp_path / "tables" / "good.yaml", path)
        path.write_text(
            path.read_text().replace("good", name).replace("inputFormat: csv", "inputFormat: cvs")
        )
    with pytest.raises(SpecError, match="2 problems") as caught:
        build_definitions(tmp_path / "tables")
    for name in ("bad1", "bad2"):
        assert f"{name}.yaml:" in str(caught.value)
    with pytest.raises(SpecError, match="is no directory"):
        build_definitions(tmp_path / "nowhere")


# --- what is shipped -------------------------------------------------------------------------------


def test_the_workspace_loads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As `dagster dev` and a code server load it."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.delenv("PINOT_ASSETS_TABLES", raising=False)
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "pinot-assets" in done.stdout + done.stderr


def test_dagster_cloud_yaml_names_the_same_location() -> None:
    cloud = load_dagster_cloud_yaml((ROOT / "dagster_cloud.yaml").read_text())
    (location,) = cloud.locations
    (workspace,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    assert location.location_name == workspace["python_module"]["location_name"]
    assert location.code_source.module_name == workspace["python_module"]["module_name"]


def test_nothing_shadows_the_workspace() -> None:
    """`dagster dev` takes [tool.dagster] of pyproject.toml first."""
    assert "dagster" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]


def test_dagster_yaml_is_an_instance(tmp_path: Path) -> None:
    shutil.copyfile(ROOT / "dagster.yaml", tmp_path / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert not instance.telemetry_enabled
        (limit,) = instance.get_concurrency_config().run_queue_config.tag_concurrency_limits
        assert instance.run_monitoring_max_runtime_seconds == 24 * 3600  # R25: a hung driver ends
    assert limit == {"key": TABLE_TAG, "value": {"applyLimitPerUniqueValue": True}, "limit": 1}


def test_a_wheel_holds_the_whole_package(tmp_path: Path) -> None:
    """Built from a copy: the build leaves folders behind."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("pinot_assets", "resources", "sensors"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tree / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(tmp_path), str(tree)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    expected = set()
    for source, target in (
        ("pinot_assets", ""),
        ("resources", "pinot_assets/"),
        ("sensors", "pinot_assets/"),
    ):
        files = (f for f in (ROOT / source).rglob("*") if f.is_file() and "__pycache__" not in f.parts)
        expected |= {f"{target}{file.relative_to(ROOT)}" for file in files}
    assert packed == expected
    assert {"pinot_assets/py.typed", "pinot_assets/local/pinot.xml"} <= packed
    assert {"pinot_assets/resources/__init__.py", "pinot_assets/sensors/__init__.py"} <= packed
