"""What is said of a JVM that does not start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkRuntimeError

from pinot_assets.errors import BuildError
from pinot_assets.ingest.spark import jvm
from pinot_assets.ingest.spark.environment import environment_context, environment_session
from pinot_assets.ingest.spark.java_errors import cause_of


def refused(monkeypatch: pytest.MonkeyPatch, home: Path, code: str, said: str = "") -> None:
    def start(_: object, log: Path | None) -> None:
        if log is not None:
            with log.open("a") as file:
                file.write(said)
        raise PySparkRuntimeError(errorClass=code, messageParameters={})

    monkeypatch.setattr(jvm, "find_java", lambda: None)
    monkeypatch.setattr(jvm, "spark_home", lambda: home)
    monkeypatch.setattr(jvm, "start_jvm", start)


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
