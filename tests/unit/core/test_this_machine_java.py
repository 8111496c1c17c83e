"""Which Java is found, and what is said about a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pinot_assets.core.this_machine import find_java
from pinot_assets.errors import LocalStackError

Executable = Callable[[str, str], Path]


def says(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-01-01' >&2"


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21", 21), ("25-ea", 25)])
def test_a_new_enough_java_on_path_is_found(executable: Executable, version: str, major: int) -> None:
    java = executable("bin/java", says(version))
    found = find_java()
    assert (found.executable, found.major) == (java, major)


def test_java_home_goes_before_path(executable: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    executable("bin/java", says("17.0.1"))
    java = executable("jdk/bin/java", says("21.0.1"))
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    assert find_java().executable == java


def test_no_java_at_all() -> None:
    with pytest.raises(LocalStackError, match="no Java was found") as raised:
        find_java()
    assert "JDK 17" in str(raised.value.hint)


def test_a_java_home_without_java_is_named_even_when_path_has_one(
    executable: Executable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    executable("bin/java", says("17.0.1"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(LocalStackError, match="has no Java") as raised:
        find_java()
    assert str(tmp_path / "gone") in raised.value.what


@pytest.mark.parametrize(("version", "major"), [("11.0.22", 11), ("1.8.0_402", 8)])
def test_an_old_java_is_refused(
    executable: Executable, monkeypatch: pytest.MonkeyPatch, version: str, major: int
) -> None:
    java = executable("jdk/bin/java", says(version))
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    with pytest.raises(LocalStackError, match=f"Java {major} is too old") as raised:
        find_java()
    assert str(java) in str(raised.value)
    assert "17 or newer" in str(raised.value)


@pytest.mark.parametrize("script", ["echo 'Error: could not create the JVM' >&2; exit 1", "exit 0"])
def test_a_java_that_does_not_tell_its_version(executable: Executable, script: str) -> None:
    executable("bin/java", script)
    with pytest.raises(LocalStackError, match="does not show its version"):
        find_java()


def test_why_is_what_java_says_and_not_the_options_that_it_picked_up(executable: Executable) -> None:
    said = ("Picked up JAVA_TOOL_OPTIONS: -Xmx1z", "Invalid -Xmx1z")
    executable("bin/java", "".join(f"echo '{line}' >&2; " for line in said) + "exit 1")
    with pytest.raises(LocalStackError) as raised:
        find_java()
    assert raised.value.why == "Invalid -Xmx1z"
