"""The builder of production: one Spark task per file, in the Python workers of Spark's executors.

Files are read there through Arrow (`arrow_jobs`); where the build spec has a query, by Spark itself
(`file_jobs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pinot_assets.errors import BuildError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, nobody
from pinot_assets.ingest.contract.heartbeat import HeartbeatReader
from pinot_assets.ingest.spark.arrow_jobs import cause_of, in_spite_of_deaths, run_job
from pinot_assets.ingest.spark.file_jobs import RestartedFiles, SparkFiles
from pinot_assets.snapshot.receipt import FileResult
from pinot_assets.source.factory import open_store

T = TypeVar("T")


class SparkBuilder:
    """A `Builder` (see there) on a Spark session.

    A worker that dies is first a matter for Spark (`spark.task.maxFailures`). The file that it dies of again
    and again fails alone, and the others are built. The package must be installed where the executors run.

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
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[FileResult], None],
        on_rows: Callable[[int], None] = nobody,
    ) -> None:
        """Build all tasks, largest files first; see `Builder.build`.

        :raises BuildError: Spark gave the job up for no file's sake. What `on_done` was told stays true.
        """
        if not tasks:
            return
        tasks = sorted(tasks, key=lambda task: -task.file.fingerprint.size)
        query = build_spec.query
        moved: Callable[[], bool] | None = None
        if query is None:
            context = _answered(build_spec, self._context)
            started = in_spite_of_deaths(partial(run_job, context, build_spec), build_spec, tasks)
        else:
            files = RestartedFiles(
                lambda: _answered(build_spec, lambda: SparkFiles(self._session(), build_spec, query)),
                build_spec,
                tasks,
            )
            started, moved = files.results(), files.moved
        staging = open_store(build_spec.staging_uri, build_spec.staging_props, build_spec.policy)
        watch = HeartbeatReader(staging, build_spec.attempt, moved)
        told: set[int] = set()
        with closing(started) as results:
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
        try:
            places = range(context.defaultParallelism)
            context.setJobDescription("what executors reach")
            return list(context.parallelize(places, len(places)).map(lambda _: look()).collect())
        except Exception as error:
            raise BuildError(
                "Spark cannot run tasks of this package",
                why=cause_of(error),
                hint="see Spark's UI or log; pinot-assets must be installed where the executors run",
            ) from error
        finally:
            with suppress(OSError, Py4JError):  # Spark may be what failed
                context.setJobDescription(None)  # type: ignore[arg-type]


def _answered(build_spec: BuildSpec, start: Callable[[], T]) -> T:
    try:
        return start()
    except (OSError, Py4JError) as error:
        raise BuildError(
            f"Spark does not answer; no file of {build_spec.table} was built",
            why=cause_of(error),
            hint="see Spark's UI or log; the next run starts a Spark where this process had one",
        ) from error
