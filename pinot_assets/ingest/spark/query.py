"""A `Query` on a file's DataFrame.

Refused unless it gives the same rows every time and keeps the file one partition throughout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pinot_assets.core.file_errors import Unreadable
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import BuildError
from pinot_assets.ingest.contract.query import Query
from pinot_assets.ingest.contract.target_schema import TargetSchema
from pinot_assets.ingest.spark.expression import compiled, first_line, parsed
from pinot_assets.ingest.spark.record_transforms import ExpressionFailed, apply_pinot, table_columns
from pinot_assets.ingest.spark.rows import CORRUPT, END, ROW
from pinot_assets.segment.config.transforms import quoted

_NARROW: Final = frozenset(("Project", "Filter"))
_MOVING: Final = re.compile(
    r"""\b(?:date|timestamp|timestamp_ltz|timestamp_ntz)
        (?:\s|/\*.*?\*/|--[^\n]*\n)*
        r?(['"])\s*(?:now|today|tomorrow|yesterday)\b.*?\1""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
"""Literals of Spark's that are another moment every day, and constants like others once they are parsed."""


def check_expressions(session: SparkSession, query: Query, table: str) -> None:
    """Whether all of them are SQL that may run and says the same every day, before any file is looked at.

    :param table: whose they are, for the error.
    :raises BuildError: one is not.
    """
    for name, sql in query.expressions.items():
        if (found := moving_literal(sql)) is not None:
            raise _unsteady(BuildError, f"{table}: {name}: {found} is")
        parsed(session, f"{table}: {name}", sql)


def moving_literal(sql: str) -> str | None:
    """The first literal like `date'today'` in an expression."""
    found = _MOVING.search(sql)
    return None if found is None else found[0]


def columns_read(session: SparkSession, query: Query, wanted: TargetSchema) -> tuple[str, ...]:
    """Columns of the expressions, and columns of the table that none of them makes."""
    made = {*query.transforms, *dict(query.derived)}
    read = [name for key, sql in query.expressions.items() for name in _references(parsed(session, key, sql))]
    return tuple(dict.fromkeys([*(c for c in wanted.schema.names if c not in made), *read]))


def untouched_json(session: SparkSession, query: Query, wanted: TargetSchema) -> frozenset[str]:
    """JSON columns that are to be what stands in the file: no expression reads them, or makes them."""
    if not wanted.json:
        return frozenset()
    trees = [parsed(session, key, sql) for key, sql in query.expressions.items()]
    if any(name.startswith("UnresolvedStar") for tree in trees for name, _ in _leaves(tree)):
        return frozenset()
    read = {name for tree in trees for name in _references(tree)}
    return wanted.json - read - {*query.transforms, *dict(query.derived)}


def missing_columns(frame: DataFrame, query: Query, used: Sequence[str]) -> tuple[str, ...]:
    """What the file lacks.

    :param used: `columns_read`.
    :raises Unreadable: it has none of all that.
    """
    made = {*query.transforms, *dict(query.derived)}
    ours = {*made, "_metadata"} if query.derived or query.dropped else {"_metadata"}
    missing = tuple(name for name in used if name not in frame.columns and name not in ours)
    if used and len(missing) == len(used):
        names = [name for name in frame.columns if name != CORRUPT]
        raise Unreadable(
            "the file has none of the table's columns",
            why=f"its columns are {', '.join(names)[:200]}" if names else "no row of it can be taken apart",
        )
    return missing


def shaped(frame: DataFrame, query: Query, missing: Iterable[str], wanted: TargetSchema) -> DataFrame:
    """One partition with the wanted columns, `ROW`, `CORRUPT` and `END`; the last row is the mark.

    :raises ExpressionFailed: an expression is wrong for this file, or not the same every time.
    """
    try:
        _check(_query(frame, F.lit(0), query, missing, wanted))
        rows = _query(frame, F.monotonically_increasing_id(), query, missing, wanted)
    except PySparkException as error:
        raise ExpressionFailed(
            "an expression cannot be applied to the file", why=first_line(error)
        ) from error
    mark = frame.sparkSession.range(1).select(
        *[F.lit(None).cast(field.dataType).alias(field.name) for field in rows.schema], F.lit(True).alias(END)
    )
    return rows.withColumn(END, F.lit(False)).union(mark).coalesce(1)


def _query(
    frame: DataFrame, number: Column, query: Query, missing: Iterable[str], wanted: TargetSchema
) -> DataFrame:
    frame = frame.select("*", number.alias(ROW))
    if CORRUPT not in frame.columns:
        frame = frame.withColumn(CORRUPT, F.lit(None).cast("string"))
    broken = F.col(quoted(CORRUPT)).isNotNull()  # such a row is told of, whatever the expressions say
    members = _members(frame.sparkSession, query)
    frame = frame.withColumns({name: F.lit(None).cast(_null_type(members.get(name, {}))) for name in missing})
    if query.where:
        frame = frame.where(broken | compiled(query.where))
    if query.transforms:
        frame = frame.withColumns({c: F.when(~broken, compiled(sql)) for c, sql in query.transforms.items()})
    if query.derived or query.dropped:
        frame = apply_pinot(frame, query, broken)
    return frame.select(*table_columns(frame, wanted), F.col(quoted(ROW)), F.col(quoted(CORRUPT)))


def _members(session: SparkSession, query: Query) -> JsonObject:
    """The names that expressions read, as a tree: `a.b` and `a.c` are {a: {b, c}}."""
    tree: JsonObject = {}
    for name, sql in query.expressions.items():
        for path in _paths(parsed(session, name, sql)):
            place = tree
            for step in path:
                place = place.setdefault(step, {})
    return tree


def _null_type(members: JsonObject) -> str:
    """The type of a column that is not there: expressions that read its members are to find them."""
    if not members:
        return "string"
    return f"struct<{','.join(f'{quoted(name)}:{_null_type(below)}' for name, below in members.items())}>"


def _check(frame: DataFrame) -> None:
    plan = frame._jdf.queryExecution().analyzed()
    jvm: Any = frame.sparkSession._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    if not plan.deterministic() or plan.containsPattern(patterns.CURRENT_LIKE()):
        raise _unsteady(ExpressionFailed, "an expression gives")
    wide = sorted({node.nodeName() for node in _inner(plan)} - _NARROW)
    if wide or not plan.subqueriesAll().isEmpty():
        raise ExpressionFailed(
            f"an expression does more than a row at a time: {', '.join(wide) or 'a subquery'}",
            why="a file is one partition from its first row to its last",
            hint="aggregates, windows, explode and subqueries belong upstream",
        )


def _unsteady(kind: type[BuildError], what: str) -> BuildError:
    return kind(
        f"{what} another value each time",
        why="a file that is built twice must become the same segment",
        hint="leave out rand, uuid, now, current_timestamp, date'today' and the like",
    )


def _inner(plan: Any) -> Iterator[Any]:
    """The plan's nodes but for the file itself."""
    children = plan.children()
    if children.size():
        yield plan
    for n in range(children.size()):
        yield from _inner(children.apply(n))


def _references(expression: Any) -> Iterator[str]:
    """First parts of the names of columns in a parsed expression."""
    return (path[0] for path in _paths(expression))


def _paths(expression: Any) -> Iterator[list[str]]:
    """Names of columns in a parsed expression, part by part."""
    for name, leaf in _leaves(expression):
        if name == "UnresolvedAttribute":
            parts = leaf.nameParts()
            yield [parts.apply(k) for k in range(parts.size())]


def _leaves(expression: Any) -> Iterator[tuple[str, Any]]:
    """With the names of their classes."""
    leaves = expression.collectLeaves()
    for n in range(leaves.size()):
        leaf = leaves.apply(n)
        yield leaf.getClass().getSimpleName(), leaf
