from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.project import ROOT
from rich.console import Console

from demos.stack import _turn, tar_in
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


def demos(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PINOT_")}
    return subprocess.run(
        [sys.executable, "-m", "demos", *words],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT), "PINOT_ASSETS_TABLES": str(ROOT / "tables")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("demo", ["story", "audit"])
def test_a_demo_starts_the_release_that_is_named(tmp_path: Path, demo: str) -> None:
    ended = demos(tmp_path, demo, "--pinot", "newest")
    assert ended.returncode == 1
    assert "'newest' is not a release of Apache Pinot" in ended.stdout
    assert [*(tmp_path / ".pinot-assets").iterdir()] == []


def test_the_realtime_demo_has_no_other_release(tmp_path: Path) -> None:
    ended = demos(tmp_path, "realtime", "--pinot", "1.5.1")
    assert ended.returncode == 2
    assert "Kafka plug-in of 0.11.0" in ended.stderr


@pytest.mark.parametrize(
    ("words", "variable", "typed"),
    [
        (["demo"], "", "-m demos story"),
        (["demo", "PINOT=1.5.1"], "", "-m demos story --pinot '1.5.1'"),
        (["audit-demo", "PINOT=1.5.1"], "", "-m demos audit --pinot '1.5.1'"),
        (["demo"], "/opt/pinot", "-m demos story"),
    ],
)
def test_make_hands_the_release_of_its_command_line_on(words: list[str], variable: str, typed: str) -> None:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--dry-run", "--directory", str(ROOT), *words]
    shown = subprocess.run(
        command, env=environment | {"PINOT": variable}, capture_output=True, text=True, check=True
    ).stdout
    (line,) = (line for line in shown.splitlines() if "-m demos" in line)
    assert line.rstrip().endswith(typed)


@pytest.mark.parametrize("tar", ["t__0__1__Z.tar.gz", "t__0__1__Z.tar.compressed"])
def test_a_tar_is_found_under_the_name_of_its_release(tmp_path: Path, tar: str) -> None:
    (tmp_path / "t__0__0__Z").mkdir()
    assert tar_in(tmp_path) is None
    (tmp_path / tar).touch()
    assert tar_in(tmp_path) == "t__0__1__Z"
