"""Signs of life of Spark's own readers, from what Spark would tell."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pinot_assets.ingest.spark.file_jobs import ReadCounts


class Stage:
    def __init__(self, attempt: int = 0) -> None:
        self.attempt, self.done, self.failed, self.bytes, self.records = attempt, 0, 0, 0, 0

    def attemptId(self) -> int:
        return self.attempt

    def numCompleteTasks(self) -> int:
        return self.done

    def numFailedTasks(self) -> int:
        return self.failed

    def inputBytes(self) -> int:
        return self.bytes

    def inputRecords(self) -> int:
        return self.records


class Spark:
    """A context: its jobs of the group `ours` are 1 and 2, of which `active` run, each of one stage."""

    def __init__(self) -> None:
        self.active = [1, 2, 3]
        self.stages: dict[int, Stage] = {}
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(statusStore=lambda: self))

    def statusTracker(self) -> Any:
        return SimpleNamespace(
            getActiveJobsIds=lambda: self.active,
            getJobIdsForGroup=lambda group: {"ours": [1, 2]}[group],
            getJobInfo=lambda job: SimpleNamespace(stageIds=[job * 10]),
        )

    def lastStageAttempt(self, stage: int) -> Stage:
        return self.stages[stage]


def test_a_reader_that_comes_further_is_a_sign_and_one_that_hangs_is_none() -> None:
    spark = Spark()
    reading = ReadCounts(spark, "ours")  # type: ignore[arg-type]
    assert not reading.moved(), "no stage has begun"
    spark.stages[10] = Stage()
    assert reading.moved()
    assert not reading.moved()
    spark.stages[10].records += 1000
    assert reading.moved()
    spark.stages[10].bytes += 1
    assert reading.moved()
    assert not reading.moved()


def test_a_stage_that_is_tried_again_is_a_sign() -> None:
    spark = Spark()
    spark.stages[10] = Stage()
    reading = ReadCounts(spark, "ours")  # type: ignore[arg-type]
    assert reading.moved()
    spark.stages[10] = Stage(attempt=1)
    assert reading.moved()


def test_other_jobs_and_those_that_are_over_give_no_sign() -> None:
    spark = Spark()
    spark.active = [1, 3]
    reading = ReadCounts(spark, "ours")  # type: ignore[arg-type]
    spark.stages[20] = Stage()
    spark.stages[30] = Stage()
    assert not reading.moved()


def test_spark_that_is_gone_gives_no_sign() -> None:
    spark = Spark()
    spark.stages[10] = Stage()
    reading = ReadCounts(spark, "ours")  # type: ignore[arg-type]
    spark._jsc = None
    assert not reading.moved()
    spark.statusTracker = None  # type: ignore[method-assign, assignment]
    assert not reading.moved()
