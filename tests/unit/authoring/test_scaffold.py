from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.project import ROOT
from typer.testing import CliRunner

from pinot_assets.authoring.scaffold import Scaffolded, shipped_file, shipped_names, write_project
from pinot_assets.cli.main import app
from pinot_assets.errors import SpecError
from pinot_assets.table_spec import load_tables

NAMES = [
    "dagster.yaml",
    "deploy/grafana/pinot-assets.json",
    "deploy/policy.yaml",
    "deploy/prometheus/alerts.yml",
    "tables/flights.yaml",
    "tables/table.schema.json",
    "workspace.yaml",
]


def test_what_is_shipped_is_what_the_repository_has() -> None:
    assert shipped_names() == NAMES
    for name in NAMES:
        assert shipped_file(name).read_bytes() == (ROOT / name).read_bytes()


def test_a_new_folder_gets_all_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert write_project(folder) == dict.fromkeys(NAMES, Scaffolded.WRITTEN)
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()) == NAMES
    assert not any(p.is_symlink() for p in folder.rglob("*"))
    assert [*load_tables(folder / "tables")] == ["flights"]


def test_what_is_there_stays(tmp_path: Path) -> None:
    write_project(tmp_path)
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: true}\n")
    (tmp_path / "workspace.yaml").unlink()
    fates = write_project(tmp_path)
    assert fates["dagster.yaml"] == Scaffolded.KEPT
    assert fates["workspace.yaml"] == Scaffolded.WRITTEN
    assert fates["tables/flights.yaml"] == Scaffolded.SAME
    assert (tmp_path / "dagster.yaml").read_text() == "telemetry: {enabled: true}\n"


def test_a_sample_that_would_displace_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    text = shipped_file("tables/flights.yaml").read_text()
    (tmp_path / "tables" / "mine.yaml").write_text(text)
    with pytest.raises(SpecError):
        write_project(tmp_path)
    assert not (tmp_path / "tables" / "flights.yaml").exists()


def test_the_command_says_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "dagster.yaml").write_text("nux: {}\n")
    shown = CliRunner().invoke(app, ["scaffold", str(tmp_path)])
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert f"kept yours, which differs from this release's {tmp_path / 'dagster.yaml'}" in lines
    assert f"wrote {tmp_path / 'workspace.yaml'}" in lines
    again = CliRunner().invoke(app, ["scaffold", str(tmp_path), "--json"])
    assert {"file": "workspace.yaml", "is": "same"} in json.loads(again.stdout)
