"""Processes that outlive their starter, told apart from all others."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pinot_assets.local import processes
from pinot_assets.settings.local_stack import ProcessRecord

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def sleeping(tmp_path: Path) -> Iterator[ProcessRecord]:
    record = processes.spawn([*SLEEP, "-Dmarker=one"], tmp_path / "logs" / "sleep.log")
    yield record
    processes.stop_processes([found] if (found := processes.find(record)) else [], grace=0)


def test_a_spawned_process_has_its_own_session_and_is_found(sleeping: ProcessRecord) -> None:
    found = processes.find(sleeping)
    assert found is not None
    assert found.pid == sleeping.pid
    assert os.getsid(sleeping.pid) == sleeping.pid


def test_its_output_goes_to_the_log_and_nothing_is_lost_on_a_second_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for text in ("first", "second"):
        code = f"import sys; print('{text}'); print('{text} problem', file=sys.stderr)"
        record = processes.spawn([sys.executable, "-c", code], log)
        while processes.find(record):
            time.sleep(0.02)
    assert sorted(log.read_text().split("\n")[:4]) == ["first", "first problem", "second", "second problem"]
    assert processes.tail(log, lines=1) in ("second", "second problem")


def test_a_killed_process_is_not_found_though_nobody_has_waited_for_it(sleeping: ProcessRecord) -> None:
    os.kill(sleeping.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while processes.find(sleeping) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes.find(sleeping) is None


def test_a_recycled_pid_is_not_ours(sleeping: ProcessRecord) -> None:
    before = ProcessRecord(pid=sleeping.pid, create_time=sleeping.create_time - 100)
    assert processes.find(before) is None


def test_the_marker_finds_exactly_its_process(sleeping: ProcessRecord) -> None:
    deadline = time.monotonic() + 10
    while (found := processes.find_marked("-Dmarker=one")) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert found is not None
    assert found.pid == sleeping.pid
    assert processes.find_marked("-Dmarker=on") is None


def test_stop_ends_the_willing_and_kills_the_rest(tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('deaf', flush=True); time.sleep(60)"
    )
    willing = processes.spawn(SLEEP, tmp_path / "willing.log")
    stubborn = processes.spawn([sys.executable, "-c", deaf], tmp_path / "stubborn.log")
    while "deaf" not in processes.tail(tmp_path / "stubborn.log"):
        time.sleep(0.02)
    killed = processes.stop_processes([psutil.Process(willing.pid), psutil.Process(stubborn.pid)], grace=1)
    assert [process.pid for process in killed] == [stubborn.pid]
    assert processes.find(willing) is None
    assert processes.find(stubborn) is None


def test_the_tail_of_a_log_that_says_nothing(tmp_path: Path) -> None:
    assert "no log" in processes.tail(tmp_path / "gone")
    (tmp_path / "empty").touch()
    assert "empty" in processes.tail(tmp_path / "empty")


def test_a_service_ends_on_sigterm_although_its_starter_ignores_it(tmp_path: Path) -> None:
    """As after `nohup`, and under supervisors that ignore it."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        record = processes.spawn(["/bin/sleep", "60"], tmp_path / "log")
    finally:
        signal.signal(signal.SIGTERM, before)
    process = processes.find(record)
    assert process is not None
    assert processes.stop_processes([process], grace=5) == []
