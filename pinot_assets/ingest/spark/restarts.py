"""Files that Spark reads itself, built although Spark ends under one of them.

A JVM that dies, of memory mostly, takes the jobs of all files with it: in this process the only one there is.
So another Spark is started. The files that were under way are built in it one by one; under whichever Spark
ends again, that file fails, and all others are built.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Final

from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.deaths import death_of_executor, death_of_memory
from pinot_assets.ingest.spark.file_jobs import SparkEnded, SparkFiles
from pinot_assets.ingest.spark.stopped import exit_of_jvm
from pinot_assets.snapshot.receipt import Failure, FileResult

RunFiles = Callable[[Sequence[FileTask]], Generator[FileResult | None, None, None]]
"""Builds files with one Spark; a `SparkEnded` where that ends."""

_ENDS: Final = 5
"""Ends of Spark, one after the other, without a file built between them: then it is not the files'."""
_OF_MEMORY: Final = (52, 137, -9)
"""How a JVM ends without memory (`SparkExitCode`), and by the kernel's hand."""


class RestartedFiles:
    """The jobs of one build.

    :param start: gives the jobs of a Spark, which it starts where there is none.
    :raises BuildError: see `SparkFiles`.
    """

    def __init__(
        self, start: Callable[[], SparkFiles], build_spec: BuildSpec, tasks: Sequence[FileTask]
    ) -> None:
        self._start, self._build_spec, self._tasks = start, build_spec, tasks
        self._files: SparkFiles | None = start()

    def results(self) -> Generator[FileResult | None, None, None]:
        """Every file's result, as they finish, and None after every look. Leaving early cancels the jobs.

        :raises BuildError: Spark does not start again, or ends whatever it builds.
        """
        yield from in_spite_of_ends(self._run, self._build_spec, self._tasks)

    def moved(self) -> bool:
        """Whether Spark came further since this was last asked, where no task tells."""
        return self._files is not None and self._files.moved()

    def _run(self, tasks: Sequence[FileTask]) -> Generator[FileResult | None, None, None]:
        if self._files is None:
            self._files = self._start()
        try:
            with closing(self._files.results(tasks)) as results:
                yield from results
        except SparkEnded as ended:
            self._files = None
            ended.code = exit_of_jvm()
            raise


def in_spite_of_ends(
    run: RunFiles, build_spec: BuildSpec, tasks: Sequence[FileTask]
) -> Generator[FileResult | None, None, None]:
    """Run until every file has a result, one under which Spark ends included.

    :raises SparkEnded: it ends again and again, and nothing is built.
    """
    left = {task.ordinal: task for task in tasks}
    suspects: list[FileTask] = []
    ends = 0
    while left:
        now = suspects[:1] or [*left.values()]
        try:
            for result in run(now):
                if result is not None:
                    left.pop(result.ordinal, None)
                    ends = 0
                yield result
        except SparkEnded as ended:
            ends += 1
            if ends == _ENDS:
                raise
            if len(now) == 1:
                [task] = now
                left.pop(task.ordinal, None)
                yield _failure(build_spec, task, ended)
            else:
                suspects = [task for task in left.values() if task.ordinal in ended.under_way]
                suspects = suspects or [*left.values()]
                continue
        suspects = suspects[1:]


def _failure(build_spec: BuildSpec, task: FileTask, ended: SparkEnded) -> Failure:
    """Of a file under which Spark ended, with no other beside it."""
    of_memory = ended.code in _OF_MEMORY
    how = "Spark's JVM ended" + ("" if ended.code is None else f" with code {ended.code}")
    return (death_of_memory if of_memory else death_of_executor)(build_spec, task, how)
