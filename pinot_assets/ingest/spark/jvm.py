"""The JVM of the Spark in this process: its start, its folder, what is left of both when either is gone.

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
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Final

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from pinot_assets.core.surviving_shell import deaf_shell
from pinot_assets.core.temporary_folders import locked_folder

_JVM: Final = "jvm"

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

_HELD: Final[list[IO[bytes]]] = []
"""Locks and pipes that end with this process."""


@cache
def spark_home() -> Path:
    """The folder of this process's Spark: made when first asked for, removed when this process is gone.

    Where even the shell that does it was killed, whoever makes the next temporary folder removes it.
    """
    home, lock = locked_folder("spark")
    _HELD.append(lock)
    waiting = deaf_shell(_AFTERWARDS, str(home))
    assert waiting.stdin is not None
    _HELD.append(waiting.stdin)
    _AFTERWARDS_OF[home] = waiting
    return home


_AFTERWARDS_OF: Final[dict[Path, subprocess.Popen[bytes]]] = {}
"""Kept, since an object of a process that still runs warns when it is dropped."""


def remember_jvm(home: Path, pid: int) -> None:
    """Write down which JVM the folder is of."""
    (home / f"{_JVM}.new").write_text(f"{pid}\n")
    (home / f"{_JVM}.new").rename(home / _JVM)


def clear_of_jvm(home: Path) -> None:
    """Remove what a JVM left there that has ended while this process goes on."""
    for left in home.iterdir():
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)


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
    inherited, told = os.pipe()
    with deaf_shell(_UNTIL_UP, str(inherited), stdin=inherited), open(told, "wb") as watching:
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
    if gateway is not None and _has_ended(gateway):
        if context is not None:
            _stop(context)
        with suppress(OSError, Py4JError):
            gateway.shutdown()
        with suppress(OSError, AttributeError):
            gateway.proc.stdin.close()
        SparkContext._gateway = SparkContext._jvm = None
        return True
    if context is not None and is_stopped(context):
        _stop(context)
    return False


def is_stopped(context: SparkContext) -> bool:
    """Whether a context takes no jobs any more."""
    java = context._jsc
    if java is None:
        return True
    try:
        return bool(java.sc().isStopped())
    except (OSError, Py4JError):
        return True


def exit_of_jvm() -> int | None:
    """What the JVM of this process returned, once it has; None of one that goes on, or is not its own.

    One that dies stops its context first, so it is waited for.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        return int(process.wait(_ENDING_S))
    except subprocess.TimeoutExpired:
        return None


def _has_ended(gateway: JavaGateway) -> bool:
    """Of a JVM that is not this process's own child (`spark-submit`) nothing is known: both end together."""
    process = getattr(gateway, "proc", None)
    return process is not None and process.poll() is not None


def _stop(context: SparkContext) -> None:
    """Take it out of PySpark's hands. Where its JVM does not answer, the first call only forgets the JVM."""
    with warnings.catch_warnings(), suppress(OSError, Py4JError):
        warnings.simplefilter("ignore", RuntimeWarning)
        context.stop()
    context.stop()
