"""Files that one Spark job builds together, because the package's own reader reads them (`own_reader`).

Spark plans a query for each job. For a small file that costs many times what the file itself costs: a second
of CPU time for 80 columns. Files with the same columns share one plan, so they share one job; each of them is
still one partition and one task.

Such a job gives receipts only. `file_jobs` builds every other file by a job of its own, as if there had been
no shared one. So an error in a file fails that file alone, with the same message, and a job that dies costs
only time.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import SparkSession

from pinot_assets.core.text import plural
from pinot_assets.ingest.contract.accepted_rows import TargetSchema
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, Query
from pinot_assets.ingest.spark.arrow_frame import frame_of_files
from pinot_assets.ingest.spark.jvm import is_stopped, silent_on_pandas
from pinot_assets.ingest.spark.own_reader import CheckedFile, Columns, look_at_columns
from pinot_assets.ingest.spark.query import missing_columns, shaped_with_marks
from pinot_assets.ingest.spark.reader import use_in_thread
from pinot_assets.ingest.spark.running import running
from pinot_assets.ingest.spark.tasks import RESULT, Finished, Results, write_in_partition
from pinot_assets.snapshot.receipt import Failure, FileResult, Receipt

F = TypeVar("F")
T = TypeVar("T")
Collected = Accumulator[list[FileResult]]
_MOST_FILES: Final = 256
"""Files of one job at most: each of its tasks gets the list of them."""


@dataclass(frozen=True, slots=True)
class SharedJobs:
    """Builds files together that have the same columns.

    :ivar columns: the result of `columns_read`.
    :ivar used: the columns that the table and its expressions read.
    :ivar group: Spark's job group.
    """

    session: SparkSession
    build_spec: BuildSpec
    query: Query
    target: TargetSchema
    columns: tuple[str, ...]
    used: frozenset[str]
    group: str

    def receipts(self, tasks: Sequence[FileTask]) -> Results:
        """Yield the receipts of files that were built, some twice, and None after every wait.

        Whatever goes wrong, the files concerned have no receipt. An early exit cancels the job.
        """
        for first in range(0, len(tasks), _MOST_FILES):
            some = tasks[first : first + _MOST_FILES]
            looks = yield from self._run("looks at", some, self._look)
            for schema, files in _alike(zip(some, looks, strict=False)):
                if len(files) > 1 and not is_stopped(self.session.sparkContext):
                    yield from (yield from self._run("builds", files, partial(self._build, schema)))

    def _run(
        self, verb: str, files: Sequence[F], job: Callable[[Sequence[F], Collected], list[T]]
    ) -> Generator[FileResult | None, None, list[T]]:
        """Run one job; return what it returns, nothing if it failed: Spark's log says why."""
        context = self.session.sparkContext
        finished: Collected = context.accumulator([], Finished())
        description = f"{self.build_spec.table}: one job {verb} {plural(len(files), 'file')}"

        def collect() -> list[T]:
            context.setJobGroup(self.group, description, interruptOnCancel=True)
            use_in_thread(self.session)
            return job(files, finished)

        ended = yield from running(collect, finished, lambda: context.cancelJobGroup(self.group))
        return [] if ended.exception() is not None else ended.result()

    def _look(self, tasks: Sequence[FileTask], _: Collected) -> list[Columns | Failure]:
        look = partial(look_at_columns, self.build_spec, self.used)
        return self.session.sparkContext.parallelize(tasks, len(tasks)).map(look).collect()

    def _build(self, schema: pa.Schema, files: Sequence[CheckedFile], finished: Collected) -> list[Receipt]:
        with silent_on_pandas():
            frame = frame_of_files(self.session, self.build_spec, files, schema)
        missing = missing_columns(frame, self.query, self.columns)
        rows = shaped_with_marks(frame, self.query, missing, self.target)
        write = partial(write_in_partition, self.build_spec, files, missing, tuple(rows.columns), finished)
        with silent_on_pandas():
            job = rows.toDF(*map(str, range(len(rows.columns)))).mapInArrow(write, RESULT)
        results = (pickle.loads(row[0]) for row in job.collect())
        return [result for result in results if isinstance(result, Receipt)]


def _alike(
    looks: Iterable[tuple[FileTask, Columns | Failure]],
) -> list[tuple[pa.Schema, list[CheckedFile]]]:
    """Return the files by their columns, without those that failed or have no columns."""
    groups: dict[bytes, tuple[pa.Schema, list[CheckedFile]]] = {}
    for task, look in looks:
        if isinstance(look, Failure) or not look[1].names:
            continue
        version, schema = look
        _, files = groups.setdefault(schema.serialize().to_pybytes(), (schema, []))
        files.append((task, version))
    return [*groups.values()]
