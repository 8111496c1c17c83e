"""Resolving a pom: once, whole, and with a clear word when it fails."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pinot_assets.errors import LocalStackError
from pinot_assets.local import jars as maven

Executable = Callable[[str, str], Path]

# Answers like the real one: counts its calls, writes the class path where it is told.
WORKING = """
echo called >> "{calls}"
echo '[INFO] Downloaded from central: one.jar'
sleep 0.3
for argument in "$@"; do
  case "$argument" in
    -Dmdep.outputFile=*) echo "{jars}/z.jar:{jars}/a.jar:{jars}/other/a.jar" > "${{argument#*=}}" ;;
  esac
done
"""


@pytest.fixture
def pom(tmp_path: Path) -> Path:
    path = tmp_path / "thing.xml"
    path.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>thing</artifactId>"
        "<version>1</version><packaging>pom</packaging></project>"
    )
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def working(executable: Executable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Maven that works; answers the file that counts its calls."""
    jars = tmp_path / "repository"
    for name in ("z.jar", "a.jar", "other/a.jar"):
        (jars / name).parent.mkdir(parents=True, exist_ok=True)
        (jars / name).write_text(name)
    calls = tmp_path / "calls"
    put_first(executable("bin/mvn", WORKING.format(calls=calls, jars=jars)), monkeypatch)
    return calls


def put_first(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_jars_come_in_class_path_order_and_same_names_are_kept_apart(
    pom: Path, cache: Path, working: Path
) -> None:
    seen: list[str] = []
    jars = maven.resolve_jars(pom, cache=cache, progress=seen.append)
    assert [jar.read_text() for jar in jars] == ["z.jar", "a.jar", "other/a.jar"]
    assert all(jar.is_relative_to(cache) for jar in jars)
    assert "thing: Maven has fetched 1 files" in seen


def test_a_pom_is_resolved_once_and_again_when_it_changes(pom: Path, cache: Path, working: Path) -> None:
    assert not maven.is_resolved(pom, cache=cache)
    first = maven.resolve_jars(pom, cache=cache)
    assert maven.is_resolved(pom, cache=cache)
    assert maven.resolve_jars(pom, cache=cache) == first
    assert working.read_text().count("called") == 1
    pom.write_text("<project>changed</project>")
    assert not maven.is_resolved(pom, cache=cache)
    maven.resolve_jars(pom, cache=cache)
    assert working.read_text().count("called") == 2


def test_two_processes_at_once_resolve_once(pom: Path, cache: Path, working: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pinot_assets.local import jars as maven;"
        "print(len(maven.resolve_jars(Path(sys.argv[1]), cache=Path(sys.argv[2]))))"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code, pom, cache], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in both] == ["3", "3"]
    assert working.read_text().count("called") == 1


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            "[ERROR] Could not transfer artifact a:b:jar:1 from/to central: Connection refused",
            "download died",
        ),
        ("[ERROR] a.jar: No space left on device", "disk is full"),
        ("[ERROR] Checksum validation failed, expected 1 but is 2", "arrived damaged"),
        ("[ERROR] Could not find artifact a:b:jar:1 in central", "not in the repositories"),
        ("[ERROR] Something nobody thought of", "Something nobody thought of"),
        ("", "gave no reason"),
    ],
)
def test_a_failing_maven_is_explained_and_leaves_nothing_behind(
    pom: Path, cache: Path, executable: Executable, monkeypatch: pytest.MonkeyPatch, said: str, why: str
) -> None:
    put_first(executable("bin/mvn", f"echo '{said}'; exit 1"), monkeypatch)
    with pytest.raises(LocalStackError, match=why) as raised:
        maven.resolve_jars(pom, cache=cache)
    log = next((cache / "jars").glob("*.log"))
    assert str(log) in str(raised.value.hint)
    assert said in log.read_text()
    assert not maven.is_resolved(pom, cache=cache)
    assert {path.suffix for path in (cache / "jars").iterdir()} == {".log", ".lock"}


def test_what_failed_is_tried_again(
    pom: Path, cache: Path, executable: Executable, working: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_first(executable("broken/mvn", "exit 1"), monkeypatch)
    with pytest.raises(LocalStackError):
        maven.resolve_jars(pom, cache=cache)
    put_first(
        executable("bin/java", "echo 'version \"17\"'"), monkeypatch
    )  # its folder has the working Maven
    assert len(maven.resolve_jars(pom, cache=cache)) == 3


def test_no_maven(pom: Path, cache: Path, executable: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java = executable("bin/java", "echo 'version \"17\"'")
    monkeypatch.setenv("PATH", str(java.parent))
    with pytest.raises(LocalStackError, match="no Maven was found") as raised:
        maven.resolve_jars(pom, cache=cache)
    assert "install Maven" in str(raised.value.hint)


def test_a_cache_that_cannot_be_written(pom: Path, tmp_path: Path, working: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalStackError, match="could not be written") as raised:
        maven.resolve_jars(pom, cache=tmp_path / "file" / "cache")
    assert "PINOT_ASSETS_CACHE" in str(raised.value.hint)


def test_a_disk_without_room_is_refused_before_anything_is_fetched(
    pom: Path, cache: Path, working: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maven, "MINIMUM_FREE_BYTES", 10**18)
    with pytest.raises(LocalStackError, match="too little disk space"):
        maven.resolve_jars(pom, cache=cache)
    assert not working.exists()


def test_the_real_maven_with_a_dead_mirror(
    pom: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / ".m2" / "settings.xml"
    settings.parent.mkdir()
    settings.write_text(
        "<settings><mirrors><mirror><id>dead</id><mirrorOf>*</mirrorOf>"
        "<url>http://127.0.0.1:9/</url></mirror></mirrors></settings>"
    )
    monkeypatch.setenv("MAVEN_OPTS", f"-Duser.home={tmp_path}")
    with pytest.raises(LocalStackError, match="a download died") as raised:
        maven.resolve_jars(pom, cache=cache)
    assert "settings.xml" in str(raised.value.hint)
    with pytest.raises(LocalStackError, match="Maven cannot fetch"):
        maven.check_reachable()
