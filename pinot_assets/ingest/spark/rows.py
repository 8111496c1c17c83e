"""The Python end of a file that Spark reads: its rows arrive as one Arrow stream and are written here.

Rows are in memory for one segment at a time. Spark ends the stream in the same way when it is done
and when its reader fails, so the last row is a mark of our own: without it nothing that is left is written.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.core.file_errors import BadRow, FileRejected, Unreadable, shown
from pinot_assets.core.machine import limit_memory
from pinot_assets.errors import BuildError, SourceChanged
from pinot_assets.ingest.cast.conform import conform
from pinot_assets.ingest.contract.bad_rows import BadRowPolicy
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.contract.target_schema import TargetSchema
from pinot_assets.ingest.formats.csv_file import split_cells
from pinot_assets.ingest.formats.read import read_batches
from pinot_assets.ingest.formats.typed import check_values
from pinot_assets.ingest.spark.sizes import check_sizes
from pinot_assets.ingest.spark.text import check_binary, check_csv, check_json, check_packing, footer_rows
from pinot_assets.ingest.task.worker import build_from, failure_of, look_at, version_of
from pinot_assets.snapshot.fingerprint import Fingerprint
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source.factory import open_store
from pinot_assets.source.object_store import ObjectStore

ROW: Final = "#row"
"""Number of the row in the file, from 0. No column of a table begins with #, so these are free."""
CORRUPT: Final = "#corrupt"
"""Text of a row that Spark could not take apart, null for others."""
END: Final = "#end"
"""True in the last row, which is none of the file's."""
MADE: Final = "#transformConfigs of "
"""Before the name of a column: what Pinot's transformConfigs put where the file has none."""

RESULT: Final = "result binary"
_POSITION: Final = (1 << 33) - 1  # below the partition's number, in monotonically_increasing_id


class SparkFailed(FileRejected):
    """Spark gave the file up: its reader, an expression or an executor failed."""

    code = "SPARK"


@dataclass(frozen=True, slots=True)
class LookAtFile:
    """Looks at a file before Spark's readers have it; run in a task of its own.

    Whatever a JVM would die of, or take for something else, is to be found here.

    :ivar columns: what will be read of it.
    """

    build_spec: BuildSpec
    columns: frozenset[str]

    def __call__(self, task: FileTask) -> Fingerprint | Failure:
        """The version that was looked at, or what is wrong with the file."""
        limit_memory(self.build_spec.limits.worker_bytes)

        def look(local: Path) -> None:
            check_content(self.build_spec, task, local)
            check_sizes(local, self.build_spec.input_format, self.columns, self.build_spec.limits)

        return look_at(self.build_spec, task, look)


@dataclass(frozen=True, slots=True)
class FindFault:
    """Looks into a file that Spark gave up; run in a task of its own.

    :ivar why: what Spark said.
    """

    build_spec: BuildSpec
    why: str

    @property
    def failed(self) -> SparkFailed:
        """What is said when nothing is wrong with the file."""
        return SparkFailed("Spark gave the file up", why=self.why, hint="see Spark's log for the rest")

    def __call__(self, task: FileTask) -> Failure:
        """The failure of the file."""
        limit_memory(self.build_spec.limits.worker_bytes)
        found = look_at(
            self.build_spec, task, lambda local: check_binary(local, self.build_spec.input_format)
        )
        return found if isinstance(found, Failure) else failure_of(self.build_spec, task, self.failed)


@dataclass(frozen=True, slots=True)
class ConfirmBlank:
    """Builds a file in which Spark finds no columns, if it has no rows indeed; run in a task of its own.

    :ivar version: what was looked at before Spark had it.
    """

    build_spec: BuildSpec
    version: Fingerprint

    def __call__(self, task: FileTask) -> Receipt | Failure:
        """The receipt of no rows, or the file's failure."""
        limit_memory(self.build_spec.limits.worker_bytes)

        def rows(local: Path, read: Fingerprint, wanted: TargetSchema, _: BadRowPolicy) -> Iterator[pa.Table]:
            _same_version(task, read, self.version)
            check_content(self.build_spec, task, local)
            # With verdicts of its own: a row put aside would be one that the query never saw.
            found = read_batches(
                local,
                wanted,
                self.build_spec.input_format,
                reader=self.build_spec.reader,
                verdicts=BadRowPolicy(),
                limits=self.build_spec.limits,
            )
            for table in found:
                if table.num_rows:
                    raise Unreadable(
                        "Spark finds no columns in the file, though it has rows",
                        hint="leave out transforms, filter and engine: spark, or name columns in its rows",
                    )
                yield table

        return build_from(self.build_spec, task, rows)


