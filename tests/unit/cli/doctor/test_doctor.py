"""What the doctor finds on machines that lack something, and that it asks no network without need."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
import typer
from fakes.apache_site import pinot_jar
from fakes.toy_stack import write_distribution
from typer.testing import CliRunner

from pinot_assets.cli import main
from pinot_assets.cli.doctor import doctor
from pinot_assets.cli.doctor.doctor import run_checks
from pinot_assets.core.check_result import CheckResult
from pinot_assets.local import jars
from pinot_assets.settings.local_stack import ProcessRecord, Record, save_record

OUTCOMES = ("ok", "warn", "fail")
Executable = Callable[[str, str], Path]
JAVA_17 = "echo 'openjdk version \"17.0.15\"' >&2"
MAVEN = """
if [ "$1" = --version ]; then echo 'Apache Maven {version}'; exit 0; fi
echo "{said}"; exit {code}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def machine(
    tmp_path: Path, home: Path, cache: Path, executable: Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java 17, Maven 3.9.9 with its repository at hand, an empty cache, no stack."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("PINOT_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PINOT_ASSETS_HOME", str(home))
    monkeypatch.setenv("PINOT_ASSETS_CACHE", str(cache))
    executable("bin/java", JAVA_17)
    executable("bin/mvn", MAVEN.format(version="3.9.9", said="", code=0))


def found(name: str) -> CheckResult:
    return next(check for check in run_checks() if check.name == name)


def fill_cache(cache: Path, *names: str) -> None:
    for name in names:
        folder = jars._folder(jars.pom(name), cache)
        folder.mkdir(parents=True)
        if name == "pinot":
            (folder / "000-pinot-tools-0.11.0.jar").write_bytes(pinot_jar("0.11.0"))


def test_a_good_machine_passes_every_check_and_exits_0() -> None:
    checks = run_checks()
    assert [check for check in checks if check.pick(*OUTCOMES) == "fail"] == []
    assert {check.name for check in checks} >= {"Python", "packages", "Java", "Maven", "memory", "ports"}
    app = typer.Typer()
    app.command()(doctor.doctor)
    assert CliRunner().invoke(app).exit_code == 0


def test_one_failed_check_makes_exit_code_1_and_shows_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "bin" / "java").unlink()
    app = typer.Typer()
    app.command()(doctor.doctor)
    result = CliRunner().invoke(app, env={"COLUMNS": "300"})
    assert result.exit_code == 1
    assert "no Java was found" in result.stdout
    assert "→ install a JDK 17" in result.stdout


def test_every_check_that_finds_something_says_the_way_out(tmp_path: Path) -> None:
    for name in ("java", "mvn"):
        (tmp_path / "bin" / name).unlink()
    for check in run_checks():
        assert check.message.endswith(".")
        assert check.passed == (not check.next_step)


