"""A small Spark inside this process, for one machine: the demo, tests, `dagster dev`."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from pinot_assets.core.machine import find_java
from pinot_assets.errors import BuildError
from pinot_assets.ingest.spark.home import (
    clear_of_jvm,
    remember_jvm,
    spark_home,
    temporary_files_in,
    usual_signals,
)
from pinot_assets.ingest.spark.jvm import start_jvm
from pinot_assets.ingest.spark.stopped import forget_what_is_gone

_NO_JVM = "JAVA_GATEWAY_EXITED"
_LOG4J = """\
rootLogger.level = error
# Spark announces a change of level on stderr unless its gateway already has the root's.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


def local_session(app_name: str, cores: int) -> SparkSession:
    """The session of this process, on `local_context`, or on the context that is there already."""
    with _silent_on_pandas(), _own_jvm(app_name, cores) as settings:
        return SparkSession.builder.config(map={**settings}).getOrCreate()


def local_context(app_name: str, cores: int) -> SparkContext:
    """The context of this process, started on first use: on 127.0.0.1, without UI, silent but for errors.

    Where no SQL is asked for it does: a session costs another two seconds of CPU.

    :param cores: Python workers at a time. A worker that dies is retried, up to three times a file.
    :raises LocalStackError: there is no Java, or it is too old.
    :raises BuildError: the JVM ends while it starts.
    """
    with _silent_on_pandas(), _own_jvm(app_name, cores) as settings:
        return SparkContext.getOrCreate(SparkConf().setAll([*settings.items()]))


@contextmanager
def _silent_on_pandas() -> Iterator[None]:
    """PySpark looks at pandas, which nothing here uses, and complains of its version."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message=r".*pandas")
        yield


@contextmanager
def _own_jvm(app_name: str, cores: int) -> Iterator[dict[str, str]]:
    """Settings for a JVM that is gone, and its folder with it, soon after this process: around its start."""
    find_java()  # Spark's own script would only say that its gateway exited
    home = spark_home()
    if forget_what_is_gone():
        clear_of_jvm(home)
    settings = _settings(app_name, cores, home)
    with usual_signals(), temporary_files_in(home), _jvm_started():
        start_jvm(settings)
        if (jvm := getattr(SparkContext._gateway, "proc", None)) is not None:
            remember_jvm(home, jvm.pid)
        yield settings


@contextmanager
def _jvm_started() -> Iterator[None]:
    """Spark says no more of a JVM that ended at once than that its gateway exited."""
    try:
        yield
    except PySparkRuntimeError as error:
        if _NO_JVM not in str(error):
            raise
        options = os.environ.get("PYSPARK_SUBMIT_ARGS")
        raise BuildError(
            "Spark's JVM did not start",
            why="it ended before it answered; what it said itself is above, on standard error",
            hint=("see whether PYSPARK_SUBMIT_ARGS is right, " if options else "see ")
            + "whether `java -version` works, JAVA_TOOL_OPTIONS is right and there are 512 MiB of memory; "
            "`pinot-assets doctor` looks at the rest",
        ) from error


def _settings(app_name: str, cores: int, home: Path) -> dict[str, str]:
    # Spark reads these three from the environment alone, when its JVM starts.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    log4j = home / "log4j2.properties"
    log4j.write_text(_LOG4J)
    return {
        "spark.app.name": app_name,
        "spark.master": f"local[{cores},4]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "512m",  # the rows are in the Python workers, not in the JVM
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={log4j.as_uri()} -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        ),
        # A copy of resources/ or sensors/ in the working folder must not be imported by a worker.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.python.daemon.module": "pinot_assets.build.worker_daemon",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.variable.substitute": "false",  # as in each session that reads (`reader.SETTINGS`)
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home),
    }
