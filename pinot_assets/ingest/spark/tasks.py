"""What runs in the Python workers of Spark's executors; imports neither SQL of Spark's nor its driver's side.

A file that Spark reads itself arrives as one Arrow stream, whose rows are written here. They are in memory
for one segment at a time. Spark ends the stream in the same way when it is done and when its reader fails, so
the last row is a mark of our own: without it nothing that is left is written.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.accumulators import Accumulator, AccumulatorParam

from pinot_assets.core.file_errors import BadRow, FileRejected, Unreadable, shown
from pinot_assets.core.this_machine import limit_memory
from pinot_assets.errors import BuildError, SourceChanged
from pinot_assets.ingest.cast.conform import conform
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.contract.failures import failure_of
from pinot_assets.ingest.formats.binary_formats import check_values
from pinot_assets.ingest.formats.csv_file import split_cells
from pinot_assets.ingest.formats.read import read_batches
from pinot_assets.ingest.spark.file_checks import (
    check_binary,
    check_csv,
    check_json,
    check_packing,
    check_sizes,
    footer_rows,
)
from pinot_assets.ingest.task import build_from, look_at, version_of
from pinot_assets.snapshot.receipt import Failure, FileResult, Fingerprint, Receipt
from pinot_assets.source.factory import open_store

ROW: Final = "#row"
"""Number of the row in the file, from 0. No column of a table begins with #, so these are free."""
CORRUPT: Final = "#corrupt"
"""Text of a row that Spark could not take apart, null for others."""
END: Final = "#end"
"""True in the last row, which is none of the file's."""
MADE: Final = "#transformConfigs of "
"""Before the name of a column: what Pinot's transformConfigs put where the file has none."""

Build = Callable[[BuildSpec, FileTask], FileResult]
Results = Generator[FileResult | None, None, None]
"""Every file's result, some twice, and None after every look. Leaving early cancels the jobs."""

RESULT: Final = "result binary"
_POSITION: Final = (1 << 33) - 1  # below the partition's number, in monotonically_increasing_id


class SparkFailed(FileRejected):
    """Spark gave the file up: its reader, an expression or an executor failed."""

    code = "SPARK"


class Finished(AccumulatorParam[list[FileResult]]):
    """Results of finished tasks, in the order of their arrival at the driver."""

    def zero(self, value: list[FileResult]) -> list[FileResult]:  # noqa: ARG002  # Spark's signature
        """What each task begins with."""
        return []

    def addInPlace(self, value1: list[FileResult], value2: list[FileResult]) -> list[FileResult]:
        """What has arrived with one more."""
        value1.extend(value2)
        return value1


def build_in_worker(
    build_spec: BuildSpec, build: Build, finished: Accumulator[list[FileResult]], task: FileTask
) -> FileResult:
    """Build one file that is read through Arrow.

    :param finished: tells the driver while other files of the job are still built.
    """
    limit_memory(build_spec.limits.worker_bytes)
    result = build(build_spec, task)
    finished.add([result])
    return result


def look_at_file(build_spec: BuildSpec, columns: frozenset[str], task: FileTask) -> Fingerprint | Failure:
    """Look at a file before Spark's readers have it; run in a task of its own.

    Whatever a JVM would die of, or take for something else, is to be found here.

    :param columns: what will be read of it.
    :returns: the version that was looked at, or what is wrong with the file.
    """
    limit_memory(build_spec.limits.worker_bytes)

    def look(local: Path) -> None:
        check_content(build_spec, task, local)
        check_sizes(local, build_spec.input_format, columns, build_spec.limits)

    return look_at(build_spec, task, look)


def spark_failed(why: str) -> SparkFailed:
    """What is said when nothing is wrong with a file that Spark gave up.

    :param why: what Spark said.
    """
    return SparkFailed("Spark gave the file up", why=why, hint="see Spark's log for the rest")


def find_fault(build_spec: BuildSpec, why: str, task: FileTask) -> Failure:
    """The failure of a file that Spark gave up, from a look into it; run in a task of its own."""
    limit_memory(build_spec.limits.worker_bytes)
    outcome = look_at(build_spec, task, lambda local: check_binary(local, build_spec.input_format))
    return outcome if isinstance(outcome, Failure) else failure_of(build_spec, task, spark_failed(why))


