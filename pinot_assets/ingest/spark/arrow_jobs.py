"""Files read through Arrow: one Spark job for all, one task per file, and what follows where a worker dies.

The result of a task travels twice. An accumulator brings it while the job still runs, so that ten thousand
files show their progress; the job's own result brings all of them at the end and is what counts.

Spark retries a task whose worker died, and gives up the whole job when it died too often. The file of that
task is then built in a process of its own, with no other file beside it: if that process dies, too, the file
fails, with what ended the process. The others go on in another job.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from pinot_assets.core.machine import limit_memory
from pinot_assets.core.text import plural
from pinot_assets.errors import BuildError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.deaths import Death, death_of, death_of_executor, death_of_memory
from pinot_assets.ingest.task.isolated import build_alone
from pinot_assets.ingest.task.worker import build_file
from pinot_assets.snapshot.receipt import Failure, FileResult

Build = Callable[[BuildSpec, FileTask], FileResult]
RunTasks = Callable[[Sequence[FileTask], Build], Generator[FileResult | None, None, None]]
"""A job: what is built, and how; gives results, some twice, and None after every look."""

_LOOK_S: Final = 0.2  # how often the driver looks for finished files
_JOBS: Final = 3
"""Jobs that may die before each file that is left gets a process of its own: that costs a second of CPU a
file, another job four dead workers."""


class JobDied(Exception):
    """Spark gave a job up because what ran one of its tasks died.

    :ivar death: what is known of it.
    :ivar why: Spark's own words.
    """

    def __init__(self, death: Death, why: str) -> None:
        super().__init__(why)
        self.death = death
        self.why = why


class SparkJobs:
    """The jobs of one build."""

    def __init__(self, context: SparkContext, build_spec: BuildSpec, tasks: Sequence[FileTask]) -> None:
        self._context, self._build_spec, self._tasks = context, build_spec, tasks

    def results(self) -> Generator[FileResult | None, None, None]:
        """Every file's result, some twice, and None after every look. Leaving early cancels the job."""
        yield from in_spite_of_deaths(self._run, self._build_spec, self._tasks)

    def moved(self) -> bool:
        """Never: every task tells by itself."""
        return False

    def _run(self, tasks: Sequence[FileTask], build: Build) -> Generator[FileResult | None, None, None]:
        with closing(_Job(self._context, self._build_spec, tasks, build).results()) as results:
            yield from results


def in_spite_of_deaths(
    run: RunTasks, build_spec: BuildSpec, tasks: Sequence[FileTask]
) -> Generator[FileResult | None, None, None]:
    """Run jobs until every file has a result, one that kills its workers included.

    :param run: its `JobDied` is survived, any other error ends everything.
    :raises BuildError: jobs die, and Spark does not say of which file.
    """
    left = {task.ordinal: task for task in tasks}
    suspects: list[FileTask] = []
    jobs = 0
    while left:
        is_alone = bool(suspects) or jobs >= _JOBS
        now = suspects or [*left.values()]
        try:
            for result in run(now, build_alone if is_alone else build_file):
                if result is not None:
                    left.pop(result.ordinal, None)
                yield result
        except JobDied as died:
            jobs += 1
            place = died.death.task
            named = now[place] if place is not None and place < len(now) else None
            if is_alone and len(now) == 1:
                left.pop(now[0].ordinal, None)
                yield _dead(build_spec, now[0], died)
                suspects = []
            elif named is not None:
                suspects = [named]
            elif not is_alone:
                suspects = [*left.values()]
            else:
                raise BuildError(
                    f"Spark gave up building {plural(len(left), 'file')} of {build_spec.table}",
                    why=died.why,
                    hint="see Spark's UI or log for the executor that died; files that are done stay done",
                ) from died
        else:
            suspects = []


def _dead(build_spec: BuildSpec, task: FileTask, died: JobDied) -> Failure:
    """A file that took its whole executor with it, alone."""
    if died.death.of_memory:
        return death_of_memory(build_spec, task, died.why)
    return death_of_executor(build_spec, task, died.why)


@dataclass(frozen=True, slots=True)
class _Task:
    """What runs on an executor, once per file."""

    build_spec: BuildSpec
    build: Build
    finished: Accumulator[list[FileResult]]

    def __call__(self, task: FileTask) -> FileResult:
        limit_memory(self.build_spec.limits.worker_bytes)
        result = self.build(self.build_spec, task)
        self.finished.add([result])
        return result


class _Results(AccumulatorParam[list[FileResult]]):
    """Results of finished tasks, in the order of their arrival at the driver."""

    def zero(self, value: list[FileResult]) -> list[FileResult]:  # noqa: ARG002  # Spark's signature
        return []

    def addInPlace(self, value1: list[FileResult], value2: list[FileResult]) -> list[FileResult]:
        value1.extend(value2)
        return value1


class _Job:
    """One Spark job and what it has told so far."""

    def __init__(
        self, context: SparkContext, build_spec: BuildSpec, tasks: Sequence[FileTask], build: Build
    ) -> None:
        self._context = context
        self._tasks = tasks
        self._group = f"{build_spec.session}-{build_spec.attempt}-{uuid.uuid4().hex[:8]}"
        self._description = (
            f"{build_spec.table}: {plural(len(tasks), 'file')} of session {build_spec.session}, "
            f"attempt {build_spec.attempt}"
        )
        self._finished: Accumulator[list[FileResult]] = context.accumulator([], _Results())
        self._run = _Task(build_spec, build, self._finished)

    def results(self) -> Generator[FileResult | None, None, None]:
        """Every file's result, some twice, and None after every look. Leaving early cancels the job.

        :raises JobDied: Spark gave it up for a task whose worker died.
        :raises BuildError: Spark gave it up.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="spark-job") as pool:
            job = pool.submit(self._collect)
            try:
                told = 0
                while not job.done():
                    wait([job], timeout=_LOOK_S)
                    arrived = self._finished.value[told:]
                    told += len(arrived)
                    yield from arrived
                    yield None
                yield from self._finished.value[told:]  # a job that died has no result of its own
                yield from self._outcome(job)
            finally:
                while not job.done():  # again and again: the thread may just be starting its job
                    with suppress(Exception):  # Spark may be what failed
                        self._context.cancelJobGroup(self._group)
                    wait([job], timeout=_LOOK_S)

    def _collect(self) -> list[FileResult]:
        # Job group and description belong to the thread that starts the job.
        self._context.setJobGroup(self._group, self._description, interruptOnCancel=True)
        return self._context.parallelize(self._tasks, len(self._tasks)).map(self._run).collect()

    def _outcome(self, job: Future[list[FileResult]]) -> list[FileResult]:
        try:
            return job.result()
        except Exception as error:
            death = death_of(str(error))
            if death is not None:
                raise JobDied(death, cause_of(error)) from error
            raise BuildError(
                f"Spark gave up building {self._description}",
                why=cause_of(error),
                hint="see Spark's UI or log for the executor that failed; files that are done stay done",
            ) from error


def cause_of(error: Exception) -> str:
    """The line of a Py4J error that says what went wrong; the rest is two stack traces."""
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("org.apache.spark.SparkException")]
    return (named or lines or [type(error).__name__])[0][:500]
