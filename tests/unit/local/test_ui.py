from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from pinot_assets.errors import LocalStackError
from pinot_assets.local import processes, ui

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_dagster_that_was_started_and_not_written_down_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where `dev` was killed in between."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    ours = processes.spawn([*SLEEPS, "dagster", "dev"], tmp_path / "log")
    another = processes.spawn([*SLEEPS, "another", "program"], tmp_path / "log")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "elsewhere"))
    theirs = processes.spawn([*SLEEPS, "dagster", "dev"], tmp_path / "log")
    try:
        assert ui.stop(tmp_path)
        assert processes.find(ours) is None
        assert processes.find(another) is not None
        assert processes.find(theirs) is not None
        assert not ui.stop(tmp_path)
    finally:
        found = [processes.find(record) for record in (ours, another, theirs)]
        processes.stop_processes(
            [process for process in found if isinstance(process, psutil.Process)], grace=5
        )


@pytest.mark.parametrize("has_own", [True, False])
def test_a_project_has_its_own_settings_or_the_shipped_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_own: bool
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    if has_own:
        (project / "workspace.yaml").write_text("load_from: []\n")
        (project / "dagster.yaml").write_text("telemetry: {enabled: true}\n")
    commands: list[list[str]] = []

    def refuse(command: list[str], log: Path) -> None:
        commands.append(command)
        raise LocalStackError("not today")

    monkeypatch.setattr(processes, "spawn", refuse)
    with pytest.raises(LocalStackError, match="not today"):
        ui.start(home, project)
    workspace = Path(commands[0][commands[0].index("-w") + 1])
    settings = home / "dagster" / "dagster.yaml"
    assert (workspace == project / "workspace.yaml") == has_own
    assert ("telemetry: {enabled: true}" in settings.read_text()) == has_own
    assert ("pinot_assets.definitions" in workspace.read_text()) != has_own
    assert ("tag_concurrency_limits" in settings.read_text()) != has_own
