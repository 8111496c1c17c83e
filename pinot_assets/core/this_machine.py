"""This machine: its memory, commands that run on it, and its Java.

A command runs only while this process waits for it. When the wait ends, the command and its children end,
too: after an error, Ctrl-C, or `kill -9` of this process, when a shell ends them (see `deaf_shell`). So each
command leads its own process group.

That shell outlives this process, to do what is left to do after it. However this process ends, also by
`kill -9`, its end of a pipe is closed. The shell, which reads the other end, notices that. It ignores signals
for a whole terminal or group, and ends by itself.

Java is searched here, and a Java that is too old is refused before anything fails in a strange way.
"""

from __future__ import annotations

import ctypes
import getpass
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Final

from pinot_assets.errors import LocalStackError

_KEPT: Final = 1 << 30
_TOP_PAD: Final = 64 << 20
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3  # malloc.h


def take_memory_from_system() -> None:
    """Let Arrow in this process allocate memory as all other code in it does.

    Arrow's own allocator asks for huge pages and returns them early. On a virtual machine the first use of
    such a page is expensive: a worker's first segment took 1.4 times the CPU time.
    """
    import pyarrow as pa  # most callers of this module need no Arrow

    pa.set_memory_pool(pa.system_memory_pool())


def take_memory_from_arrow() -> None:
    """Let Arrow in this process use its own allocator again; for a process that reads text.

    Text becomes many aligned buffers that live as long as a segment, between those of each block. glibc's
    allocator finds no place for such a buffer in what another one left: 200 MB of rows took 850 MB.
    """
    import pyarrow as pa

    with suppress(NotImplementedError):  # this Arrow was built without it
        pa.set_memory_pool(pa.mimalloc_memory_pool())


def convert_without_pandas() -> None:
    """Let Arrow in this process convert Python values without pandas; for a process that has no use for it.

    Arrow imports pandas, if it is installed, at the first value that it converts, to know a Series when it
    sees one. That takes a third of a second of CPU time. Arrow remembers that it found none, until it has to
    return something of pandas; who imports pandas finds it.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, hidden := _Hidden("pandas"))
    try:
        pa.scalar(None)
    finally:
        sys.meta_path.remove(hidden)


class _Hidden:
    """Lets imports of one package fail, as if it were not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self._package:
            raise ModuleNotFoundError(f"{fullname} is hidden", name=fullname)


_CPU: Final = Path("/proc/cpuinfo")
_ONE_CORE: Final = 8192
_NUMPY_SWITCH: Final = "NPY_DISABLE_CPU_FEATURES"


def numpy_settings(environ: Mapping[str, str], cpu: Path = _CPU) -> dict[str, str]:
    """Return variables with which numpy sorts by AVX2 on processors whose AVX-512 is slow at that.

    numpy reads them when it is imported. Its sort by AVX-512 writes compressed vectors to memory. AMD's Zen 4
    does that in microcode: to sort 1.25 million whole numbers took 65 to 90 ms, and 16 ms by AVX2.

    :param environ: a variable that is set there stays.
    :param cpu: what Linux says about the processors.
    """
    if _NUMPY_SWITCH in environ or not _is_zen_4(cpu):
        return {}
    major, minor = (int(part) for part in version("numpy").split(".")[:2])
    # The names are those of numpy's dispatch targets; it warns of any other.
    return {_NUMPY_SWITCH: "X86_V4" if (major, minor) >= (2, 4) else "AVX512_SKX"}


def _is_zen_4(cpu: Path) -> bool:
    try:
        with cpu.open() as file:
            text = file.read(_ONE_CORE).partition("\n\n")[0]  # of the first processor
    except OSError:
        return False  # not Linux
    facts = dict(re.findall(r"^(vendor_id|cpu family|flags)\s*: (.*)$", text, re.MULTILINE))
    # Zen 3 is of the same family and has no AVX-512; Zen 5 is of the next one.
    is_family = (facts.get("vendor_id"), facts.get("cpu family")) == ("AuthenticAMD", "25")
    return is_family and "avx512f" in facts.get("flags", "").split()


