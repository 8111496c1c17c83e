"""Where a process takes its memory from, and when it gives it back."""

from __future__ import annotations

import ctypes
import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa

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
    wanted = machine_memory() * 4 // 5 if most is None else most
    # RLIMIT_DATA counts what is allocated; RLIMIT_AS would count files that are mapped, too.
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = [limit for limit in (wanted, soft, hard) if limit != resource.RLIM_INFINITY]
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
