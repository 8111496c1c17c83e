"""Fixtures that all tests share."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import fakes.builder as fake_builder
import kazoo.protocol.connection
import kazoo.retry
import pytest

from pinot_assets.local import Stack, StackState, load_state


def pytest_configure() -> None:
    # A run that is told to end stops its servers, as it does after Ctrl-C: they would outlive it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Kazoo's threads draw their delays from the global generator; hypothesis, which sees it change while
    # a test's data are drawn, would take that for the test's own doing. So kazoo has one of its own.
    for module in (kazoo.protocol.connection, kazoo.retry):
        module.random = random.Random()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackState]:
    """A running local stack for the whole test session; do not break it, start another for that.

    `PINOT_ASSETS_TEST_HOME` names the home of one that runs already; that one is left running.
    """
    if running := os.environ.get("PINOT_ASSETS_TEST_HOME"):
        state = load_state(Path(running))
        assert state is not None, f"no stack runs in {running}: pinot-assets local up --home {running}"
        yield state
        return
    own = Stack(tmp_path_factory.mktemp("stack"))
    try:
        yield own.up()
    finally:
        own.down(purge=True)


@pytest.fixture
def executable(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a shell script, to stand in for a program: `executable("bin/mvn", "exit 1")`."""

    def write(name: str, script: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture(scope="session")
def fakes() -> ModuleType:
    """`tests/fakes/builder.py`."""
    return fake_builder
