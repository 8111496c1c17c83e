"""A file is written whole, or not at all."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pinot_assets.core.files import write_new


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process may be larger than a kilobyte."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    told = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, told)


def test_it_is_there_with_its_folders(tmp_path: Path) -> None:
    write_new(tmp_path / "new" / "t.yaml", "ä: 1\n")
    assert (tmp_path / "new" / "t.yaml").read_text(encoding="utf-8") == "ä: 1\n"


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("mine")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "t.yaml", "other")
    assert (tmp_path / "t.yaml").read_text() == "mine"


def test_a_full_disk_leaves_no_half_of_it(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(OSError, match="large"):
        write_new(tmp_path / "t.yaml", "x" * 5000)
    assert list(tmp_path.iterdir()) == []


def test_who_is_killed_on_the_way_leaves_no_half_of_it(tmp_path: Path) -> None:
    """The kernel kills the process in the middle of its write."""
    child = """
import resource, signal, sys
from pathlib import Path
from pinot_assets.core.files import write_new
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
write_new(Path(sys.argv[1]), "x" * 5000)
"""
    done = subprocess.run([sys.executable, "-c", child, str(tmp_path / "t.yaml")], check=False)
    assert done.returncode == -signal.SIGXFSZ
    assert not (tmp_path / "t.yaml").exists()
    assert not [file for file in tmp_path.iterdir() if file.suffix in (".yaml", ".yml")]
    write_new(tmp_path / "t.yaml", "whole")
    assert (tmp_path / "t.yaml").read_text() == "whole"


def test_a_name_that_somebody_takes_meanwhile_stays_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "t.yaml"
    monkeypatch.setattr(os, "fsync", lambda _: target.write_text("theirs"))
    with pytest.raises(FileExistsError):
        write_new(target, "mine")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("t.yaml", "theirs")]


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write_new(tmp_path / "t.yaml", "mine")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("t.yaml", "mine")]


def test_it_may_be_read_by_whom_other_files_may(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_new(tmp_path / "t.yaml", "x")
    assert (tmp_path / "t.yaml").stat().st_mode == (tmp_path / "other").stat().st_mode
