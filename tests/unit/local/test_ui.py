from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

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