def confirm_blank(build_spec: BuildSpec, version: Fingerprint, task: FileTask) -> Receipt | Failure:
    """Build a file in which Spark finds no columns, if it has no rows indeed; run in a task of its own.

    :param version: what was looked at before Spark had it.
    :returns: the receipt of no rows, or the file's failure.
    """
    limit_memory(build_spec.limits.worker_bytes)

    def rows(local: Path, read: Fingerprint, target: TargetSchema, _: BadRowPolicy) -> Iterator[pa.Table]:
        _same_version(task, read, version)
        check_content(build_spec, task, local)
        # With verdicts of its own: a row put aside would be one that the query never saw.
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
                    hint="leave out transforms, filter and engine: spark, or name columns in its rows",
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
    """What Spark's `mapInArrow` runs, once per file: write the rows.

    :param version: what was looked at before Spark had it.
    :param missing: columns that the file lacks, of the table and of the expressions.
    :param columns: names of what arrives. PySpark takes names for expressions, so there they are numbers.
    :returns: one row with the receipt or failure.
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
            verdicts.rows = numbered  # of text; a filter may have taken the last ones
        source = open_store(build_spec.source_uri, build_spec.source_props, build_spec.policy)
        _same_version(task, version_of(source, task.file.uri), version)

    result = build_from(build_spec, task, rows)
    yield pa.record_batch([pa.array([pickle.dumps(result)], pa.binary())], names=[RESULT.split()[0]])


def _same_version(task: FileTask, now: Fingerprint, version: Fingerprint) -> None:
    if now != version:
        raise SourceChanged(
            f"{task.file.uri} changed while Spark read it",
            hint="let its writer finish; the next trigger reads it again",
        )


def check_content(build_spec: BuildSpec, task: FileTask, local: Path) -> None:
    """Whether Spark will find in a file what is in it.

    :raises Unreadable: it will not.
    """
    check_packing(local, task.file.uri, build_spec.input_format)
    if build_spec.input_format == "csv":
        check_csv(local, CsvSettings.from_reader(build_spec.reader), build_spec.limits)
    elif build_spec.input_format == "json":
        check_json(local, build_spec.limits)


def _rows(
    batches: Iterator[pa.RecordBatch], build_spec: BuildSpec, target: TargetSchema, verdicts: BadRowPolicy
) -> Generator[pa.Table, None, int]:
    """The good rows of all batches before the mark; returns how many rows Spark's reader numbered."""
    ended = False
    numbered = 0
    for batch in batches:
        table = pa.Table.from_batches([batch])
        last = pc.max(table.column(ROW)).as_py()  # the mark has none
        numbered = numbered if last is None else max(numbered, (last & _POSITION) + 1)
        if ended:
            raise BuildError("Spark gave rows after the end of the file")
        if table.num_rows and table.column(END)[-1].as_py():
            ended = True
            table = table.slice(0, table.num_rows - 1)
        if pc.any(table.column(END)).as_py():
            raise BuildError("Spark gave rows after the end of the file")
        if table.num_rows:
            check_values(table, build_spec.limits)
            yield _good(_split(table, build_spec, target), target, verdicts)
    if not ended:
        raise BuildError(
            "Spark's rows ended before the file did", hint="see Spark's log for its reader's error"
        )
    return numbered


def _split(table: pa.Table, build_spec: BuildSpec, target: TargetSchema) -> pa.Table:
    """Cells of multi-value columns as lists of text; in CSV alone."""
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
            [BadRow(n, "", "", f"cannot be taken apart: {shown(t)}", Unreadable, t) for n, t in pairs]
        )
        table, numbers = table.filter(pa.array(~corrupt)), numbers[~corrupt]
    return _filled(conform(table, _with_made(table, target), numbers.tolist(), verdicts), target)


def _with_made(table: pa.Table, target: TargetSchema) -> TargetSchema:
    """With the made columns beside the file's, in the same types."""
    made = [name for name in target.schema.names if MADE + name in table.column_names]
    fields = [target.schema.field(name).with_name(MADE + name) for name in made]
    return TargetSchema(
        pa.schema([*target.schema, *fields]),
        target.json.union(MADE + name for name in target.json),
        target.decimals.union(MADE + name for name in target.decimals),
    )


def _filled(table: pa.Table, target: TargetSchema) -> pa.Table:
    """The made values where the file's are null."""
    columns = [
        pc.coalesce(table.column(name), table.column(MADE + name))
        if MADE + name in table.column_names
        else table.column(name)
        for name in target.schema.names
    ]
    return pa.table(columns, schema=target.schema)
