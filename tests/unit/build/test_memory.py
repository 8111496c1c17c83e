"""Tasks take Arrow's memory from the system."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from pinot_assets.build.memory import take_memory_from_system


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = pa.default_memory_pool()
    yield
    pa.set_memory_pool(before)


def test_arrow_allocates_as_everything_else_does() -> None:
    take_memory_from_system()
    assert pa.default_memory_pool().backend_name == "system"
