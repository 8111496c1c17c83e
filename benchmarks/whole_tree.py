"""Runs a command, and prints last how many CPU seconds it took, with all that it started.

`python whole_tree.py COMMAND …`. What outlives the command becomes a child of this process, which awaits it.

The kernel adds the time of a process that ended to its parent, unless the parent ignores the signal for it.
Spark's Python daemon does, and the time of its workers would be lost. So this process looks at them ten times
a second while they run.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from signal import SIGCHLD

import psutil

_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
_LOOK_S = 0.1


def ignores_children(pid: int) -> bool:
    """Whether a process ignores the end of its children."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigIgn:"):
            return bool(int(line.split()[1], 16) & 1 << (SIGCHLD - 1))
    raise ValueError("the kernel does not tell SigIgn")


def look(unseen: dict[int, float]) -> None:
    """Note the CPU seconds of all processes whose parents ignore their end."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, OSError):
            if ignores_children(process.ppid()):
                unseen[process.pid] = sum(process.cpu_times()[:4])


def main() -> None:
    """Run and print."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("this system does not hand over the children of a process that ended")
    command = subprocess.Popen(sys.argv[1:])
    unseen: dict[int, float] = {}
    code: int | None = None
    with suppress(ChildProcessError):
        while True:
            look(unseen)
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == command.pid:
                code = os.waitstatus_to_exitcode(status)
            if pid:
                unseen.pop(pid, None)  # its parent ended before it
            else:
                time.sleep(_LOOK_S)
    if code != 0:
        raise subprocess.CalledProcessError(code or 1, sys.argv[1:])
    times = os.times()
    sys.stdout.write(f"\n{times.children_user + times.children_system + sum(unseen.values())}\n")


if __name__ == "__main__":
    main()
