"""The folder of the Spark in this process, and what is left of both when this process is gone.

PySpark starts a JVM that ends when its standard input does. Only once it has ended can its folder go, and
this process may have been killed. So a tiny shell waits for the end of its own standard input, too, then for
the JVM, which it ends where that does not, and removes the folder.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Final

from pinot_assets.core.files import locked_folder
from pinot_assets.core.machine import deaf_shell

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
