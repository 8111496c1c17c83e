"""Apply a `Query` to a file's DataFrame.

Refuse it unless it gives the same rows every time and keeps the file as one partition throughout.

Pinot's `transformConfigs` and `filterConfig` are applied as Pinot's record transformers apply them. A
transform fills a column only where it is null; a value from the file stays as it is. So file values and made
values travel in two columns, each with its own type. `tasks` merges them when both have the table's type: a
common SQL type of BIGINT and DOUBLE would round the file's values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow.types as pt
from py4j.java_gateway import JavaObject
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pinot_assets.core.file_errors import FileRejected, Unreadable
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import BuildError
from pinot_assets.ingest.contract.accepted_rows import TargetSchema
from pinot_assets.ingest.contract.build_spec import Query
from pinot_assets.ingest.spark.arrow_frame import SOURCES
from pinot_assets.ingest.spark.expression import column_of, first_line, items_of, parsed
from pinot_assets.ingest.spark.tasks import CORRUPT, END, MADE, ROW
from pinot_assets.segment.config.transforms import Translation, spark_name

_FILES: Final = "#file's "  # prefix of a column's name: the column's values in the file
_INSTANTS: Final = (TimestampType, TimestampNTZType)
_PLAIN: Final = (NumericType, StringType, BooleanType, *_INSTANTS)
_CERTAIN_TEXT: Final = (StringType, IntegralType, BooleanType)  # Java and Spark print other types differently
_HINT: Final = "make the column with transforms in fileIngestion instead"


class ExpressionFailed(FileRejected):
    """The table's SQL cannot be applied to this file."""

    code = "EXPRESSION"


def apply_pinot(frame: DataFrame, query: Query, broken: Column) -> DataFrame:
    """Fill the columns of `transformConfigs`, then drop the rows of `filterConfig`.

    :param broken: true for the rows that Spark could not parse; no filter drops them.
    :returns: the frame with more columns, from which `table_columns` selects.
    :raises ExpressionFailed: the value that Pinot would make of a column is not certain.
    """
    steps = [made for _, made in query.derived] + ([query.dropped] if query.dropped else [])
    for step in steps:
        _check_texts(frame, step)  # the file's types here; in the loop below, those that functions gave
    frame = _epochs(frame, {*dict(query.derived), *_read(steps)})
    for n, (column, made) in enumerate(query.derived):
        _check_texts(frame, made)
        frame = _filled(frame, column, made, broken)
        if column not in frame.columns and column in _read(steps[n + 1 :]):
            kinds = [frame.schema[prefix + column].dataType.simpleString() for prefix in (_FILES, MADE)]
            raise ExpressionFailed(
                f"column {column}: {kinds[0]} in the file, {kinds[1]} by transformConfigs, and "
                "another function reads it",
                hint=_HINT,
            )
    if query.dropped is not None:
        _check_texts(frame, query.dropped)
        frame = frame.where(broken | ~F.coalesce(column_of(query.dropped.sql), F.lit(False)))
    return frame


def table_columns(frame: DataFrame, target: TargetSchema) -> list[Column]:
    """Return the table's columns: file values under their names, made values under names with `MADE`."""
    columns = []
    for name in target.schema.names:
        has_made = MADE + name in frame.columns
        files = _FILES + name if has_made else name
        if files in frame.columns:
            columns.append(_to_arrow(frame, files, name, target).alias(name))
        if has_made:
            columns.append(_converted(frame, name, target).alias(MADE + name))
    return columns


def _read(steps: Iterable[Translation]) -> set[str]:
    return {name for step in steps for name in step.columns}


def _epochs(frame: DataFrame, names: set[str]) -> DataFrame:
    """Turn times into epoch milliseconds, in the columns that Pinot's functions read or fill."""
    for field in frame.schema:
        if field.name not in names:
            continue
        if isinstance(field.dataType, DateType) or not isinstance(field.dataType, _PLAIN):
            raise ExpressionFailed(
                f"column {field.name}: there is no translation for {field.dataType.simpleString()}",
                hint=_HINT,
            )
        if isinstance(field.dataType, _INSTANTS):
            moment = F.col(spark_name(field.name)).cast("timestamp")
            frame = frame.withColumn(field.name, F.unix_millis(moment))
    return frame


def _check_texts(frame: DataFrame, step: Translation) -> None:
    for field in frame.schema:
        if field.name in step.texts and not isinstance(field.dataType, _CERTAIN_TEXT):
            raise ExpressionFailed(
                f"column {field.name}: {field.dataType.simpleString()} is used as text",
                why="Spark's text of such a value differs from Java's",
                hint=_HINT,
            )


