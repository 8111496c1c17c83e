"""What is said of a JVM that does not start."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from pinot_assets.core.this_machine import Java
from pinot_assets.errors import BuildError
from pinot_assets.ingest.spark import jvm
from pinot_assets.ingest.spark.class_archive import ClassArchive
from pinot_assets.ingest.spark.environment import environment_context, environment_session
from pinot_assets.ingest.spark.java_errors import cause_of


def refused(monkeypatch: pytest.MonkeyPatch, home: Path, code: str, said: str = "") -> None:
    def start(_: object, log: Path | None) -> None:
        if log is not None:
            with log.open("a") as file:
                file.write(said)
        raise PySparkRuntimeError(errorClass=code, messageParameters={})

    replace_start(monkeypatch, home, start)


def replace_start(monkeypatch: pytest.MonkeyPatch, home: Path, start: Callable[..., None]) -> None:
    """Let `start` stand in for the start of a JVM, on a machine that has one Java and runs no JVM yet."""
    monkeypatch.setattr(jvm, "find_java", lambda: Java(Path(sys.executable), 17))
    monkeypatch.setattr(jvm, "spark_home", lambda: home)
    monkeypatch.setattr(jvm, "start_jvm", start)
    monkeypatch.setattr(SparkContext, "_gateway", None)


def test_a_jvm_that_ends_at_once_is_one_error_that_says_what_to_look_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused(monkeypatch, tmp_path, "JAVA_GATEWAY_EXITED")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--bogus")
    with pytest.raises(BuildError, match="Spark's JVM did not start") as raised:
        jvm.local_context("test", 1)
    for what in ("PYSPARK_SUBMIT_ARGS", "java -version", "memory", "pinot-assets doctor"):
        assert what in str(raised.value.hint)


def test_other_errors_of_a_start_say_what_spark_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refused(monkeypatch, tmp_path, "CONTEXT_ONLY_VALID_ON_DRIVER")
    with pytest.raises(BuildError, match="Spark did not start") as raised:
        jvm.local_context("test", 1, tmp_path / "spark.log")
    assert "driver" in str(raised.value.why)
    assert "spark.log" in str(raised.value.hint)
    assert isinstance(raised.value.__cause__, PySparkRuntimeError)


@pytest.mark.parametrize("start", [environment_session, environment_context])
def test_the_environments_own_spark_is_told_alike(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, start: Callable[..., object]
) -> None:
    refused(monkeypatch, tmp_path, "JAVA_GATEWAY_EXITED")
    monkeypatch.setenv("PYSPARK_PYTHON", "python")  # otherwise set for all later tests
    with pytest.raises(BuildError, match="Spark's JVM did not start"):
        start({"spark.master": "local[1]"}, environ={})


def test_the_cause_of_an_error_of_java_is_its_own_line() -> None:
    text = (
        "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
        ": java.lang.IllegalArgumentException: System memory 50 must be at least 100\n"
        "\tat org.apache.spark.memory.UnifiedMemoryManager(UnifiedMemoryManager.scala:1)\n"
    )
    assert (
        cause_of(Exception(text))
        == "java.lang.IllegalArgumentException: System memory 50 must be at least 100"
    )
    of_spark = text.replace("java.lang.IllegalArgumentException", "org.apache.spark.SparkException")
    assert cause_of(Exception(of_spark)).startswith("org.apache.spark.SparkException: System")
    assert cause_of(Exception()) == "Exception"


def test_the_error_that_the_jvm_wrote_into_its_log_is_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = (
        "WARNING: Using incubator modules\n"
        'Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn or …\n'
        "\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1)\n"
    )
    log = tmp_path / "spark.log"
    log.write_text("Error: of an earlier start\n")
    refused(monkeypatch, tmp_path, "JAVA_GATEWAY_EXITED", said)
    monkeypatch.setenv("PINOT_ASSETS_SPARK_MASTER", "nonsense://x")
    with pytest.raises(BuildError, match="Spark's JVM did not start") as raised:
        jvm.local_context("test", 1, log)
    assert "answered: org.apache.spark.SparkException: Master must either be yarn" in str(raised.value.why)
    assert str(raised.value.hint).startswith("check PINOT_ASSETS_SPARK_MASTER, and whether")


@pytest.mark.parametrize("mapped", ["mapped", ""])
def test_a_jvm_that_does_not_start_with_the_archive_starts_without_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mapped: str
) -> None:
    """Later starts do not try again; one that fails without the archive as well says nothing about it."""
    archive = archive_of_this_machine(monkeypatch, tmp_path)
    starts: list[bool] = []

    def start(settings: Mapping[str, str], log: Path | None) -> None:
        starts.append("-XX:SharedArchiveFile=" in settings["spark.driver.extraJavaOptions"])
        if starts[-1] or not mapped:
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    replace_start(monkeypatch, tmp_path, start)
    for _ in range(2):
        if mapped:
            with jvm.own_jvm("test", 1, None):
                pass
        else:
            with pytest.raises(BuildError, match="Spark's JVM did not start"), jvm.own_jvm("test", 1, None):
                pass
    assert starts == ([True, False, False] if mapped else [True, False] * 2)
    assert (archive.options() == "") is bool(mapped)


def test_a_jvm_that_runs_already_is_no_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    archive = archive_of_this_machine(monkeypatch, tmp_path)
    (file,) = archive.folder.glob("*.jsa")
    file.unlink()
    replace_start(monkeypatch, tmp_path, lambda settings, log: None)
    with jvm.own_jvm("test", 1, None):
        pass
    counted = {path: path.stat().st_size for path in archive.folder.iterdir()}
    monkeypatch.setattr(SparkContext, "_gateway", object())
    with jvm.own_jvm("test", 1, None):
        pass
    assert list(counted.values()) == [1]
    assert {path: path.stat().st_size for path in archive.folder.iterdir()} == counted


def archive_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ClassArchive:
    """The archive that a start of `replace_start` maps, in a cache of its own."""
    monkeypatch.setenv("PINOT_ASSETS_CACHE", str(tmp_path / "cache"))
    archive = ClassArchive.of(Java(Path(sys.executable), 17), f"{jvm._JAVA_OPTIONS} 512m")
    assert archive is not None
    (archive.folder / f"{archive.key}.3.jsa").write_bytes(b"jsa")
    return archive
