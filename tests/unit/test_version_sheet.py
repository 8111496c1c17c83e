"""The sheet that the doctor prints: only where a controller answers, and what that one needs."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from pinot_assets import version_sheet
from pinot_assets.errors import PinotAssetsError, PinotUnreachable
from pinot_assets.pinot import PinotConnection
from pinot_assets.pinot.versions import traits_of
from pinot_assets.settings import Settings


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`show(version, setting)`: what is printed for such a controller."""

    def show(version: str | Exception, setting: str | None = None) -> str:
        class Cluster:
            def __init__(self, connection: PinotConnection) -> None:
                assert connection.timeouts.call <= 3

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def version(self) -> str:
                if isinstance(version, Exception):
                    raise version
                return version

            def controller_setting(self, name: str) -> str | None:
                return setting

        settings = Settings(PinotConnection("http://127.0.0.1:9000"), "127.0.0.1:2181", "pinot")
        monkeypatch.setattr(version_sheet, "load_settings", lambda: settings)
        monkeypatch.setattr(version_sheet, "PinotCluster", Cluster)
        out = io.StringIO()
        version_sheet.show_version_sheet(Console(file=out, width=400))
        return out.getvalue()

    return show


@pytest.mark.parametrize("version", ["0.11.0", "1.5.1", "1.6.0"])
def test_every_row_of_a_release_is_printed(show: Any, version: str) -> None:
    text = show(version)
    assert f"Pinot {version}, at http://127.0.0.1:9000" in text
    for trait in traits_of(version):
        (line,) = [part for part in text.splitlines() if trait.pinot in part]
        assert line.startswith(trait.topic)
        assert trait.here in line


def test_a_controller_without_a_version(show: Any) -> None:
    assert "taken for 1.5.1" in show("")


@pytest.mark.parametrize(
    ("version", "setting", "warned"),
    [("1.6.0", "false", True), ("1.6.0", "true", False), ("1.6.0", None, False), ("1.5.1", "false", False)],
)
def test_the_guard_of_open_replacements_switched_off(
    show: Any, version: str, setting: str | None, warned: bool
) -> None:
    assert ("controller.lineage.exclusive.delete.enabled is off" in show(version, setting)) == warned


def test_nothing_where_no_controller_answers(show: Any) -> None:
    assert show(PinotUnreachable("no connection")) == ""


def test_nothing_where_none_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Settings:
        raise PinotAssetsError("no Pinot to talk to")

    monkeypatch.setattr(version_sheet, "load_settings", refuse)
    out = io.StringIO()
    version_sheet.show_version_sheet(Console(file=out))
    assert out.getvalue() == ""
