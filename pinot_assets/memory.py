"""Where a process takes its memory from, and when it gives it back."""

from __future__ import annotations

import ctypes
from contextlib import suppress
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