def _filled(frame: DataFrame, column: str, made: Translation, broken: Column) -> DataFrame:
    """Add the made values of a column; if they share a type with the file's, merge both for later steps."""
    value = column_of(made.sql)
    if column not in frame.columns:
        frame = frame.withColumn(MADE + column, F.when(~broken, value))
        return frame.withColumn(column, F.col(spark_name(MADE + column)))
    files, own = F.col(spark_name(_FILES + column)), F.col(spark_name(MADE + column))
    # Pinot does not call the function where the file has a value: there it must not fail here either.
    value = F.when(~broken & F.col(spark_name(column)).isNull(), value)
    frame = frame.withColumns({_FILES + column: F.col(spark_name(column)), MADE + column: value})
    one, other = frame.schema[_FILES + column].dataType, frame.schema[MADE + column].dataType
    # Merge only if a common type holds every value of both.
    if one == other or (isinstance(one, IntegralType) and isinstance(other, IntegralType)):
        return frame.withColumn(column, F.coalesce(files, own))
    if isinstance(one, StringType) and isinstance(other, _CERTAIN_TEXT):
        return frame.withColumn(column, F.coalesce(files, own.cast("string")))
    return frame.drop(column)


def _converted(frame: DataFrame, name: str, target: TargetSchema) -> Column:
    """Return a made column as Pinot's `DataTypeTransformer` converts it: whole numbers lose their fraction.

    Source: `PinotDataType.DOUBLE.toLong`; but here a value that does not fit is an error.
    """
    kind = target.schema.field(name).type
    item = kind.value_type if pt.is_list(kind) else kind
    is_whole = pt.is_integer(item) or pt.is_timestamp(item)
    if is_whole and isinstance(frame.schema[MADE + name].dataType, FractionalType):
        return F.col(spark_name(MADE + name)).cast("bigint")
    return _to_arrow(frame, MADE + name, name, target)


def _to_arrow(frame: DataFrame, column: str, name: str, target: TargetSchema) -> Column:
    # Java rounds a decimal to the nearest double; Arrow's cast may be off by one.
    is_decimal = isinstance(frame.schema[column].dataType, DecimalType)
    if is_decimal and pt.is_floating(target.schema.field(name).type):
        return F.col(spark_name(column)).cast("double")
    return F.col(spark_name(column))


