"""A process whose Spark was killed gets another one for its next run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.processes.marked import MARK, marked

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
    environment |= {"TMPDIR": str(tmp_path), "PINOT_ASSETS_PROFILE": "local", MARK: mark}
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