def keep_freed_memory() -> None:
    """Let glibc's allocator keep up to a gigabyte of freed memory; for a process that builds segments.

    To get a returned page again is expensive, and the next segment needs as much memory as this one.
    """
    with suppress(AttributeError):  # another C library has no mallopt
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
        mallopt(_M_TOP_PAD, _TOP_PAD)
        mallopt(_M_MMAP_THRESHOLD, _KEPT)


def limit_memory(most: int | None) -> None:
    """Limit the memory of this process, so that needing more raises an error, which can be reported.

    Without a limit, a process that takes all memory makes the kernel kill one without a message. A lower
    limit that is already set (Spark's `spark.executor.pyspark.memory`) stays.

    :param most: bytes; None for four fifths of the memory of the machine or the container.
    """
    own_limit = machine_memory() * 4 // 5 if most is None else most
    # RLIMIT_DATA counts allocated memory; RLIMIT_AS would count mapped files, too.
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = [limit for limit in (own_limit, soft, hard) if limit != resource.RLIM_INFINITY]
    with suppress(ValueError, OSError):  # this system does not have that limit
        resource.setrlimit(resource.RLIMIT_DATA, (min(allowed), hard))


def machine_memory(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes of memory of this machine, or the container's limit if that is lower.

    :param cgroup: folder of the kernel's files with the container's limits, version 2 or 1.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # there is no such file, or it holds "max"
            total = min(total, int((cgroup / name).read_text()))
    return total


_DEAF: Final = "trap '' INT TERM HUP QUIT\n"


def deaf_shell(
    script: str, *arguments: str, stdin: int = subprocess.PIPE, held: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a shell that ignores signals. Keep the result open: its standard input is the pipe.

    :param script: for `/bin/sh`; when this process ends, the script sees the end of its standard input.
    :param arguments: `$1` and so on.
    :param stdin: the read end of another pipe, to use instead.
    :param held: open files that it keeps open until it ends, such as a lock.
    """
    # It gets its own session, so that a signal to this process's group does not reach it.
    return subprocess.Popen(
        ["/bin/sh", "-c", _DEAF + script, "pinot-assets-afterwards", *arguments],
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=held,
    )


_WATCH: Final = 'read -r group && { read -r over || kill -s KILL -- "-$group"; }'

# The command's process id goes to the watching shell before the command begins. So at no moment can a kill of
# this process leave the command running.
_LEAD: Final = 'echo $$ >&0; exec "$@" </dev/null'

Output = int | IO[bytes] | IO[str] | None


@contextmanager
def child(
    command: Sequence[str | Path], *, stdout: Output = None, stderr: Output = None, cwd: Path | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a command without standard input in this block; its output is text, bad UTF-8 replaced.

    If the block raises, this kills the command with its whole group; otherwise it waits for its end.
    Processes that the command left running on purpose by then continue.
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
    """Run a command to its end; return its output and its exit code.

    :param timeout: in seconds.
    :raises subprocess.TimeoutExpired: it took longer, and was killed.
    """
    with child(command, stdout=stdout, stderr=stderr, cwd=cwd) as running:
        out, err = running.communicate(timeout=timeout)
    return subprocess.CompletedProcess(command, running.returncode, out, err)


MINIMUM_JAVA = 17
"""Spark 4 and the local stack's Pinot both run on Java 17."""

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
    """Return the Java of `JAVA_HOME`, else the one on `PATH`; Maven and Spark choose in the same way.

    :raises LocalStackError: there is none, it does not run, or it is older than `MINIMUM_JAVA`.
    """
    if java_home := os.environ.get("JAVA_HOME"):
        executable = Path(java_home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise LocalStackError(
                f"JAVA_HOME is {java_home}, which has no Java",
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
        # Before its error the JVM prints the options that it takes from the environment.
        lines = [line for line in text.strip().splitlines() if not line.startswith("Picked up ")]
        why = lines[0] if lines else "it printed nothing"
        raise LocalStackError(f"{executable} does not show its version", why=why, hint=_INSTALL)
    return int(match.group(1))


def user_here() -> str:
    """Return who runs this process: `user@host`, by number where the user has no name, as in a container."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"
