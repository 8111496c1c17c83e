"""Pinot's `transformConfigs` and `filterConfig` on a file's DataFrame, as its record transformers apply them.

A column is filled where it is null, and what is there stays what it is. So the file's values and the made
ones travel side by side, each in a type of its own, and become one column where both have the table's type
(`rows`): a common SQL type of BIGINT and DOUBLE would round what stands in the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow.types as pt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pinot_assets.core.file_errors import FileRejected
from pinot_assets.ingest.contract.query import Query
from pinot_assets.ingest.contract.target_schema import TargetSchema
from pinot_assets.ingest.spark.expression import compiled
from pinot_assets.ingest.spark.rows import MADE
from pinot_assets.segment.config.transforms import Translation, quoted

_FILES: Final = "#file's "  # before the name of a column: its values in the file
_INSTANTS: Final = (TimestampType, TimestampNTZType)
_PLAIN: Final = (NumericType, StringType, BooleanType, *_INSTANTS)
_CERTAIN_TEXT: Final = (StringType, IntegralType, BooleanType)  # the text of others is a matter of taste
_HINT: Final = "make the column with transforms in fileIngestion instead"


class ExpressionFailed(FileRejected):
    """The table's SQL cannot be applied to this file."""

    code = "EXPRESSION"


def apply_pinot(frame: DataFrame, query: Query, broken: Column) -> DataFrame:
    """Fill the columns of `transformConfigs`, then leave out the rows of `filterConfig`.

    :param broken: rows that stay, whatever is said of them.
    :returns: with more columns, which `table_columns` knows to choose from.
    :raises ExpressionFailed: what Pinot would make of a column is not certain.
    """
    steps = [made for _, made in query.derived] + ([query.dropped] if query.dropped else [])
    for step in steps:
        _check_texts(frame, step)  # of the file's types; below, of those that functions gave
    frame = _epochs(frame, {*dict(query.derived), *_read(steps)})
    for n, (column, made) in enumerate(query.derived):
        _check_texts(frame, made)
        frame = _filled(frame, column, made, broken)
        if column not in frame.columns and column in _read(steps[n + 1 :]):
            raise _mixed(frame, column)
    if query.dropped is not None:
        _check_texts(frame, query.dropped)
        frame = frame.where(broken | ~F.coalesce(compiled(query.dropped.sql), F.lit(False)))
    return frame


def table_columns(frame: DataFrame, wanted: TargetSchema) -> list[Column]:
    """The table's columns: the file's values under their names, the made ones with `MADE` before it."""
    found = []
    for name in wanted.schema.names:
        has_made = MADE + name in frame.columns
        files = _FILES + name if has_made else name
        if files in frame.columns:
            found.append(_to_arrow(frame, files, name, wanted).alias(name))
        if has_made:
            found.append(_converted(frame, name, wanted).alias(MADE + name))
    return found


def _read(steps: Iterable[Translation]) -> set[str]:
    return {name for step in steps for name in step.columns}


def _epochs(frame: DataFrame, names: set[str]) -> DataFrame:
    """Times as epoch milliseconds in the columns that Pinot's functions read or fill."""
    for field in frame.schema:
        if field.name not in names:
            continue
        if isinstance(field.dataType, DateType) or not isinstance(field.dataType, _PLAIN):
            raise ExpressionFailed(
                f"column {field.name}: there is no translation for {field.dataType.simpleString()}",
                hint=_HINT,
            )
        if isinstance(field.dataType, _INSTANTS):
            moment = F.col(quoted(field.name)).cast("timestamp")
            frame = frame.withColumn(field.name, F.unix_millis(moment))
    return frame


def _check_texts(frame: DataFrame, step: Translation) -> None:
    for field in frame.schema:
        if field.name in step.texts and not isinstance(field.dataType, _CERTAIN_TEXT):
            raise ExpressionFailed(
                f"column {field.name}: {field.dataType.simpleString()} is used as text",
                why="Spark's text of such a value is not Java's",
                hint=_HINT,
            )


def _filled(frame: DataFrame, column: str, made: Translation, broken: Column) -> DataFrame:
    """With what is made of a column, and the column as the steps that follow see it, where there is such."""
    value = compiled(made.sql)
    if column not in frame.columns:
        frame = frame.withColumn(MADE + column, F.when(~broken, value))
        return frame.withColumn(column, F.col(quoted(MADE + column)))
    files, own = F.col(quoted(_FILES + column)), F.col(quoted(MADE + column))
    # Where the file has a value, Pinot does not look at the function: there it must not fail either.
    value = F.when(~broken & F.col(quoted(column)).isNull(), value)
    frame = frame.withColumns({_FILES + column: F.col(quoted(column)), MADE + column: value})
    types = frame.schema[_FILES + column].dataType, frame.schema[MADE + column].dataType
    if _alike(*types):
        return frame.withColumn(column, F.coalesce(files, own))
    if isinstance(types[0], StringType) and isinstance(types[1], _CERTAIN_TEXT):
        return frame.withColumn(column, F.coalesce(files, own.cast("string")))
    return frame.drop(column)


def _alike(one: DataType, other: DataType) -> bool:
    """Whether a common type holds every value of both."""
    return one == other or (isinstance(one, IntegralType) and isinstance(other, IntegralType))


def _mixed(frame: DataFrame, column: str) -> ExpressionFailed:
    kinds = [frame.schema[prefix + column].dataType.simpleString() for prefix in (_FILES, MADE)]
    return ExpressionFailed(
        f"column {column}: {kinds[0]} in the file, {kinds[1]} by transformConfigs, and another function "
        "reads it",
        hint=_HINT,
    )


def _converted(frame: DataFrame, name: str, wanted: TargetSchema) -> Column:
    """A made column as Pinot's `DataTypeTransformer` takes it: fractions are cut off for whole numbers.

    Source: `PinotDataType.DOUBLE.toLong`, but that what does not fit is an error.
    """
    target = wanted.schema.field(name).type
    item = target.value_type if pt.is_list(target) else target
    is_whole = pt.is_integer(item) or pt.is_timestamp(item)
    if is_whole and isinstance(frame.schema[MADE + name].dataType, FractionalType):
        return F.col(quoted(MADE + name)).cast("bigint")
    return _to_arrow(frame, MADE + name, name, wanted)


def _to_arrow(frame: DataFrame, column: str, name: str, wanted: TargetSchema) -> Column:
    # Java rounds a decimal to the nearest double; Arrow's cast may be off by one.
    is_decimal = isinstance(frame.schema[column].dataType, DecimalType)
    if is_decimal and pt.is_floating(wanted.schema.field(name).type):
        return F.col(quoted(column)).cast("double")
    return F.col(quoted(column))
