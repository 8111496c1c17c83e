"""Start and stop the Dagster UI and daemon that `pinot-assets dev` runs with the local stack."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
from pydantic import BaseModel, ValidationError

from pinot_assets.authoring.scaffold import shipped_file
from pinot_assets.core.waiting import MONOTONIC, Deadline, poll_until
from pinot_assets.errors import LocalStackError
from pinot_assets.local import processes
from pinot_assets.settings.local_stack import LOOPBACK, ProcessRecord

PREFERRED_PORT = 3000  # Dagster's own
_PATIENCE_S = 180.0
_GRACE_S = 20.0


class _UiRecord(BaseModel):
    process: ProcessRecord
    port: int


def runs_at(home: Path) -> str | None:
    """Return the URL of the running UI, None if none runs.

    :param home: the stack's folder.
    """
    record = _read(home)
    return _url(record.port) if record and processes.find(record.process) is not None else None


def start(home: Path, project: Path) -> str:
    """Start `dagster dev` for the project's workspace, unless it already runs, and return its URL.

    :param home: the stack's folder; the record, the log and DAGSTER_HOME are there.
    :param project: the folder of workspace.yaml and dagster.yaml; the shipped ones replace a missing one.
    :raises LocalStackError: the UI does not start; shows the end of its log.
    """
    if (url := runs_at(home)) is not None:
        return url
    stop(home)  # a killed `dagster dev` leaves a daemon behind, which would also launch runs
    dagster_home = Path(_dagster_home(home))
    dagster_home.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_own_or_shipped(project, "dagster.yaml"), dagster_home / "dagster.yaml")
    os.environ["DAGSTER_HOME"] = _dagster_home(home)
    workspace = _own_or_shipped(project, "workspace.yaml")
    first = PREFERRED_PORT if processes.is_free_port(PREFERRED_PORT) else processes.free_port(())
    for port in (first, processes.free_port((first,))):
        command = [sys.executable, "-m", "dagster", "dev", "-w", str(workspace)]
        command += ["--host", LOOPBACK, "--port", str(port)]
        record = _UiRecord(process=processes.spawn(command, _log(home)), port=port)
        _path(home).write_text(record.model_dump_json())
        if _comes_up(record):
            return _url(port)
        stop(home)
        if processes.is_free_port(port):
            break  # the port is free, so it was not the cause
    raise LocalStackError(
        "the Dagster UI does not start",
        why=f"the end of {_log(home)}:\n{processes.tail(_log(home))}",
        hint="is a table spec wrong? pinot-assets tables validate",
    )


def stop(home: Path) -> bool:
    """Stop the processes that `start` started; return whether any ran."""
    record = _read(home)
    leaders = [*([record.process] if record else []), *_unrecorded(home)]
    running = {process.pid: process for leader in leaders for process in _processes(leader)}
    processes.stop_processes(running.values(), grace=_GRACE_S)
    _path(home).unlink(missing_ok=True)
    return bool(running)


def _own_or_shipped(project: Path, name: str) -> Path:
    own = project / name
    return own if own.is_file() else shipped_file(name)


def _comes_up(record: _UiRecord) -> bool:
    def answers() -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"{_url(record.port)}/server_info", timeout=2, trust_env=False).is_success
        return False

    deadline = Deadline(MONOTONIC, _PATIENCE_S)
    if not poll_until(deadline, 0.5, answers, lambda up: up or processes.find(record.process) is None):
        return False
    # Its web server may still answer after it died, or another program's server may answer on its port.
    ours = {process.pid for process in _processes(record.process)}
    return processes.find(record.process) is not None and any(
        c.laddr and c.laddr.port == record.port and c.status == psutil.CONN_LISTEN and c.pid in ours
        for c in psutil.net_connections("tcp")
    )


def _read(home: Path) -> _UiRecord | None:
    try:
        return _UiRecord.model_validate_json(_path(home).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def _unrecorded(home: Path) -> list[ProcessRecord]:
    """Return processes that a `start` of any project began and, because it was killed, did not record."""
    records = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            leads = {"dagster", "dev"} <= {*process.cmdline()} and _session_of(process) == process.pid
            if leads and process.environ().get("DAGSTER_HOME") == _dagster_home(home):
                records.append(ProcessRecord(pid=process.pid, create_time=process.create_time()))
    return records


def _processes(leader: ProcessRecord) -> list[psutil.Process]:
    """Return all processes of a leader's session, with the leader if it runs (`spawn` makes the session)."""
    if processes.find(leader) is None and psutil.pid_exists(leader.pid):
        return []  # a session reserves its pid: if another process has it, the session has ended
    return [p for p in psutil.process_iter() if _session_of(p) == leader.pid]


def _session_of(process: psutil.Process) -> int | None:
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None


def _url(port: int) -> str:
    return f"http://{LOOPBACK}:{port}"


def _dagster_home(home: Path) -> str:
    return str(home.absolute() / "dagster")


def _path(home: Path) -> Path:
    return home / "dagster.json"


def _log(home: Path) -> Path:
    return home / "logs" / "dagster.log"
