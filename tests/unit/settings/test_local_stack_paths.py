"""Where things are kept, and how a user moves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pinot_assets.settings.local_stack import default_cache, default_home


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PINOT_ASSETS_CACHE", "PINOT_ASSETS_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_the_home_is_in_the_current_directory_unless_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_home() == tmp_path / ".pinot-assets"
    monkeypatch.setenv("PINOT_ASSETS_HOME", "elsewhere")
    assert default_home() == tmp_path / "elsewhere"


def test_the_cache_follows_xdg_unless_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_cache() == Path.home() / ".cache" / "pinot-assets"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache() == tmp_path / "xdg" / "pinot-assets"
    monkeypatch.setenv("PINOT_ASSETS_CACHE", str(tmp_path / "mine"))
    assert default_cache() == tmp_path / "mine"
