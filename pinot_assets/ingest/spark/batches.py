"""How files share Spark tasks: a large file has one for itself, small files come in batches.

A task costs some ten milliseconds on both sides whatever it does, as much as a small file. The files of a
batch are built one after the other, and each fails or succeeds by itself, like one with its own task.

Files whose rows go into packs share tasks in the order of their numbers: packs take them in that order, and
so read few rows objects. Batches of them are larger, because a file costs less and its receipt is written on
the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from pinot_assets.ingest.contract.build_spec import FileTask, TaskKind

Batch = tuple[FileTask, ...]

LARGE: Final = 8 << 20
"""Bytes from which on a file is a batch by itself."""
MOST_BYTES: Final = 32 << 20
MOST_FILES: Final = 256
"""Some five seconds of work, so that progress is seen, and little is done twice if a worker dies."""
MOST_READ_BYTES: Final = 128 << 20
MOST_READ_FILES: Final = 1000
"""The same for files of which only the rows are kept."""
PARTS: Final = 8
"""Into so many parts a batch is split that ended its worker."""
_OF_A_CORE: Final = 4
"""Batches for each core, if there are enough files: no core waits long for the last one."""


def batches_of(tasks: Iterable[FileTask], cores: int) -> list[Batch]:
    """Return the tasks in batches of about the same size, large files first.

    :param cores: how many tasks run at a time, as far as that is known.
    """
    tasks = [*tasks]
    own = [task for task in tasks if task.kind is not TaskKind.SMALL_FILE]
    to_read = [task for task in tasks if task.kind is TaskKind.SMALL_FILE]
    return [*_mixed(own, cores), *_in_order(to_read, cores)]


def _mixed(tasks: Iterable[FileTask], cores: int) -> list[Batch]:
    ordered = sorted(tasks, key=lambda task: -task.file.fingerprint.size)
    small = [task for task in ordered if task.file.fingerprint.size < LARGE]
    count = max(
        math.ceil(len(small) / MOST_FILES),
        math.ceil(sum(task.file.fingerprint.size for task in small) / MOST_BYTES),
        min(len(small), _OF_A_CORE * cores),
    )
    large = ordered[: len(ordered) - len(small)]
    return [*((task,) for task in large), *_dealt(small, count)]


def _in_order(tasks: Iterable[FileTask], cores: int) -> list[Batch]:
    """Return batches of neighbours, of about the same size."""
    ordered = sorted(tasks, key=lambda task: task.ordinal)
    total = sum(task.file.fingerprint.size for task in ordered)
    most = max(1, min(MOST_READ_BYTES, total // (_OF_A_CORE * cores)))
    most_files = max(1, min(MOST_READ_FILES, math.ceil(len(ordered) / (_OF_A_CORE * cores))))
    batches: list[list[FileTask]] = []
    size = 0
    for task in ordered:
        is_alone = size and task.file.fingerprint.size >= MOST_READ_BYTES
        if not batches or is_alone or size >= most or len(batches[-1]) >= most_files:
            batches.append([])
            size = 0
        batches[-1].append(task)
        size += task.file.fingerprint.size
    return [tuple(batch) for batch in batches]


def parts_of(batch: Batch) -> list[Batch]:
    """Return the files of a batch that ended its worker, in smaller batches; single files at the end."""
    return _dealt(batch, min(len(batch), PARTS))


def still_to_build(batches: Iterable[Batch], left: Iterable[int]) -> list[Batch]:
    """Return the batches without files that have a result.

    :param left: ordinals of the files without one.
    """
    known = frozenset(left)
    rest = (tuple(task for task in batch if task.ordinal in known) for batch in batches)
    return [batch for batch in rest if batch]


def _dealt(tasks: Sequence[FileTask], count: int) -> list[Batch]:
    return [tuple(tasks[n::count]) for n in range(count)]
