from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from fakes.waiting import until

from pinot_assets.core.this_machine import child, run_child

NUMBERS = "echo $$ >'{0}/first'; sleep 600 & echo $! >'{0}/second'; wait"
WAITS = """
import sys
from pinot_assets.core.this_machine import run_child
run_child(["/bin/sh", "-c", sys.argv[1]])
"""


def numbers(folder: Path) -> list[int]:
    """Process numbers of a command, and of what it started."""
    files = [folder / "first", folder / "second"]
    until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    return [int(file.read_text()) for file in files]


def gone(pids: list[int]) -> bool:
    return not any(psutil.pid_exists(p) and psutil.Process(p).status() != "zombie" for p in pids)


def test_what_a_command_prints_and_returns() -> None:
    done = run_child(["/bin/sh", "-c", "echo said; echo complained >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "complained\n")


def test_a_command_has_no_input_and_keeps_its_words(tmp_path: Path) -> None:
    done = run_child(["/bin/sh", "-c", 'cat; pwd; printf %s "$1"', "sh", "a 'b' $c"], cwd=tmp_path)
    assert done.stdout == f"{tmp_path}\na 'b' $c"


def test_a_command_and_what_it_started_end_with_kill_9_of_this_process(tmp_path: Path) -> None:
    waiting = subprocess.Popen([sys.executable, "-c", WAITS, NUMBERS.format(tmp_path)])
    pids = numbers(tmp_path)
    assert not gone(pids)
    waiting.kill()
    waiting.wait()
    until(lambda: gone(pids), 20)


def test_a_command_and_what_it_started_end_with_the_block(tmp_path: Path) -> None:
    pids: list[int] = []

    def interrupted() -> None:
        with child(["/bin/sh", "-c", NUMBERS.format(tmp_path)]):
            pids.extend(numbers(tmp_path))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert pids
    until(lambda: gone(pids), 20)


def test_a_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_child(["/bin/sh", "-c", NUMBERS.format(tmp_path)], timeout=0.5)
    until(lambda: gone(numbers(tmp_path)), 20)


def test_what_a_command_leaves_running_on_purpose_goes_on() -> None:
    done = run_child(["/bin/sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"])
    left = psutil.Process(int(done.stdout))
    try:
        assert left.is_running()
        assert left.status() != psutil.STATUS_ZOMBIE
    finally:
        left.send_signal(signal.SIGKILL)


_STARTS = re.compile(r"subprocess\.run\(|\b(Popen|check_output|check_call)\(|\bos\.system\(")


def test_no_other_module_starts_a_command_and_waits_for_it() -> None:
    """It would go on after `kill -9`. What starts others in its own way says how those end."""
    package = Path(sys.modules["pinot_assets"].__file__ or "").parent
    of_their_own = {"this_machine.py", "own_process.py", "moto.py", "class_archive.py"}
    found = [
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if path.name not in of_their_own and _STARTS.search(path.read_text())
    ]
    assert found == []
