from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.ingest.contract.build_spec import FileTask
from pinot_assets.ingest.spark.batches import (
    LARGE,
    MOST_BYTES,
    MOST_FILES,
    Batch,
    batches_of,
    parts_of,
    still_to_build,
)
from pinot_assets.snapshot.receipt import Fingerprint, SourceFile


def tasks(*sizes: int) -> list[FileTask]:
    return [FileTask(SourceFile(f"file:///{n}", Fingerprint(size, 1)), n) for n, size in enumerate(sizes)]


def bytes_of(batch: Batch) -> int:
    return sum(task.file.fingerprint.size for task in batch)


def ordinals(batches: Sequence[Batch]) -> list[int]:
    return [task.ordinal for batch in batches for task in batch]


@given(
    st.lists(st.one_of(st.integers(0, 10_000), st.integers(0, 2 * LARGE)), max_size=800), st.integers(1, 64)
)
def test_every_file_is_in_one_batch_and_no_batch_is_too_large(sizes: list[int], cores: int) -> None:
    batches = batches_of(tasks(*sizes), cores)
    assert sorted(ordinals(batches)) == [*range(len(sizes))]
    for batch in batches:
        assert len(batch) == 1 or max(task.file.fingerprint.size for task in batch) < LARGE
        assert len(batch) <= MOST_FILES
        assert len(batch) == 1 or bytes_of(batch) < MOST_BYTES + LARGE


def test_large_files_have_a_batch_for_themselves_and_come_first() -> None:
    batches = batches_of(tasks(10, LARGE, 20, 5 * LARGE, LARGE - 1), cores=1)
    assert batches[:2] == [(tasks(0, 0, 0, 5 * LARGE)[3],), (tasks(0, LARGE)[1],)]
    assert sorted(ordinals(batches[2:])) == [0, 2, 4]


@pytest.mark.parametrize(
    ("files", "cores", "count"), [(0, 2, 0), (1, 2, 1), (5, 2, 5), (31, 2, 8), (3000, 2, 12), (3000, 16, 64)]
)
def test_small_files_keep_all_cores_busy(files: int, cores: int, count: int) -> None:
    batches = batches_of(tasks(*[1000] * files), cores)
    assert len(batches) == count
    assert max(map(len, batches), default=0) - min(map(len, batches), default=0) <= 1


def test_a_batch_is_split_down_to_single_files() -> None:
    batch = tuple(tasks(*[1] * 20))
    parts = parts_of(batch)
    assert [len(part) for part in parts] == [3, 3, 3, 3, 2, 2, 2, 2]
    assert sorted(ordinals(parts)) == [*range(20)]
    assert [len(part) for part in parts_of(parts[0])] == [1, 1, 1]


def test_what_has_a_result_is_not_built_again() -> None:
    one, two, three = tasks(1, 1, 1)
    assert still_to_build([(one, two), (three,)], {1: None}) == [(two,)]
    assert still_to_build([(one, two), (three,)], {}) == []