_NARROW: Final = frozenset(("Project", "Filter"))
_MOVING: Final = re.compile(
    r"""\b(?:date|timestamp|timestamp_ltz|timestamp_ntz)
        (?:\s|/\*.*?\*/|--[^\n]*\n)*
        r?(['"])\s*(?:now|today|tomorrow|yesterday)\b.*?\1""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""Spark's literals with another value every day; after parsing they look like any other constant."""


def check_expressions(session: SparkSession, query: Query, table: str) -> None:
    """Check, before any file is read, that all expressions are valid SQL that gives the same every day.

    :param table: the table's name, for the error.
    :raises BuildError: an expression is not.
    """
    for name, sql in query.expressions.items():
        if (literal := moving_literal(sql)) is not None:
            raise _unsteady(BuildError, f"{table}: {name}: {literal} is")
        parsed(session, f"{table}: {name}", sql)


def moving_literal(sql: str) -> str | None:
    """Return the first literal like `date'today'` in an expression, None if it has none."""
    match = _MOVING.search(sql)
    return None if match is None else match[0]


def columns_read(session: SparkSession, query: Query, target: TargetSchema) -> tuple[str, ...]:
    """Return what `Query.columns_used` returns, with the columns that Spark's parser finds in expressions."""
    read = [name for key, sql in query.expressions.items() for name in _references(parsed(session, key, sql))]
    return query.columns_used(target.schema.names, read)


def untouched_json(session: SparkSession, query: Query, target: TargetSchema) -> frozenset[str]:
    """Return the JSON columns to keep as the file's text: no expression reads or makes them."""
    if not target.json:
        return frozenset()
    if reads_all_columns(session, query):
        return frozenset()
    trees = [parsed(session, key, sql) for key, sql in query.expressions.items()]
    read = {name for tree in trees for name in _references(tree)}
    return target.json - read - {*query.transforms, *dict(query.derived)}


def reads_all_columns(session: SparkSession, query: Query) -> bool:
    """Whether an expression reads all columns of a file: `struct(*)`."""
    trees = [parsed(session, key, sql) for key, sql in query.expressions.items()]
    return any(name.startswith("UnresolvedStar") for tree in trees for name, _ in _leaves(tree))


def missing_columns(frame: DataFrame, query: Query, used: Sequence[str]) -> tuple[str, ...]:
    """Return which columns the file lacks.

    :param used: the result of `columns_read`.
    :raises Unreadable: the file has none of them.
    """
    made = {*query.transforms, *dict(query.derived)}
    ours = {*made, "_metadata"} if query.derived or query.dropped else {"_metadata"}
    missing = tuple(name for name in used if name not in frame.columns and name not in ours)
    if used and len(missing) == len(used):
        names = [name for name in frame.columns if name != CORRUPT]
        raise Unreadable(
            "the file has none of the table's columns",
            why=f"its columns are {', '.join(names)[:200]}" if names else "no row of it can be read",
        )
    return missing


def shaped(frame: DataFrame, query: Query, missing: Iterable[str], target: TargetSchema) -> DataFrame:
    """Return one partition with the wanted columns, `ROW`, `CORRUPT` and `END`; the last row is the mark.

    :raises ExpressionFailed: an expression is wrong for this file, or gives another value each time.
    """
    rows = _checked(frame, query, missing, target)
    mark = frame.sparkSession.range(1).select(
        *[F.lit(None).cast(field.dataType).alias(field.name) for field in rows.schema], F.lit(True).alias(END)
    )
    return rows.withColumn(END, F.lit(False)).union(mark).coalesce(1)


def shaped_with_marks(
    frame: DataFrame, query: Query, missing: Iterable[str], target: TargetSchema
) -> DataFrame:
    """Return the same columns for a frame of `frame_of_files`: a partition a file, with its mark at the end.

    As a row that cannot be parsed, the mark passes every filter, and no expression is applied to it.

    :raises ExpressionFailed: as `shaped`.
    """
    rows = _checked(frame, query, missing, target)
    is_mark = F.col(spark_name(CORRUPT)).isNotNull()
    return rows.withColumns({ROW: F.when(~is_mark, F.col(spark_name(ROW))), END: is_mark})


def _checked(frame: DataFrame, query: Query, missing: Iterable[str], target: TargetSchema) -> DataFrame:
    try:
        _check(_query(frame, F.lit(0), query, missing, target))
        return _query(frame, F.monotonically_increasing_id(), query, missing, target)
    except PySparkException as error:
        raise ExpressionFailed(
            "an expression cannot be applied to the file", why=first_line(error)
        ) from error


def _query(
    frame: DataFrame, number: Column, query: Query, missing: Iterable[str], target: TargetSchema
) -> DataFrame:
    frame = frame.select("*", number.alias(ROW))
    if CORRUPT not in frame.columns:
        frame = frame.withColumn(CORRUPT, F.lit(None).cast("string"))
    broken = F.col(spark_name(CORRUPT)).isNotNull()  # such a row is reported, whatever the expressions say
    members = _members(frame.sparkSession, query)
    frame = frame.withColumns({name: F.lit(None).cast(_null_type(members.get(name, {}))) for name in missing})
    if query.where:
        frame = frame.where(broken | column_of(query.where))
    if query.transforms:
        frame = frame.withColumns({c: F.when(~broken, column_of(sql)) for c, sql in query.transforms.items()})
    if query.derived or query.dropped:
        frame = apply_pinot(frame, query, broken)
    return frame.select(*table_columns(frame, target), F.col(spark_name(ROW)), F.col(spark_name(CORRUPT)))


def _members(session: SparkSession, query: Query) -> JsonObject:
    """Return the names that expressions read, as a tree: `a.b` and `a.c` become {a: {b: {}, c: {}}}."""
    tree: JsonObject = {}
    for name, sql in query.expressions.items():
        for path in _paths(parsed(session, name, sql)):
            place = tree
            for step in path:
                place = place.setdefault(step, {})
    return tree


def _null_type(members: JsonObject) -> str:
    """Return the SQL type of a missing column: a struct with the members that expressions read, or text."""
    if not members:
        return "string"
    return f"struct<{','.join(f'{spark_name(name)}:{_null_type(below)}' for name, below in members.items())}>"


def _check(frame: DataFrame) -> None:
    plan = frame._jdf.queryExecution().analyzed()
    jvm: JavaObject = frame.sparkSession._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    if not plan.deterministic() or plan.containsPattern(patterns.CURRENT_LIKE()):
        raise _unsteady(ExpressionFailed, "an expression gives")
    wide = sorted({node.nodeName() for node in _inner(plan)} - _NARROW)
    if wide or not plan.subqueriesAll().isEmpty():
        raise ExpressionFailed(
            f"an expression uses more than one row: {', '.join(wide) or 'a subquery'}",
            why="a file is one partition from its first row to its last",
            hint="use aggregates, windows, explode and subqueries before the files are delivered",
        )


def _unsteady(kind: type[BuildError], what: str) -> BuildError:
    return kind(
        f"{what} another value each time",
        why="a file that is built twice must give the same segment",
        hint="remove rand, uuid, now, current_timestamp, date'today' and the like",
    )


def _inner(plan: JavaObject) -> Iterator[JavaObject]:
    """Yield the plan's nodes except the leaf, or `SOURCES` instead of it: that is the file itself."""
    if plan.nodeName() in SOURCES:
        return
    if children := items_of(plan.children()):
        yield plan
    for child in children:
        yield from _inner(child)


def _references(expression: JavaObject) -> Iterator[str]:
    """Yield the first part of each column name in a parsed expression."""
    return (path[0] for path in _paths(expression))


def _paths(expression: JavaObject) -> Iterator[list[str]]:
    """Yield each column name in a parsed expression, as a list of its parts."""
    for name, leaf in _leaves(expression):
        if name == "UnresolvedAttribute":
            yield items_of(leaf.nameParts())


def _leaves(expression: JavaObject) -> Iterator[tuple[str, JavaObject]]:
    """Yield each leaf of the expression's tree after the name of its class."""
    for leaf in items_of(expression.collectLeaves()):
        yield leaf.getClass().getSimpleName(), leaf
