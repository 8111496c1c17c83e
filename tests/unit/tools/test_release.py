from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from fakes.project import ROOT

from tools.release import NotReleasable, Release, absolute_targets, notes_of, repacked, require_releasable

CHANGELOG = """\
# Changelog

## [1.2.0] - unreleased

### Added
- Not yet.

## [1.1.0] - 2026-11-01

### Added
- Something ([guide](notes.md)).

### Fixed
- Another thing.

## [1.0.0] - 2026-10-01

[1.1.0]: https://git.example.org/x
"""
RELEASE = Release("1.1.0", "https://git.example.org/x")


def test_the_notes_are_the_section_without_its_heading() -> None:
    notes = notes_of(CHANGELOG, "1.1.0")
    assert notes == "### Added\n- Something ([guide](notes.md)).\n\n### Fixed\n- Another thing.\n"


@pytest.mark.parametrize(
    ("version", "why"),
    [("1.2.0", "no date"), ("1.3.0", "no section"), ("1.0.0", "empty"), ("1.1", "no section")],
)
def test_what_has_no_notes_is_not_released(version: str, why: str) -> None:
    with pytest.raises(NotReleasable, match=why):
        notes_of(CHANGELOG, version)


@pytest.mark.parametrize(
    ("written", "released"),
    [
        ("![a](docs/ui/b.png)", "![a](https://git.example.org/x/raw/v1.1.0/docs/ui/b.png)"),
        (
            "[a](docs/library.md#with-dg)",
            "[a](https://git.example.org/x/blob/v1.1.0/docs/library.md#with-dg)",
        ),
        ("[![a](b.svg)](c.md)", "[![a](https://git.example.org/x/raw/v1.1.0/b.svg)](c.md)"),
        ('<img alt="a" src="b.png">', '<img alt="a" src="https://git.example.org/x/raw/v1.1.0/b.png">'),
        ("[a](https://pinot.apache.org)", "[a](https://pinot.apache.org)"),
        ("[a](#b)", "[a](#b)"),
    ],
)
def test_what_leads_nowhere_on_another_site_is_made_absolute(written: str, released: str) -> None:
    assert absolute_targets(written, RELEASE) == released


def test_no_picture_of_the_readme_is_relative_in_a_release() -> None:
    page = absolute_targets((ROOT / "README.md").read_text(), Release.of_project(ROOT))
    pictures = [part.partition(")")[0] for part in page.split("![")[1:]]
    assert pictures
    assert [picture for picture in pictures if "](https://" not in picture] == []


def packed(order: list[str], moment: int) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name in order:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uid, member.mode = 3, moment, moment % 7, 0o600
            tar.addfile(member, io.BytesIO(b"abc"))
    return made.getvalue()


def test_an_sdist_depends_on_its_files_alone() -> None:
    first = repacked(packed(["a/1", "a/2"], 10), 1_700_000_000)
    assert first == repacked(packed(["a/2", "a/1"], 99), 1_700_000_000)
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        assert {(m.name, m.mtime, m.uid, m.mode) for m in tar.getmembers()} == {
            ("a/1", 1_700_000_000, 0, 0o644),
            ("a/2", 1_700_000_000, 0, 0o644),
        }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nversion = "1.1.0"\nurls = {Repository = "https://git.example.org/x/"}\n'
    )
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "tests" / "surface" / "released").mkdir(parents=True)
    (tmp_path / "tests" / "surface" / "released" / "1.1.0.json").write_text("{}")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=folder, check=True
    )


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=a")


def test_a_commit_with_all_it_needs_is_releasable(project: Path) -> None:
    assert require_releasable(project) == RELEASE
    assert RELEASE.has_placeholder
    assert not Release("1", "https://git.apache.org/example").has_placeholder


def test_a_dirty_tree_is_not_released(project: Path) -> None:
    (project / "new").touch()
    with pytest.raises(NotReleasable, match=r"not all is committed:\n\?\? new"):
        require_releasable(project)


def test_a_tag_is_not_moved(project: Path) -> None:
    git(project, "tag", "v1.1.0")
    with pytest.raises(NotReleasable, match=r"v1\.1\.0 is there already"):
        require_releasable(project)


def test_a_release_lists_its_public_surface(project: Path) -> None:
    shutil.rmtree(project / "tests")
    commit(project)
    with pytest.raises(NotReleasable, match=r"tests/surface/released/1\.1\.0\.json"):
        require_releasable(project)
