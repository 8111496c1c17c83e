"""A plugin of pytest: tells coverage.py which test runs; writes down how each ended and how long it took."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import coverage
import psutil
import pytest

_SELF = psutil.Process()
_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context(item.nodeid)
    started, cpu = time.monotonic(), _cpu_s()
    try:
        return (yield)
    finally:
        if measured is not None:
            measured.switch_context("")
        took, cpu = round(time.monotonic() - started, 3), round(_cpu_s() - cpu, 2)
        line = json.dumps([item.nodeid, took, cpu, not item.stash.get(_FAILED, False)])
        with Path(os.environ["MUTANTS_DURATIONS"]).open("a") as file:
            file.write(line + "\n")


def _cpu_s() -> float:
    """What this process and its children, servers included, have used of the processor."""
    used = 0.0
    for process in (_SELF, *_SELF.children(recursive=True)):
        with suppress(psutil.Error):
            used += sum(process.cpu_times()[:4])
    return used


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report
