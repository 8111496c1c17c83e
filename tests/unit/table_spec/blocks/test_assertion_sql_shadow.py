from __future__ import annotations

import re

import pytest

from pinot_assets.table_spec.blocks.assertion import MOST_GROUPS, MOST_WITH_HAVING
from pinot_assets.table_spec.blocks.assertion_sql import read_shadow_question


def test_what_servers_cannot_answer_in_parts_is_asked_as_it_is_written() -> None:
    question = read_shadow_question("SELECT AVG(a), DISTINCTCOUNT(b),\n PERCENTILE95(a) FROM t WHERE c < 1;")
    assert question.of("t_audit_shadow_OFFLINE") == (
        'SELECT AVG(a), DISTINCTCOUNT(b),\n PERCENTILE95(a) FROM "t_audit_shadow_OFFLINE" WHERE c < 1'
    )
    assert [text for text, _ in question.aggregates] == ["AVG(a)", "DISTINCTCOUNT(b)", "PERCENTILE95(a)"]
    assert (question.columns, question.keys) == ({"a", "b", "c"}, ())


def test_keys_are_found_where_they_stand_in_the_answer() -> None:
    question = read_shadow_question("SELECT AVG(a), day, COUNT(*) / 2, origin FROM t GROUP BY origin, day")
    assert (question.keys, question.key_places) == (("origin", "day"), (3, 1))
    assert question.aggregates == (("AVG(a)", ""), ("COUNT(*) / 2", ""))


def test_a_key_by_its_other_name() -> None:
    question = read_shadow_question("SELECT dateTrunc('DAY', ts) AS d, AVG(a) x FROM t GROUP BY d ORDER BY x")
    assert question.key_places == (0,)
    assert question.columns == {"ts", "a"}


def test_groups_are_asked_for_by_the_thousand_unless_the_text_says_how_many() -> None:
    assert read_shadow_question("SELECT a, AVG(b) FROM t GROUP BY a").of("T").endswith(f"LIMIT {MOST_GROUPS}")
    own = "SELECT a, AVG(b) FROM t GROUP BY a HAVING AVG(b) > 1 ORDER BY AVG(b) DESC LIMIT 5"
    assert read_shadow_question(own).of("t").endswith("LIMIT 5")


def test_having_comes_last_so_many_more_groups_are_asked_for() -> None:
    doubled = read_shadow_question("SELECT a, COUNT(*) FROM t GROUP BY a HAVING COUNT(*) > 1")
    assert doubled.having
    assert doubled.of("T").endswith(f"LIMIT {MOST_WITH_HAVING}")
    assert not read_shadow_question("SELECT a, COUNT(*) FROM t GROUP BY a").having


def test_counts_and_sums_of_no_rows_are_nothing_less_than_0() -> None:
    sql = "SELECT COUNT(*), SUM(a), COUNT(DISTINCT a), DISTINCTCOUNTHLL(a), MAX(a), AVG(a) FROM t"
    folds = [fold for _, fold in read_shadow_question(sql).aggregates]
    assert folds == ["COUNT", "SUM", "COUNT", "COUNT", "", ""]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DROP TABLE t", "not one SELECT"),
        ("SELECT AVG(a) FROM t UNION SELECT AVG(a) FROM t", "not one SELECT"),
        ("SELECT 1", "does not read one table"),
        ("SELECT AVG(a) FROM t JOIN u ON t.a = u.a", "JOIN"),
        ("SELECT AVG(a) FROM (SELECT a FROM t)", "a query in a query"),
        ("SELECT AVG(a) FROM t WHERE a IN (SELECT b FROM c)", "a query in a query"),
        ("SELECT AVG(a) FROM t WHERE IN_SUBQUERY(a, 'SELECT ID_SET(a) FROM t') = 1", "IN_SUBQUERY"),
        ("SELECT AVG(a) FROM t WHERE inSubquery(a, 'SELECT ID_SET(a) FROM t') = 1", "inSubquery"),
        ("SELECT AVG(a) FROM db.t", "a database"),
        ("SELECT AVG(a) FROM t AS x", "an alias"),
        ("SELECT DISTINCT a FROM t", "SELECT DISTINCT"),
        ("SELECT SUM(a) OVER () FROM t", "OVER"),
        ("SELECT a, AVG(b) FROM t GROUP BY 1", "GROUP BY 1"),
        ("SELECT t.a, AVG(b) FROM t GROUP BY t.a", "names t.a: write a"),
        ("SELECT AVG(b) FROM t GROUP BY a", "groups by a without selecting it"),
        ("SELECT a FROM t", "a, which is neither aggregated nor in GROUP BY"),
        ("SELECT * FROM t", "*, which is neither"),
        ("SELECT a FROM t GROUP BY a", "has no value to query"),
        ('SELECT AVG(a), AVG("a") FROM t', "the same value twice"),
    ],
)
def test_what_a_broker_cannot_answer_of_one_table_is_refused_by_name(sql: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        read_shadow_question(sql)
