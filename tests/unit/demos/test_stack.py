from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from rich.console import Console

from demos.stack import _turn
from pinot_assets.core.this_machine import deaf_shell


def is_free(folder: Path) -> bool:
    door = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(door)
    return True


def test_a_turn_lasts_until_the_folder_is_cleared(tmp_path: Path) -> None:
    """Also if the demo was killed: then the shell still has the lock."""
    with _turn(tmp_path / "new", Console()) as lock:
        clearing = deaf_shell("read -r over", held=(lock,))
        assert not is_free(tmp_path / "new")
    assert not is_free(tmp_path / "new")
    clearing.communicate(b"over\n")
    assert is_free(tmp_path / "new")


def test_who_waits_for_its_turn_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with _turn(tmp_path, Console()) as lock:
        clearing = deaf_shell("sleep 1", held=(lock,))
    with _turn(tmp_path, Console(width=200)):
        clearing.communicate(timeout=10)
    assert f"another demo is at work in {tmp_path}" in capsys.readouterr().out
