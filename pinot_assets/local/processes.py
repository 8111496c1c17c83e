"""Start, recognise and stop processes that outlive the command that started them.

A process is recognised by pid *and* creation time, so a recycled pid is never taken for ours. Each also
carries the stack's name in its command line, which finds the one whose start could not be written down.
"""

from __future__ import annotations

import operator
import os
import signal
from collections.abc import Iterable
from pathlib import Path

import psutil

from pinot_assets.core.deadline import MONOTONIC, Deadline, poll_until
from pinot_assets.settings.local_stack import ProcessRecord

_USUAL_SIGNALS = [signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
"""What a child would inherit as ignored: SIGPIPE, which Python ignores, and others after `nohup`, in the
background of a shell or under some supervisors. A service that ignores SIGTERM takes the whole grace of each
stop."""


def spawn(command: list[str], log: Path) -> ProcessRecord:
    """Start `command` in a session of its own, with its output appended to `log`.

    Not `subprocess`: that ties a child to an object that warns when it is dropped while the child runs.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    pid = os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,  # Ctrl-C in the terminal is for the command, not for the stack
        setsigmask=[],
        setsigdef=_USUAL_SIGNALS,
    )
    return ProcessRecord(pid=pid, create_time=psutil.Process(pid).create_time())


def find(record: ProcessRecord) -> psutil.Process | None:
    """The recorded process if it still runs."""
    try:
        process = psutil.Process(record.pid)
        # psutil's creation time may move by a rounding error, pids are not recycled within that.
        same = abs(process.create_time() - record.create_time) < 0.1
        return process if same and not _ended(process) else None
    except psutil.NoSuchProcess:
        return None


def find_marked(marker: str) -> ProcessRecord | None:
    """The running process of this user whose command line holds the argument `marker`."""
    for process in psutil.process_iter(["cmdline", "uids"]):
        uids = process.info["uids"]
        if uids and uids.real == os.getuid() and marker in (process.info["cmdline"] or ()):
            return ProcessRecord(pid=process.pid, create_time=process.create_time())
    return None


def stop(processes: Iterable[psutil.Process], *, grace: float) -> list[psutil.Process]:
    """Ask all to end, and end those that have not within `grace` seconds.

    :returns: those that had to be killed.
    """
    waiting = list(processes)
    for process in waiting:
        _signal(process, signal.SIGTERM)
    left = _wait(waiting, grace)
    for process in left:
        _signal(process, signal.SIGKILL)
    _wait(left, 10.0)
    return left


def tail(log: Path, *, lines: int = 15) -> str:
    """The last lines of a log, for an error's text."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16_384))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return "(no log was written)"
    return "\n".join(text.splitlines()[-lines:]) or "(the log is empty)"


def _ended(process: psutil.Process) -> bool:
    """A zombie has ended: how soon its pid goes is up to its parent, which may be slow or this process."""
    try:
        if process.status() != psutil.STATUS_ZOMBIE:
            return not process.is_running()
        if process.ppid() == os.getpid():
            os.waitpid(process.pid, os.WNOHANG)
    except (psutil.NoSuchProcess, ChildProcessError):
        pass
    return True


def _wait(waiting: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until all have ended; answers those that have not in time."""
    left = [*waiting]

    def look() -> list[psutil.Process]:
        left[:] = [process for process in left if not _ended(process)]  # an ended one's pid may be another's
        return left

    return poll_until(Deadline(MONOTONIC, seconds), 0.05, look, operator.not_)


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
