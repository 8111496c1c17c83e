"""Spark against the lists of its functions, and the rows that expressions gave before there were any."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fakes.expressions.hostile import COSTLY_IN_SPARK, HOSTILE
from fakes.expressions.legitimate import LEGITIMATE
from fakes.expressions.rows import ASSERTED, frame_of, recorded, rows_of, spark_sql_of
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from pinot_assets.errors import BuildError
from pinot_assets.expressions.completeness import check_whole
from pinot_assets.expressions.spark import ALLOWED, OPERATORS, REFUSED
from pinot_assets.expressions.syntax import SPARK, read_tokens
from pinot_assets.ingest.spark import expression
from pinot_assets.ingest.spark.expression import column_of, parsed
from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.ingest.spark.reader import reading_session

pytestmark = pytest.mark.spark

SUBSTITUTE = "spark.sql.variable.substitute"


@pytest.fixture(scope="module")
def users_session() -> Iterator[SparkSession]:
    """A user's own, which puts variables into SQL, as Spark's do by themselves."""
    started = local_session("spark functions", 1)
    started.conf.set(SUBSTITUTE, "true")
    yield started
    started.stop()


@pytest.fixture(scope="module")
def session(users_session: SparkSession) -> SparkSession:
    return reading_session(users_session)


def test_every_function_of_spark_is_on_one_of_the_lists(session: SparkSession) -> None:
    functions = {row[0] for row in session.sql("SHOW FUNCTIONS").collect()}
    assert functions - ALLOWED - OPERATORS - REFUSED.keys() == set()
    unknown = (ALLOWED | REFUSED.keys()) - functions
    assert not unknown or session.version < "4.3", (
        f"no function of Spark {session.version}: {sorted(unknown)}"
    )


def test_expressions_give_the_rows_that_they_gave(users_session: SparkSession) -> None:
    _, frame = frame_of(users_session)
    before = recorded()
    of_files = [key for key in LEGITIMATE if key[0] not in ASSERTED]
    now = rows_of(frame, {key: column_of(spark_sql_of(*key)) for key in of_files})
    assert [(key, before[key], now[key]) for key in of_files if before[key] != now[key]] == []


def test_spark_reads_what_people_write_as_calls_of_listed_functions(session: SparkSession) -> None:
    for place, sql in LEGITIMATE:
        if place not in ASSERTED:
            parsed(session, place, spark_sql_of(place, sql))


def test_what_spark_shows_of_its_functions_is_whole(session: SparkSession) -> None:
    """The examples of its own documentation, as far as they are expressions to its parser."""
    examples = {
        found
        for name in ALLOWED
        for row in session.sql(f"DESCRIBE FUNCTION EXTENDED `{name}`").collect()
        for found in re.findall(r"> SELECT (.*?);\s*$", row[0], re.MULTILINE)
    }
    parser = session._jsparkSession.sessionState().sqlParser()
    whole = 0
    for sql in sorted(examples):
        try:
            parser.parseExpression(sql)
        except ParseException:
            continue  # several values, or a FROM
        check_whole(read_tokens(sql, SPARK))
        whole += 1
    assert whole > 500


def test_the_environment_stays_out_whatever_the_users_session_says(
    users_session: SparkSession, session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The JVM's own environment: it may have been started by another test, when this process's was another.
    value = users_session.sparkContext._jvm.java.lang.System.getenv("PATH")
    literal = "'${env:PATH}'"
    assert users_session.sql(f"SELECT {literal}").collect()[0][0] == value, "Spark does substitute"
    monkeypatch.setattr(expression, "check_spark_expression", lambda sql: None)
    expression.use_in_thread(users_session)
    tree = parsed(session, "filter", literal)
    assert str(tree.toString()) == literal.strip("'")
    assert users_session.sql(f"SELECT {literal}").collect()[0][0] == value, "and is as it was"
    _, frame = frame_of(users_session)
    assert frame.select(column_of(literal)).first() == (literal.strip("'"),)


CALLS = sorted(
    {sql for place, sql in HOSTILE if place == "filter" and "${" not in sql} - set(COSTLY_IN_SPARK)
)
"""What an expression costs is not looked at again."""
NO_CALLS = {
    "/* /* */ reflect('a', 'b') -- */ carrier",  # to Spark, the comment ends where the second one does
    "carrier -- over \\\n the end",
    "carrier = ?",
    "carrier = :name",
    "current_timestamp",
    "current_user",
}
"""What Spark takes for columns, values and comments. A parameter has no value, and `spark_query` refuses what
the last two become."""


def test_what_spark_has_read_is_looked_at_as_well(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should our reading ever be another one than Spark's: the tree has the names that Spark will call."""
    monkeypatch.setattr(expression, "check_spark_expression", lambda sql: None)
    assert {sql for sql in CALLS if not is_refused(session, sql)} == NO_CALLS


def is_refused(session: SparkSession, sql: str) -> bool:
    try:
        parsed(session, "filter", sql)
    except BuildError:
        return True
    return False
