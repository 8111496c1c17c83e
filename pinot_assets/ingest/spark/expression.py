"""The only place where a text becomes Spark SQL: `filter`, `transforms`, and Pinot's functions, translated.

Spark would run code, read files and insert environment variables (`pinot_assets.expressions`). So this module
refuses a text before Spark sees it, whoever wrote it, and checks the tree again that Spark parsed from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.java_gateway import JavaObject
from pyspark.errors import ParseException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from pinot_assets.errors import BuildError
from pinot_assets.expressions.spark import OPERATORS, check_spark_expression, reads_table, spark_refusal
from pinot_assets.expressions.syntax import ExpressionRefused
from pinot_assets.ingest.spark.reader import use_in_thread


def column_of(sql: str) -> Column:
    """Return an expression as a Spark column.

    :raises BuildError: it contains what no expression may contain.
    """
    try:
        check_spark_expression(sql)
    except ExpressionRefused as refused:
        raise BuildError(f"an expression {refused.reason}", hint=refused.fix) from None
    return F.expr(sql)


def parsed(session: SparkSession, name: str, sql: str) -> JavaObject:
    """Return the tree of an expression from Spark's parser; columns and tables are not looked up.

    :param session: a `reading_session`.
    :param name: the key under which people know it: `filter`, `transforms.day`.
    :raises BuildError: it is no Spark SQL, or contains what no expression may contain.
    """
    try:
        check_spark_expression(sql)
        with _active(session):
            tree = session._jsparkSession.sessionState().sqlParser().parseExpression(sql)
        _check_tree(session, tree)
    except ExpressionRefused as refused:
        raise BuildError(f"{name} {refused.reason}", hint=refused.fix) from None
    except ParseException as error:
        raise BuildError(
            f"{name} is not Spark SQL", why=first_line(error), hint="write one expression, as in SELECT"
        ) from error
    return tree


def first_line(error: Exception) -> str:
    """Return Spark's message, without its plans and stack traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line[line.index("[") :] for line in lines if ": [" in line or line.startswith("[")]
    java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (named or java or lines or [type(error).__name__])[0][:500]


def items_of(sequence: JavaObject) -> list[JavaObject]:
    """Return the items of a Scala `Seq`."""
    return [sequence.apply(n) for n in range(sequence.size())]


def _check_tree(session: SparkSession, tree: JavaObject) -> None:
    """Refuse by the tree that Spark parsed, in case Spark reads the text differently than the first check."""
    jvm: JavaObject = session._jvm
    if tree.containsPattern(jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION()):
        raise reads_table("a subquery")
    for node in _nodes(tree):
        kind = node.getClass().getSimpleName()
        if kind == "ExpressionWithUnresolvedIdentifier":
            raise ExpressionRefused("calls IDENTIFIER(), whose argument is the name of another function")
        if kind == "UnresolvedFunction":
            name = ".".join(items_of(node.nameParts()))
            if name.lower() not in OPERATORS and (refused := spark_refusal(name)) is not None:
                raise refused


def _nodes(tree: JavaObject) -> Iterator[JavaObject]:
    yield tree
    for child in items_of(tree.children()):
        yield from _nodes(child)


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Apply the session's settings in this thread. Spark's parser takes those of the thread's session,
    variable substitution included, whichever session the parser came from."""
    classes: JavaObject = getattr(SparkSession, "_get_j_spark_session_class", lambda jvm: jvm.SparkSession)
    sessions = classes(session._jvm)
    before = sessions.getActiveSession()
    use_in_thread(session)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
