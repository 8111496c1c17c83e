"""The archive of Spark's classes in the user's cache, which makes a start of the local Spark cheaper.

Most of the CPU time of a start goes into loading and checking classes. A JVM can write those that it has into
a file when it ends, and later ones map that file (class data sharing, JEP 350). To write it costs half a
minute of CPU, as much as ten starts save, and the JVM that does it starts slower. So no JVM of the user's own
work writes it. The tenth process that starts a Spark without an archive begins another process at its regular
end (`class_training`), which works at the lowest priority.

The JVM compares an archive with its own build, its class path and the dates of all jars, and works without it
if anything differs. It does not look at the length (Java 17): mapping a file that was cut short ends it with
SIGBUS. So the length is part of the file's name.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast
from uuid import uuid4

import pyspark

from pinot_assets.core.this_machine import Java, deaf_shell
from pinot_assets.settings.local_stack import default_cache

_FOLDER: Final = "spark-classes"
_FIRST: Final = 10
"""The start without an archive that lets one be made. If that fails: the twentieth, the fortieth, …"""
_UNUSED_S: Final = 30 * 24 * 3600
_HALF_S: Final = 3600
"""Age at which a file that is being made was left by a killed process."""
_OTHERS: Final = 3
"""Archives of other Javas, Sparks or options that stay."""
_ROOM: Final = 1 << 30
"""Bytes that must be free before an archive is made; it takes 160 MB."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+-]+")
"""Paths that a shell, Spark's script and the JVM take as one word."""
_QUIET: Final = "-Xlog:cds*=off"
"""A JVM that does not like an archive would say so on standard output."""
_KILLED: Final = 'read -r ended || { sleep 25; rm -f -- "$1"; }'
"""The JVM of a killed process has twenty seconds (`jvm`)."""
_OF_JVM: Final = (
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS",
    "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR", "YARN_CONF_DIR",
)  # fmt: skip
"""Variables that decide about the options or the class path of a JVM."""


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive for one Java, one Spark and one set of options.

    :ivar folder: the folder of all archives.
    :ivar key: hash of what decides whether a JVM can use it.
    """

    folder: Path
    key: str

    @classmethod
    def of(cls, java: Java, java_options: str) -> ClassArchive | None:
        """Return the archive for these; None if this user's cache cannot have one.

        :param java_options: those options of the JVM that are the same at each start.
        """
        try:
            folder = default_cache() / _FOLDER
            if not _PLAIN.fullmatch(str(folder)):
                return None
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return cls(folder, _key(java, java_options)) if _is_own(folder) else None
        except (OSError, RuntimeError):  # RuntimeError: the user has no home
            return None

    def options(self) -> str:
        """Return the options of a JVM that maps the archive; "" if there is none.

        Also count the starts without one, and remove old files.
        """
        with suppress(OSError):
            if self._off.exists():
                return ""
            if (there := self._whole()) is None and _is_due(self._count()):
                atexit.register(_begin, os.getpid(), self)
            self._remove_old(there)
            return "" if there is None else f"{_QUIET} -XX:SharedArchiveFile={there}"
        return ""

    def turn_off(self) -> None:
        """Let no later start use or make it: with it a JVM did not start, without it one did."""
        with suppress(OSError):
            self._off.touch()

    @contextmanager
    def making(self) -> Iterator[str]:
        """Yield the options of a JVM that writes the archive; it must have ended when the block ends.

        The file gets its name after a block without an error. Otherwise nothing stays.

        :raises OSError: another process makes one, there is no room, or the JVM wrote none.
        """
        with (self.folder / "making").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.utime(lock.name)
            for left in self.folder.glob("*.new"):  # of a process that was killed: only one works at a time
                left.unlink(missing_ok=True)
            if self._whole() is not None:
                raise FileExistsError(f"{self.folder} has it")
            if (free := shutil.disk_usage(self.folder).free) < _ROOM:
                raise OSError(f"{self.folder} has only {free} bytes free")
            new = self.folder / f"{self.key}.{uuid4().hex}.new"  # the JVM of the killed one may still write
            with _removed_if_killed(new):
                yield f"{_QUIET} -XX:ArchiveClassesAtExit={new}"
                with new.open("rb") as file:
                    os.fsync(file.fileno())
                    size = os.fstat(file.fileno()).st_size
                new.rename(self.folder / f"{self.key}.{size}.jsa")

    @property
    def _off(self) -> Path:
        return self.folder / f"{self.key}.off"

    def _whole(self) -> Path | None:
        """Return the archive, as just used; remove one that has not the length in its name."""
        for file in self.folder.glob(f"{self.key}.*.jsa"):
            if file.name == f"{self.key}.{file.stat().st_size}.jsa" and _is_own(file):
                with suppress(OSError):  # a folder that can only be read
                    os.utime(file)
                return file
            file.unlink()
        return None

    def _count(self) -> int:
        """Count this start; return how many there were."""
        with (self.folder / f"{self.key}.starts").open("ab") as file:
            file.write(b".")
            return file.tell()

    def _remove_old(self, used: Path | None) -> None:
        """Remove what nothing used for long; the archive that this start uses stays, also if it looks unused
        because the folder can only be read."""
        ages: dict[Path, float] = {}
        for file in self.folder.iterdir():
            with suppress(FileNotFoundError):  # another process removes, too
                ages[file] = time.time() - file.stat().st_mtime
        others = [file for file in ages if file.suffix == ".jsa" and not file.name.startswith(self.key)]
        too_many = sorted(others, key=lambda file: ages[file])[_OTHERS:]
        for file, age in ages.items():
            half = file.suffix == ".new" and age > _HALF_S
            if file != used and (half or age > _UNUSED_S or file in too_many):
                with suppress(OSError):
                    file.unlink()


@contextmanager
def _removed_if_killed(new: Path) -> Iterator[None]:
    """Remove that file at the end of this block; if this process is killed, when its JVM has ended, too."""
    with deaf_shell(_KILLED, str(new)) as shell, cast(IO[bytes], shell.stdin) as pipe:
        try:
            yield
        finally:
            new.unlink(missing_ok=True)
            pipe.write(b"ended\n")


def _begin(owner: int, archive: ClassArchive) -> None:
    """Start the process that makes the archive. A killed process does not come here, and starts nothing."""
    if os.getpid() != owner:  # a fork
        return
    command = [sys.executable, "-P", "-m", "pinot_assets.ingest.spark.class_training"]
    with suppress(OSError):
        started = subprocess.Popen(
            [*command, str(archive.folder), archive.key],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.returncode = 0  # it lives on, and Python would warn about that


def _is_own(path: Path) -> bool:
    """Whether only this user can have put it there: the JVM trusts what an archive holds."""
    info = path.lstat()
    is_plain = stat.S_ISDIR(info.st_mode) or stat.S_ISREG(info.st_mode)
    return is_plain and info.st_uid == os.getuid() and not info.st_mode & 0o022


def _is_due(starts: int) -> bool:
    times, rest = divmod(starts, _FIRST)
    return rest == 0 and times > 0 and times & (times - 1) == 0


def _key(java: Java, java_options: str) -> str:
    spark = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    executable = java.executable.resolve()
    library = executable.parents[1] / "lib" / "server" / "libjvm.so"
    what = (
        java.major, _identity([executable, library]), _identity(sorted((spark / "jars").iterdir())),
        java_options, [os.environ.get(name) for name in _OF_JVM],
    )  # fmt: skip
    return hashlib.sha256(repr(what).encode()).hexdigest()[:16]


def _identity(files: Sequence[Path]) -> list[tuple[str, int, int]]:
    infos = [(file, file.stat()) for file in files if file.exists()]
    return [(str(file), info.st_size, info.st_mtime_ns) for file, info in infos]
