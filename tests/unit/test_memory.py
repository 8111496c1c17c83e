"""Tasks take Arrow's memory from the system."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from pinot_assets.memory import take_memory_from_system


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = pa.default_memory_pool()
    yield
    pa.set_memory_pool(before)


def test_arrow_allocates_as_everything_else_does() -> None:
    take_memory_from_system()
    assert pa.default_memory_pool().backend_name == "system"


def test_memory_that_was_freed_is_taken_again_without_asking_the_kernel_for_its_pages() -> None:
    program = """
import resource
import numpy as np
from pinot_assets.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(50_000_000, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
print(faults(), faults())
"""
    said = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True).stdout
    first, second = map(int, said.split())
    assert first > 100  # pages may be huge ones
    assert second < first / 10
