"""A build in this machine's Spark whose driver is interrupted or killed: no process and no folder stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.processes.marked import MARK, marked

DRIVER = """
import os, time
from pathlib import Path
from pinot_assets.ingest.spark.jvm import local_context
from pinot_assets.ingest.spark.builder import SparkBuilder

def look():
    Path(os.environ["TMPDIR"], f"looks-{os.getpid()}").touch()
    time.sleep(600)

SparkBuilder(lambda: None, lambda: local_context("killed", 2)).everywhere(look)
"""


@pytest.mark.spark
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_driver_leaves_no_process_and_no_folder(tmp_path: Path, number: signal.Signals) -> None:
    mark = f"killed-{tmp_path.name}"
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        env={**os.environ, "TMPDIR": str(tmp_path), MARK: mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while len([*tmp_path.glob("looks-*")]) < 2:
        assert driver.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    assert len(marked(mark)) >= 4, "driver, JVM, and its Python workers"
    # As Ctrl-C in a terminal: to all of the group.
    os.killpg(driver.pid, number) if number == signal.SIGINT else driver.kill()
    driver.wait()
    until = time.monotonic() + 60
    while marked(mark) and time.monotonic() < until:
        time.sleep(0.1)
    assert marked(mark) == []
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("looks-")] == []
