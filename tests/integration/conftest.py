"""What the tests share that end commands in their middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.processes.forked import preload
from fakes.processes.middles import Place, place


@pytest.fixture(scope="module")
def forks() -> None:
    """The fork server has imported the program before the first process is forked."""
    preload()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    """A place in which a command is typed."""
    with place(tmp_path) as typed_in:
        yield typed_in
