"""When a JVM makes an archive of Spark's classes, and when it uses one."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pinot_assets.core.this_machine import Java
from pinot_assets.ingest.spark.class_archive import Classes, archive_folder, archive_options


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PINOT_ASSETS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "java").touch()
    (home := tmp_path / "home").mkdir()
    return home


def options(home: Path, classes: Classes = Classes.CORE) -> str:
    return archive_options(classes, Java(home.parent / "java", 17), home)


def made_by(options: str) -> Path:
    """Where a JVM with these options writes its archive."""
    return Path(options.partition("-XX:ArchiveClassesAtExit=")[2])


def test_the_second_jvm_makes_it_and_later_ones_use_it(home: Path) -> None:
    assert options(home) == ""
    made = made_by(options(home))
    assert (made.parent, (home / "archives").exists()) == (home, True)
    (archive_folder() / made.name).touch()
    assert options(home).endswith(f"-XX:SharedArchiveFile={archive_folder() / made.name}")


def test_one_jvm_at_a_time_makes_it(home: Path) -> None:
    options(home)
    assert made_by(options(home)).name
    assert options(home) == ""
    (making,) = archive_folder().glob("*.making")
    os.utime(making, (time.time() - 601,) * 2)
    assert made_by(options(home)).name


def test_each_kind_has_its_own_and_that_of_sql_has_all(home: Path) -> None:
    options(home, Classes.SQL)
    of_sql = made_by(options(home, Classes.SQL)).name
    (archive_folder() / of_sql).touch()
    assert of_sql in options(home)
    assert made_by(options(home, Classes.CORE)).name != of_sql


def test_another_java_has_another_one(home: Path) -> None:
    options(home)
    first = made_by(options(home))
    os.utime(home.parent / "java", (1, 1))
    assert options(home) == ""
    assert made_by(options(home)) != first


@pytest.mark.parametrize("odd", ["a b", "a'b", "a$b"])
def test_an_odd_path_has_none(home: Path, monkeypatch: pytest.MonkeyPatch, odd: str) -> None:
    monkeypatch.setenv("PINOT_ASSETS_CACHE", str(home / odd))
    assert [options(home), options(home)] == ["", ""]


def test_neither_has_a_cache_that_cannot_be_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").touch()
    monkeypatch.setenv("PINOT_ASSETS_CACHE", str(home / "file"))
    assert [options(home), options(home)] == ["", ""]
