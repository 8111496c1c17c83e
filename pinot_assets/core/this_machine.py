"""This machine: its memory, commands that run on it, and its Java.

Commands run for as long as this process waits for them, and no longer. Whatever ends the wait ends the
command and what it started: an error, Ctrl-C, and `kill -9` of this process, after which a shell does it (see
`deaf_shell`). So each command is the leader of a process group of its own.

That shell outlives this process, to do what is left to do when it is gone. Whatever ends this process,
`kill -9` included, closes its end of a pipe. The shell reads the other end. It is deaf to what ends a whole
terminal or group, and ends by itself.

Java is found, and one that is too old refused, before anything fails oddly.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import pyarrow as pa

from pinot_assets.errors import LocalStackError

_KEPT: Final = 1 << 30
_TOP_PAD: Final = 64 << 20
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3  # malloc.h


def take_memory_from_system() -> None:
    """Let all of this process's Arrow allocate as everything else in it does.

    Arrow's own allocator asks for huge pages and gives them back early. On a virtual machine every one of
    them is dear the first time: a worker's first segment took 1.4 times the CPU.
    """
    pa.set_memory_pool(pa.system_memory_pool())


def keep_freed_memory() -> None:
    """Let glibc's allocator keep up to a gigabyte of what is freed; for a process that builds segments.

    Every page that it gives back is dear to get again, and the next segment needs as much as this one did.
    """
    with suppress(AttributeError):  # another C library has no mallopt
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
        mallopt(_M_TOP_PAD, _TOP_PAD)
        mallopt(_M_MMAP_THRESHOLD, _KEPT)


def limit_memory(most: int | None) -> None:
    """Let this process take no more than so much: what needs more then is an error that can be told.

    Where a process takes all that there is, the kernel ends one, and tells nobody why. A lower limit that is
    set already (Spark's `spark.executor.pyspark.memory`) stays.

    :param most: bytes; None for four fifths of what the machine or the container has.
    """
    own_limit = machine_memory() * 4 // 5 if most is None else most
    # RLIMIT_DATA counts what is allocated; RLIMIT_AS would count files that are mapped, too.
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = [limit for limit in (own_limit, soft, hard) if limit != resource.RLIM_INFINITY]
    with suppress(ValueError, OSError):  # a system without it
        resource.setrlimit(resource.RLIMIT_DATA, (min(allowed), hard))


def machine_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that this machine has, or less where a container may take less.

    :param cgroup: where the kernel shows the container's limits, of version 2 or 1.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # not there, or "max"
            total = min(total, int((cgroup / name).read_text()))
    return total


_DEAF: Final = "trap '' INT TERM HUP QUIT\n"


def deaf_shell(script: str, *arguments: str, stdin: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """Start one. Keep what is returned: its standard input is the pipe.

    :param script: for `/bin/sh`; it sees the end of this process as the end of its standard input.
    :param arguments: `$1` and so on.
    :param stdin: the end that is read of another pipe.
    """
    # A session of its own: a signal to this process's group is not for it.
    return subprocess.Popen(
        ["/bin/sh", "-c", _DEAF + script, "pinot-assets-afterwards", *arguments],
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


_WATCH: Final = 'read -r group && { read -r over || kill -s KILL -- "-$group"; }'

# Its number goes to the watching shell before the command begins, so that there is no moment in which this
# process can be killed and the command goes on.
_LEAD: Final = 'echo $$ >&0; exec "$@" </dev/null'

Output = int | IO[bytes] | IO[str] | None


@contextmanager
def child(
    command: Sequence[str | Path], *, stdout: Output = None, stderr: Output = None, cwd: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A running command without standard input; what it prints is text, with what is no UTF-8 replaced.

    Left early, the block ends it with all of its group; else it waits for its end. What the command left
    running on purpose by then goes on.
    """
    watching = deaf_shell(_WATCH)
    assert watching.stdin is not None
    with watching, watching.stdin as pipe:
        with subprocess.Popen(
            ["/bin/sh", "-c", _LEAD, "pinot-assets-child", *map(str, command)],
            stdin=pipe,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            text=True,
            errors="replace",
            process_group=0,
        ) as running:
            try:
                yield running
                running.wait()
            except BaseException:
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
                raise
        with suppress(BrokenPipeError):
            pipe.write(b"over\n")
            pipe.flush()


def run_child(
    command: Sequence[str | Path],
    *,
    stdout: Output = subprocess.PIPE,
    stderr: Output = subprocess.PIPE,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; what it printed and its exit code.

    :param timeout: in seconds.
    :raises subprocess.TimeoutExpired: it took longer, and was ended.
    """
    with child(command, stdout=stdout, stderr=stderr, cwd=cwd) as running:
        out, err = running.communicate(timeout=timeout)
    return subprocess.CompletedProcess(command, running.returncode, out, err)


MINIMUM_JAVA = 17
"""Spark 4 and the Pinot of the local stack both run on 17."""

_INSTALL = f"install a JDK {MINIMUM_JAVA} or newer and put it on PATH, or point JAVA_HOME at it"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime.

    :ivar executable: the `java` to start.
    :ivar major: its feature release, such as 17.
    """

    executable: Path
    major: int


def find_java() -> Java:
    """The Java that `JAVA_HOME` names, else the one on `PATH`, as Maven and Spark choose it too.

    :raises LocalStackError: there is none, it does not run, or it is older than `MINIMUM_JAVA`.
    """
    if java_home := os.environ.get("JAVA_HOME"):
        executable = Path(java_home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise LocalStackError(
                f"JAVA_HOME is {java_home}, which holds no Java",
                why=f"{executable} is not an executable file",
                hint="unset JAVA_HOME to use the java on PATH, or point it at a JDK",
            )
    else:
        if (on_path := shutil.which("java")) is None:
            raise LocalStackError(
                "no Java was found", why="JAVA_HOME is not set and no java is on PATH", hint=_INSTALL
            )
        executable = Path(on_path)
    java = Java(executable, _major_version(executable))
    if java.major < MINIMUM_JAVA:
        raise LocalStackError(
            f"Java {java.major} is too old",
            why=f"{executable} is version {java.major}, {MINIMUM_JAVA} or newer is needed",
            hint=_INSTALL,
        )
    return java


def _major_version(executable: Path) -> int:
    try:
        answer = run_child([executable, "-version"], timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LocalStackError(f"{executable} does not run", why=str(error), hint=_INSTALL) from error
    text = answer.stderr + answer.stdout
    # "1.8.0_402" is Java 8, "17.0.15" is Java 17, "25-ea" is Java 25.
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    if answer.returncode != 0 or match is None:
        # The JVM announces the options that it takes from the environment before it says what is wrong.
        lines = [line for line in text.strip().splitlines() if not line.startswith("Picked up ")]
        why = lines[0] if lines else "it printed nothing"
        raise LocalStackError(f"{executable} does not tell its version", why=why, hint=_INSTALL)
    return int(match.group(1))
