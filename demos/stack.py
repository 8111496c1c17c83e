"""Start a local stack for one demo, and remove it at the end, in whatever way the demo ends.

It also has the failures for the realtime demo and for tests: the deep store fails, servers die.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil
from rich.console import Console

from pinot_assets.core.this_machine import deaf_shell
from pinot_assets.errors import LocalStackError
from pinot_assets.local.processes import forget_instance
from pinot_assets.local.stack import Stack, StartProgress
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.model.state import SegmentStatus
from pinot_assets.settings.local_stack import SERVERS, StackState

_LOOK_S: Final = 0.001
_TARS: Final = frozenset({"gz", "compressed"})  # the latter from 1.3 on
_TRIES: Final = 20  # on a busy machine, a commit often ends before the demo sees it
# Cleans up if the demo was killed, or did not complete its own cleaning up.
_AFTERWARDS: Final = r"""
read -r over && exit
"$1" -m pinot_assets local down --purge --home "$2/stack"
rm -rf -- "$2"
"""


@contextmanager
def own_stack(
    home: Path, console: Console, *, realtime: bool = False, release: str | None = None
) -> Iterator[tuple[Stack, StackState]]:
    """Start a stack, and make this process and the commands that it starts use it.

    Only one demo at a time uses the folder around `home`; a second one waits until the first has ended and
    everything of it is removed, also if it was killed.

    :param home: folder for the stack and all other files of the demo; removed before and after.
    :param realtime: with Kafka, and with servers that copy committed segments to the deep store themselves.
    :param release: a release of Apache Pinot; None for that of a new local stack.
    """
    with _turn(home.parent, console) as lock:
        yield from _run_stack(home, console, lock, is_realtime=realtime, release=release)


@contextmanager
def _turn(folder: Path, console: Console) -> Iterator[int]:
    """Wait until no other demo uses the folder; yield the lock, an open file."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            console.print(f"another demo is at work in {folder}, or is being removed; waiting for its end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def _run_stack(
    home: Path, console: Console, lock: int, *, is_realtime: bool, release: str | None
) -> Iterator[tuple[Stack, StackState]]:
    os.environ["PINOT_ASSETS_HOME"] = str(home / "stack")
    spinner = console.status("")
    progress = StartProgress(spinner.update, lambda text: console.print(text, style="dim"))
    stack = Stack(home / "stack", progress=progress)
    stack.purge()
    shutil.rmtree(home, ignore_errors=True)
    afterwards = deaf_shell(_AFTERWARDS, sys.executable, str(home), held=(lock,))
    assert afterwards.stdin is not None
    try:
        parts = "ZooKeeper, controller, 2 brokers, 2 servers" + (", Kafka" if is_realtime else "")
        console.print(f"starting the local stack: {parts}")
        with spinner:
            state = stack.up(kafka=is_realtime, segment_store=is_realtime, pinot=release)
        for name in ("PINOT_BROKER_URLS", "PINOT_CA_BUNDLE", "PINOT_TOKEN", "PINOT_USER", "PINOT_PASSWORD"):
            os.environ.pop(name, None)
        os.environ["PINOT_CONTROLLER_URL"] = state.controller_url
        os.environ["PINOT_ZOOKEEPER"] = state.zookeeper
        os.environ["PINOT_CLUSTER"] = state.cluster
        yield stack, state
    finally:
        stack.purge()
        shutil.rmtree(home, ignore_errors=True)
        afterwards.communicate(b"over\n")
        console.print("the local stack is down, nothing is left running", style="dim")


class StoreOutage:
    """Makes the deep store of a local stack unusable for a while: a plain file replaces its folder.

    Removing permissions would not be enough, because root can still write.
    """

    def __init__(self, stack: StackState) -> None:
        self._folder = stack.deep_store
        self._kept = stack.deep_store.with_name(f"{stack.deep_store.name}.away")

    def begin(self) -> None:
        """Begin the outage: from now on nothing can be written to the deep store, or read from it."""
        self._folder.rename(self._kept)
        self._folder.touch()

    def end(self) -> None:
        """End the outage and restore all files. Does nothing if there is no outage."""
        if not self._kept.exists():
            return
        self._folder.unlink(missing_ok=True)
        self._kept.rename(self._folder)


def kill(stack: Stack, state: StackState, server: str) -> None:
    """Kill a server (SIGKILL), and make the cluster notice at once.

    Otherwise ZooKeeper would wait for the time-out of the server's session, half a minute.
    """
    if (pid := next(part.pid for part in stack.status() if part.name == server)) is None:
        raise LocalStackError(f"{server} does not run")
    end_process(pid)
    forget_instance(state.zookeeper, pid)


def lose_disk(state: StackState, server: str) -> None:
    """Delete the segments of a dead server from its disk."""
    shutil.rmtree(state.home / "data" / server / "segments")


def kill_committer(stack: Stack, pinot: RealtimePinot, table: str, seconds: float) -> tuple[str, str]:
    """Kill the server that commits the next segment, after it built the tar and before its commit ends.

    If the commit ends before the signal arrives, start that server again and wait for the next commit.

    :param table: the table with `_REALTIME`; it must commit all the time.
    :param seconds: how long to wait for each next commit.
    :returns: the server, which is dead, and the segment, which is IN_PROGRESS.
    :raises LocalStackError: no commit could be interrupted.
    """
    state = stack.up()
    for _ in range(_TRIES):
        pids = {part.name: part.pid for part in stack.status() if part.name in SERVERS}
        server, segment = _next_committer(state, table, seconds)
        if (pid := pids[server]) is None:
            raise LocalStackError(f"{server} does not run")
        end_process(pid)
        if pinot.segment_node(table, segment).simple["segment.realtime.status"] == SegmentStatus.IN_PROGRESS:
            forget_instance(state.zookeeper, pid)
            return server, segment
        state = stack.up()
    raise LocalStackError(f"no committer of {table} was caught", why=f"{_TRIES} commits were over before")


def _next_committer(state: StackState, table: str, seconds: float) -> tuple[str, str]:
    """Return the server that just built a tar, and its segment; only the committer builds one."""
    folders = {server: state.home / "data" / server / "segments" / table for server in SERVERS}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for server, folder in folders.items():
            if segment := tar_in(folder):
                return server, segment
        time.sleep(_LOOK_S)
    raise LocalStackError(f"nothing of {table} was committed in {seconds:.0f} s")


def tar_in(folder: Path) -> str | None:
    """Return the segment whose tar is in the folder, None if there is none."""
    with os.scandir(folder) as entries:
        parts = (entry.name.partition(".tar.") for entry in entries)
        return next((segment for segment, _, kind in parts if kind in _TARS), None)


def end_process(pid: int) -> None:
    """Kill a process, and wait until it is gone or a zombie."""
    process = psutil.Process(pid)
    process.kill()
    with suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
