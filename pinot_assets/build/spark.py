"""The builder of production: one Spark task per file, in the Python workers of Spark's executors.

Files are read there through Arrow; where the order has a query, by Spark itself (`spark_files`).

The result of a task travels twice. An accumulator brings it while the job still runs, so that ten thousand
files show their progress; the job's own result brings all of them at the end and is what counts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from pinot_assets.build.moving import Watch
from pinot_assets.build.order import BuildOrder, FileTask, nobody
from pinot_assets.build.spark_files import SparkFiles
from pinot_assets.build.task import build_file
from pinot_assets.errors import BuildError
from pinot_assets.session.receipt import Failure, Receipt
from pinot_assets.source.objects import open_store
from pinot_assets.words import plural

T = TypeVar("T")
Result = Receipt | Failure

_LOOK_S: Final = 0.2  # how often the driver looks for finished files


class SparkBuilder:
    """A `Builder` (see there) on a Spark session.

    A worker that dies is a matter for Spark (`spark.task.maxFailures`); only when Spark gives up does the
    build end with an error. The package must be installed where the executors run.

    :param session_factory: gives the session when the first file is to be built by SQL.
    :param context_factory: gives the context where no SQL is asked for; the session's where not given.
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
        order: BuildOrder,
        tasks: Sequence[FileTask],
        on_done: Callable[[Result], None],
        on_rows: Callable[[int], None] = nobody,
    ) -> None:
        """Build all tasks, largest files first; see `Builder.build`.

        :raises BuildError: Spark gave the job up. What `on_done` was told stays true.
        """
        if not tasks:
            return
        tasks = sorted(tasks, key=lambda task: -task.file.fingerprint.size)
        told: set[int] = set()
        jobs = self._jobs(order, tasks)
        watch = Watch(
            open_store(order.staging_uri, order.staging_props, order.policy), order.attempt, jobs.moved
        )
        with closing(jobs.results()) as results:
            for result in results:
                if result is None:
                    if (rows := watch.look(told)) is not None:
                        on_rows(rows)
                elif result.ordinal not in told:
                    told.add(result.ordinal)
                    on_done(result)

    def everywhere(self, look: Callable[[], T]) -> list[T]:
        """One task for each core that the executors have now.

        :raises BuildError: Spark gave the job up.
        """
        context = self._context()
        places = range(context.defaultParallelism)
        context.setJobDescription("what executors reach")
        try:
            return list(context.parallelize(places, len(places)).map(lambda _: look()).collect())
        except Exception as error:
            raise BuildError(
                "Spark cannot run tasks of this package",
                why=_cause(error),
                hint="see Spark's UI or log; pinot-assets must be installed where the executors run",
            ) from error
        finally:
            context.setJobDescription(None)  # type: ignore[arg-type]

    def _jobs(self, order: BuildOrder, tasks: Sequence[FileTask]) -> _Jobs:
        if order.query is None:
            return _Job(self._context(), order, tasks)
        return SparkFiles(self._session(), order, order.query, tasks)


class _Jobs(Protocol):
    """What Spark runs for one build."""

    def results(self) -> Generator[Result | None, None, None]:
        """Every file's result, some twice, and None after every look. Leaving early cancels the jobs."""
        ...

    def moved(self) -> bool:
        """Whether Spark came further since this was last asked, where no task tells."""
        ...


@dataclass(frozen=True, slots=True)
class _Task:
    """What runs on an executor, once per file."""

    order: BuildOrder
    finished: Accumulator[list[Result]]

    def __call__(self, task: FileTask) -> Result:
        result = build_file(self.order, task)
        self.finished.add([result])
        return result


class _Results(AccumulatorParam[list[Result]]):
    """Results of finished tasks, in the order of their arrival at the driver."""

    def zero(self, value: list[Result]) -> list[Result]:  # noqa: ARG002  # Spark's signature
        return []

    def addInPlace(self, value1: list[Result], value2: list[Result]) -> list[Result]:
        value1.extend(value2)
        return value1


class _Job:
    """One Spark job and what it has told so far."""

    def __init__(self, context: SparkContext, order: BuildOrder, tasks: Sequence[FileTask]) -> None:
        self._context = context
        self._tasks = tasks
        self._group = f"{order.session}-{order.attempt}-{uuid.uuid4().hex[:8]}"
        self._description = (
            f"{order.table}: {plural(len(tasks), 'file')} of session {order.session}, attempt {order.attempt}"
        )
        self._finished: Accumulator[list[Result]] = context.accumulator([], _Results())
        self._run = _Task(order, self._finished)

    def results(self) -> Generator[Result | None, None, None]:
        """Every file's result, some twice, and None after every look. Leaving early cancels the job."""
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
                yield from self._outcome(job)
            finally:
                if not job.done():
                    self._context.cancelJobGroup(self._group)

    def moved(self) -> bool:
        """Never: every task tells by itself."""
        return False

    def _collect(self) -> list[Result]:
        # Job group and description belong to the thread that starts the job.
        self._context.setJobGroup(self._group, self._description, interruptOnCancel=True)
        return self._context.parallelize(self._tasks, len(self._tasks)).map(self._run).collect()

    def _outcome(self, job: Future[list[Result]]) -> list[Result]:
        try:
            return job.result()
        except Exception as error:
            raise BuildError(
                f"Spark gave up building {self._description}",
                why=_cause(error),
                hint="see Spark's UI or log for the executor that failed; files that are done stay done",
            ) from error


def _cause(error: Exception) -> str:
    """The line of a Py4J error that says what went wrong; the rest is two stack traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("org.apache.spark.SparkException")]
    return (named or lines or [type(error).__name__])[0][:500]
