"""Every command of the program, ended in its middle: by Ctrl-C, by two, by SIGTERM, by kill -9.

Nothing may be left of it: no process, and no temporary folder that the next one does not remove. `run` with
Spark at work is in `test_run_killed.py`, a stack that is half up in `test_local_up_killed.py`.

Commands are forked from a server that has imported the program: a hundred and fifty starts of Python would
take minutes. `python -m pinot_assets` itself is interrupted at the end of this file.
"""

from __future__ import annotations

import os
import signal
import time
import tomllib
from collections.abc import Sequence
from contextlib import suppress

import pytest
from fakes.processes.forked import context
from fakes.processes.middles import MIDDLES, SERVICES, Middle, Place, maven, silence, started, type_in
from fakes.project import ROOT
from fakes.waiting import until
from typer.main import get_command

from pinot_assets.cli import main
from pinot_assets.core.files import temporary_folder
from tools.docs.cli_page import commands

pytestmark = pytest.mark.usefixtures("forks")

LOOKING = Middle("watch flights", silence, asks_first=True)
QUICK_S = 30.0
"""Within which all must have ended, on a machine that is busy with other tests."""


def test_every_command_is_here() -> None:
    names = {" ".join(path) for path, _ in commands(get_command(main.app))}
    assert {name.partition(" --")[0] for name in MIDDLES} == names


@pytest.mark.parametrize("name", MIDDLES)
def test_ctrl_c(name: str, here: Place) -> None:
    middle = MIDDLES[name]
    code = ended_by(here, middle, [signal.SIGINT])
    assert code == (0 if middle.asks_first else 130), here.said.read_text()
    assert_calm(here, middle)
    assert_nothing_left(here)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", MIDDLES)
def test_ctrl_c_twice(name: str, here: Place) -> None:
    """The second comes while the first is at work; it may be over by then, a watch with exit code 0."""
    middle = MIDDLES[name]
    code = ended_by(here, middle, [signal.SIGINT, signal.SIGINT])
    assert code == 130 or (middle.asks_first and code == 0), here.said.read_text()
    assert_calm(here, middle, is_cut=True)
    assert_nothing_left_after_a_trigger(here)


def test_a_second_ctrl_c_ends_a_look_of_watch(here: Place) -> None:
    assert ended_by(here, LOOKING, [signal.SIGINT, signal.SIGINT]) == 130
    assert_calm(here, LOOKING)
    assert_nothing_left_after_a_trigger(here)


@pytest.mark.parametrize("name", SERVICES)
def test_sigterm(name: str, here: Place) -> None:
    middle = MIDDLES[name]
    code = ended_by(here, middle, [signal.SIGTERM])
    assert code == (0 if middle.asks_first else 143), here.said.read_text()
    assert_calm(here, middle)
    assert_nothing_left(here)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", MIDDLES)
def test_kill_9(name: str, here: Place) -> None:
    assert ended_by(here, MIDDLES[name], [signal.SIGKILL]) == -signal.SIGKILL
    assert_nothing_left_after_a_trigger(here)


def ended_by(here: Place, middle: Middle, signals: Sequence[signal.Signals]) -> int | None:
    """Bring a command into its middle, end it, and give its exit code."""
    here.environment.update(middle.environment)
    there = middle.wait(here)
    words = middle.words.format(port=here.port).split()
    process = context.Process(target=type_in, args=(words, here.environment, here.said, here.stdout))
    process.start()
    assert process.pid is not None
    try:
        end = time.monotonic() + 60
        while process.is_alive() and not there(process.pid):
            assert time.monotonic() < end, "it does not come into its middle"
            time.sleep(0.01)
        assert process.is_alive(), here.said.read_text()
        if middle.starts_programs:
            # The shell that watches, the program, and what that started.
            until(lambda: len(here.marked()) >= 3)
        for number in signals:
            with suppress(ProcessLookupError):
                # Ctrl-C in a terminal is for the whole group; the others are for one process.
                os.killpg(process.pid, number) if number == signal.SIGINT else os.kill(process.pid, number)
            time.sleep(0.02)
            if middle.asks_first:  # a person reads what it says before the second one
                until(lambda: here.said.read_text() or not process.is_alive())
        process.join(QUICK_S)
        assert not process.is_alive(), f"it goes on: {here.said.read_text()}"
        return process.exitcode
    finally:
        process.kill()
        process.join()


def assert_calm(here: Place, middle: Middle, *, is_cut: bool = False) -> None:
    said = here.said.read_text()
    word = "ends when the current run has ended" if middle.asks_first else "interrupted"
    assert said.count(word) == 1 or (is_cut and word not in said), said
    assert not [bad for bad in ("Traceback", "Exception", "Aborted") if bad in said], said


def assert_nothing_left(here: Place) -> None:
    with suppress(AssertionError):
        until(lambda: not here.marked(), QUICK_S)
    assert here.marked() == []
    assert [path.name for path in here.tmp.iterdir()] == []


def assert_nothing_left_after_a_trigger(here: Place) -> None:
    jars = here.folder / "cache" / "jars"
    for folder in (here.tmp, *([jars] if jars.is_dir() else [])):
        with temporary_folder("next", folder):
            pass
        assert [path.name for path in folder.iterdir() if path.is_dir()] == []
    assert_nothing_left(here)


# --- `python -m pinot_assets`, as it is started --------------------------------------------------------


def test_ctrl_c_while_the_program_is_loaded(here: Place) -> None:
    modules = here.folder / "modules"
    modules.mkdir()
    slow = f"import pathlib, time; pathlib.Path({str(here.folder / 'loads')!r}).touch(); time.sleep(600)"
    (modules / "typer.py").write_text(slow)
    here.environment["PYTHONPATH"] = str(modules)
    with started(here, "status flights") as process:
        until((here.folder / "loads").exists)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(QUICK_S) == 130
    assert here.said.read_text() == "interrupted\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_program_that_is_installed(here: Place, number: signal.Signals) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"pinot-assets": "pinot_assets.__main__:main"}
    there = maven(here)
    with started(here, "doctor") as process:
        until(lambda: there(process.pid))
        until(lambda: len(here.marked()) >= 4)  # it, the shell that watches, Maven, and what that started
        os.killpg(process.pid, number) if number == signal.SIGINT else process.kill()
        assert process.wait(QUICK_S) == (130 if number == signal.SIGINT else -number)
    assert_nothing_left_after_a_trigger(here)
