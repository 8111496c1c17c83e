"""Functions for the Python workers of Spark's executors. Imports neither Spark SQL nor its driver side.

A file that Spark reads itself arrives as one Arrow stream; this module writes its rows, with one segment in
memory at a time. Spark ends the stream in the same way after success and after a reader's error. So the
driver appends a mark as the last row. If it is missing, the file fails, and no receipt is written.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from pinot_assets.core.file_errors import BadRow, FileRejected, Unreadable, shown
from pinot_assets.core.this_machine import limit_memory
from pinot_assets.errors import BuildError, PinotAssetsError, SourceChanged
from pinot_assets.ingest.cast.conform import conform
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, TaskKind
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.contract.failures import failure_of
from pinot_assets.ingest.contract.spark_formats import SPARK_LACKS
from pinot_assets.ingest.contract.task_outputs import Heartbeat
from pinot_assets.ingest.formats.binary_formats import check_values
from pinot_assets.ingest.formats.csv_file import split_cells
from pinot_assets.ingest.formats.read import read_batches
from pinot_assets.ingest.open_file import heartbeat, version_of
from pinot_assets.ingest.packs.small_files import read_small_files
from pinot_assets.ingest.spark.file_checks import (
    check_csv,
    check_json,
    check_packing,
    check_sizes,
    footer_rows,
)
from pinot_assets.ingest.spark.own_reader import CheckedFile, file_of_partition
from pinot_assets.ingest.stores import stores_of
from pinot_assets.ingest.task import build_file, build_from, build_or_keep, inspected, rows_through_arrow
from pinot_assets.snapshot.receipt import Failure, FileResult, Fingerprint, Receipt

ROW: Final = "#row"
"""Column with the row's number in the file, from 0. Tables have no column that begins with #: no clash."""
CORRUPT: Final = "#corrupt"
"""Column with the text of a row that Spark could not parse; null in other rows."""
END: Final = "#end"
"""Column that is true in the last row only, which is the mark and not a row of the file."""
MADE: Final = "#transformConfigs of "
"""Prefix of a column's name: the values that Pinot's transformConfigs make where the file has none."""

Build = Callable[[BuildSpec, FileTask], FileResult]
Results = Generator[FileResult | None, None, None]
"""Yields each file's result, some twice, and None after every wait. An early exit cancels the jobs."""

RESULT: Final = "result binary"
_POSITION: Final = (1 << 33) - 1  # monotonically_increasing_id has the partition's number above these bits


class SparkFailed(FileRejected):
    """Spark gave the file up because its reader, an expression or an executor failed."""

    code = "SPARK"


class Finished(AccumulatorParam[list[FileResult]]):
    """Results of finished tasks, in the order of their arrival at the driver."""

    def zero(self, value: list[FileResult]) -> list[FileResult]:  # noqa: ARG002  # Spark's signature
        """Return the empty list with which each task begins."""
        return []

    def addInPlace(self, value1: list[FileResult], value2: list[FileResult]) -> list[FileResult]:
        """Return the first list, extended by the second."""
        value1.extend(value2)
        return value1


def build_in_worker(
    build_spec: BuildSpec, build: Build, finished: Accumulator[list[FileResult]], batch: Sequence[FileTask]
) -> list[FileResult]:
    """Build the files of one batch, which are read through Arrow, one after the other.

    :param finished: reports the results to the driver while the job still builds other batches.
    """
    limit_memory(build_spec.limits.worker_bytes)
    if is_repeated():
        build = build_or_keep if build is build_file else build
    if batch[0].kind is TaskKind.SMALL_FILE and build in (build_file, build_or_keep):
        results = read_small_files(build_spec, batch, rows_through_arrow(build_spec))
    else:
        results = _one_by_one(build_spec, build, batch)
    finished.add(results)
    return results


def _one_by_one(build_spec: BuildSpec, build: Build, batch: Sequence[FileTask]) -> list[FileResult]:
    signs: Heartbeat | None = None
    with suppress(PinotAssetsError):  # without a staging area each file fails by itself, and says why
        signs = heartbeat(build_spec, batch[0])
    results = []
    for task in batch:
        result = build(build_spec, task)
        results.append(result)
        if signs is not None:
            signs.worked(result.rows if isinstance(result, Receipt) else 0)
    if signs is not None:
        signs.close()
    return results


def is_repeated() -> bool:
    """Whether this Spark task runs again, since its first run died."""
    task = TaskContext.get()
    return task is not None and task.attemptNumber() > 0


