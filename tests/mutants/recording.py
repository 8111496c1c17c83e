"""A plugin of pytest: says to coverage.py which test runs, and writes down how long each took."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import coverage
import pytest


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
        line = json.dumps([item.nodeid, round(time.monotonic() - started, 3)])
        with Path(os.environ["MUTANTS_DURATIONS"]).open("a") as file:
            file.write(line + "\n")
