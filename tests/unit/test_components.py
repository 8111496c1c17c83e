"""A project of `dg` gets a table by scaffolding, and `dg` finds nothing wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster.components.testing.utils import create_defs_folder_sandbox
from fakes.realtime.specs import write_realtime_table

from pinot_assets.authoring.starter import TableType, starting_spec
from pinot_assets.components import SPEC_FILE, PinotResources, PinotTable
from pinot_assets.table_spec import load_table

PROJECT = """
[project]
name = "my-project"
version = "0.1.0"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "my_project"
"""
DEFINITIONS = """
from pathlib import Path

from dagster import definitions, load_from_defs_folder


@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
"""


class Project:
    """A project as `create-dagster` makes one, its module where the code server starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.defs = folder / "my_project" / "defs"
        self.defs.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(PROJECT)
        for package in (self.defs, self.defs.parent):
            (package / "__init__.py").touch()
        (self.defs.parent / "definitions.py").write_text(DEFINITIONS)

    def dg(self, *commands: str) -> list[str]:
        """What each of them prints; they run side by side, since `dg` takes seconds to start."""
        with ThreadPoolExecutor(len(commands)) as pool:
            return list(pool.map(self._dg, commands))

    def _dg(self, command: str) -> str:
        hidden = ("PINOT_", "AWS_", "S3_", "DAGSTER_")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        environment |= {"PYTHONPATH": str(self.folder), "COLUMNS": "200"}
        done = subprocess.run(
            [str(Path(sys.executable).parent / "dg"), *command.split()],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def test_a_table_is_scaffolded_checked_and_listed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    components, *_ = project.dg(
        "list components --package pinot_assets",
        "scaffold defs pinot_assets.components.PinotResources pinot",
        "scaffold defs pinot_assets.components.PinotTable my_table",
        "scaffold defs pinot_assets.components.PinotTable clicks --table-type REALTIME",
    )
    for name in ("PinotResources", "PinotTable"):
        assert f"pinot_assets.components.{name}" in components
    written = yaml.safe_load((project.defs / "my_table" / "defs.yaml").read_text())
    assert written == {"type": "pinot_assets.components.PinotTable", "attributes": {"spec": SPEC_FILE}}
    assert (project.defs / "my_table" / SPEC_FILE).read_text() == starting_spec(TableType.OFFLINE, "my_table")
    assert (project.defs / "clicks" / SPEC_FILE).read_text() == starting_spec(TableType.REALTIME, "clicks")

    _, listed = project.dg("check yaml", "list defs --json")
    ours = ("my_table/segments", "my_table/snapshot", "my_table_ingest", "my_table_files", "pinot_rollback")
    for name in (*ours, "push", "clicks_realtime"):
        assert f'"{name}"' in listed


def test_a_spec_to_start_from_is_valid_and_says_what_its_keys_are(tmp_path: Path) -> None:
    file = tmp_path / "any.yaml"
    file.write_text(starting_spec(TableType.OFFLINE, "web-hits"))
    spec = load_table(file)
    assert (spec.name, spec.mode, spec.dagster.automation) == ("web-hits", "sync", False)
    assert spec.input_uri() == (tmp_path / "data" / "web-hits").as_uri()
    assert file.read_text().count("# ") > 8


@pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated:DeprecationWarning")  # Dagster's own
@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.BetaWarning")
@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.PreviewWarning")
def test_a_realtime_table_is_a_component_too(tmp_path: Path) -> None:
    write_realtime_table(tmp_path)
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.defs_folder_path / "clicks"
        folder.mkdir()
        (folder / SPEC_FILE).write_text((tmp_path / "tables" / "clicks.yaml").read_text())
        sandbox.scaffold_component(PinotTable, "clicks")
        sandbox.scaffold_component(PinotResources, "pinot")
        with sandbox.build_all_defs() as defs:
            assert dg.AssetKey("clicks_realtime") in {spec.key for spec in defs.resolve_all_asset_specs()}


@pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated:DeprecationWarning")  # Dagster's own
@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.BetaWarning")
@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.PreviewWarning")
def test_a_spec_that_is_there_is_kept_and_its_problems_are_shown_on_its_asset() -> None:
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.defs_folder_path / "hits"
        folder.mkdir()
        wrong = starting_spec(TableType.OFFLINE, "hits").replace("inputFormat: csv", "inputFormat: cvs")
        (folder / SPEC_FILE).write_text(wrong)
        sandbox.scaffold_component(PinotTable, "hits")
        assert (folder / SPEC_FILE).read_text() == wrong
        with sandbox.load_component_and_build_defs(folder) as (_, defs):
            (spec,) = defs.resolve_all_asset_specs()
    assert spec.key == dg.AssetKey("hits")
    assert f"{SPEC_FILE}:" in (spec.description or "")
    assert "inputFormat" in (spec.description or "")


@pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated:DeprecationWarning")  # Dagster's own
@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.BetaWarning")
@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.PreviewWarning")
def test_a_broken_table_keeps_no_other_one_of_a_project_from_loading() -> None:
    with create_defs_folder_sandbox() as sandbox:
        for name, text in (("trains", starting_spec(TableType.OFFLINE, "trains")), ("torn", "[")):
            folder = sandbox.defs_folder_path / name
            folder.mkdir()
            (folder / SPEC_FILE).write_text(text)
            sandbox.scaffold_component(PinotTable, name)
        sandbox.scaffold_component(PinotResources, "pinot")
        with sandbox.build_all_defs() as defs:
            found = {spec.key.to_user_string() for spec in defs.resolve_all_asset_specs()}
            dg.Definitions.validate_loadable(defs)
    assert {"trains/segments", "trains", "torn"} <= found


@pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated:DeprecationWarning")  # Dagster's own
@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.BetaWarning")
@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.PreviewWarning")
def test_two_components_about_one_asset_are_left_out_and_the_others_load() -> None:
    """Dagster would load nothing of a project with one key twice."""
    specs = {"one": "web-hits", "two": "web_hits", "trains": "trains", "again": "trains-x"}
    with create_defs_folder_sandbox() as sandbox:
        for name, table in specs.items():
            folder = sandbox.defs_folder_path / name
            folder.mkdir()
            (folder / SPEC_FILE).write_text(starting_spec(TableType.OFFLINE, table))
            sandbox.scaffold_component(PinotTable, name)
        for name in ("torn", "torn2"):
            folder = sandbox.defs_folder_path / name
            folder.mkdir()
            (folder / SPEC_FILE).write_text("[")
            sandbox.scaffold_component(PinotTable, name)
        sandbox.scaffold_component(PinotResources, "pinot")
        with sandbox.build_all_defs() as defs:
            found = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}
            dg.Definitions.validate_loadable(defs)
    assert {"trains/segments", "trains_x/segments", "web_hits", "torn", "torn2"} <= found.keys()
    assert "web_hits/segments" not in found
    assert (found["web_hits"].description or "").count("clashes with") == 2
