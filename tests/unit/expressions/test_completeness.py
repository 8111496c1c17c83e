"""Expressions that are not whole: refused before Spark or Pinot sees them, with the place."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from fakes.expressions.legitimate import LEGITIMATE

from pinot_assets.errors import BuildError
from pinot_assets.expressions.completeness import CLAUSES, check_whole
from pinot_assets.expressions.pinot import check_question
from pinot_assets.expressions.spark import check_spark_expression
from pinot_assets.expressions.syntax import PINOT, SPARK, ExpressionRefused, read_tokens
from pinot_assets.ingest.spark.expression import column_of

TORN = [
    # brackets
    ("(a > 1", "has ( at character 1 that is not closed"),
    ("a > 1 AND (b < 2", "has ( at character 11 that is not closed"),
    ("a > 1)", "has ) at character 6 that nothing opened"),
    ("upper(a))", "has ) at character 9 that nothing opened"),
    ("a[1", "has [ at character 2 that is not closed"),
    ("a[1)", "has ) at character 4 that nothing opened"),
    ("concat(a, [b])", "before [ at character 11"),
    ("CAST(a AS INT", "has ( at character 5 that is not closed"),
    ("()", "lacks a value behind ( at character 1, before ) at character 2"),
    # operators
    ("a >", "lacks a value behind > at character 3, before its end"),
    ("> 1", "lacks a value, before > at character 1"),
    ("a AND", "lacks a value behind AND at character 3, before its end"),
    ("OR a", "lacks a value, before OR at character 1"),
    ("a AND\n OR b", "lacks a value behind AND at character 3, before OR at character 8"),
    ("a = = b", "before = at character 5"),
    ("a < > b", "before > at character 5"),
    ("a !== b", "before = at character 5"),
    ("a && b", "before & at character 4"),
    ("a ** b", "before * at character 4"),
    ("a ||", "lacks a value behind || at character 3"),
    ("NOT", "lacks a value behind NOT at character 1"),
    ("a NOT b", "has NOT at character 3 between two values"),
    ("a ~ b", "has ~ at character 3 between two values"),
    ("a..b", "before . at character 3"),
    ("a IS", "lacks a value behind IS at character 3"),
    ("a IS NOT", "lacks a value behind NOT at character 6"),
    ("a LIKE", "lacks a value behind LIKE at character 3"),
    ("a BETWEEN 1", "has BETWEEN without AND before its end"),
    ("a BETWEEN 1, 2", "is two expressions"),
    ("coalesce(a BETWEEN 1, 2)", "has BETWEEN without AND before , at character 21"),
    ("a BETWEEN 1 AND", "lacks a value behind AND at character 13"),
    ("exists(a, x -> )", "lacks a value behind -> at character 13"),
    ("CAST(a AS)", "lacks a value behind AS at character 8"),
    ("CAST(a INT)", "casts without AS and a type, at ) at character 11"),
    ("a::", "lacks a value behind :: at character 2"),
    # commas
    ("a, b", "is two expressions, with , at character 2 between them"),
    ("a,", "is two expressions, with , at character 2 between them"),
    ("concat(a,)", "lacks a value behind , at character 9, before ) at character 10"),
    ("concat(, a)", "lacks a value behind ( at character 7, before , at character 8"),
    ("coalesce(a,, b)", "before , at character 12"),
    ("a IN ()", "before ) at character 7"),
    ("a IN (1,)", "before ) at character 9"),
    # CASE
    ("CASE WHEN a THEN", "has CASE at character 1 without END"),
    ("CASE WHEN a THEN 1", "has CASE at character 1 without END"),
    ("upper(CASE WHEN a THEN 1)", "has CASE at character 7 without END"),
    ("CASE WHEN a THEN 1 ELSE END", "lacks a value behind ELSE at character 20, before END at character 25"),
    ("CASE WHEN THEN 1 END", "lacks a value behind WHEN at character 6, before THEN at character 11"),
    ("CASE WHEN a THEN END", "lacks a value behind THEN at character 13"),
    ("CASE END", "has END at character 6 not behind THEN or ELSE"),
    ("CASE ELSE 1 END", "has ELSE at character 6 not behind THEN"),
    ("CASE WHEN a THEN 1 ELSE 2 ELSE 3 END", "has ELSE at character 27 not behind THEN"),
    ("a END", "has END at character 3 outside of a CASE"),
    ("a THEN b", "has THEN at character 3 outside of a CASE"),
    # nothing at all
    ("", "is empty"),
    (" \n", "is empty"),
    ("-- a > 1", "is empty"),
    ("/* a */", "is empty"),
]
TWO_VALUES = [
    ("(a) b", "nothing joins ) and b"),
    ("a[0] 'x'", "nothing joins ] and 'x'"),
    ("(a) 1", "joins ) and 1"),
]
WHOLE = [
    "a - -b * +c / ~d % !e",
    "!(a <=> b) and not c",
    "a >= 1 or b <= 2 or c <> 3 or d != 4 or e == 5",
    "a[0]['k'].b.c",
    "struct(*) = struct(a.*, b AS c)",
    "a BETWEEN 1 AND 2 AND b NOT BETWEEN -1 AND c AND NOT d",
    "a BETWEEN CASE WHEN b AND c THEN 1 ELSE 2 END AND 3",
    "CASE a WHEN 1 THEN CASE WHEN b THEN 2 END ELSE (3) END + 1",
    "CAST(a AS array<struct<x: decimal(10, 2), y: map<string, int>>>) IS NOT NULL",
    "try_cast(end AS INT) > 5",
    "a::array<array<int>> = b::decimal(10, 2)",
    "transform(a, (x, i) -> x + i)",
    "filter(a, x -> x IS NOT DISTINCT FROM 1)",
    "extract(day FROM a) + trim(BOTH 'x' FROM b) + trim(FROM c)",
    "overlay(a PLACING 'x' FROM 1 FOR 2) LIKE 'b!%' ESCAPE '!'",
    "a NOT LIKE ALL ('x', 'y') AND b RLIKE 'c'",
    "INTERVAL -1 DAY + INTERVAL '1-2' YEAR TO MONTH",
    "date '2020-01-01' < at",
    "end > start AND (case > 1 OR like IS NULL) AND `from` = date",
    "array()",
    "ilike(a, 'x')",
    "a COLLATE UTF8_BINARY = 'x'",
    "if(a, b, null)",
]
QUESTIONS = [
    ("SELECT COUNT(*), FROM t", "lacks a value behind , at character 16, before FROM at character 18"),
    ("SELECT , COUNT(*) FROM t", "lacks a value behind SELECT at character 1, before , at character 8"),
    ("SELECT SUM(a,) FROM t", "before ) at character 14"),
    ("SELECT COUNT(*) FROM t WHERE a > > 1", "before > at character 34"),
    ("SELECT COUNT(*) FROM t WHERE a IN ()", "before ) at character 36"),
    ("SELECT COUNT(*) FROM t GROUP BY", "lacks a value behind BY at character 30, before its end"),
    ("SELECT MIN(a) FROM t GROUP BY b,", "lacks a value behind , at character 32, before its end"),
    ("SELECT COUNT(*) FROM t WHERE () = 1", "before ) at character 31"),
]


@pytest.mark.parametrize(("text", "says"), [*TORN, *TWO_VALUES])
def test_what_is_torn_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(ExpressionRefused) as refused:
        check_spark_expression(text)
    assert says in refused.value.reason
    with pytest.raises(BuildError, match="an expression "):
        column_of(text)


@pytest.mark.parametrize("text", WHOLE)
def test_what_is_whole_is_not(text: str) -> None:
    check_whole(read_tokens(text, SPARK))


@pytest.mark.parametrize(("place", "sql"), LEGITIMATE)
def test_what_people_write_is_whole(place: str, sql: str) -> None:
    asked = place in ("servers", "shadow")
    of_spark = place in ("filter", "transforms")
    check_whole(read_tokens(sql, SPARK if of_spark else PINOT), CLAUSES if asked else ())


@pytest.mark.parametrize(("sql", "says"), QUESTIONS)
def test_a_question_that_is_torn_is_refused_with_its_place(sql: str, says: str) -> None:
    with pytest.raises(ExpressionRefused) as refused:
        check_question(sql)
    assert says in refused.value.reason


@pytest.mark.parametrize("text", ["CASE WHEN" * 1000, "a," * 10_000, "(" * 30 + "a", "a::array<" * 2000])
def test_it_takes_no_longer_than_its_text(text: str) -> None:
    begun = time.monotonic()
    with suppress(ExpressionRefused):
        check_whole(read_tokens(text, SPARK))
    assert time.monotonic() - begun < 20, "it would be hours"
