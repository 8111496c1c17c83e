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
    before = pa.system_memory_pool().bytes_allocated()
    held = pa.nulls(1_000_000, pa.int64())
    assert pa.system_memory_pool().bytes_allocated() >= before + held.nbytes > before + 8_000_000
