"""The one place where a text becomes Spark SQL: `filter`, `transforms`, and Pinot's functions as translated.

Spark would run code, read files and put variables of the environment into it (`pinot_assets.expressions`). So
a text is refused here before Spark sees it, whoever made it, and once more by the tree that Spark made of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.java_gateway import JavaObject
from pyspark.errors import ParseException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from pinot_assets.errors import BuildError
from pinot_assets.expressions.spark import OPERATORS, check_spark_expression, reads_table, refused_function
from pinot_assets.expressions.syntax import ExpressionRefused
from pinot_assets.ingest.spark.reader import use_in_thread


def compiled(sql: str) -> Column:
    """An expression as a column.

    :raises BuildError: it says what no expression may say.
    """
    try:
        check_spark_expression(sql)
    except ExpressionRefused as refused:
        raise BuildError(f"an expression {refused.reason}", hint=refused.fix) from None
    return F.expr(sql)


def parsed(session: SparkSession, name: str, sql: str) -> JavaObject:
    """An expression as Spark's parser reads it; no column or table is looked up.

    :param session: a `reading_session`.
    :param name: what people call it: `filter`, `transforms.day`.
    :raises BuildError: it is no Spark SQL, or says what no expression may say.
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
    """What Spark says, without its plans and stack traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line[line.index("[") :] for line in lines if ": [" in line or line.startswith("[")]
    java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (named or java or lines or [type(error).__name__])[0][:500]


def items_of(sequence: JavaObject) -> list[JavaObject]:
    """What a `Seq` of Scala's holds."""
    return [sequence.apply(n) for n in range(sequence.size())]


def _check_tree(session: SparkSession, tree: JavaObject) -> None:
    """Refuse by what Spark has read, should it ever be something else than what was read here."""
    jvm: JavaObject = session._jvm
    if tree.containsPattern(jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION()):
        raise reads_table("a subquery")
    for node in _nodes(tree):
        kind = node.getClass().getSimpleName()
        if kind == "ExpressionWithUnresolvedIdentifier":
            raise ExpressionRefused("calls IDENTIFIER(), whose argument is the name of another function")
        if kind == "UnresolvedFunction":
            name = ".".join(items_of(node.nameParts()))
            if name.lower() not in OPERATORS and (refused := refused_function(name)) is not None:
                raise refused


def _nodes(tree: JavaObject) -> Iterator[JavaObject]:
    yield tree
    for child in items_of(tree.children()):
        yield from _nodes(child)


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Have the session's settings count in this thread: Spark's parser takes those of the thread's session,
    that of substitution as well, whichever session it was taken from."""
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
