"""Files with SQL: one job per file, so that an error in one file fails only that file.

Before that, files that the package reads itself are built together (`shared_jobs`); what has no receipt then
gets its own job.

A JVM that dies, usually for lack of memory, ends the jobs of all files, because one process has one JVM.
Then this module starts Spark again and builds the files that were under way one by one. If Spark ends again
under a file, that file fails, and all others are built.

While Spark infers the types of a JSON file, or while a filter drops all rows, no Python task works and leaves
a sign of life. `ReadCounts` then uses Spark's own counters, which executors send with every heartbeat.
"""

from __future__ import annotations

import logging
import pickle
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar, cast

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pinot_assets.errors import BuildError, PinotAssetsError, SourceChanged
from pinot_assets.ingest.contract.accepted_rows import TargetSchema
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, Query
from pinot_assets.ingest.contract.failures import Death, death_of, failure_of
from pinot_assets.ingest.contract.spark_formats import SPARK_LACKS
from pinot_assets.ingest.contract.sql_extra import INSTALL_SQL, lacks_pandas
from pinot_assets.ingest.spark.arrow_frame import METADATA, arrow_frame, with_metadata
from pinot_assets.ingest.spark.expression import first_line
from pinot_assets.ingest.spark.file_checks import check_binary
from pinot_assets.ingest.spark.jvm import exit_of_jvm, is_stopped, silent_on_pandas
from pinot_assets.ingest.spark.own_reader import look_at_columns, read_through
from pinot_assets.ingest.spark.query import (
    check_expressions,
    columns_read,
    missing_columns,
    reads_all_columns,
    shaped,
    untouched_json,
)
from pinot_assets.ingest.spark.reader import (
    check_readers,
    open_file,
    reading_session,
    size_for_spark,
    use_in_thread,
)
from pinot_assets.ingest.spark.shared_jobs import SharedJobs
from pinot_assets.ingest.spark.tasks import (
    RESULT,
    Results,
    confirm_blank,
    find_fault,
    look_at_file,
    spark_failed,
    write_file,
)
from pinot_assets.segment import SegmentSpec
from pinot_assets.snapshot.receipt import OUT_OF_MEMORY, WORKER_DIED, Failure, FileResult, Fingerprint

_Sign = tuple[int, ...]


class ReadCounts:
    """Counts what the jobs of one group have read.

    :param group: Spark's job group.
    """

    def __init__(self, context: SparkContext, group: str) -> None:
        self._context, self._group = context, group
        self._last: frozenset[_Sign] = frozenset()

    def moved(self) -> bool:
        """Whether a stage began, a task ended or more input was read since the last call."""
        signs = frozenset(self._signs())
        fresh, self._last = signs - self._last, signs
        return bool(fresh)

    def _signs(self) -> Iterator[_Sign]:
        with suppress(Exception):  # a job that ends meanwhile loses its record: it then gives no sign
            tracker = self._context.statusTracker()
            store: JavaObject = self._context._jsc.sc().statusStore()
            active = {*tracker.getActiveJobsIds()}.intersection(tracker.getJobIdsForGroup(self._group))
            jobs = (tracker.getJobInfo(job) for job in sorted(active))
            for stage in [stage for job in jobs if job is not None for stage in job.stageIds]:
                with suppress(Exception):  # the stage has not begun
                    data = store.lastStageAttempt(stage)
                    tasks = data.numCompleteTasks(), data.numFailedTasks()
                    yield stage, data.attemptId(), *tasks, data.inputBytes(), data.inputRecords()


T = TypeVar("T")
_MOST_JOBS: Final = 64
"""The driver uses one thread per file under way. Do not use the number of cores: a cluster with dynamic
allocation has few cores when a build begins, and gets more only if more jobs wait."""
_LOOK_S: Final = 0.2
_SPARKS: Final = (PySparkException, Py4JError)
_WARNINGS: Final = Lock()  # Python's warning filters are global to the process


