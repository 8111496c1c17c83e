"""Progress of a command: a line now and then in a log, a live line on a terminal, nothing left of it."""

from __future__ import annotations

import io
import time
from collections.abc import Callable

from rich.console import Console

from pinot_assets.cli.progress import START_SPARK, ConsoleProgress
from pinot_assets.session.values.progress import RunPhase
from pinot_assets.snapshot.receipt import Failure


def wait_for(holds: Callable[[], object]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


def test_without_a_terminal_a_line_says_now_and_then_how_far_a_phase_is() -> None:
    file = io.StringIO()
    with ConsoleProgress(Console(file=file, width=80), every=0.1) as progress:
        progress.begin(RunPhase.PUSH, 30)
        progress.advance(12)
        wait_for(lambda: "pushing: 12 of 30 segments (" in file.getvalue())
        progress.begin(RunPhase.LIST)
        progress.advance(12_000)
        wait_for(lambda: "listing the source: 12,000 objects (" in file.getvalue())
        progress.begin(RunPhase.AUDIT)
        wait_for(lambda: "auditing (" in file.getvalue())


def test_a_phase_that_is_soon_over_says_nothing_in_a_log() -> None:
    file = io.StringIO()
    with ConsoleProgress(Console(file=file, width=80)) as progress:
        progress.begin(RunPhase.AUDIT)
        progress.rest()
    assert file.getvalue() == ""


def test_nothing_is_said_between_two_phases() -> None:
    file = io.StringIO()
    with ConsoleProgress(Console(file=file, width=80), every=0.05) as progress:
        progress.begin(RunPhase.AUDIT)
        progress.rest()
        time.sleep(0.3)
    assert file.getvalue() == ""


def test_the_start_of_spark_shows_in_place_of_the_build_that_waits_for_it() -> None:
    file = io.StringIO()
    with ConsoleProgress(Console(file=file, width=80), every=0.1) as progress:
        progress.building({0: 10, 1: 10})
        with progress.starting_spark():
            wait_for(lambda: START_SPARK in file.getvalue())
        progress.moving(7)
        wait_for(lambda: "building: 0 of 2 files, 7 rows (" in file.getvalue())


def test_a_terminal_shows_the_phase_and_clears_it() -> None:
    file = io.StringIO()
    console = Console(file=file, width=100, force_terminal=True, force_interactive=True, _environ={})
    with ConsoleProgress(console) as progress:
        progress.begin(RunPhase.PUSH, 3)
        progress.advance(2)
        wait_for(lambda: "2 of 3 segments" in file.getvalue())
        progress.building({0: 1})
        progress.built(Failure("s3://b/f.csv", 0, 0, "UNREADABLE", "torn"))
    shown = file.getvalue()
    assert RunPhase.PUSH.value in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 2  # the cursor is back
    assert "built 0 of 1 file, 1 failed" in shown.splitlines()[-1]
