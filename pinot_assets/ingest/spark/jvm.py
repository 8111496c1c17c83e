"""The JVM of the Spark in this process: its start, its folder, what is left of both when either is gone.
And a small Spark on it, for one machine: the demo, tests, `dagster dev`.

A JVM that is up ends when its standard input does, which is a pipe from this process. Only once it has ended
can its folder go, and this process may have been killed. So a tiny shell waits for the end of its own
standard input, too, then for the JVM, which it ends where that does not, and removes the folder.

A JVM that still starts may never come to reading its input: PySpark, interrupted, removes the folder in
which the JVM is to leave its address, and a JVM that cannot leave it fails without an end. So until it is up
another shell watches (see `deaf_shell`). It needs no number, which this process could be killed before it
tells. What it reads from is a pipe, and all that PySpark starts inherits the end that is read: who has that
pipe open is to end. The end that is written stays in this process, and in its child up to the moment in which
that becomes Spark's script.

PySpark keeps the JVM and the context that it started for as long as the process lives: `watch`, a notebook, a
code server. A JVM that was killed (out of memory, by a person) and an application that its cluster ended are
given to whoever asks next, and refuse every call. See `forget_what_is_gone`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from pinot_assets.core.files import locked_folder
from pinot_assets.core.this_machine import deaf_shell, find_java
from pinot_assets.errors import BuildError

# A JVM gets twenty seconds. Its number is looked at again before it is killed: it must still be a JVM with
# this folder in its command line. Where this process was killed before it wrote the number down, the JVM is
# ended while it starts (`jvm`), or has come up in that instant and ends by itself: five seconds.
_AFTERWARDS: Final = r"""
cat >/dev/null
cd /
n=0
if read -r jvm <"$1/jvm"; then
  while [ $n -lt 200 ] && kill -0 "$jvm"; do sleep 0.1; n=$((n + 1)); done
  case "$(tr '\0' ' ' <"/proc/$jvm/cmdline")" in *"$1"*) kill -9 "$jvm";; esac
else
  sleep 5
fi
rm -rf -- "$1"
"""

_HELD: Final[list[object]] = []
"""Locks, pipes and shells that end with this process; a shell that still runs warns when it is dropped."""


@cache
def spark_home() -> Path:
    """The folder of this process's Spark: made when first asked for, removed when this process is gone.

    Where even the shell that does it was killed, whoever makes the next temporary folder removes it.
    """
    home, lock = locked_folder("spark")
    _HELD.extend((lock, deaf_shell(_AFTERWARDS, str(home))))
    return home


def remember_jvm(home: Path, pid: int) -> None:
    """Write down which JVM the folder is of."""
    (home / "jvm.new").write_text(f"{pid}\n")
    (home / "jvm.new").rename(home / "jvm")


def clear_of_jvm(home: Path) -> None:
    """Remove what a JVM left there that has ended while this process goes on."""
    for left in home.iterdir():
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def silent_on_pandas() -> Iterator[None]:
    """PySpark looks at pandas, which nothing here uses, and complains of its version."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message=r".*pandas")
        yield


@contextmanager
def temporary_files_in(home: Path) -> Iterator[None]:
    """Let this process's temporary files be made in that folder: PySpark leaves one where it is killed while
    its JVM starts."""
    usual = tempfile.tempdir
    tempfile.tempdir = str(home)
    try:
        yield
    finally:
        tempfile.tempdir = usual


@contextmanager
def usual_signals() -> Iterator[None]:
    """Let children that start in here end on SIGTERM, although this process was told to ignore it (`nohup`,
    some supervisors): a JVM, and the Python daemon that it starts, would inherit that. And leave what this
    process does on Ctrl-C as it was: a Spark context puts a handler of its own in its place."""
    if threading.current_thread() is not threading.main_thread():  # others may not change it
        yield
        return
    interrupted, ended = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    if ended is signal.SIG_IGN:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, ended)
        signal.signal(signal.SIGINT, interrupted)


_UNTIL_UP: Final = r"""
read -r up && exit
cd /proc || exit
while
  left=
  for each in [0-9]*/fd/"$1"; do
    [ "$each" -ef /dev/fd/0 ] && kill -s KILL "${each%%/*}" && left=some
  done
  [ "$left" ]
do sleep 0.1; done
"""


