"""`make check` finds imports up the floors, also in the folders that are mapped into the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from fakes.project import ROOT

ILLEGAL = {
    "sensors/session.py": "import pinot_assets.cli.main",
    "sensors/notice.py": "def opened():\n    import demos.story",
    "sensors/files.py": "import pinot_assets.local.stack",
    "resources/pinot.py": "def opened():\n    import pinot_assets.sensors",
    "pinot_assets/core/text.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import kazoo",
}


def lint(installed: Path) -> subprocess.CompletedProcess[str]:
    """As the Makefile does it, on a copy as it would be installed."""
    code = "import sys; from importlinter.cli import lint_imports_command as c; c()"
    command = [sys.executable, "-c", code, str(ROOT / "pyproject.toml"), "--no-cache", "--no-logo"]
    environment = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=installed, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def test_imports_up_the_floors_are_found(tmp_path: Path) -> None:
    for folder, place in (("pinot_assets", ""), ("resources", "pinot_assets"), ("sensors", "pinot_assets")):
        shutil.copytree(ROOT / folder, tmp_path / place / folder, ignore=shutil.ignore_patterns("*.pyc"))
    for name, line in ILLEGAL.items():
        file = tmp_path / ("" if name.startswith("pinot_assets") else "pinot_assets") / name
        file.write_text(f"{file.read_text()}\n\n{line}\n")
    found = lint(tmp_path)
    assert found.returncode == 1, found.stdout + found.stderr
    for edge in (
        "pinot_assets.sensors.session -> pinot_assets.cli.main",
        "pinot_assets.sensors.notice -> demos",
        "pinot_assets.sensors.files -> pinot_assets.local.stack",
        "pinot_assets.resources.pinot -> pinot_assets.sensors",
        "pinot_assets.core.text -> kazoo",
    ):
        assert edge in found.stdout