@dataclass(frozen=True, slots=True)
class WriteFile:
    """What Spark's `mapInArrow` runs, once per file.

    :ivar version: what was looked at before Spark had it.
    :ivar missing: columns that the file lacks, of the table and of the expressions.
    :ivar columns: names of what arrives. PySpark takes names for expressions, so there they are numbers.
    """

    build_spec: BuildSpec
    task: FileTask
    version: Fingerprint
    missing: tuple[str, ...]
    columns: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows; the result is one row with the receipt or failure."""
        limit_memory(self.build_spec.limits.worker_bytes)

        def rows(
            local: Path, read: Fingerprint, wanted: TargetSchema, verdicts: BadRowPolicy
        ) -> Iterator[pa.Table]:
            _same_version(self.task, read, self.version)
            verdicts.lacks(self.missing)
            named = (batch.rename_columns(self.columns) for batch in batches)
            numbers = _Numbers()
            yield from _rows(numbers.seen(named), self._split, wanted, verdicts)
            self._count(local, numbers.rows, verdicts)
            now = version_of(self._source(), self.task.file.uri)
            _same_version(self.task, now, self.version)

        result = build_from(self.build_spec, self.task, rows)
        yield pa.record_batch([pa.array([pickle.dumps(result)], pa.binary())], names=[RESULT.split()[0]])

    def _count(self, local: Path, numbered: int, verdicts: BadRowPolicy) -> None:
        """How many rows the file has: by its footer; of text, as many as Spark's reader numbered."""
        footer = footer_rows(local, self.build_spec.input_format)
        if footer is not None:
            verdicts.holds(footer)
        elif self.build_spec.query is None or not self.build_spec.query.drops_rows:
            verdicts.holds(numbered)  # a filter may have taken the last ones

    def _split(self, table: pa.Table, wanted: TargetSchema) -> pa.Table:
        """Cells of multi-value columns as lists of text; in CSV alone. No value may be too large."""
        check_values(table, self.build_spec.limits)
        if self.build_spec.input_format != "csv":
            return table
        delimiter = CsvSettings.from_reader(self.build_spec.reader).multi_value
        for n, field in enumerate(table.schema):
            is_text = pt.is_string(field.type) and field.name in wanted.schema.names
            if delimiter is not None and is_text and pt.is_list(wanted.schema.field(field.name).type):
                table = table.set_column(n, field.name, split_cells(table.column(n), delimiter))
        return table

    def _source(self) -> ObjectStore:
        return open_store(self.build_spec.source_uri, self.build_spec.source_props, self.build_spec.policy)


class _Numbers:
    """How many rows Spark's reader numbered.

    :ivar rows: up to the last one that came.
    """

    def __init__(self) -> None:
        self.rows = 0

    def seen(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches."""
        for batch in batches:
            last = pc.max(batch.column(ROW)).as_py()  # the mark has none
            if last is not None:
                self.rows = max(self.rows, (last & _POSITION) + 1)
            yield batch


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
    batches: Iterator[pa.RecordBatch],
    split: Callable[[pa.Table, TargetSchema], pa.Table],
    wanted: TargetSchema,
    verdicts: BadRowPolicy,
) -> Iterator[pa.Table]:
    ended = False
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if ended:
            raise BuildError("Spark gave rows after the end of the file")
        if table.num_rows and table.column(END)[-1].as_py():
            ended = True
            table = table.slice(0, table.num_rows - 1)
        if pc.any(table.column(END)).as_py():
            raise BuildError("Spark gave rows after the end of the file")
        if table.num_rows:
            yield _good(split(table, wanted), wanted, verdicts)
    if not ended:
        raise BuildError(
            "Spark's rows ended before the file did", hint="see Spark's log for its reader's error"
        )


def _good(table: pa.Table, wanted: TargetSchema, verdicts: BadRowPolicy) -> pa.Table:
    numbers = (table.column(ROW).to_numpy() & _POSITION) + 1
    corrupt = table.column(CORRUPT).is_valid().to_numpy()
    if corrupt.any():
        texts = table.column(CORRUPT).filter(pa.array(corrupt)).to_pylist()
        pairs = zip(numbers[corrupt].tolist(), texts, strict=True)
        verdicts.bad(
            [BadRow(n, "", "", f"cannot be taken apart: {shown(t)}", Unreadable, t) for n, t in pairs]
        )
        table, numbers = table.filter(pa.array(~corrupt)), numbers[~corrupt]
    return _filled(conform(table, _with_made(table, wanted), numbers.tolist(), verdicts), wanted)


def _with_made(table: pa.Table, wanted: TargetSchema) -> TargetSchema:
    """With the made columns beside the file's, in the same types."""
    made = [name for name in wanted.schema.names if MADE + name in table.column_names]
    fields = [wanted.schema.field(name).with_name(MADE + name) for name in made]
    return TargetSchema(
        pa.schema([*wanted.schema, *fields]),
        wanted.json.union(MADE + name for name in wanted.json),
        wanted.decimals.union(MADE + name for name in wanted.decimals),
    )


def _filled(table: pa.Table, wanted: TargetSchema) -> pa.Table:
    """The made values where the file's are null."""
    columns = [
        pc.coalesce(table.column(name), table.column(MADE + name))
        if MADE + name in table.column_names
        else table.column(name)
        for name in wanted.schema.names
    ]
    return pa.table(columns, schema=wanted.schema)
