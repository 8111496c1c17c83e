"""Trouble of the machine, which libraries report beside the errors of a damaged file."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from pinot_assets.errors import PinotAssetsError
from pinot_assets.snapshot.failure_code import MACHINE, OUT_OF_MEMORY

ADVICE: Final = (
    "fewer rows per segment (maxNumRecordsPerSegment, desiredSegmentSize), or more memory for workers "
    "(PINOT_ASSETS_WORKER_MEMORY, spark.executor.memoryOverhead, spark.executor.pyspark.memory)"
)
"""What to do about a file for which memory runs out."""

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
"""What is written of it where there is no error of its own."""

_NO_THREAD: Final = ("Unknown error: Failed to launch worker thread", "can't start new thread")
"""Arrow's and Python's words for a limit of threads, or of their stacks' memory."""


def trouble_of(error: BaseException) -> str | None:
    """The code of a failure for which the file is not to blame; None where it may be.

    Looks at what caused the error, too: a reader may have taken it for a damaged file.
    """
    for one in _causes(error):
        if isinstance(one, MemoryError) or getattr(one, "errno", None) == errno.ENOMEM:
            return OUT_OF_MEMORY
        if isinstance(one, OSError) and one.errno in _MACHINE:
            return MACHINE
        if str(one).startswith(_NO_THREAD):
            return MACHINE
        # What our own errors, and Arrow's, quote of a file is not said by a library.
        is_quoting = isinstance(one, (PinotAssetsError, pa.ArrowException, ValueError))
        if not is_quoting and tells_of_memory(str(one)):
            return OUT_OF_MEMORY
    return None


def tells_of_memory(text: str) -> bool:
    """Whether a text, of a log or an error, says that memory ran out."""
    return _NO_MEMORY.search(text) is not None


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
