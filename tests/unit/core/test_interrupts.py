from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from pinot_assets.cli.program import Program
from pinot_assets.core import interrupts
from pinot_assets.source.interruptible import each, in_thread


@pytest.fixture(autouse=True)
def _signals_as_they_were() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in interrupts.SIGNALS}
    yield
    interrupts._received.clear()
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", interrupts.SIGNALS)
def test_the_first_signal_is_an_interrupt(number: signal.Signals) -> None:
    interrupts.take_signals()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert interrupts.received() == number


@pytest.mark.parametrize("numbers", [("SIGINT", "SIGINT"), ("SIGTERM", "SIGINT"), ("SIGINT", "SIGTERM")])
def test_the_second_ends_the_process_without_a_word(numbers: tuple[str, str]) -> None:
    code = (
        "import signal\nfrom pinot_assets.core import interrupts\ninterrupts.take_signals()\n"
        f"try:\n  signal.raise_signal(signal.{numbers[0]})\n"
        f"finally:\n  signal.raise_signal(signal.{numbers[1]})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stderr) == (128 + signal.Signals[numbers[1]], b"")


def test_what_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupts.take_signals()
    signal.raise_signal(signal.SIGINT)
    assert interrupts.received() is None


def test_what_is_held_off_comes_afterwards() -> None:
    interrupts.take_signals()
    done = []

    def mend() -> None:
        with interrupts.held_off():
            signal.raise_signal(signal.SIGINT)
            done.append(interrupts.received())

    with pytest.raises(KeyboardInterrupt):
        mend()
    assert done == [None]


def test_the_innermost_line_counts() -> None:
    with (
        pytest.raises(KeyboardInterrupt, match=r"^interrupted; the table may be paused$"),
        interrupts.saying("run it again"),
        interrupts.saying("the table may be paused"),
    ):
        raise KeyboardInterrupt


def typed(raised: BaseException) -> Any:
    app = typer.Typer(cls=Program)

    @app.command()
    def one() -> None:
        raise raised

    @app.command()
    def another() -> None:
        pass

    return CliRunner().invoke(app, ["one"])


def test_a_question_that_is_interrupted_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Typer turns Ctrl-C at a question into the same as the end of its input."""
    assert typed(typer.Abort()).exit_code == 1
    monkeypatch.setattr(interrupts, "_received", [signal.SIGINT])
    shown = typed(typer.Abort())
    assert (shown.exit_code, shown.stderr) == (130, "interrupted\n")


def test_sigterm_has_an_exit_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_received", [signal.SIGTERM])
    assert typed(KeyboardInterrupt()).exit_code == 143


# --- calls that do not return to Python ------------------------------------------------------------------


def test_a_call_that_hangs_is_broken_off() -> None:
    hangs = threading.Event()
    me = os.getpid()
    threading.Timer(0.2, lambda: os.kill(me, signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        in_thread(hangs.wait, 60)
    assert time.monotonic() - began < 30
    hangs.set()


def test_a_call_gives_what_the_function_gives() -> None:
    assert in_thread(divmod, 7, 2) == (3, 1)
    assert [*each(iter("abc"))] == ["a", "b", "c"]
    with pytest.raises(ZeroDivisionError):
        in_thread(divmod, 7, 0)
    with pytest.raises(ZeroDivisionError):
        [*each(1 // n for n in (1, 0))]
