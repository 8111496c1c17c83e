"""When a JVM maps the archive of Spark's classes, who makes it, and what is removed."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from fakes.waiting import until

from pinot_assets.core.this_machine import Java
from pinot_assets.ingest.spark.class_archive import ClassArchive

DAY_S = 24 * 3600
OPTIONS = "-XX:+UseSerialGC"


@pytest.fixture(autouse=True)
def at_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Callable[..., object]]:
    """A machine with one Java, one Spark of two jars, and an empty cache; returns what runs at the end."""
    monkeypatch.setenv("PINOT_ASSETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    for name in ("spark/jars/core.jar", "spark/jars/sql.jar", "jdk/bin/java", "jdk/lib/server/libjvm.so"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    registered: list[Callable[..., object]] = []
    monkeypatch.setattr(atexit, "register", lambda what, *_: registered.append(what))
    return registered


def archive_of(tmp_path: Path, options: str = OPTIONS, major: int = 17) -> ClassArchive:
    archive = ClassArchive.of(Java(tmp_path / "jdk/bin/java", major), options)
    assert archive is not None
    return archive


def make(archive: ClassArchive, content: str = "classes") -> Path:
    with archive.making() as options:
        Path(options.partition("-XX:ArchiveClassesAtExit=")[2]).write_text(content)
    (made,) = archive.folder.glob(f"{archive.key}.*.jsa")
    return made


def age(file: Path, days: float) -> None:
    os.utime(file, (time.time() - days * DAY_S,) * 2)


def names(archive: ClassArchive, pattern: str = "*.jsa") -> list[str]:
    return sorted(file.name for file in archive.folder.glob(pattern))


def test_what_was_made_is_mapped(tmp_path: Path) -> None:
    archive = archive_of(tmp_path)
    assert archive.options() == ""
    made = make(archive)
    assert archive.options().endswith(f" -XX:SharedArchiveFile={made}")
    assert names(archive, "*.new") == []


def test_the_tenth_start_without_one_makes_it_and_after_failures_ever_rarer_ones(
    tmp_path: Path, at_end: list[Callable[..., object]]
) -> None:
    archive = archive_of(tmp_path)
    made_at = []
    for start in range(1, 100):
        archive.options()
        if at_end:
            made_at.append(start)
            at_end.clear()
    assert made_at == [10, 20, 40, 80]
    make(archive)
    (archive.folder / f"{archive.key}.starts").write_bytes(b"." * 159)
    archive.options()
    assert at_end == []


@pytest.mark.parametrize("length", [0, 6, 8])
def test_one_of_another_length_is_not_mapped_but_removed(tmp_path: Path, length: int) -> None:
    """A JVM of Java 17 that maps one that was cut short ends with SIGBUS."""
    archive = archive_of(tmp_path)
    made = make(archive, "classes")
    os.truncate(made, length)
    assert archive.options() == ""
    assert not made.exists()


def test_one_process_at_a_time_makes_it_and_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    archive = archive_of(tmp_path)
    left = archive.folder / "0123.new"
    left.touch()
    with archive.making() as options:
        assert not left.exists()
        with pytest.raises(BlockingIOError), archive.making():
            pass
        Path(options.partition("-XX:ArchiveClassesAtExit=")[2]).write_text("classes")
    with pytest.raises(FileExistsError), archive.making():
        pass
    assert len(names(archive)) == 1


def test_of_one_that_was_not_finished_nothing_stays(tmp_path: Path) -> None:
    archive = archive_of(tmp_path)
    with suppress(ZeroDivisionError), archive.making() as options:
        Path(options.partition("-XX:ArchiveClassesAtExit=")[2]).write_text("half")
        raise ZeroDivisionError
    assert names(archive, "*") == ["making"]
    with pytest.raises(FileNotFoundError), archive.making():
        pass  # the JVM wrote none
    assert names(archive, "*") == ["making"]


MAKER = """
import sys
from pathlib import Path
from pinot_assets.ingest.spark import class_archive
class_archive._KILLED = class_archive._KILLED.replace("sleep 25", "sleep 0")
with class_archive.ClassArchive(Path(sys.argv[1]), "0123").making() as options:
    new = Path(options.partition("-XX:ArchiveClassesAtExit=")[2])
    new.touch()
    print(new, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_was_making_is_removed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", MAKER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        new = Path(process.stdout.readline().strip())
        assert new.parent == tmp_path
        assert new.exists()
        process.kill()
    until(lambda: not new.exists())


def test_one_that_is_off_is_neither_mapped_nor_made(
    tmp_path: Path, at_end: list[Callable[..., object]]
) -> None:
    archive = archive_of(tmp_path)
    make(archive)
    archive.turn_off()
    assert [archive.options() for _ in range(20)] == [""] * 20
    assert at_end == []
    assert archive_of(tmp_path, "-XX:+UseZGC") != archive, "only this one is off"


def test_each_part_of_what_a_jvm_checks_is_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [archive_of(tmp_path).key]
    assert archive_of(tmp_path).key == keys[0]

    def differs() -> None:
        keys.append(archive_of(tmp_path).key)
        assert len(keys) == len({*keys})

    keys.append(archive_of(tmp_path, "-XX:+UseZGC").key)
    keys.append(archive_of(tmp_path, major=25).key)
    for name in ("jdk/bin/java", "jdk/lib/server/libjvm.so", "spark/jars/core.jar", "spark/jars/sql.jar"):
        os.utime(tmp_path / name, (1, 1))
        differs()
        (tmp_path / name).write_text("of another size")
        os.utime(tmp_path / name, (1, 1))
        differs()
    (tmp_path / "spark/jars/sql.jar").rename(tmp_path / "spark/jars/sql2.jar")
    differs()
    (tmp_path / "spark/jars/sql2.jar").unlink()
    differs()
    for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_CONF_DIR"):
        monkeypatch.setenv(name, "something")
        differs()


def test_what_nobody_used_for_a_month_is_removed_and_what_is_used_stays(tmp_path: Path) -> None:
    archive = archive_of(tmp_path)
    made = make(archive)
    old = [archive.folder / name for name in ("0123.7.jsa", "0123.starts", "0123.off")]
    new = [archive.folder / name for name in ("4567.7.jsa", "4567.starts", "4567.off")]
    for file in (made, *old, *new):
        file.touch()
        age(file, 29 if file in new else 31)
    made.write_text("classes")
    age(made, 31)
    archive.options()
    assert made.exists()
    assert made.stat().st_mtime > time.time() - 60
    assert [file.exists() for file in (*old, *new)] == [False] * 3 + [True] * 3


def test_one_that_is_used_stays_where_its_date_cannot_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an image, or on a file system that can only be read."""
    archive = archive_of(tmp_path)
    age(made := make(archive), 4000)

    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(os, "utime", refused)
        assert archive.options().endswith(str(made))
    age(archive.folder / "making", 4000)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refused)
        assert archive.options().endswith(str(made))
    assert made.exists()


def test_what_others_may_have_put_there_is_not_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = archive_of(tmp_path)
    made = make(archive)
    made.chmod(0o666)
    assert archive.options() == ""
    java = Java(tmp_path / "jdk/bin/java", 17)
    archive.folder.chmod(0o777)
    assert ClassArchive.of(java, OPTIONS) is None
    archive.folder.chmod(0o700)
    assert ClassArchive.of(java, OPTIONS) == archive
    monkeypatch.setattr(os, "getuid", lambda: archive.folder.stat().st_uid + 1)
    assert ClassArchive.of(java, OPTIONS) is None


def test_three_others_stay_those_that_were_used_last(tmp_path: Path) -> None:
    archive = archive_of(tmp_path)
    make(archive)
    for days in range(1, 6):
        other = archive.folder / f"{days}.7.jsa"
        other.touch()
        age(other, days)
    archive.options()
    assert [name[:2] for name in names(archive)] == sorted(["1.", "2.", "3.", archive.key[:2]])


def test_what_a_killed_process_left_half_is_removed_after_an_hour(tmp_path: Path) -> None:
    archive = archive_of(tmp_path)
    for name, days in (("0.new", 1 / 25), ("1.new", 1 / 23)):
        (archive.folder / name).touch()
        age(archive.folder / name, days)
    archive.options()
    assert names(archive, "*.new") == ["0.new"]


@pytest.mark.parametrize("odd", ["a b", "a'b", "a$b", "a:b", "ä"])
def test_a_path_that_the_jvm_reads_as_something_else_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    monkeypatch.setenv("PINOT_ASSETS_CACHE", str(tmp_path / odd))
    assert ClassArchive.of(Java(tmp_path / "jdk/bin/java", 17), OPTIONS) is None


def test_who_has_no_cache_that_can_be_written_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = Java(tmp_path / "jdk/bin/java", 17)
    (tmp_path / "file").touch()
    monkeypatch.setenv("PINOT_ASSETS_CACHE", str(tmp_path / "file"))
    assert ClassArchive.of(java, OPTIONS) is None
    monkeypatch.delenv("PINOT_ASSETS_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert ClassArchive.of(java, OPTIONS) is None


def test_a_cache_that_takes_no_more_files_is_no_error(
    tmp_path: Path, at_end: list[Callable[..., object]]
) -> None:
    archive = archive_of(tmp_path)
    (archive.folder / f"{archive.key}.starts").mkdir()
    assert [archive.options() for _ in range(10)] == [""] * 10
    assert at_end == []
