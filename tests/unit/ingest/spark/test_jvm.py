"""What is said of a JVM that does not start."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkRuntimeError

from pinot_assets.errors import BuildError
from pinot_assets.ingest.spark import jvm


def refused(monkeypatch: pytest.MonkeyPatch, home: Path, code: str) -> None:
    def start(*_: object) -> None:
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


def test_other_errors_of_spark_stay_what_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refused(monkeypatch, tmp_path, "CONTEXT_ONLY_VALID_ON_DRIVER")
    with pytest.raises(PySparkRuntimeError):
        jvm.local_context("test", 1)
