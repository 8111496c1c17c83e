"""Spark that ends under files: each of them fails alone, and all others are built. Without Spark."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.spark.file_jobs import SparkEnded, in_spite_of_ends
from pinot_assets.snapshot.receipt import Failure, FileResult, Receipt
from pinot_assets.source import Fingerprint, SourceFile

TASKS = [FileTask(SourceFile(f"file:///{n}", Fingerprint(1, 1)), n) for n in range(6)]


@pytest.fixture
def build_spec(fakes: ModuleType, tmp_path: Path) -> BuildSpec:
    made: BuildSpec = fakes.make_order(tmp_path)
    return made


class Sparks:
    """Each builds what it is given, three files at a time, until one that kills it is under way.

    :ivar given: ordinals of what each was given.
    """

    def __init__(self, *killers: int, code: int | None = 52, tells: bool = True) -> None:
        self._killers, self._code, self._tells = killers, code, tells
        self.given: list[list[int]] = []

    def run(self, tasks: Sequence[FileTask]) -> Generator[FileResult | None, None, None]:
        self.given.append([task.ordinal for task in tasks])
        for place, task in enumerate(tasks):
            under_way = tasks[place : place + 3]
            if any(beside.ordinal in self._killers for beside in under_way):
                ended = SparkEnded("it does not answer")
                ended.code = self._code
                if self._tells:
                    ended.under_way = frozenset(beside.ordinal for beside in under_way)
                raise ended
            yield Receipt(task.file.uri, task.ordinal, 1, task.file.fingerprint, "", 0, 0, (), 0.0, "")
            yield None


def outcome(sparks: Sparks, build_spec: BuildSpec) -> tuple[list[int], dict[int, str]]:
    """Ordinals of the files that were built, and the codes of those that failed."""
    results = [r for r in in_spite_of_ends(sparks.run, build_spec, TASKS) if r is not None]
    assert len({r.ordinal for r in results}) == len(results)
    built = [r.ordinal for r in results if isinstance(r, Receipt)]
    return sorted(built), {r.ordinal: r.code for r in results if isinstance(r, Failure)}


def test_the_file_that_ends_spark_fails_alone_and_all_others_are_built(build_spec: BuildSpec) -> None:
    sparks = Sparks(3)
    assert outcome(sparks, build_spec) == ([0, 1, 2, 4, 5], {3: "OUT_OF_MEMORY"})
    assert sparks.given == [[0, 1, 2, 3, 4, 5], [1], [2], [3], [4, 5]]


def test_whose_end_nobody_knows_is_no_lack_of_memory(build_spec: BuildSpec) -> None:
    assert outcome(Sparks(3, code=None), build_spec)[1] == {3: "WORKER_DIED"}
    assert outcome(Sparks(3, code=1), build_spec)[1] == {3: "WORKER_DIED"}


def test_where_spark_does_not_say_what_was_under_way_each_file_is_built_alone(build_spec: BuildSpec) -> None:
    sparks = Sparks(0, 5, tells=False)
    assert outcome(sparks, build_spec) == ([1, 2, 3, 4], {0: "OUT_OF_MEMORY", 5: "OUT_OF_MEMORY"})
    assert sparks.given == [[0, 1, 2, 3, 4, 5], [0], [1], [2], [3], [4], [5]]


def test_a_spark_that_ends_whatever_it_builds_is_an_error(build_spec: BuildSpec) -> None:
    sparks = Sparks(*range(6))
    with pytest.raises(SparkEnded, match="Spark stopped while files were built"):
        outcome(sparks, build_spec)
    assert len(sparks.given) == 5
