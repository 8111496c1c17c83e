"""How far Spark's own readers are, as Spark tells its driver.

While a JSON file is read for its columns' types, and while a filter leaves nothing of the rows, no task of
Python's has anything to do: those signs are Spark's alone. Executors tell with every heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pyspark import SparkContext

_Sign = tuple[int, ...]


class ReadCounts:
    """What the jobs of one group have read.

    :param group: the jobs' group.
    """

    def __init__(self, context: SparkContext, group: str) -> None:
        self._context, self._group = context, group
        self._seen: frozenset[_Sign] = frozenset()

    def moved(self) -> bool:
        """Whether a job was begun, a task ended or anything was read since this was last asked."""
        seen = frozenset(self._signs())
        fresh, self._seen = seen - self._seen, seen
        return bool(fresh)

    def _signs(self) -> Iterator[_Sign]:
        with suppress(Exception):  # jobs end and their records go meanwhile; what is gone gives no sign
            tracker = self._context.statusTracker()
            active = {*tracker.getActiveJobsIds()}.intersection(tracker.getJobIdsForGroup(self._group))
            jobs = (tracker.getJobInfo(job) for job in sorted(active))
            for stage in [stage for job in jobs if job is not None for stage in job.stageIds]:
                yield from self._stage(stage)

    def _stage(self, stage: int) -> Iterator[_Sign]:
        store: Any = self._context._jsc.sc().statusStore()
        with suppress(Exception):  # not begun
            data = store.lastStageAttempt(stage)
            yield (
                stage,
                data.attemptId(),
                data.numCompleteTasks(),
                data.numFailedTasks(),
                data.inputBytes(),
                data.inputRecords(),
            )