def test_java_11(executable: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    java = executable("jdk/bin/java", "echo 'openjdk version \"11.0.22\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    check = found("Java")
    assert check.pick(*OUTCOMES) == "fail"
    assert "Java 11 is too old" in check.message


def test_the_pinot_that_is_here_and_the_java_that_it_needs(
    executable: Executable, cache: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Pinot" not in {check.name for check in run_checks()}, "it still has to be fetched"
    fill_cache(cache, "pinot")
    assert found("Pinot").message == "the local stack has Pinot 0.11.0, which needs Java 11 or newer."
    save_record(home, Record(pinot_release="1.5.1"))
    check = found("Pinot")
    assert check.pick(*OUTCOMES) == "warn"
    assert "Pinot 1.5.1, which is not in the cache" in check.message
    assert "pinot" not in found("Maven").message.lower().split("fetch")[-1], "Maven does not fetch this one"
    write_distribution(cache / "pinot" / "apache-pinot-1.5.1-bin", "1.5.1", java=21)
    check = found("Pinot")
    assert check.pick(*OUTCOMES) == "fail"
    assert "Pinot 1.5.1 needs Java 21 or newer" in check.message
    executable("bin/java", "echo 'openjdk version \"21.0.2\"' >&2")
    assert found("Pinot").passed


def test_a_pinot_home_without_pinot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOT_HOME", str(tmp_path / "nothing"))
    check = found("Pinot")
    assert check.pick(*OUTCOMES) == "fail"
    assert "which has no Apache Pinot" in check.message


def test_spark_3_on_a_java_it_cannot_use(executable: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    executable("bin/java", "echo 'openjdk version \"25\"' >&2")
    installed = metadata.version
    monkeypatch.setattr(
        doctor.metadata, "version", lambda name: "3.5.9" if name == "pyspark" else installed(name)
    )
    check = found("Java")
    assert check.pick(*OUTCOMES) == "fail"
    assert "PySpark 3.5.9 does not run on Java 25" in check.message


def test_no_maven_matters_only_while_there_is_something_to_fetch(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "bin" / "mvn").unlink()
    assert found("Maven").pick(*OUTCOMES) == "fail"
    fill_cache(cache, "pinot")
    assert found("Maven").pick(*OUTCOMES) == "warn"
    fill_cache(cache, "kafka", "s3")
    assert found("Maven").pick(*OUTCOMES) == "ok"


def test_a_full_cache_asks_maven_nothing(executable: Executable, cache: Path, tmp_path: Path) -> None:
    called = tmp_path / "called"
    executable("bin/mvn", f"echo x >> {called}")
    fill_cache(cache, "pinot", "kafka", "s3")
    run_checks()
    assert not called.exists()


@pytest.mark.parametrize("version", ["3.5.4", "2.2.1"])
def test_an_old_maven(executable: Executable, version: str) -> None:
    executable("bin/mvn", MAVEN.format(version=version, said="", code=0))
    check = found("Maven")
    assert (check.pick(*OUTCOMES), check.next_step) == ("fail", "install Maven 3.6 or newer")


def test_a_broken_maven(executable: Executable) -> None:
    executable("bin/mvn", "echo 'JAVA_HOME is not defined correctly' >&2; exit 1")
    check = found("Maven")
    assert check.pick(*OUTCOMES) == "fail"
    assert "JAVA_HOME is not defined correctly" in check.message


def test_a_dead_repository(executable: Executable) -> None:
    said = "[ERROR] Could not transfer artifact org.apache:apache:pom:29"
    executable("bin/mvn", MAVEN.format(version="3.9.9", said=said, code=1))
    check = found("Maven repository")
    assert check.pick(*OUTCOMES) == "fail"
    assert "a download died" in check.message
    assert "settings.xml" in check.next_step


def test_packages_that_do_not_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = metadata.version
    monkeypatch.setattr(
        doctor.metadata, "version", lambda name: "0.28.0" if name == "dagster-aws" else installed(name)
    )
    monkeypatch.setattr(doctor.sys, "executable", "/bin/false")  # no pip, hence no network
    check = found("packages")
    assert check.pick(*OUTCOMES) == "fail"
    assert "dagster-aws is 0.28.0, ==0.29.27 is needed" in check.message
    index = found("package index")
    assert index.pick(*OUTCOMES) == "warn"


def test_sql_without_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PINOT_ASSETS_TABLES", str(tmp_path / "tables"))
    assert CliRunner().invoke(main.app, ["tables", "init", "t", "--tables", "tables"]).exit_code == 0
    assert "is installed" in found("SQL").message
    monkeypatch.setattr("pinot_assets.ingest.contract.sql_extra.find_spec", lambda name: None)
    assert found("SQL").pick(*OUTCOMES) == "ok"
    with (tmp_path / "tables" / "t.yaml").open("a") as spec:
        spec.write("  engine: spark\n")
    check = found("SQL")
    assert check.pick(*OUTCOMES) == "warn"
    assert "these tables have SQL: t." in check.message
    assert 'pip install "pinot-assets[sql]"' in check.next_step


def test_an_unsupported_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    assert found("Python").pick(*OUTCOMES) == "fail"


@pytest.mark.parametrize(
    ("module", "name", "variable"),
    [
        (doctor, "disk: home", "PINOT_ASSETS_HOME"),
        (jars, "disk: cache", "PINOT_ASSETS_CACHE"),
    ],
)
def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, module: object, name: str, variable: str) -> None:
    monkeypatch.setattr(module, "MINIMUM_FREE_BYTES", 10**18)
    check = found(name)
    assert check.pick(*OUTCOMES) == "fail"
    assert variable in check.next_step


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_STACK_MEMORY", 10**15)
    assert found("memory").pick(*OUTCOMES) == "fail"


def test_a_port_of_the_stack_is_taken(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        save_record(home, Record(ports={"controller": {"http": port}}, settled={"controller"}))
        check = found("ports")
        assert check.pick(*OUTCOMES) == "fail"
        assert f"process {os.getpid()} (" in check.message
        assert f"port {port} of the stack's controller" in check.message


def test_a_dead_part_of_the_stack(home: Path) -> None:
    gone = ProcessRecord(pid=2**22 - 1, create_time=1.0)
    save_record(home, Record(processes={"server-1": gone}))
    check = found("local stack")
    assert check.pick(*OUTCOMES) == "fail"
    assert "server-1 died" in check.message
    assert "local up" in check.next_step


def test_a_damaged_record(home: Path) -> None:
    home.mkdir()
    (home / "state.json").write_text("{")
    check = found("local stack")
    assert check.pick(*OUTCOMES) == "fail"
    assert "cannot be read" in check.message


def test_what_a_check_says_is_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("PINOT_ZOOKEEPER", "http://127.0.0.1:1")
    app = typer.Typer()
    app.command()(doctor.doctor)
    result = CliRunner().invoke(app, env={"COLUMNS": "300"})
    assert result.exit_code == 1
    assert "→ write host:port[,host:port…][/chroot]" in result.stdout
