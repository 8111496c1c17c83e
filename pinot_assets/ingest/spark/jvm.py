"""The JVM of this process's Spark: how it starts, its folder, and what remains when JVM or process are gone.
Also a small Spark on that JVM for one machine: the demo, tests, `dagster dev`.

A running JVM ends when its standard input ends, which is a pipe from this process. Its folder can be removed
only after the JVM ended, and this process may be killed before. So a tiny shell waits for the end of its own
standard input, then for the JVM, kills the JVM if it does not end, and removes the folder.

A JVM that still starts may never read its input: an interrupted PySpark removes the folder in which the JVM
has to write its address, and a JVM that cannot write it fails without ever ending. So until the JVM is up,
another shell watches (see `deaf_shell`). The shell needs no process id: this process could be killed before
it passes one on. The shell reads from a pipe, and all processes that PySpark starts inherit the read end: the
shell kills whoever has that pipe open. The write end stays in this process, and in its child until the moment
when the child becomes Spark's script.

PySpark keeps the JVM and the context for as long as the process lives (`watch`, a notebook, a code server).
If the JVM was killed (out of memory, by a person) or its cluster ended the application, PySpark still returns
both to the next caller, and they refuse every call. See `forget_what_is_gone`.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Final

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from pinot_assets.core.files import locked_folder
from pinot_assets.core.this_machine import Java, deaf_shell, find_java
from pinot_assets.errors import BuildError
from pinot_assets.ingest.spark.class_archive import ClassArchive
from pinot_assets.ingest.spark.java_errors import cause_of

# The shell gives the JVM twenty seconds. Before the kill it checks that the process id still belongs to a JVM
# with this folder in its command line. If this process was killed before it wrote the id down, the JVM either
# is ended while it starts (`jvm`), or has just come up and ends by itself: five seconds.
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
"""Locks, pipes and shells to keep until this process ends: Python warns when it drops a running shell."""


@cache
def spark_home() -> Path:
    """Return the folder of this process's Spark: made on the first call, removed when this process is gone.

    If the shell that removes it was killed, too, whoever makes the next temporary folder removes it.
    """
    home, lock = locked_folder("spark")
    _HELD.extend((lock, deaf_shell(_AFTERWARDS, str(home))))
    return home


def remember_jvm(home: Path, pid: int) -> None:
    """Write the JVM's process id into its folder."""
    (home / "jvm.new").write_text(f"{pid}\n")
    (home / "jvm.new").rename(home / "jvm")


def clear_of_jvm(home: Path) -> None:
    """Remove the folders that an ended JVM left in `home`, while this process continues."""
    for left in home.iterdir():
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def silent_on_pandas() -> Iterator[None]:
    """Hide PySpark's warnings about the version of pandas, which nothing here uses."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message=r".*pandas")
        yield


@contextmanager
def temporary_files_in(home: Path) -> Iterator[None]:
    """Let this process make its temporary files in that folder: PySpark leaves one behind if it is killed
    while its JVM starts."""
    usual = tempfile.tempdir
    tempfile.tempdir = str(home)
    try:
        yield
    finally:
        tempfile.tempdir = usual


@contextmanager
def usual_signals() -> Iterator[None]:
    """Let children that start in here end on SIGTERM. If this process ignores it (`nohup`, some supervisors),
    a JVM and the Python daemon that it starts would inherit that. Afterwards restore this process's handlers:
    a Spark context replaces the handler of Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
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


def start_jvm(settings: Mapping[str, str], log: Path | None) -> None:
    """Start the JVM that PySpark will use for the next context, unless this process has a JVM.

    :param settings: Spark's settings; those that a JVM takes when it starts.
    :param log: file for the standard error of JVM and Python workers; None shares this process's.
    :raises PySparkRuntimeError: the JVM ends before it is up.
    """
    with SparkContext._lock:
        if SparkContext._gateway is None:
            conf = SparkConf().setAll([*settings.items()])
            with (
                usual_signals(),
                _ended_unless_up() as inherited,
                nullcontext() if log is None else log.open("ab") as stderr,
            ):
                options = {"pass_fds": (inherited,), "stderr": stderr}
                gateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
            SparkContext._ensure_initialized(gateway=gateway, conf=conf)


@contextmanager
def _ended_unless_up() -> Iterator[int]:
    """Yield a file descriptor; every process that inherits it is killed if this block does not finish."""
    inherited, write_end = os.pipe()
    with deaf_shell(_UNTIL_UP, str(inherited), stdin=inherited), open(write_end, "wb") as watching:
        try:
            yield inherited
        finally:
            os.close(inherited)  # before the other end, or the shell would kill this process
        watching.write(b"up\n")


_ENDING_S: Final = 20.0


def forget_what_is_gone() -> bool:
    """Forget this process's context if it is gone, so that PySpark starts another one for the next caller.

    :returns: whether the JVM had ended.
    """
    gateway: JavaGateway | None = SparkContext._gateway
    context = SparkContext._active_spark_context
    # A JVM that is no child of this process (`spark-submit`) cannot be polled; both end together.
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
    """Whether a context takes no more jobs."""
    if (java := context._jsc) is None:
        return True
    try:
        return bool(java.sc().isStopped())
    except (OSError, Py4JError):
        return True


def exit_of_jvm() -> int | None:
    """Return the exit code of this process's JVM; None if the JVM still runs or is not its child.

    Wait up to 20 seconds for it (`_ENDING_S`): a dying JVM stops its context before it ends.
    """
    if (process := getattr(SparkContext._gateway, "proc", None)) is None:
        return None
    try:
        return int(process.wait(_ENDING_S))
    except subprocess.TimeoutExpired:
        return None


