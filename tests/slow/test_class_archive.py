"""The archive of Spark's classes with a real JVM: it is made, mapped, and ignored when it is cut short."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.processes.marked import MARK, marked
from fakes.waiting import until

JOB = """
from pathlib import Path
from pyspark import SparkContext
from pinot_assets.ingest.spark.jvm import local_context
count = local_context("archive", 2).parallelize(range(5), 2).map(str).count()
maps = Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text()
print(count, "spark-classes" in maps)
"""


@pytest.mark.spark
def test_the_tenth_spark_lets_an_archive_be_made_which_later_ones_map(tmp_path: Path) -> None:
    folder, mark = tmp_path / "cache" / "spark-classes", f"archive-{tmp_path.name}"
    environment = os.environ | {
        "PINOT_ASSETS_CACHE": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path),
        MARK: mark,
    }

    def said(**more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", JOB],
            env=environment | more,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert "cds" not in done.stdout + done.stderr
        return done.stdout

    assert said() == "5 False\n"
    (starts,) = folder.iterdir()
    starts.write_bytes(b"." * 9)
    assert said() == "5 False\n"
    until(lambda: marked(mark) == [], 180)
    (made,) = folder.glob("*.jsa")
    assert said() == "5 True\n"

    assert said(JAVA_TOOL_OPTIONS="-Xshare:off").endswith("5 False\n")

    made.chmod(0o600)
    os.truncate(made, made.stat().st_size // 2)
    assert said() == "5 False\n"
    until(lambda: marked(mark) == [])
    assert sorted(path.suffix for path in folder.iterdir()) == ["", ".starts", ".starts"]
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


@pytest.mark.spark
def test_a_process_that_is_killed_while_it_makes_the_archive_leaves_nothing(tmp_path: Path) -> None:
    folder, mark = tmp_path / "cache", f"archive-{tmp_path.name}"
    folder.mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path), MARK: mark}
    command = [sys.executable, "-m", "pinot_assets.ingest.spark.class_training", str(folder), "0123"]
    with subprocess.Popen(command, env=environment) as process:
        until(lambda: any("/java -cp" in line for line in marked(mark)))
        process.kill()
    until(lambda: marked(mark) == [])
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    assert [path.name for path in folder.iterdir()] == ["making"]
