"""A retry builds what failed and nothing else, by what Spark recorded of its tasks: 3 of 5.

Source: docs/design/session.md#f7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome

pytestmark = [pytest.mark.integration, pytest.mark.spark]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    started = local_session("work ratio", 2)
    yield started
    started.stop()


@dataclass
class SparkRecord:
    """What Spark's status store, the source of its UI, says of the jobs since `forget`."""

    session: SparkSession
    _known: int = 0

    def forget(self) -> None:
        self._known = self._jobs().size()

    @property
    def tasks(self) -> list[tuple[int, int]]:
        """For each job that built files, oldest first: its files, and the same again if all its tasks ran
        through; small files share tasks."""
        jobs = self._jobs()  # newest first
        new = [jobs.apply(i) for i in range(jobs.size() - self._known)]
        found = []
        for job in reversed(new):
            if (said := re.search("([0-9]+) files? of session", str(job.description().get()))) is not None:
                files, left = int(said[1]), job.numTasks() - job.numCompletedTasks()
                found.append((files, files - left))
        return found

    def _jobs(self) -> Any:
        spark = self.session.sparkContext._jsc.sc()
        spark.listenerBus().waitUntilEmpty()
        return spark.statusStore().jobsList(None)


@pytest.fixture
def spark(session: SparkSession) -> SparkRecord:
    record = SparkRecord(session)
    record.forget()
    return record


def on_spark(world: Any, session: SparkSession) -> Any:
    world.builder = SparkBuilder(lambda: session)
    world.builder.rows = {}  # what segments hold is not known here; they are told by their names
    return world


def corrupt(world: Any, *names: str) -> None:
    for name in names:
        (world.source / name).write_bytes(b"v\n\xff\xfe broken \xff\n")


@pytest.mark.parametrize(
    ("mode", "files", "failing"),
    [("append", 5, 3), ("sync", 5, 3), ("swap", 5, 3), ("sync", 5, 5), ("sync", 12, 1)],
)
def test_after_k_of_n_files_failed_the_retry_builds_k(
    make_world: Any, spark: SparkRecord, mode: str, files: int, failing: int
) -> None:
    world = on_spark(make_world(mode), spark.session)
    names = [f"F{n}" for n in range(files)]
    world.write(*names)
    corrupt(world, *names[files - failing :])
    assert world.run().result is TriggerResult.FAILED
    assert spark.tasks == [(files, files)]

    assert world.run().result is TriggerResult.FAILED  # nothing was repaired
    world.write(*names[files - failing :])
    assert world.run().result is TriggerResult.STAGED
    assert spark.tasks == [(files, files), (failing, failing), (failing, failing)]
    published = world.read_sessions()[-1]
    assert (published.outcome, published.retry_count) == (Outcome.PUBLISHED, 2)
    assert len(world.visible) == files

    assert world.run().result is TriggerResult.NOTHING
    assert len(spark.tasks) == 3


def test_without_retries_everything_is_built_again(make_world: Any, spark: SparkRecord) -> None:
    world = on_spark(make_world("sync", consistentPushMaxRetries=0), spark.session)
    world.write("F1", "F2", "F3")
    corrupt(world, "F3")
    world.run()
    world.write("F3")
    world.run()
    assert spark.tasks == [(3, 3), (3, 3)]


def test_what_was_done_when_the_driver_died_is_not_built_again(make_world: Any, spark: SparkRecord) -> None:
    world = on_spark(make_world("sync"), spark.session)
    world.write("F1", "F2", "F3")
    world.pinot.before("start_replace_segments", world.die)
    world.dies()
    assert world.run().result is TriggerResult.STAGED
    assert spark.tasks == [(3, 3)]