class SparkEnded(BuildError):
    """Spark takes no more jobs: its JVM died, or its cluster ended the application.

    :ivar under_way: ordinals of the files that had begun and were not done.
    :ivar code: the JVM's exit code, None if it is not known.
    """

    def __init__(self, why: str) -> None:
        super().__init__("Spark stopped while files were built", why=why, hint="see Spark's UI or log")
        self.under_way: frozenset[int] = frozenset()
        self.code: int | None = None


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file whose rows Spark SQL can take.

    :ivar version: the version that a task checked.
    :ivar frame: its rows, None if it has no columns: it is blank.
    :ivar check: reads a local copy as the job does, and raises what is wrong with it.
    """

    version: Fingerprint
    frame: DataFrame | None
    check: Callable[[Path], None]


class SparkFiles:
    """Builds files by jobs in one running Spark.

    :param query: the SQL that Spark applies to the rows.
    :raises BuildError: Spark lacks a reader, pandas is missing, or an expression is not SQL.
    """

    def __init__(self, session: SparkSession, build_spec: BuildSpec, query: Query) -> None:
        _require_pandas()
        self._session = reading_session(session)
        self._build_spec, self._query = build_spec, query
        self._target = TargetSchema.of(
            SegmentSpec.from_pinot(build_spec.schema, build_spec.table_config, write_for=build_spec.write_for)
        )
        self._group = group = f"{build_spec.session}-{build_spec.attempt}-{uuid.uuid4().hex[:8]}"
        self.moved = ReadCounts(session.sparkContext, self._group).moved
        # PySpark logs the whole stack trace of every refused expression; our error already names the cause.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        self._open = self._open_here
        if build_spec.input_format not in SPARK_LACKS:
            self._open = self._open_by_spark
            check_readers(self._session, build_spec)
        check_expressions(self._session, query, build_spec.table)
        self._columns = columns_read(self._session, query, self._target)
        # A column of `transformConfigs` keeps the values that a file has for it, so it is read as well.
        used = frozenset((*self._columns, *dict(query.derived)))
        self._used = None if reads_all_columns(self._session, query) else used
        self._texts = untouched_json(self._session, query, self._target)
        self._shared: SharedJobs | None = None
        # `_metadata` has other values for each file, and `struct(*)` would read the column with the mark.
        if build_spec.input_format in SPARK_LACKS and self._used is not None and METADATA not in self._used:
            self._shared = SharedJobs(
                self._session, build_spec, query, self._target, self._columns, self._used, group
            )
        self._under_way: set[int] = set()
        self._check_binary = partial(check_binary, input_format=build_spec.input_format)

    @property
    def has_ended(self) -> bool:
        """Whether Spark takes no more jobs."""
        return is_stopped(self._session.sparkContext)

    def shared(self, tasks: Sequence[FileTask]) -> Results:
        """Yield receipts of files that jobs build together; none if each file needs a job of its own."""
        if self._shared is not None and len(tasks) > 1:
            yield from self._shared.receipts(tasks)

    def results(self, tasks: Sequence[FileTask]) -> Results:
        """Yield each file's result when it is done, None after every wait. An early exit cancels the jobs.

        :raises SparkEnded: Spark takes no more jobs.
        """
        known = {task.ordinal: task for task in tasks}
        suspects = []
        try:
            for result in as_they_finish(self._build, tasks, self._cancel):
                if isinstance(result, Failure) and result.code in (OUT_OF_MEMORY, WORKER_DIED):
                    suspects.append(known[result.ordinal])  # perhaps a file built beside it used the memory
                else:
                    yield result
            for task in suspects:
                yield from as_they_finish(self._build, [task], self._cancel)
        except SparkEnded as ended:
            ended.under_way = frozenset(self._under_way)
            raise

    def _cancel(self) -> None:
        with suppress(Exception):  # this may run because Spark itself failed
            self._session.sparkContext.cancelJobGroup(self._group)

    def _build(self, task: FileTask) -> FileResult:
        self._under_way.add(task.ordinal)
        result = self._once(task)
        if isinstance(result, Failure) and result.code == "CHANGED_DURING_READ":
            result = self._once(task)
        if isinstance(result, Failure) and is_stopped(self._session.sparkContext):
            raise SparkEnded(result.reason)  # the stopped Spark explains any failure of the file
        self._under_way.discard(task.ordinal)
        return result

    def _once(self, task: FileTask) -> FileResult:
        uri = task.file.uri
        context = self._session.sparkContext
        opened: OpenedFile | None = None
        try:
            context.setJobGroup(self._group, f"{self._build_spec.table}: {uri}", interruptOnCancel=True)
            use_in_thread(self._session)
            found = self._open(task)
            if isinstance(found, Failure):
                return found
            opened = found
            if (
                opened.frame is None
            ):  # Spark cannot tell a blank file from a broken one; the direct reader can
                return self._in_task(partial(confirm_blank, self._build_spec, opened.version), task)
            return self._written(task, opened.version, opened.frame)
        except PinotAssetsError as error:
            return failure_of(self._build_spec, task, error)
        except Exception as error:
            if is_stopped(context):
                raise SparkEnded(first_line(error)) from error
            if (death := death_of(str(error))) is not None:
                return death.failure(self._build_spec, task, first_line(error))
            if isinstance(error, _SPARKS):
                return self._judged(task, opened, first_line(error))
            return failure_of(self._build_spec, task, error)  # fails this file only

    def _open_by_spark(self, task: FileTask) -> OpenedFile | Failure:
        read = frozenset((*self._columns, *dict(self._query.derived)))
        look = partial(look_at_file, self._build_spec, read)
        version = self._in_task(look, task)
        if isinstance(version, Failure):
            return version
        uri = task.file.uri
        frame = open_file(self._session, self._build_spec, uri, self._texts)
        same_file(uri, version, size_for_spark(self._session, uri))
        return OpenedFile(version, frame, self._check_binary)

    def _open_here(self, task: FileTask) -> OpenedFile | Failure:
        look = partial(look_at_columns, self._build_spec, self._used)
        found = self._in_task(look, task)
        if isinstance(found, Failure):
            return found
        version, schema = found
        check = partial(read_through, self._build_spec, schema)
        if not schema.names:
            return OpenedFile(version, None, check)
        with _WARNINGS, silent_on_pandas():
            frame = arrow_frame(self._session, self._build_spec, task, version, schema)
        if METADATA in self._columns:
            frame = with_metadata(frame, task.file.uri, version)
        return OpenedFile(version, frame, check)

    def _written(self, task: FileTask, version: Fingerprint, frame: DataFrame) -> FileResult:
        missing = missing_columns(frame, self._query, self._columns)
        rows = shaped(frame, self._query, missing, self._target)
        write = partial(write_file, self._build_spec, task, version, missing, tuple(rows.columns))
        with _WARNINGS, silent_on_pandas():
            job = rows.toDF(*map(str, range(len(rows.columns)))).mapInArrow(write, RESULT)
        [row] = job.collect()
        return cast(FileResult, pickle.loads(row[0]))

    def _judged(self, task: FileTask, opened: OpenedFile | None, why: str) -> FileResult:
        """Return the failure after Spark failed. A task checks the file: Spark's error names no culprit."""
        version = None if opened is None else opened.version
        check = self._check_binary if opened is None else opened.check
        try:
            return self._in_task(partial(find_fault, self._build_spec, version, check, why), task)
        except _SPARKS as error:
            if (death := death_of(str(error))) is not None:
                return death.failure(self._build_spec, task, first_line(error))
            return failure_of(self._build_spec, task, spark_failed(why))

    def _in_task(self, run: Callable[[FileTask], T], task: FileTask) -> T:
        [result] = self._session.sparkContext.parallelize([task], 1).map(run).collect()
        return result


