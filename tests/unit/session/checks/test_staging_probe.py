"""A staging area that means another place where files are built (rule R28)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import SettingError, SourceError
from pinot_assets.session.checks.staging_probe import ProbeResult, StagingProbe, require_staging_reachable
from pinot_assets.session.stores.staging import Staging
from pinot_assets.source import open_store


class Distant:
    """Builds on two machines. What the staging area's URI means on the second one is `there`."""

    def __init__(self, there: Path) -> None:
        self._there = there

    def build(self, *args: Any) -> None:
        raise NotImplementedError

    def everywhere(self, look: Callable[[], Any]) -> list[Any]:
        assert isinstance(look, StagingProbe)
        return [look(), replace(look, uri=self._there.as_uri())()]


@contextmanager
def unchanged(*folders: Path) -> Iterator[None]:
    """Nothing is left behind in these folders."""
    yield
    assert [path for folder in folders for path in folder.rglob("*") if path.is_file()] == []


def staging_in(folder: Path) -> Staging:
    folder.mkdir()
    return Staging(open_store(str(folder), {}, UNLIMITED))


def test_r28_one_place_for_all(tmp_path: Path) -> None:
    staging = staging_in(tmp_path / "shared")
    with unchanged(tmp_path / "shared"):
        require_staging_reachable(staging, {}, UNLIMITED, Distant(tmp_path / "shared"))


def test_r28_every_machine_has_a_disk_of_its_own(tmp_path: Path) -> None:
    staging = staging_in(tmp_path / "here")
    (tmp_path / "there").mkdir()
    with (
        unchanged(tmp_path / "here", tmp_path / "there"),
        pytest.raises(SourceError, match=r"cannot be used from .*, where files are built"),
    ):
        require_staging_reachable(staging, {}, UNLIMITED, Distant(tmp_path / "there"))


def test_r28_what_is_written_there_is_not_seen_here(tmp_path: Path) -> None:
    """It reads what the driver wrote (a copy, a cache), and writes to somewhere else."""
    staging = staging_in(tmp_path / "here")

    class Copied(Distant):
        def everywhere(self, look: Callable[[], Any]) -> list[Any]:
            return [ProbeResult("worker-2", key=".pinot-assets-probe-of-a-copy")]

    with (
        unchanged(tmp_path / "here"),
        pytest.raises(SourceError, match="is another place on worker-2, where files are built"),
    ):
        require_staging_reachable(staging, {}, UNLIMITED, Copied(tmp_path / "here"))


@pytest.mark.parametrize(("wrong", "kind"), [(True, SettingError), (False, SourceError)])
def test_r28_a_setting_that_is_wrong_there_is_no_trouble_that_passes(
    tmp_path: Path, wrong: bool, kind: type[SourceError]
) -> None:
    staging = staging_in(tmp_path / "here")
    (tmp_path / "there").mkdir()

    class Elsewhere(Distant):
        def everywhere(self, look: Callable[[], Any]) -> list[Any]:
            assert isinstance(look, StagingProbe)
            # As if the variable that the staging area's URI refers to were not set there.
            place = "s3://lake/x" if wrong else (tmp_path / "there").as_uri()
            return [replace(look, uri=place, props={"region": "${PA_NOT_HERE}"} if wrong else {})()]

    with pytest.raises(SourceError, match="cannot be used from") as raised:
        require_staging_reachable(staging, {}, UNLIMITED, Elsewhere(tmp_path / "here"))
    assert type(raised.value) is kind