def look_at_file(build_spec: BuildSpec, columns: frozenset[str], task: FileTask) -> Fingerprint | Failure:
    """Check a file before Spark's readers open it; run this in its own task.

    This check has to find anything that a JVM would die of or would read as something else.

    :param columns: the columns that Spark will read.
    :returns: the version that was checked, or the file's failure.
    """
    limit_memory(build_spec.limits.worker_bytes)

    def look(local: Path) -> None:
        check_content(build_spec, task, local)
        check_sizes(local, build_spec.input_format, columns, build_spec.limits)

    return inspected(build_spec, task, look)


def spark_failed(why: str) -> SparkFailed:
    """Return the error for a file that Spark gave up although nothing is wrong with it.

    :param why: Spark's own message.
    """
    return SparkFailed("Spark gave the file up", why=why, hint="see Spark's log for the rest")


def find_fault(
    build_spec: BuildSpec,
    version: Fingerprint | None,
    check: Callable[[Path], None],
    why: str,
    task: FileTask,
) -> Failure:
    """Check a file that Spark gave up, and return its failure; run this in its own task.

    :param version: the version that was checked before; None if Spark failed earlier.
    :param check: reads the file as Spark's job did, and raises what is wrong with it.
    :param why: Spark's own message.
    """
    limit_memory(build_spec.limits.worker_bytes)
    outcome = inspected(build_spec, task, check)
    if isinstance(outcome, Failure):
        return outcome
    changed = version is not None and outcome != version
    return failure_of(build_spec, task, _changed(task) if changed else spark_failed(why))


def confirm_blank(build_spec: BuildSpec, version: Fingerprint, task: FileTask) -> Receipt | Failure:
    """Build a file in which Spark finds no columns, if it really has no rows; run this in its own task.

    :param version: the version that was checked before Spark read it.
    :returns: a receipt of no rows, or the file's failure.
    """
    limit_memory(build_spec.limits.worker_bytes)

    def rows(local: Path, read: Fingerprint, target: TargetSchema, _: BadRowPolicy) -> Iterator[pa.Table]:
        _same_version(task, read, version)
        check_content(build_spec, task, local)
        # A separate policy: if it put a row aside, the query would never have seen that row.
        for table in read_batches(
            local,
            target,
            build_spec.input_format,
            reader=build_spec.reader,
            verdicts=BadRowPolicy(),
            limits=build_spec.limits,
        ):
            if table.num_rows:
                raise Unreadable(
                    "Spark finds no columns in the file, though it has rows",
                    hint="remove transforms, filter and engine: spark, or name columns in its rows",
                )
            yield table

    return build_from(build_spec, task, rows)


