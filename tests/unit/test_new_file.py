"""A file is written whole, or not at all."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pinot_assets.new_file import write_new


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
