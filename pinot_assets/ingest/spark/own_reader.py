"""Files of formats that Spark itself has no reader for: a task reads them with the package's own reader.

Spark's reader of Avro is a jar of its own, and not every release of Spark has one. So a task reads the file,
and gives its rows to Spark SQL as Arrow batches: no second copy of the file, and no jar. Imports neither
Spark SQL nor its driver side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.types as pt
from pyspark import TaskContext

from pinot_assets.core.file_errors import Unreadable, one_line
from pinot_assets.core.files import temporary_folder
from pinot_assets.core.this_machine import limit_memory
from pinot_assets.errors import SourceChanged
from pinot_assets.ingest.cast.casts import plain_column
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.csv_settings import twice
from pinot_assets.ingest.formats.content import plain_file
from pinot_assets.ingest.formats.read import stored_columns, stored_rows
from pinot_assets.ingest.open_file import fetch
from pinot_assets.ingest.task import inspected
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.snapshot.receipt import Failure, Fingerprint

Columns = tuple[Fingerprint, pa.Schema]
"""The version of a file, and its columns in types that Spark SQL has; none if the file is blank."""

CheckedFile = tuple[FileTask, Fingerprint]
"""A file, and its version that `look_at_columns` checked."""

_MOMENT: Final = pa.timestamp("us", "UTC")
_LOCAL_MOMENT: Final = pa.timestamp("us")
_SAME: Final = (
    pt.is_boolean,
    pt.is_int8,
    pt.is_int16,
    pt.is_int32,
    pt.is_int64,
    pt.is_float32,
    pt.is_float64,
    pt.is_decimal128,
    pt.is_date32,
    pt.is_string,
    pt.is_binary,
)
_OTHERS: Final = (
    (pt.is_null, pa.string()),
    (pt.is_large_string, pa.string()),
    (pt.is_string_view, pa.string()),
    (pt.is_large_binary, pa.binary()),
    (pt.is_binary_view, pa.binary()),
    (pt.is_fixed_size_binary, pa.binary()),
    (pt.is_time32, pa.int32()),  # the numbers in the file, as spark-avro reads them
    (pt.is_time64, pa.int64()),
)
_URI: Final = "uri"
_BATCH_ROWS: Final = 1 << 14
_BATCH_BYTES: Final = 8 << 20
"""About how many bytes of rows Spark's JVM gets at a time; it holds several batches."""


def spark_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the Arrow type in which Spark SQL takes values of a type; None if Spark SQL has no such type.

    Everything may be null, members and items as well: then Spark's types do not depend on the file's schema.
    """
    if any(is_kind(kind) for is_kind in _SAME):
        return kind
    if pt.is_timestamp(kind):
        return _LOCAL_MOMENT if kind.tz is None else _MOMENT
    if pt.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        item = spark_type(kind.value_type)
        return None if item is None else pa.list_(item)
    if pt.is_map(kind):
        key, item = spark_type(kind.key_type), spark_type(kind.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if pt.is_struct(kind):
        members = [(field.name, spark_type(field.type)) for field in kind]
        return None if any(member is None for _, member in members) else pa.struct(members)
    return next((other for is_kind, other in _OTHERS if is_kind(kind)), None)


def look_at_columns(build_spec: BuildSpec, used: frozenset[str] | None, task: FileTask) -> Columns | Failure:
    """Check a file and find its columns before Spark SQL gets its rows; run this in its own task.

    :param used: the columns that the table and its expressions read; None for all.
    :returns: the version that was checked and the columns to read, or the file's failure.
    """
    limit_memory(build_spec.limits.worker_bytes)
    schema = pa.schema([])

    def look(local: Path) -> None:
        nonlocal schema
        if (plain := plain_file(local, build_spec.input_format, build_spec.limits)) is not None:
            schema = columns_for_sql(plain, build_spec.input_format, used, build_spec.limits)

    version = inspected(build_spec, task, look)
    return version if isinstance(version, Failure) else (version, schema)


def columns_for_sql(
    plain: Path, input_format: str, used: frozenset[str] | None, limits: FileLimits
) -> pa.Schema:
    """Return the columns to read, in the types in which Spark SQL takes them.

    :param plain: a file that is not compressed.
    :param used: the columns that the table and its expressions read; None for all.
    :raises Unreadable: a column that is read is there twice, or Spark SQL has no type for it.
    """
    stored = stored_columns(plain, input_format, limits)
    if again := twice(name for name in stored.names if used is None or name in used):
        raise Unreadable(f"the file has two columns {', '.join(again)}")
    read = [field for field in stored if used is None or field.name in used]
    kinds = {field.name: spark_type(field.type) for field in read or stored}
    for field in read:
        if kinds[field.name] is None:
            raise Unreadable(
                f"column {field.name}: {field.type} has no type in Spark SQL",
                hint="write the column in another type, or remove it from the schema and the expressions",
            )
    # If the file has no column that is used, read its others: their number of rows may be enough, and
    # the error for a file with none of the table's columns lists them.
    return pa.schema([(name, kind) for name, kind in kinds.items() if kind is not None])


def read_file(
    build_spec: BuildSpec,
    task: FileTask,
    version: Fingerprint,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one file; Spark's `mapInArrow` runs this once per file.

    :param version: the version that `look_at_columns` checked.
    :param schema: the columns that it found.
    :param batches: the one row that starts this task; it has no meaning.
    :raises SourceChanged: the file has another version by now.
    :raises FileRejected: it is damaged, or larger than the limits allow.
    """
    limit_memory(build_spec.limits.worker_bytes)
    for _ in batches:
        pass
    with temporary_folder("read") as folder:
        read, _ = fetch(build_spec, task.file.uri, folder / "source")
        if read != version:
            raise SourceChanged(f"{task.file.uri} changed before its rows were read")
        yield from _rows(folder / "source", build_spec, schema)


