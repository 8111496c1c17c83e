"""A build in this machine's Spark whose driver is interrupted or killed: no process and no folder stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

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
        env={**os.environ, "TMPDIR": str(tmp_path), "PINOT_ASSETS_TEST_MARK": mark},
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


def marked(mark: str) -> list[str]:
    """Processes with the mark in their environment, which children inherit."""
    lines = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("PINOT_ASSETS_TEST_MARK") == mark:
                lines.append(f"{process.pid} {' '.join(process.cmdline())[:200]}")
        except psutil.Error:
            continue
    return lines


LIVES_ON = """
import os, signal, sys, threading, time
from pathlib import Path
from pyspark import SparkContext
from pinot_assets.ingest.spark.environment import environment_context, environment_session
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.errors import BuildError

def here():
    return 1

def look():
    Path(os.environ["TMPDIR"], f"looks-{os.getpid()}").touch()
    time.sleep(600)

def kill():
    while not [*Path(os.environ["TMPDIR"]).glob("looks-*")]:
        time.sleep(0.1)
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)

def told(what):
    print(what, file=sys.stdout, flush=True)

builder = SparkBuilder(environment_session, environment_context)
assert sum(builder.everywhere(here)) > 0
first = SparkContext._gateway.proc.pid
threading.Thread(target=kill).start()
try:
    builder.everywhere(look)
except BuildError as error:
    told("the run ends with one error")
SparkContext._gateway.proc.wait()
assert sum(builder.everywhere(here)) > 0
second = SparkContext._gateway.proc.pid
assert second != first
told("the next run has a JVM of its own")
assert environment_session().range(3).count() == 3
os.kill(second, signal.SIGKILL)
SparkContext._gateway.proc.wait()
assert environment_session().range(3).count() == 3
told("and so has the next session")
environment_context()._jsc.sc().stop()  # as where a cluster ends the application
assert sum(builder.everywhere(here)) > 0
assert environment_session().range(3).count() == 3
told("and what follows an application that was ended")
[home] = [path for path in Path(os.environ["TMPDIR"]).iterdir() if path.is_dir()]
told(len([path for path in home.iterdir() if path.name.startswith("blockmgr-")]))
"""


@pytest.mark.spark
@pytest.mark.parametrize("master", ["", "local[2]"])
def test_a_process_that_lives_on_gets_another_spark(tmp_path: Path, master: str) -> None:
    """A `watch` of weeks must not fail at every run from the one on whose JVM was killed."""
    mark = f"lives-on-{tmp_path.name}"
    hidden = ("PINOT_", "SPARK_", "PYSPARK_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    environment |= {"TMPDIR": str(tmp_path), "PINOT_ASSETS_PROFILE": "local", "PINOT_ASSETS_TEST_MARK": mark}
    if master:
        environment["PINOT_ASSETS_SPARK_MASTER"] = master
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            LIVES_ON if not master else LIVES_ON.partition("assert environment_session")[0],
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [
        "the run ends with one error",
        "the next run has a JVM of its own",
        "and so has the next session",
        "and what follows an application that was ended",
        "1",  # folder of blocks: what dead JVMs left goes with them
    ]
    assert done.stdout.splitlines() == (lines[:2] if master else lines)
    until = time.monotonic() + 60
    while marked(mark) and time.monotonic() < until:
        time.sleep(0.1)
    assert marked(mark) == []
