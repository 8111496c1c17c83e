"""A builder that needs Spark only once there is something to build."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pinot_assets.ingest.spark import builder, environment
from pinot_assets.ingest.spark.on_demand import SparkOnDemand


def test_without_files_nothing_of_spark_is_imported() -> None:
    code = """
import sys
from pinot_assets.ingest.spark.on_demand import SparkOnDemand
SparkOnDemand().build(None, [], print)
print(*{name.partition(".")[0] for name in sys.modules})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"pyspark", "py4j"}.isdisjoint(done.stdout.split())


def test_files_are_built_on_the_spark_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Spark:
        def __init__(self, *factories: Callable[[], object]) -> None:
            made.append(factories)

        def build(self, *arguments: object) -> None:
            made.append(arguments)

        def everywhere(self, look: Callable[[], int]) -> list[int]:
            return [look()]

    monkeypatch.setattr(builder, "SparkBuilder", Spark)
    spark = SparkOnDemand()
    assert made == []
    given = ("spec", ["task"], print, len)
    spark.build(*given)
    factories, built = made
    assert built == given
    for factory, name in zip(factories, ("environment_session", "environment_context"), strict=True):
        monkeypatch.setattr(environment, name, lambda name=name, log=None: (name, log))
        assert factory() == (name, None)
    assert spark.everywhere(lambda: 7) == [7]
    assert len(made) == 2, "one builder"
