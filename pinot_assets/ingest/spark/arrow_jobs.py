"""Files read through Arrow: one Spark job for all, one task per file, and what follows where a worker dies.

The result of a task travels twice. An accumulator brings it while the job still runs, so that ten thousand
files show their progress; the job's own result brings all of them at the end and is what counts.

Spark retries a task whose worker died, and gives up the whole job when it died too often. The file of that
task is then built in a process of its own, with no other file beside it: if that process dies, too, the file
fails, with what ended the process. The others go on in another job.

Workers import this module, so it imports no SQL of Spark's.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from typing import Final

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from pinot_assets.core.memory import limit_memory
from pinot_assets.core.text import plural
from pinot_assets.errors import BuildError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.failures import Death, death_of
from pinot_assets.ingest.task.isolated import build_alone
from pinot_assets.ingest.task.worker import build_file
from pinot_assets.snapshot.receipt import FileResult

Build = Callable[[BuildSpec, FileTask], FileResult]
Results = Generator[FileResult | None, None, None]
"""Every file's result, some twice, and None after every look. Leaving early cancels the jobs."""

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


def in_spite_of_deaths(
    run: Callable[[Sequence[FileTask], Build], Results], build_spec: BuildSpec, tasks: Sequence[FileTask]
) -> Results:
    """Run jobs until every file has a result, one that kills its workers included.

    :param run: a job; its `JobDied` is survived, any other error ends everything.
    :raises BuildError: jobs die, and Spark does not say of which file.
    """
    left = {task.ordinal: task for task in tasks}
    suspects: list[FileTask] = []
    jobs = 0
    while left:
        is_alone = bool(suspects) or jobs >= _JOBS
        now = suspects or [*left.values()]
        suspects = []
        try:
            for result in run(now, build_alone if is_alone else build_file):
                if result is not None:
                    left.pop(result.ordinal, None)
                yield result
        except JobDied as died:
            jobs += 1
            place = died.death.task
            if is_alone and len(now) == 1:
                left.pop(now[0].ordinal, None)
                yield died.death.failure(build_spec, now[0], died.why)
            elif place is not None and place < len(now):
                suspects = [now[place]]
            elif not is_alone:
                suspects = [*left.values()]
            else:
                raise BuildError(
                    f"Spark gave up building {plural(len(left), 'file')} of {build_spec.table}",
                    why=died.why,
                    hint="see Spark's UI or log for the executor that died; files that are done stay done",
                ) from died


class _Finished(AccumulatorParam[list[FileResult]]):
    """Results of finished tasks, in the order of their arrival at the driver."""

    def zero(self, value: list[FileResult]) -> list[FileResult]:  # noqa: ARG002  # Spark's signature
        return []

    def addInPlace(self, value1: list[FileResult], value2: list[FileResult]) -> list[FileResult]:
        value1.extend(value2)
        return value1


def run_job(context: SparkContext, build_spec: BuildSpec, tasks: Sequence[FileTask], build: Build) -> Results:
    """One Spark job.

    :raises JobDied: Spark gave it up for a task whose worker died.
    :raises BuildError: Spark gave it up.
    """
    group = f"{build_spec.session}-{build_spec.attempt}-{uuid.uuid4().hex[:8]}"
    files = f"{build_spec.table}: {plural(len(tasks), 'file')} of session {build_spec.session}"
    description = f"{files}, attempt {build_spec.attempt}"
    finished: Accumulator[list[FileResult]] = context.accumulator([], _Finished())

    def collect() -> list[FileResult]:
        # Job group and description belong to the thread that starts the job.
        context.setJobGroup(group, description, interruptOnCancel=True)
        run = partial(_in_worker, build_spec, build, finished)
        return context.parallelize(tasks, len(tasks)).map(run).collect()

    with ThreadPoolExecutor(1, thread_name_prefix="spark-job") as pool:
        job = pool.submit(collect)
        try:
            told = 0
            while not job.done():
                wait([job], timeout=_LOOK_S)
                arrived = finished.value[told:]
                told += len(arrived)
                yield from arrived
                yield None
            yield from finished.value[told:]  # a job that died has no result of its own
            yield from _outcome(job, description)
        finally:
            while not job.done():  # again and again: the thread may just be starting its job
                with suppress(Exception):  # Spark may be what failed
                    context.cancelJobGroup(group)
                wait([job], timeout=_LOOK_S)


def _in_worker(
    build_spec: BuildSpec, build: Build, finished: Accumulator[list[FileResult]], task: FileTask
) -> FileResult:
    limit_memory(build_spec.limits.worker_bytes)
    result = build(build_spec, task)
    finished.add([result])
    return result


def _outcome(job: Future[list[FileResult]], description: str) -> list[FileResult]:
    try:
        return job.result()
    except Exception as error:
        death = death_of(str(error))
        if death is not None:
            raise JobDied(death, cause_of(error)) from error
        raise BuildError(
            f"Spark gave up building {description}",
            why=cause_of(error),
            hint="see Spark's UI or log for the executor that failed; files that are done stay done",
        ) from error


def cause_of(error: Exception) -> str:
    """The line of a Py4J error that says what went wrong; the rest is two stack traces."""
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("org.apache.spark.SparkException")]
    return (named or lines or [type(error).__name__])[0][:500]
