"""A plugin of pytest: tells coverage.py which test runs; writes down how each ended and how long it took."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest

_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context(item.nodeid)
    started = time.monotonic()
    try:
        return (yield)
    finally:
        if measured is not None:
            measured.switch_context("")
        took = round(time.monotonic() - started, 3)
        line = json.dumps([item.nodeid, took, not item.stash.get(_FAILED, False)])
        with Path(os.environ["MUTANTS_DURATIONS"]).open("a") as file:
            file.write(line + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report