def write_file(
    build_spec: BuildSpec,
    task: FileTask,
    version: Fingerprint,
    missing: tuple[str, ...],
    columns: tuple[str, ...],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Write the rows of one file; Spark's `mapInArrow` runs this once per file.

    :param version: the version that was checked before Spark read it.
    :param missing: columns of the table and of the expressions that the file lacks.
    :param columns: names of the incoming columns. PySpark takes names for expressions: they come as numbers.
    :returns: one row with the pickled receipt or failure.
    """
    limit_memory(build_spec.limits.worker_bytes)

    def rows(
        local: Path, read: Fingerprint, target: TargetSchema, verdicts: BadRowPolicy
    ) -> Iterator[pa.Table]:
        _same_version(task, read, version)
        verdicts.lacks(missing)
        named = (batch.rename_columns(columns) for batch in batches)
        numbered = yield from _rows(named, build_spec, target, verdicts)
        if (footer := footer_rows(local, build_spec.input_format)) is not None:
            verdicts.rows = footer
        elif build_spec.query is None or not build_spec.query.drops_rows:
            verdicts.rows = numbered  # for text formats; not after a filter, which may drop the last rows
        _same_version(task, version_of(stores_of(build_spec).source, task.file.uri), version)

    result = build_from(build_spec, task, rows)
    yield pa.record_batch([pa.array([pickle.dumps(result)], pa.binary())], names=[RESULT.split()[0]])


def write_in_partition(
    build_spec: BuildSpec,
    files: Sequence[CheckedFile],
    missing: tuple[str, ...],
    columns: tuple[str, ...],
    finished: Accumulator[list[FileResult]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Write the rows of this partition's file, one of several in a job; see `write_file`.

    :param finished: reports a receipt to the driver while the job still builds other files.
    """
    task, version = file_of_partition(files)
    rows = _rows_of(task, batches, columns)
    for written in write_file(build_spec, task, version, missing, columns, rows):
        result = pickle.loads(written.column(0)[0].as_py())
        if isinstance(result, Receipt):
            finished.add([result])
        yield written


def _rows_of(
    task: FileTask, batches: Iterator[pa.RecordBatch], columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield all batches; raise if the mark, which has the URI of its file, is another file's."""
    for batch in batches:
        marks = batch.column(columns.index(CORRUPT)).drop_null().to_pylist()
        if any(uri != task.file.uri for uri in marks):
            raise BuildError(f"Spark gave the task of {task.file.uri} rows of {marks[0]}")
        yield batch


def _same_version(task: FileTask, now: Fingerprint, version: Fingerprint) -> None:
    if now != version:
        raise _changed(task)


def _changed(task: FileTask) -> SourceChanged:
    return SourceChanged(
        f"{task.file.uri} changed while Spark read it",
        hint="wait for its writer; the next trigger reads it again",
    )


def check_content(build_spec: BuildSpec, task: FileTask, local: Path) -> None:
    """Check that Spark's reader will read what the file contains.

    :raises Unreadable: it will not.
    """
    if build_spec.input_format not in SPARK_LACKS:
        check_packing(local, task.file.uri, build_spec.input_format)
    if build_spec.input_format == "csv":
        check_csv(local, CsvSettings.from_reader(build_spec.reader), build_spec.limits)
    elif build_spec.input_format == "json":
        check_json(local, build_spec.limits)


def _rows(
    batches: Iterator[pa.RecordBatch], build_spec: BuildSpec, target: TargetSchema, verdicts: BadRowPolicy
) -> Generator[pa.Table, None, int]:
    """Yield the good rows of all batches before the mark; return how many rows Spark's reader numbered."""
    ended = False
    numbered = 0
    for batch in batches:
        table = pa.Table.from_batches([batch])
        last = pc.max(table.column(ROW)).as_py()  # null in the mark
        numbered = numbered if last is None else max(numbered, (last & _POSITION) + 1)
        if ended:
            raise BuildError("Spark returned rows after the end of the file")
        if table.num_rows and table.column(END)[-1].as_py():
            ended = True
            table = table.slice(0, table.num_rows - 1)
        if pc.any(table.column(END)).as_py():
            raise BuildError("Spark returned rows after the end of the file")
        if table.num_rows:
            check_values(table, build_spec.limits)
            yield _good(_split(table, build_spec, target), target, verdicts)
    if not ended:
        raise BuildError(
            "Spark's rows ended before the file did", hint="see Spark's log for its reader's error"
        )
    return numbered


def _split(table: pa.Table, build_spec: BuildSpec, target: TargetSchema) -> pa.Table:
    """Split the cells of multi-value columns into lists of text, for CSV only."""
    if build_spec.input_format != "csv":
        return table
    delimiter = CsvSettings.from_reader(build_spec.reader).multi_value
    for n, field in enumerate(table.schema):
        is_text = pt.is_string(field.type) and field.name in target.schema.names
        if delimiter is not None and is_text and pt.is_list(target.schema.field(field.name).type):
            table = table.set_column(n, field.name, split_cells(table.column(n), delimiter))
    return table


def _good(table: pa.Table, target: TargetSchema, verdicts: BadRowPolicy) -> pa.Table:
    numbers = (table.column(ROW).to_numpy() & _POSITION) + 1
    corrupt = table.column(CORRUPT).is_valid().to_numpy()
    if corrupt.any():
        texts = table.column(CORRUPT).filter(pa.array(corrupt)).to_pylist()
        pairs = zip(numbers[corrupt].tolist(), texts, strict=True)
        verdicts.bad(
            [BadRow(n, "", "", f"cannot be split into columns: {shown(t)}", Unreadable, t) for n, t in pairs]
        )
        table, numbers = table.filter(pa.array(~corrupt)), numbers[~corrupt]
    return conformed(table, numbers.tolist(), target, verdicts)


def conformed(
    table: pa.Table, numbers: Sequence[int], target: TargetSchema, verdicts: BadRowPolicy
) -> pa.Table:
    """Return the good rows in the table's own types, with the made value wherever the file's value is null.

    :param table: columns of the file, and made ones whose names begin with `MADE`.
    :param numbers: of the rows in the file, from 1.
    """
    return _filled(conform(table, _with_made(table, target), numbers, verdicts), target)


def _with_made(table: pa.Table, target: TargetSchema) -> TargetSchema:
    """Return the target schema with the made columns (`MADE`) added, in the types of the table's columns."""
    made = [name for name in target.schema.names if MADE + name in table.column_names]
    fields = [target.schema.field(name).with_name(MADE + name) for name in made]
    return TargetSchema(
        pa.schema([*target.schema, *fields]),
        target.json.union(MADE + name for name in target.json),
        target.decimals.union(MADE + name for name in target.decimals),
    )


def _filled(table: pa.Table, target: TargetSchema) -> pa.Table:
    """Return the target's columns, with the made value wherever the file's value is null."""
    columns = [
        pc.coalesce(table.column(name), table.column(MADE + name))
        if MADE + name in table.column_names
        else table.column(name)
        for name in target.schema.names
    ]
    return pa.table(columns, schema=target.schema)
