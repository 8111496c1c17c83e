"""Why a file was not built: the failure for an error, for the machine, for a worker or executor that died.

Libraries report trouble of the machine like errors of a damaged file; only Spark reports a death.
"""

from __future__ import annotations

import errno
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pinot_assets.core.file_errors import FileRejected
from pinot_assets.errors import (
    PinotAssetsError,
    SettingError,
    SourceChanged,
    SourceError,
    StoreConflict,
    UnsupportedFeature,
)
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.snapshot.receipt import BECAME_FOLDER, MACHINE, OUT_OF_MEMORY, WORKER_DIED, Failure


class Vanished(SourceError):
    """The file is gone."""


class BecameFolder(SourceError):
    """A folder is now where the file was."""


_CODES: Final[tuple[tuple[type[PinotAssetsError], str], ...]] = (
    (BecameFolder, BECAME_FOLDER),
    (Vanished, "VANISHED"),
    (SourceChanged, "CHANGED_DURING_READ"),
    (StoreConflict, "STAGING_CONFLICT"),
    (SettingError, "SETTINGS"),
    (SourceError, "STORE"),
    (UnsupportedFeature, "UNSUPPORTED"),
    (PinotAssetsError, "BUILD"),
)

ADVICE: Final = (
    "set fewer rows per segment (maxNumRecordsPerSegment, desiredSegmentSize), or more memory "
    "for workers (PINOT_ASSETS_WORKER_MEMORY, spark.executor.memoryOverhead, "
    "spark.executor.pyspark.memory)"
)
"""What a person can do about a file for which memory runs out."""

_MACHINE: Final = frozenset(
    (
        errno.EAGAIN,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOSPC,
        errno.EROFS,
        errno.ESTALE,
    )
)
_NO_MEMORY: Final = re.compile(
    r"^\W*(?:Caused by: )?(?:java\.lang\.OutOfMemoryError"
    r"|memory allocation of [0-9]+ bytes failed"  # Rust, before it aborts
    r"|what\(\):  std::bad_alloc"  # C++, the same
    r"|(?:[A-Za-z]+ error: )*(?:Resources exhausted"  # DataFusion, its errors one in the other
    r"|out of memory|Cannot allocate memory|memory allocation failed because the memory allocator"
    r"|Allocation error : not enough memory))"  # zstd within it
    r"|Out of memory: (?:malloc|realloc) of size [0-9]+ failed",  # Arrow, before it aborts
    re.MULTILINE,
)
"""What libraries write when memory runs out, where they raise no error of their own type."""

_NO_THREAD: Final = ("Unknown error: Failed to launch worker thread", "can't start new thread")
"""Arrow's and Python's messages when the limit of threads, or the memory for their stacks, is reached."""


def trouble_code(error: BaseException) -> str | None:
    """Return the code of a failure that is not the file's fault; None if it may be the file's fault.

    The causes of the error are checked, too: a reader may have reported trouble as a damaged file.
    """
    for one in _causes(error):
        if isinstance(one, MemoryError) or getattr(one, "errno", None) == errno.ENOMEM:
            return OUT_OF_MEMORY
        if isinstance(one, OSError) and one.errno in _MACHINE:
            return MACHINE
        if str(one).startswith(_NO_THREAD):
            return MACHINE
        # Our own errors and Arrow's may quote a file: a library did not write that text about memory.
        is_quoting = isinstance(one, (PinotAssetsError, pa.ArrowException, ValueError))
        if not is_quoting and tells_of_memory(str(one)):
            return OUT_OF_MEMORY
    return None


def tells_of_memory(text: str) -> bool:
    """Whether a text, of a log or an error, says that memory ran out."""
    return _NO_MEMORY.search(text) is not None


def _causes(error: BaseException) -> Iterator[BaseException]:
    ids: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in ids:
        ids.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


_TASK: Final = re.compile(r"Task ([0-9]+) in stage [0-9.]+ failed [0-9]+ times")
_DEAD: Final = re.compile(
    r"Python worker exited unexpectedly"
    r"|PYTHON_WORKER_EXITED_UNEXPECTEDLY"
    r"|ExecutorLostFailure"
    r"|Executor heartbeat timed out"
)
_OF_MEMORY: Final = re.compile(
    r"Container killed by YARN for exceeding|OOMKilled|exit(?:ed with)? code:? (?:52|137)\b"
)
"""What resource managers write. Exit code 52: a JVM without memory; 137: a process ended by SIGKILL."""
_RAISED: Final = re.compile(r"^(?:Caused by: )?\S*\.PythonException\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Death:
    """A job ended because the worker or executor of one of its tasks died.

    :ivar task: the task's index in its job, None if Spark does not say.
    :ivar of_memory: whether it died because memory ran out, as far as Spark knows.
    """

    task: int | None
    of_memory: bool

    def failure(self, build_spec: BuildSpec, task: FileTask, how: str) -> Failure:
        """Return the failure of a file whose worker or executor died again and again, or of its memory.

        :param how: Spark's message, or how the process ended.
        """
        code = OUT_OF_MEMORY if self.of_memory else WORKER_DIED
        reason = (
            f"the process that built the file died, also when it built this file alone: {how} → see "
            "Spark's log for its end"
        )
        if self.of_memory:
            reason = f"the worker had too little memory for the file: {how} → {ADVICE}"
        return Failure(task.file.uri, task.ordinal, build_spec.attempt, code, reason)


def death_of(text: str) -> Death | None:
    """Return the `Death` that a Spark error reports; None if no worker died.

    :param text: the whole error, stack traces included.
    """
    is_dead = _DEAD.search(text) is not None and not _RAISED.search(text)
    of_memory = tells_of_memory(text) or (is_dead and _OF_MEMORY.search(text) is not None)
    if not (is_dead or of_memory):
        return None
    match = _TASK.search(text)
    return Death(None if match is None else int(match[1]), of_memory)


def failure_of(build_spec: BuildSpec, task: FileTask, error: Exception) -> Failure:
    """Return the failure of one file for an error; its code is `INTERNAL` if the error is none of ours."""
    code, reason = _code(error), str(error)
    if not isinstance(error, PinotAssetsError):
        reason = f"{type(error).__name__}: {error}"
    if code == OUT_OF_MEMORY:
        reason = f"the worker had too little memory for the file: {reason} → {ADVICE}"
    elif code == MACHINE:
        reason = f"the machine {socket.gethostname()} failed, not the file: {reason}"
    # The error may quote a damaged file, whose bytes must not control the terminal that shows them.
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(reason.split()))
    return Failure(task.file.uri, task.ordinal, build_spec.attempt, code, text)


def _code(error: Exception) -> str:
    trouble = trouble_code(error)
    if trouble == OUT_OF_MEMORY or (trouble == MACHINE and not isinstance(error, SourceError)):
        return trouble
    if isinstance(error, FileRejected):
        return error.code
    return next((code for kind, code in _CODES if isinstance(error, kind)), "INTERNAL")
