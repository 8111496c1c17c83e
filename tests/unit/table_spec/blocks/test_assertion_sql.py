from __future__ import annotations

import pytest

from pinot_assets.table_spec.blocks.assertion import MOST_GROUPS
from pinot_assets.table_spec.blocks.assertion_sql import read_question


def test_nothing_is_rewritten_but_the_tables_name() -> None:
    question = read_question("SELECT SUM(a) s,\n COUNT(*) FROM orders WHERE \"b c\" = 'it''s' AND x<1;")
    assert question.of("orders_OFFLINE") == (
        "SELECT SUM(a) s,\n COUNT(*) FROM \"orders_OFFLINE\" WHERE \"b c\" = 'it''s' AND x<1"
    )
    assert question.table == "orders"
    assert question.aggregates == (("SUM(a)", "SUM"), ("COUNT(*)", "COUNT"))
    assert question.keys == ()
    assert question.columns == {"a", "b c", "x"}


def test_groups_are_asked_for_by_the_thousand() -> None:
    question = read_question(
        "select d, dateTrunc('DAY', ts), min(a) from orders group by d, dateTrunc('DAY', ts)"
    )
    assert question.of("T").endswith(f"group by d, dateTrunc('DAY', ts)\nLIMIT {MOST_GROUPS}")
    assert len(question.keys) == 2
    assert question.aggregates == (("MIN(a)", "MIN"),)


def test_a_comment_at_the_end_does_not_swallow_the_limit() -> None:
    sql = read_question("SELECT COUNT(*) FROM t GROUP BY a -- by a").of("t_OFFLINE")
    assert sql.splitlines()[-1] == f"LIMIT {MOST_GROUPS}"


def test_a_key_is_the_same_with_and_without_quotes_and_comments() -> None:
    question = read_question('SELECT "day" /* of flight */, COUNT(*) AS "n" FROM t GROUP BY day')
    assert (question.keys, question.aggregates) == (("day",), (("COUNT(*)", "COUNT"),))


def test_a_column_whose_name_has_a_dot_is_named_in_quotes() -> None:
    assert read_question('SELECT COUNT(*) FROM t WHERE "a.b" < 0').columns == {"a.b"}


def test_an_alias_that_nothing_reads_misleads_nobody() -> None:
    question = read_question("SELECT day AS day, SUM(a) AS a FROM t WHERE b > 0 GROUP BY day")
    assert question.aggregates == (("SUM(a)", "SUM"),)


def test_columns_that_are_asked_for_nulls() -> None:
    question = read_question("SELECT COUNT(*) FROM t WHERE a IS NULL OR NOT (b IS NOT NULL) OR c = TRUE")
    assert question.null_columns == {"a", "b"}
    assert question.columns == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("", "not one SELECT"),
        ("SELEC", "not one SELECT"),
        ("SELECT COUNT(*) FROM t WHERE (", "not SQL that can be read at line 1"),
        ("DROP TABLE t", "not one SELECT"),
        ("SELECT COUNT(*) FROM t; SELECT COUNT(*) FROM t", "not one SELECT"),
        ("SET a = 1; SELECT COUNT(*) FROM t", "not one SELECT"),
        ("SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t", "not one SELECT"),
        ("SELECT 1", "does not read one table"),
        ("SELECT COUNT(*) FROM a JOIN b ON a.x = b.x", "JOIN"),
        ("SELECT COUNT(*) FROM a, b", "JOIN"),
        ("SELECT COUNT(*) FROM (SELECT a FROM t)", "a query in a query"),
        ("SELECT COUNT(*) FROM t WHERE a IN (SELECT b FROM c)", "a query in a query"),
        ("WITH x AS (SELECT 1) SELECT COUNT(*) FROM t", "WITH"),
        ("SELECT COUNT(*) FROM db.t", "a database"),
        ("SELECT COUNT(*) FROM t AS x", "an alias"),
        ("SELECT COUNT(*) FROM t TABLESAMPLE (1)", "SAMPLE"),
        ("SELECT DISTINCT a FROM t", "SELECT DISTINCT"),
        ("SELECT a, COUNT(*) FROM t GROUP BY a HAVING COUNT(*) > 1", "HAVING"),
        ("SELECT COUNT(*) FROM t ORDER BY 1", "ORDER BY"),
        ("SELECT COUNT(*) FROM t LIMIT 5", "LIMIT"),
        ("SELECT COUNT(*) FROM t GROUP BY 1", "GROUP BY 1"),
        ("SELECT COUNT(*) FROM t GROUP BY ROLLUP (a)", "ROLLUP"),
        ("SELECT COUNT(DISTINCT a) FROM t", "COUNT(DISTINCT a)"),
        ("SELECT DISTINCTCOUNT(a) FROM t", "DISTINCTCOUNT(a)"),
        ("SELECT DISTINCTCOUNTHLL(a) FROM t", "DISTINCTCOUNTHLL(a)"),
        ("SELECT AVG(a) FROM t", "AVG(a)"),
        ("SELECT PERCENTILE(a, 99) FROM t", "PERCENTILE(a, 99)"),
        ("SELECT COUNTMV(a) FROM t", "COUNTMV(a)"),
        ("SELECT MAX(a, b) FROM t", "MAX(a, b)"),
        ("SELECT SUM(a) / COUNT(*) FROM t", "SUM(a) / COUNT(*)"),
        ("SELECT SUM(a) OVER () FROM t", "OVER"),
        ("SELECT COUNT(*) FILTER (WHERE a > 1) FROM t", "FILTER"),
        ("SELECT * FROM t", r"\*, which is neither"),
        ("SELECT a FROM t", "a, which is neither"),
        ("SELECT a FROM t GROUP BY a", "no COUNT, SUM, MIN or MAX"),
        ("SELECT COUNT(*), COUNT(*) FROM t", "the same value twice"),
        ("SELECT SUM(a), MAX(AVG(a)) FROM t", "AVG(a)"),
        ('SELECT SUM(a), SUM("a") FROM t', "the same value twice"),
        ("SELECT COUNT(*) /* all */, COUNT(*) FROM t", "the same value twice"),
        ("SELECT COUNT(*) FROM t(a)", "does not read one table"),
        ("SELECT COUNT(*) FROM ?", "does not read one table"),
        ("SELECT COUNT(*) FROM :t", "does not read one table"),
        ("SELECT COUNT(*) FROM t WHERE t.a < 0", "names t.a, which servers do not read as a column: write a"),
        ("SELECT t.a, COUNT(*) FROM t GROUP BY t.a", "names t.a"),
        ("SELECT a AS b, COUNT(*) FROM t WHERE b = 1 GROUP BY a", "calls a b, which is a column"),
        ("SELECT MAX(a) AS b FROM t WHERE b > 3", "calls MAX(a) b, which is a column"),
    ],
)
def test_what_servers_cannot_answer_in_parts_is_refused_by_name(sql: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason if "\\" in reason else _literally(reason)):
        read_question(sql)


def _literally(text: str) -> str:
    return "".join(f"[{c}]" if c in "()*+" else c for c in text)
