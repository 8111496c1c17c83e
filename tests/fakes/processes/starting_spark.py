"""What a process does that is ended while Spark's JVM starts; in a module that a fork server can import.

A test's own functions have no name that it could import in a worker of pytest-xdist.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import psutil


def _begin(environment: dict[str, str], said: Path) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    for number in (1, 2):
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def start_spark(environment: dict[str, str], said: Path) -> None:
    from pinot_assets.core.interrupts import take_signals
    from pinot_assets.ingest.spark.environment import environment_context

    _begin(environment, said)
    take_signals()
    try:
        environment_context()
    except KeyboardInterrupt:
        sys.exit(130)


def live_on(environment: dict[str, str], said: Path) -> None:
    from pinot_assets.ingest.spark.environment import environment_context

    _begin(environment, said)
    try:
        environment_context()
    except KeyboardInterrupt:
        # One shell waits for the end of this process, to remove Spark's folder.
        children = [one.name() for one in psutil.Process().children() if one.status() != "zombie"]
        jvms = [name for name in children if name != "sh"]
        os.write(1, f"interrupted: {len(jvms)} JVMs\n".encode())
    del os.environ["JAVA_HOME"]
    os.environ["PATH"] = environment["PATH"].partition(os.pathsep)[2]  # the real Java
    environment_context()
    os.write(1, b"up\n")
