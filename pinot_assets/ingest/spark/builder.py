"""The production builder: files are built in the Python workers of Spark's executors.

Workers read files through Arrow, in one job for all files, with a task for each large file and for each batch
of small ones (`batches`); if the build spec has a query, Spark SQL gets
their rows (`file_jobs`), unless Arrow can compute it (`arrow_steps`).

The result of a task travels twice. An accumulator delivers it while the job still runs, so that ten thousand
files show their progress; the job's own result delivers all of them at the end and is the one that counts.

Spark retries a task whose worker died, and gives up the whole job if workers die too often. Then this module
splits the batch of that task, down to a single file, which is built in its own process with no other file
beside it. If that process dies, too, the file fails, and the failure names how the process ended. Another job
builds the other files.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import partial
from typing import Final, TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.accumulators import Accumulator
from pyspark.sql import SparkSession

from pinot_assets.core.text import plural
from pinot_assets.errors import BuildError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, Query
from pinot_assets.ingest.contract.builder import ignore_rows
from pinot_assets.ingest.contract.failures import Death, death_of
from pinot_assets.ingest.contract.task_outputs import HeartbeatReader
from pinot_assets.ingest.own_process import build_alone
from pinot_assets.ingest.spark.arrow_steps import build_with_steps, computable
from pinot_assets.ingest.spark.batches import Batch, batches_of, parts_of, still_to_build
from pinot_assets.ingest.spark.file_jobs import RestartedFiles, SparkFiles
from pinot_assets.ingest.spark.java_errors import cause_of
from pinot_assets.ingest.spark.jvm import exit_of_jvm, is_stopped
from pinot_assets.ingest.spark.running import running
from pinot_assets.ingest.spark.tasks import Build, Finished, Results, build_in_worker
from pinot_assets.ingest.stores import stores_of
from pinot_assets.ingest.task import build_file, build_or_keep
from pinot_assets.snapshot.receipt import Failure, FileResult, Receipt

_JOBS: Final = 3
"""So many jobs with all files may die; then each remaining file is built in its own process. A process costs
a second of CPU a file, another job four dead workers."""


_SPLITS: Final = 24
"""Steps in which a batch that ended its worker is split. That finds one or two files among hundreds; where
there are more, each file of the batch gets a process of its own."""


class JobDied(Exception):
    """Spark gave up a job because a worker or executor of one of its tasks died.

    :ivar death: what Spark says about the death.
    :ivar why: Spark's own message.
    """

    def __init__(self, death: Death, why: str) -> None:
        super().__init__(why)
        self.death = death
        self.why = why


Run = Callable[[Sequence[Batch], Build], Results]
"""Runs one job; a `JobDied` from it starts another job, any other error ends everything."""


def in_spite_of_deaths(run: Run, build_spec: BuildSpec, batches: Sequence[Batch]) -> Results:
    """Run jobs until every file has a result. A file that kills its workers fails.

    :raises BuildError: jobs die, and Spark does not say of which file.
    """
    left = {task.ordinal: task for batch in batches for task in batch}
    jobs = 0
    while now := still_to_build(batches, left):
        try:
            yield from _noted(run(now, build_or_keep if jobs else build_file), left)
        except JobDied as died:
            jobs += 1
            place = died.death.task
            if place is not None and place < len(now):
                yield from _suspected(run, build_spec, now[place], left)
            if place is None or jobs >= _JOBS:
                yield from _each_alone(run, build_spec, now, left)


def _suspected(run: Run, build_spec: BuildSpec, batch: Batch, left: dict[int, FileTask]) -> Results:
    """Build a batch that ended its worker: in ever smaller batches, at last each file in its own process."""
    suspects = [batch]
    for _ in range(_SPLITS):
        if not (now := still_to_build(suspects[-1:], left)):
            suspects.pop()
            if not suspects:
                return
            continue
        if len(now[0]) == 1:
            yield from _each_alone(run, build_spec, now, left)
            continue
        parts = parts_of(now[0])
        try:
            yield from _noted(run(parts, build_or_keep), left)
        except JobDied as died:
            place = died.death.task
            suspects += parts if place is None or place >= len(parts) else [parts[place]]
    yield from _each_alone(run, build_spec, suspects[:1], left)


def _each_alone(
    run: Run, build_spec: BuildSpec, batches: Sequence[Batch], left: dict[int, FileTask]
) -> Results:
    """Build what is left of these batches, each file in its own process.

    :raises BuildError: such a job dies, too, and Spark does not say of which file.
    """
    alone = [(task,) for batch in batches for task in batch]
    while now := still_to_build(alone, left):
        try:
            yield from _noted(run(now, build_alone), left)
        except JobDied as died:
            place = 0 if len(now) == 1 else died.death.task
            if place is None or place >= len(now):
                raise BuildError(
                    f"Spark gave up building {plural(len(left), 'file')} of {build_spec.table}",
                    why=died.why,
                    hint="see Spark's UI or log for the executor that died; files that are built are kept",
                ) from died
            [task] = now[place]
            if len(now) > 1:  # once more, with no other file beside it
                yield from _each_alone(run, build_spec, [(task,)], left)
            else:
                left.pop(task.ordinal, None)
                yield died.death.failure(build_spec, task, died.why)


def _noted(results: Results, left: dict[int, FileTask]) -> Results:
    """Yield the results; what has one is no longer left."""
    with closing(results):
        for result in results:
            if result is not None:
                left.pop(result.ordinal, None)
            yield result


def run_job(context: SparkContext, build_spec: BuildSpec, batches: Sequence[Batch], build: Build) -> Results:
    """Run one Spark job, with a task for each batch; yield its results, and None after every wait.

    :raises JobDied: Spark gave the job up because a task's worker died.
    :raises BuildError: Spark gave the job up for another reason.
    """
    group = f"{build_spec.session}-{build_spec.attempt}-{uuid.uuid4().hex[:8]}"
    count = sum(map(len, batches))
    files = f"{build_spec.table}: {plural(count, 'file')} of session {build_spec.session}"
    description = f"{files}, attempt {build_spec.attempt}"
    finished: Accumulator[list[FileResult]] = context.accumulator([], Finished())

    def collect() -> list[FileResult]:
        # Spark binds job group and description to the thread that starts the job.
        context.setJobGroup(group, description, interruptOnCancel=True)
        run = partial(build_in_worker, build_spec, build, finished)
        return context.parallelize(batches, len(batches)).flatMap(run).collect()

    job = yield from running(collect, finished, lambda: context.cancelJobGroup(group))
    yield from _outcome(job, description)


def _outcome(job: Future[list[FileResult]], description: str) -> list[FileResult]:
    try:
        return job.result()
    except Exception as error:
        if (death := death_of(str(error))) is not None:
            raise JobDied(death, cause_of(error)) from error
        raise BuildError(
            f"Spark gave up building {description}",
            why=cause_of(error),
            hint="see Spark's UI or log for the executor that failed; files that are built are kept",
        ) from error


T = TypeVar("T")


class SparkBuilder:
    """A `Builder` (see there) on a Spark session.

    Spark retries a task whose worker dies (`spark.task.maxFailures`). A file that kills its worker every time
    fails alone, and the others are built. The package must be installed where the executors run.

    :param session_factory: returns the session; called when SQL has to build the first file.
    :param context_factory: returns the context for work without SQL; without it, the session's is used.
    """

    def __init__(
        self,
        session_factory: Callable[[], SparkSession],
        context_factory: Callable[[], SparkContext] | None = None,
    ) -> None:
        self._session = session_factory
        self._context = context_factory or (lambda: session_factory().sparkContext)

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[FileResult], None],
        on_rows: Callable[[int], None] = ignore_rows,
    ) -> None:
        """Build all tasks, largest files first; see `Builder.build`.

        :raises BuildError: Spark gave the job up, and no file is the cause. Results given to `on_done` stay.
        """
        if not tasks:
            return
        query = build_spec.query
        moved: Callable[[], bool] | None = None
        if query is None:
            context = _answered(build_spec, self._context)
            batches = batches_of(tasks, context.defaultParallelism)
            started = in_spite_of_deaths(partial(run_job, context, build_spec), build_spec, batches)
        else:
            files = RestartedFiles(
                lambda: _answered(build_spec, lambda: SparkFiles(self._session(), build_spec, query)),
                build_spec,
            )
            largest_first = sorted(tasks, key=lambda task: -task.file.fingerprint.size)
            started, moved = self._with_query(build_spec, query, files, largest_first), files.moved
        watch = HeartbeatReader(stores_of(build_spec).staging, build_spec.attempt, moved)
        done: set[int] = set()
        with closing(started) as results:
            for result in results:
                if result is None:
                    if (rows := watch.look(done)) is not None:
                        on_rows(rows)
                elif result.ordinal not in done:
                    done.add(result.ordinal)
                    on_done(result)

    def _with_query(
        self, build_spec: BuildSpec, query: Query, files: RestartedFiles, tasks: Sequence[FileTask]
    ) -> Results:
        """Build files with a query: what Arrow cannot compute is left to Spark SQL."""
        left = {task.ordinal: task for task in tasks}
        if small := computable(build_spec, query, tasks):
            context = _answered(build_spec, self._context)
            try:
                batches = batches_of(small, context.defaultParallelism)
                with closing(run_job(context, build_spec, batches, build_with_steps)) as results:
                    for result in results:
                        if isinstance(result, Receipt):
                            left.pop(result.ordinal, None)
                        if not isinstance(result, Failure):
                            yield result
            except (JobDied, BuildError):  # `files` says whose fault it is, as for every query
                if is_stopped(context):
                    exit_of_jvm()
        if left:
            yield from files.results([*left.values()])

    def everywhere(self, look: Callable[[], T]) -> list[T]:
        """Run `look` in one task for each core that the executors have now; return the results.

        :raises BuildError: Spark gave the job up.
        """
        context = self._context()
        try:
            places = range(context.defaultParallelism)
            context.setJobDescription("what executors can reach")
            return list(context.parallelize(places, len(places)).map(lambda _: look()).collect())
        except Exception as error:
            raise BuildError(
                "Spark cannot run tasks of this package",
                why=cause_of(error),
                hint="see Spark's UI or log; pinot-assets must be installed where the executors run",
            ) from error
        finally:
            with suppress(OSError, Py4JError):  # this may run because Spark itself failed
                context.setJobDescription(None)  # type: ignore[arg-type]


def _answered(build_spec: BuildSpec, start: Callable[[], T]) -> T:
    try:
        return start()
    except (OSError, Py4JError) as error:
        raise BuildError(
            f"Spark does not answer; no file of {build_spec.table} was built",
            why=cause_of(error),
            hint="see Spark's UI or log; the next run starts a new Spark if this process had started one",
        ) from error
