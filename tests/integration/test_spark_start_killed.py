"""A process that is ended while Spark's JVM starts, before PySpark knows its address: nothing stays.

The commands `run` and `watch` are ended there in `test_run_killed.py`. Here it is what they do at that point,
forked, with the program's own Ctrl-C, for both Sparks: this machine's, and that of a master of one's own.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import psutil
import pytest
from fakes.processes.forked import context
from fakes.processes.middles import Place, a_jvm
from fakes.processes.starting_spark import live_on, start_spark
from fakes.waiting import until

from pinot_assets.core.files import temporary_folder

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("forks")]

LOCAL: Mapping[str, str] = {"PINOT_ASSETS_PROFILE": "local"}
OWN_MASTER: Mapping[str, str] = {**LOCAL, "PINOT_ASSETS_SPARK_MASTER": "local[1]"}

CTRL_C, TWICE, KILL = [signal.SIGINT], [signal.SIGINT, signal.SIGINT], [signal.SIGKILL]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("spark", [LOCAL, OWN_MASTER], ids=["local", "own"])
@pytest.mark.parametrize("signals", [CTRL_C, TWICE, KILL], ids=["ctrl-c", "twice", "kill"])
@pytest.mark.parametrize("script", ["launcher", "jvm"])
def test_a_jvm_that_never_is_up(
    here: Place, script: str, signals: Sequence[signal.Signals], spark: Mapping[str, str]
) -> None:
    """It waits in Spark's own scripts, or as the JVM: neither looks at its standard input."""
    there = a_jvm(here, waits_in=script)
    assert_nothing_left(here, ended(here, spark, there, signals), signals)


@pytest.mark.parametrize("spark", [LOCAL, OWN_MASTER], ids=["local", "own"])
@pytest.mark.parametrize("busy", [0.05, 0.6])
def test_a_real_jvm_that_comes_up(here: Place, busy: float, spark: Mapping[str, str]) -> None:
    """It would, and could not say where: PySpark, interrupted, removes the folder for that."""
    started = a_jvm(here)

    def there(pid: int) -> bool:
        return started(pid) and any(_cpu(one) >= busy for one in here.marked() if one.pid != pid)

    assert_nothing_left(here, ended(here, spark, there, CTRL_C), CTRL_C)


def test_a_process_that_lives_on_has_no_jvm_left_and_gets_another(here: Place) -> None:
    there = a_jvm(here, waits_in="jvm")
    process = context.Process(target=live_on, args=({**here.environment, **LOCAL}, here.said))
    process.start()
    try:
        until(lambda: there(process.pid or 0))
        os.kill(process.pid or 0, signal.SIGINT)
        process.join(120)
        said = here.said.read_text()
        assert [line for line in said.splitlines() if "WARN" not in line] == ["interrupted: 0 JVMs", "up"]
    finally:
        process.kill()
        process.join()
    assert_nothing_left(here, 0, [])


def ended(
    here: Place, spark: Mapping[str, str], there: Callable[[int], bool], signals: Sequence[signal.Signals]
) -> int | None:
    """The exit code of a process that was there, and got the signals."""
    process = context.Process(target=start_spark, args=({**here.environment, **spark}, here.said))
    process.start()
    assert process.pid is not None
    pid = process.pid
    try:
        until(lambda: there(pid) or not process.is_alive())
        assert process.is_alive(), here.said.read_text()
        for number in signals:
            with suppress(ProcessLookupError):
                os.killpg(pid, number) if number == signal.SIGINT else os.kill(pid, number)
            time.sleep(0.02)  # of two that come together the second is lost
        process.join(30)
        assert not process.is_alive()
        return process.exitcode
    finally:
        process.kill()
        process.join()


def assert_nothing_left(here: Place, code: int | None, signals: Sequence[signal.Signals]) -> None:
    if signals:
        assert code == (-signal.SIGKILL if signals == KILL else 130), here.said.read_text()
    with suppress(AssertionError):
        until(lambda: not here.marked())
    assert here.marked() == []
    with temporary_folder("next", here.tmp):
        pass
    assert [*here.tmp.iterdir()] == []


def _cpu(process: psutil.Process) -> float:
    with suppress(psutil.Error):
        if "org.apache.spark.deploy.SparkSubmit" in process.cmdline():
            return float(process.cpu_times().user)
    return 0.0