def as_they_finish(
    build: Callable[[FileTask], FileResult], tasks: Sequence[FileTask], cancel: Callable[[], object]
) -> Results:
    """Run `build` for all tasks in threads; yield each result, and None after every wait.

    :param build: an exception from it ends the whole run.
    :param cancel: ends what `build` waits for. If the caller leaves early, or after an error, it is called
        again and again until no thread runs.
    """
    with ThreadPoolExecutor(min(len(tasks), _MOST_JOBS)) as pool:
        jobs: list[Future[FileResult]] = [pool.submit(build, task) for task in tasks]
        building = set(jobs)
        try:
            while building:
                done, building = wait(building, _LOOK_S, FIRST_COMPLETED)
                yield from (job.result() for job in done)
                yield None
        finally:
            left = {job for job in jobs if not job.cancel()}
            while left:
                left = wait(left, timeout=_LOOK_S).not_done
                if left:  # repeat: a thread may start its job just after a call of cancel
                    cancel()


def same_file(uri: str, version: Fingerprint, size: int) -> None:
    """Check that Spark finds the same file: its own store settings may lead to another file of this name.

    :param size: bytes of the file that Spark finds.
    :raises SourceChanged: the sizes differ.
    """
    if size != version.size:
        raise SourceChanged(
            f"{uri} has {version.size} bytes, and Spark sees {size}",
            why="a writer is still writing it, or Spark reads another store",
            hint="wait for its writer; for s3, spark.hadoop.fs.s3a.endpoint must be that of input.fs.prop",
        )