def _stop(context: SparkContext) -> None:
    """Make PySpark forget the context. If its JVM does not answer, the first call only forgets the JVM."""
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


def local_session(app_name: str, cores: int, log: Path | None = None) -> SparkSession:
    """Return the session of this process, on the context that is there, or else on a `local_context`."""
    with own_jvm(app_name, cores, log) as settings:
        return SparkSession.builder.config(map={**settings}).getOrCreate()


def local_context(app_name: str, cores: int, log: Path | None = None) -> SparkContext:
    """Return the context of this process, started on first use: on 127.0.0.1, no UI, only errors logged.

    It suffices for work without SQL: a session costs another two seconds of CPU.

    :param cores: Python workers at a time. Spark retries a dead worker's task, up to three times a file.
    :param log: as in `start_jvm`.
    :raises LocalStackError: there is no Java, or it is too old.
    :raises BuildError: Spark does not start.
    """
    with own_jvm(app_name, cores, log) as settings:
        return SparkContext.getOrCreate(SparkConf().setAll([*settings.items()]))


@contextmanager
def own_jvm(app_name: str, cores: int, log: Path | None, more: str | None = None) -> Iterator[dict[str, str]]:
    """Start a JVM that ends soon after this process, with its folder; yield the settings of its Spark.

    :param more: options for the JVM; None for those with which it maps the archive of Spark's classes.
    """
    java = find_java()  # without Java, Spark's own script would only say that its gateway exited
    home = spark_home()
    if forget_what_is_gone():
        clear_of_jvm(home)
    settings = _settings(app_name, cores, home)
    with told_if_not_started(log), silent_on_pandas(), usual_signals(), temporary_files_in(home):
        if more is not None:
            start_jvm(_with_options(settings, more), log)
        elif SparkContext._gateway is None:
            _start_with_archive(settings, log, java)
        if (jvm := getattr(SparkContext._gateway, "proc", None)) is not None:
            remember_jvm(home, jvm.pid)
        yield settings


def _start_with_archive(settings: Mapping[str, str], log: Path | None, java: Java) -> None:
    """Start a JVM that maps the archive of Spark's classes, if there is one; if that fails, one without it.

    Options of the user may contradict that of the archive: Java 25 takes no AOT cache beside it.
    """
    archive = ClassArchive.of(java, f"{_JAVA_OPTIONS} {settings['spark.driver.memory']}")
    if archive is None or not (options := archive.options()):
        start_jvm(settings, log)
        return
    try:
        start_jvm(_with_options(settings, options), log)
    except PySparkException:
        start_jvm(settings, log)
        archive.turn_off()


def _with_options(settings: Mapping[str, str], more: str) -> dict[str, str]:
    return {**settings, _OPTIONS: f"{settings[_OPTIONS]} {more}"}


@contextmanager
def told_if_not_started(log: Path | None) -> Iterator[None]:
    """Start a JVM and its context in this block; whatever Spark raises there becomes one error.

    :param log: as in `start_jvm`.
    :raises BuildError: Spark did not start.
    """
    begin = log.stat().st_size if log is not None and log.exists() else 0
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise BuildError(
                "Spark did not start",
                why=cause_of(error),
                hint="check the master and the properties that PINOT_ASSETS_SPARK_MASTER and "
                f"PINOT_ASSETS_SPARK_PROPERTIES name; Spark's own output is {_where(log)}",
            ) from error
        # If the JVM ended at once, PySpark only says that its gateway exited.
        said = _said(log, begin)
        options = [name for name in _OF_START if os.environ.get(name)]
        raise BuildError(
            "Spark's JVM did not start",
            why=f"it ended before it answered{said}; its own output is {_where(log)}",
            hint=(f"check {' and '.join(options)}, and " if options else "see ")
            + (
                "whether `java -version` works, JAVA_TOOL_OPTIONS is right and 512 MiB of memory are "
                "free; `pinot-assets doctor` checks the rest"
            ),
        ) from error


_OF_START: Final = ("PYSPARK_SUBMIT_ARGS", "PINOT_ASSETS_SPARK_MASTER", "PINOT_ASSETS_SPARK_PROPERTIES")
"""Variables that decide with which options the JVM starts."""
_ERROR: Final = re.compile(r'^(?:Exception in thread "[^"]*" |Error: )(.+)$', re.MULTILINE)


def _said(log: Path | None, begin: int) -> str:
    """Return the first error that a JVM wrote into its log, after a colon; empty if there is none.

    :param begin: where the log of this JVM begins, in bytes.
    """
    if log is None or not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(begin)
        found = _ERROR.search(file.read(1 << 16).decode(errors="replace"))
    return f": {found[1][:500]}" if found else ""


def _where(log: Path | None) -> str:
    return "above, on standard error" if log is None else f"in {log}"


_OPTIONS: Final = "spark.driver.extraJavaOptions"
_JAVA_OPTIONS: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


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
        "spark.driver.memory": "512m",  # the Python workers hold the rows, not the JVM
        _OPTIONS: f"-Dlog4j2.configurationFile={log4j.as_uri()} {_JAVA_OPTIONS}",
        # A worker must not import a copy of resources/ or sensors/ from the working folder.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.python.daemon.module": "pinot_assets.build.worker_daemon",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.variable.substitute": "false",  # as in each session that reads (`reader.SETTINGS`)
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home),
    }
