"""The second Spark of a machine leaves an archive of its classes, which the third one maps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.waiting import until

COUNT = """
from pinot_assets.ingest.spark.jvm import local_context
print(local_context("archive", 2).parallelize(range(5), 2).map(str).count())
"""


@pytest.mark.spark
def test_the_second_spark_leaves_what_the_third_maps(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "spark-classes"

    environment = os.environ | {"PINOT_ASSETS_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}

    def started(**more: str) -> str:
        command = [sys.executable, "-c", COUNT]
        return subprocess.check_output(command, env=environment | more, text=True, timeout=120)

    assert started().splitlines()[-1] == "5"
    assert [*folder.glob("*.jsa")] == []
    assert started().splitlines()[-1] == "5"
    until(lambda: [*folder.glob("*.jsa")], 90)
    assert [*folder.glob("*.making")] == [] == [*folder.glob("*.new")]
    # With `-Xshare:on` a JVM that cannot map its archive does not start.
    assert started(JDK_JAVA_OPTIONS="-Xshare:on").splitlines()[-1] == "5"
    until(lambda: [path.name for path in tmp_path.iterdir()] == ["cache"], 60)
