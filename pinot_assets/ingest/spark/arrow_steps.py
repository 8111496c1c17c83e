"""Files whose whole SQL is LONG arithmetic on columns: Arrow computes it, and Spark needs no SQL.

Most tables with `transformConfigs` only make a time column from another one (`fromEpochDays(day)`). Spark's
SQL costs more than everything else in a run over small files: twice as many Python workers, pandas, and
seconds of the JVM. So a task reads such a file as for Spark SQL (`own_reader`), computes, and writes.

Whatever is unusual has no receipt here: an overflow, a column of another type, a file that cannot be read.
Spark SQL then builds the file as if this module did not exist, and says what is wrong with it. By then
nothing may be staged that SQL would stage with another content, because a name has one content. So SQL also
gets a file of more than one segment, which its batches would cut elsewhere, and one with bad rows, which it
puts aside with other columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, Query
from pinot_assets.ingest.contract.spark_formats import SPARK_LACKS
from pinot_assets.ingest.formats.binary_formats import check_values, count_rows
from pinot_assets.ingest.formats.content import plain_file
from pinot_assets.ingest.spark.own_reader import columns_for_sql, rows_for_sql
from pinot_assets.ingest.spark.tasks import MADE, conformed
from pinot_assets.ingest.task import build_from
from pinot_assets.segment.functions.pinot_functions import LongSteps
from pinot_assets.snapshot.receipt import FileResult, Fingerprint


class NeedsSql(Exception):
    """Only Spark SQL can build this file, or say why nothing can; no user sees this."""


_MOST_BYTES: Final = 8 << 20
"""Of a file in the store. Beside the rows of a larger file, the start of SQL costs little."""


def computable(build_spec: BuildSpec, query: Query, tasks: Sequence[FileTask]) -> list[FileTask]:
    """Return the small files, if Arrow can compute the query and the package's own reader reads them."""
    if not query.long_steps or build_spec.input_format not in SPARK_LACKS:
        return []
    return [task for task in tasks if task.file.fingerprint.size <= _MOST_BYTES]


def build_with_steps(build_spec: BuildSpec, task: FileTask) -> FileResult:
    """Build one file, as Spark SQL would; a failure means that Spark SQL has to look at the file."""
    query = build_spec.query or Query()
    steps = query.long_steps

    def rows(local: Path, _: Fingerprint, target: TargetSchema, verdicts: BadRowPolicy) -> Iterator[pa.Table]:
        plain = plain_file(local, build_spec.input_format, build_spec.limits)
        if plain is None or not steps:
            raise NeedsSql("no rows, or no steps")
        made = dict(steps)
        read = [step.column for step in made.values() if step.column not in made]
        used = query.columns_used(target.schema.names, read)
        schema = columns_for_sql(plain, build_spec.input_format, frozenset((*used, *made)), build_spec.limits)
        missing = tuple(name for name in used if name not in schema.names)
        if len(missing) == len(used):
            raise NeedsSql("no column of the table")
        if any(pt.is_decimal(field.type) for field in schema):
            raise NeedsSql("Spark rounds a decimal to the nearest double, and Arrow's cast may be off by one")
        verdicts.lacks(missing)
        number = taken = 0
        for batch in rows_for_sql(plain, build_spec, schema):
            table = pa.Table.from_batches([batch])
            check_values(table, build_spec.limits)
            numbers = range(number + 1, number + 1 + table.num_rows)
            number += table.num_rows
            good = conformed(with_made(table, steps), [*numbers], target, verdicts)
            taken += good.nbytes
            if number >= build_spec.max_rows_per_segment or 2 * taken > (
                build_spec.desired_segment_bytes or inf
            ):
                raise NeedsSql("more than one segment")
            if verdicts.bad_rows:
                raise NeedsSql("bad rows are put aside as Spark SQL has them")
            yield good
        verdicts.rows = count_rows(plain)

    return build_from(build_spec, task, rows)


def with_made(table: pa.Table, steps: Sequence[tuple[str, LongSteps]]) -> pa.Table:
    """Add the made values of all columns, under names that begin with `MADE`.

    As in Spark's query, a column is made only where the file's value is null, and later steps read both.

    :raises NeedsSql: a column is missing or has no whole numbers, or a product overflows.
    """
    now = {name: table.column(name) for name in table.column_names}
    for column, step in steps:
        made = _whole_numbers(now, step.column)
        if column in now:
            own = _whole_numbers(now, column)
            made = pc.if_else(own.is_valid(), pa.scalar(None, pa.int64()), made)
        for sign, number in step.steps:
            try:
                made = pc.multiply_checked(made, number) if sign == "*" else pc.divide(made, number)
            except pa.ArrowInvalid as error:
                raise NeedsSql(f"column {column} overflows") from error
        table = table.append_column(MADE + column, made)
        now[column] = pc.coalesce(own, made) if column in now else made
    return table


def _whole_numbers(columns: dict[str, pa.ChunkedArray], name: str) -> pa.ChunkedArray:
    if name not in columns or not pt.is_integer(columns[name].type):
        raise NeedsSql(f"column {name} has no whole numbers")
    return columns[name].cast(pa.int64())