def file_of_partition(files: Sequence[CheckedFile]) -> CheckedFile:
    """Return the file of this Spark task: the n-th one for the n-th partition."""
    context = TaskContext.get()
    assert context is not None, "only a task of Spark has a partition"
    return files[context.partitionId()]


def read_in_partition(
    build_spec: BuildSpec,
    files: Sequence[CheckedFile],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of this partition's file, and its mark: a last row with the file's URI.

    If the file cannot be read, the mark is missing: an error would end the job of the other files, too.

    :param schema: the columns of the rows; one more column of text has the URI, null in the rows.
    """
    task, version = file_of_partition(files)
    marked = schema.append(pa.field(_URI, pa.string()))
    with suppress(Exception):
        for batch in read_file(build_spec, task, version, schema, batches):
            columns = [*batch.columns, pa.nulls(batch.num_rows, pa.string())]
            yield pa.record_batch(columns, schema=marked)
        nulls = [pa.nulls(1, field.type) for field in schema]
        yield pa.record_batch([*nulls, pa.array([task.file.uri])], schema=marked)


def read_through(build_spec: BuildSpec, schema: pa.Schema, local: Path) -> None:
    """Read all rows as `read_file` does, to find out what is wrong with a file.

    :raises FileRejected: something is.
    """
    for _ in _rows(local, build_spec, schema):
        pass


def _rows(local: Path, build_spec: BuildSpec, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    plain = plain_file(local, build_spec.input_format, build_spec.limits)
    if plain is not None and schema.names:
        yield from rows_for_sql(plain, build_spec, schema)


def rows_for_sql(plain: Path, build_spec: BuildSpec, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a file that is not compressed.

    :param schema: the result of `columns_for_sql`.
    :raises FileRejected: it is damaged, or a value does not fit its type.
    """
    for table in stored_rows(plain, build_spec.input_format, schema.names, build_spec.limits):
        columns = [_as_spark_takes_it(table, field) for field in schema]
        taken = pa.table(columns, schema=schema)
        rows = min(_BATCH_ROWS, max(1, _BATCH_BYTES * taken.num_rows // max(1, taken.nbytes)))
        yield from taken.to_batches(rows)


def _as_spark_takes_it(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    column = plain_column(table.column(field.name))
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise Unreadable(
            f"column {field.name}: a value cannot become {field.type}, which Spark SQL needs",
            why=one_line(error),
        ) from error
