"""Start, recognise and stop processes that outlive the command that started them; find free ports for them.

A process is recognised by pid *and* creation time, so a reused pid is never mistaken for one of ours. Its
command line contains the stack's name, which finds a process whose start could not be recorded.
"""

from __future__ import annotations

import operator
import os
import random
import signal
import socket
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import psutil
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from pinot_assets.core.untrusted import fields_of_json
from pinot_assets.core.waiting import MONOTONIC, Deadline, poll_until
from pinot_assets.errors import LocalStackError
from pinot_assets.settings.local_stack import CLUSTER, ProcessRecord

_USUAL_SIGNALS = [signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
"""Signals that a child must not inherit as ignored. Python ignores SIGPIPE; the others are ignored after
`nohup`, in the background of a shell, or under some supervisors. Stopping a service that ignores SIGTERM
would always take the whole grace time."""


def port_range(outgoing: str) -> range:
    """Return the ports to choose from: those below the machine's ports of outgoing connections, since such a
    connection could take the port of a part that is down.

    :param outgoing: first and last port of outgoing connections, as Linux tells them.
    """
    first = next(iter(outgoing.split()), "")
    below = int(first) if first.isdigit() else 32_000
    if below >= 24_000:
        return range(20_000, min(below, 32_000))
    return range(below - 8_000, below) if below >= 12_000 else range(20_000, 32_000)


def _outgoing_ports() -> str:
    with suppress(OSError):
        return Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    return ""  # not Linux


_RANGE = port_range(_outgoing_ports())
# A separate generator: a test may have seeded the module's own one equally in several processes.
_RANDOM = random.SystemRandom()


def spawn(command: list[str], log: Path) -> ProcessRecord:
    """Start `command` in a new session, and append its output to `log`.

    Not with `subprocess`: its object for a child warns when it is deleted while the child runs.
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
        setsid=True,  # so that Ctrl-C in the terminal does not reach the stack
        setsigmask=[],
        setsigdef=_USUAL_SIGNALS,
    )
    return ProcessRecord(pid=pid, create_time=psutil.Process(pid).create_time())


def find(record: ProcessRecord) -> psutil.Process | None:
    """Return the recorded process if it still runs, else None."""
    try:
        process = psutil.Process(record.pid)
        # psutil's creation time may differ by a rounding error; pids are not reused within that time.
        same = abs(process.create_time() - record.create_time) < 0.1
        return process if same and not _ended(process) else None
    except psutil.NoSuchProcess:
        return None


def find_marked(marker: str) -> ProcessRecord | None:
    """Return this user's running process whose command line has the argument `marker`, else None."""
    for process in psutil.process_iter(["cmdline", "uids"]):
        uids = process.info["uids"]
        if uids and uids.real == os.getuid() and marker in (process.info["cmdline"] or ()):
            return ProcessRecord(pid=process.pid, create_time=process.create_time())
    return None


def stop_processes(processes: Iterable[psutil.Process], *, grace: float) -> list[psutil.Process]:
    """Send SIGTERM to all processes, and kill those that have not ended after `grace` seconds.

    :returns: the processes that had to be killed.
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
    """Return the last lines of a log, for an error message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16_384))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return "(no log was written)"
    return "\n".join(text.splitlines()[-lines:]) or "(the log is empty)"


def free_port(taken: Collection[int]) -> int:
    """Return a port that is free now and not in `taken`.

    :raises LocalStackError: none was found.
    """
    for _ in range(200):
        port = _RANDOM.choice(_RANGE)
        if port not in taken and is_free_port(port):
            return port
    raise LocalStackError(
        f"no free port was found between {_RANGE.start} and {_RANGE.stop}",
        why="200 of them are in use",
        hint="end some of the servers on this machine",
    )


def is_free_port(port: int) -> bool:
    """Whether a server could listen on `port`, both on loopback and on all interfaces (some of Pinot's ports
    can only do the latter).
    """
    for host in ("127.0.0.1", "0.0.0.0"):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java's servers do
            try:
                probe.bind((host, port))
            except OSError:
                return False
    return True


def port_holder(port: int) -> str:
    """Return a description of the process that listens on `port`, as far as this user may see it."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr.port == port and connection.pid:
                return f"process {connection.pid} ({psutil.Process(connection.pid).name()})"
    return "another process"


def _ended(process: psutil.Process) -> bool:
    """Whether a process has ended. A zombie has: only its parent (perhaps this process) has not reaped it."""
    with suppress(psutil.NoSuchProcess, ChildProcessError):
        if process.status() != psutil.STATUS_ZOMBIE:
            return not process.is_running()
        if process.ppid() == os.getpid():
            os.waitpid(process.pid, os.WNOHANG)
    return True


def _wait(waiting: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Wait until all processes have ended; return those that have not in time."""
    left = [*waiting]

    def look() -> list[psutil.Process]:
        left[:] = [process for process in left if not _ended(process)]  # an ended process's pid may be reused
        return left

    return poll_until(Deadline(MONOTONIC, seconds), 0.05, look, operator.not_)


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


# --- nodes of dead processes in the cluster ------------------------------------------------------

_LIVE = f"/{CLUSTER}/LIVEINSTANCES"
_LEADER = f"/{CLUSTER}/CONTROLLER/LEADER"


def forget_instance(zookeeper: str, pid: int) -> None:
    """Delete the cluster's nodes of the dead process `pid`, so that its successor need not wait.

    ZooKeeper keeps a dead process's ephemeral nodes until its session times out. Helix makes an instance of
    the same name wait for that and a little longer: 25 seconds for every repair. If ZooKeeper does not
    answer, this function does nothing, and the session times out.

    :param zookeeper: `host:port`.
    """
    client = KazooClient(zookeeper, timeout=5)
    try:
        client.start(timeout=5)
        names = client.get_children(_LIVE) if client.exists(_LIVE) else []
        for path in (*(f"{_LIVE}/{name}" for name in names), _LEADER):
            _forget_node(client, path, pid)
    except KazooTimeoutError:
        return
    finally:
        client.stop()
        client.close()


def _forget_node(client: KazooClient, path: str, pid: int) -> None:
    with suppress(NoNodeError, ValueError):
        content, stat = client.get(path)
        if owner_of(content).split("@")[0] == str(pid):
            client.delete(path, version=stat.version)


def owner_of(content: bytes) -> str:
    """Return the process that owns a node of Helix, as `pid@host`.

    :param content: the content of the node, or a controller's answer with it.
    :raises ValueError: the content names no process.
    """
    simple = fields_of_json(content).get("simpleFields")
    owner = simple.get("LIVE_INSTANCE") if isinstance(simple, dict) else None
    if not isinstance(owner, str):
        raise ValueError("it names no process")
    return owner
