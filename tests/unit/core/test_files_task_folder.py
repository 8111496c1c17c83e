from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from pinot_assets.core.files import temporary_folder

HOLD = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from pinot_assets.core.files import temporary_folder
with temporary_folder("build") as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_the_folder_of_a_task_is_its_own_until_the_task_is_dead(tmp_path: Path) -> None:
    task = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with task:
        assert task.stdout is not None
        theirs = Path(task.stdout.readline().strip())
        (theirs / "source").write_bytes(b"x")
        with temporary_folder("build") as ours:
            assert ours.is_dir()
            assert theirs.is_dir()
        assert not ours.exists()
        task.kill()
        task.wait()
        with temporary_folder("build"):
            assert not theirs.exists()


@pytest.mark.parametrize("name", ["pinot-assets-build-host@foo", "pinot-assets-build-host@7-x"])
def test_what_somebody_else_left_is_no_trouble(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / f"{name}-file").write_bytes(b"")
    with temporary_folder("build") as folder:
        assert folder.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, f"{name}-file"]
