"""Where tasks take their memory from, and how much."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pinot_assets.core.this_machine import (
    machine_memory,
    take_memory_from_arrow,
    take_memory_from_system,
)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = pa.default_memory_pool()
    yield
    pa.set_memory_pool(before)


def test_arrow_allocates_as_everything_else_does() -> None:
    take_memory_from_system()
    assert pa.default_memory_pool().backend_name == "system"


def test_arrow_has_its_own_allocator_again_for_a_worker_that_reads_text() -> None:
    take_memory_from_system()
    take_memory_from_arrow()
    assert pa.default_memory_pool().backend_name == "mimalloc"


def test_arrow_converts_values_without_pandas_and_still_returns_what_is_of_pandas() -> None:
    program = """
import sys
import pyarrow as pa
from pinot_assets.core.this_machine import convert_without_pandas

convert_without_pandas()
print(pa.array(["a"])[0], "pandas" in sys.modules)
print(list(pa.array([1, 2]).to_pandas()), "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["a False", "[1, 2] True"]


def test_memory_that_was_freed_is_taken_again_without_asking_the_kernel_for_its_pages() -> None:
    program = """
import resource
import numpy as np
from pinot_assets.core.this_machine import keep_freed_memory

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


def test_what_needs_more_than_it_may_have_is_an_error_and_no_dead_process() -> None:
    program = """
import resource
import numpy as np
import pyarrow as pa
from pinot_assets.core.this_machine import limit_memory

limit_memory(400 << 20)
for allocate in (lambda: np.ones(1 << 30, np.uint8), lambda: pa.allocate_buffer(1 << 30)):
    try:
        allocate()
    except MemoryError as error:
        print("refused")
limit_memory(800 << 20)  # a lower limit stays
print(resource.getrlimit(resource.RLIMIT_DATA)[0] >> 20)
"""
    said = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True).stdout
    assert said.split() == [b"refused", b"refused", b"400"]


def test_a_container_has_the_memory_that_it_may_take(tmp_path: Path) -> None:
    machine = machine_memory(tmp_path)
    assert machine > 1 << 28
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_memory(tmp_path) == machine
    (tmp_path / "memory.max").write_text(f"{1 << 28}\n")
    assert machine_memory(tmp_path) == 1 << 28