def _require_pandas() -> None:
    if lacks_pandas():
        raise BuildError(
            "files cannot be read with SQL here",
            why="PySpark needs pandas to pass rows to Python",
            hint=f"{INSTALL_SQL} where the driver runs",
        )


_ENDS: Final = 5
"""If Spark ends so often in a row and no file is built between, the files are not the cause."""
_OF_MEMORY: Final = (52, 137, -9)
"""Exit codes of a JVM without memory: 52 of Spark (`SparkExitCode`), 137 and -9 of the kernel's SIGKILL."""


class RestartedFiles:
    """Builds files by jobs, and starts Spark again when it ended.

    :param start: returns the `SparkFiles` of a running Spark, and starts a Spark if there is none; called
        when the first results are asked for.
    """

    def __init__(self, start: Callable[[], SparkFiles], build_spec: BuildSpec) -> None:
        self._start, self._build_spec = start, build_spec
        self._files: SparkFiles | None = None
        self._has_shared = False

    def results(self, tasks: Sequence[FileTask]) -> Results:
        """Yield each file's result when it is done, None after every wait. An early exit cancels the jobs.

        :raises BuildError: see `SparkFiles`; or Spark does not start again, or ends whatever it builds.
        """
        yield from in_spite_of_ends(self._run, self._build_spec, tasks)

    def moved(self) -> bool:
        """Whether Spark made progress since the last call, by its own counters (no Python task needed)."""
        return self._files is not None and self._files.moved()

    def _run(self, tasks: Sequence[FileTask]) -> Results:
        if self._files is None:
            self._files = self._start()
        if not self._has_shared:
            self._has_shared = True
            tasks = yield from self._together(self._files, tasks)
        if self._files.has_ended:  # under many files at once: no file is suspected
            exit_of_jvm()
            self._files = self._start()
        try:
            if tasks:
                yield from self._files.results(tasks)
        except SparkEnded as ended:
            self._files = None
            ended.code = exit_of_jvm()
            raise

    def _together(
        self, files: SparkFiles, tasks: Sequence[FileTask]
    ) -> Generator[FileResult | None, None, list[FileTask]]:
        """Build files by shared jobs; return those that have no receipt then."""
        left = {task.ordinal: task for task in tasks}
        with closing(files.shared(tasks)) as results:
            for result in results:
                if result is not None:
                    left.pop(result.ordinal, None)
                yield result
        return [*left.values()]


def in_spite_of_ends(
    run: Callable[[Sequence[FileTask]], Results], build_spec: BuildSpec, tasks: Sequence[FileTask]
) -> Results:
    """Run until every file has a result. A file under which Spark ends fails.

    :param run: builds files with one Spark; raises `SparkEnded` when that Spark ends.
    :raises SparkEnded: Spark ended five times (`_ENDS`) in a row, and built no file between.
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
                how = "Spark's JVM ended" + ("" if ended.code is None else f" with code {ended.code}")
                yield Death(None, ended.code in _OF_MEMORY).failure(build_spec, task, how)
            else:
                suspects = [task for task in left.values() if task.ordinal in ended.under_way]
                suspects = suspects or [*left.values()]
                continue
        suspects = suspects[1:]