def start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM that PySpark will use for the next context, unless this process has one.

    :param settings: Spark's; those that a JVM takes when it starts.
    :raises PySparkRuntimeError: it ends before it is up.
    """
    with SparkContext._lock:
        if SparkContext._gateway is None:
            conf = SparkConf().setAll([*settings.items()])
            with usual_signals(), _ended_unless_up() as inherited:
                gateway = launch_gateway(conf, {"pass_fds": (inherited,)})  # type: ignore[no-untyped-call]
            SparkContext._ensure_initialized(gateway=gateway, conf=conf)


@contextmanager
def _ended_unless_up() -> Iterator[int]:
    """A descriptor: whatever inherits it ends where this block does not come to its end."""
    inherited, write_end = os.pipe()
    with deaf_shell(_UNTIL_UP, str(inherited), stdin=inherited), open(write_end, "wb") as watching:
        try:
            yield inherited
        finally:
            os.close(inherited)  # before the other end: this process is not to end
        watching.write(b"up\n")


_ENDING_S: Final = 20.0


def forget_what_is_gone() -> bool:
    """Let the next that asks PySpark for a context start another one, if the one of this process is gone.

    :returns: whether it was the JVM that has ended.
    """
    gateway: JavaGateway | None = SparkContext._gateway
    context = SparkContext._active_spark_context
    # Of a JVM that is not this process's own child (`spark-submit`) nothing is known: both end together.
    process = getattr(gateway, "proc", None)
    if gateway is not None and process is not None and process.poll() is not None:
        if context is not None:
            _stop(context)
        with suppress(OSError, Py4JError):
            gateway.shutdown()
        with suppress(OSError, AttributeError):
            process.stdin.close()
        SparkContext._gateway = SparkContext._jvm = None
        return True
    if context is not None and is_stopped(context):
        _stop(context)
    return False


def is_stopped(context: SparkContext) -> bool:
    """Whether a context takes no jobs any more."""
    if (java := context._jsc) is None:
        return True
    try:
        return bool(java.sc().isStopped())
    except (OSError, Py4JError):
        return True


def exit_of_jvm() -> int | None:
    """What the JVM of this process returned, once it has; None of one that goes on, or is not its own.

    One that dies stops its context first, so it is waited for.
    """
    if (process := getattr(SparkContext._gateway, "proc", None)) is None:
        return None
    try:
        return int(process.wait(_ENDING_S))
    except subprocess.TimeoutExpired:
        return None


def _stop(context: SparkContext) -> None:
    """Take it out of PySpark's hands. Where its JVM does not answer, the first call only forgets the JVM."""
    with warnings.catch_warnings(), suppress(OSError, Py4JError):
        warnings.simplefilter("ignore", RuntimeWarning)
        context.stop()
    context.stop()


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
    with _own_jvm(app_name, cores) as settings:
        return SparkSession.builder.config(map={**settings}).getOrCreate()


def local_context(app_name: str, cores: int) -> SparkContext:
    """The context of this process, started on first use: on 127.0.0.1, without UI, silent but for errors.

    Where no SQL is asked for it does: a session costs another two seconds of CPU.

    :param cores: Python workers at a time. A worker that dies is retried, up to three times a file.
    :raises LocalStackError: there is no Java, or it is too old.
    :raises BuildError: the JVM ends while it starts.
    """
    with _own_jvm(app_name, cores) as settings:
        return SparkContext.getOrCreate(SparkConf().setAll([*settings.items()]))


@contextmanager
def _own_jvm(app_name: str, cores: int) -> Iterator[dict[str, str]]:
    """Settings for a JVM that is gone, and its folder with it, soon after this process: around its start."""
    find_java()  # Spark's own script would only say that its gateway exited
    home = spark_home()
    if forget_what_is_gone():
        clear_of_jvm(home)
    settings = _settings(app_name, cores, home)
    try:
        with silent_on_pandas(), usual_signals(), temporary_files_in(home):
            start_jvm(settings)
            if (jvm := getattr(SparkContext._gateway, "proc", None)) is not None:
                remember_jvm(home, jvm.pid)
            yield settings
    except PySparkRuntimeError as error:
        # Of a JVM that ended at once Spark only says that its gateway exited.
        if "JAVA_GATEWAY_EXITED" not in str(error):
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
