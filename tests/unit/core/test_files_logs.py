"""Log files of commands: in the user's folder for state, the newest ones kept, none where that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from pinot_assets.core.files import new_log


def test_a_log_has_its_folder_and_old_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "pinot-assets"
    folder.mkdir()
    for day in range(10, 31):
        (folder / f"spark-202601{day}T000000Z-1.log").touch()
    (folder / "other-20260101T000000Z-1.log").touch()
    log = new_log("spark")
    assert log is not None
    log.touch()
    kept = sorted(path.name for path in folder.glob("spark-*"))
    assert len(kept) == 20
    assert kept[0] == "spark-20260112T000000Z-1.log"
    assert kept[-1] == log.name
    assert (folder / "other-20260101T000000Z-1.log").exists()


def test_there_is_none_where_the_folder_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert new_log("spark") is None
