from __future__ import annotations

import pytest

from pinot_assets.pinot.query_text import (
    column_needs_quotes,
    console_url,
    explains,
    first_rows_query,
    limit_of,
    needs_quotes,
    of_name,
    possible_tables,
    writes,
)


@pytest.mark.parametrize("name", ["flights", " my-table\n", "db.flights"])
def test_a_name_alone_asks_for_its_first_rows(name: str) -> None:
    assert of_name(name) == f'SELECT * FROM "{name.strip()}" LIMIT 10'


@pytest.mark.parametrize("name", ["order", "Values", "my-table", "2024_flights"])
def test_a_name_that_queries_must_quote(name: str) -> None:
    assert needs_quotes(name)


@pytest.mark.parametrize("name", ["orders", "user", "my_table", "events"])
def test_a_name_that_needs_no_quotes(name: str) -> None:
    assert not needs_quotes(name)


@pytest.mark.parametrize(("name", "quoted"), [("timestamp", True), ("Exists", True), ("user", False)])
def test_a_column_that_queries_must_quote(name: str, quoted: bool) -> None:
    assert column_needs_quotes(name) is quoted


@pytest.mark.parametrize("sql", ["SELECT 1", "flights;", '"flights"', ""])
def test_any_other_text_is_sent_as_it_is(sql: str) -> None:
    assert of_name(sql) == sql


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t FROM FILE 'x'",
        "  insert into t FROM FILE 'x'",
        "SET a = 1; INSERT INTO t FROM FILE 'x'",
        "/* SELECT */ INSERT INTO t FROM FILE 'x'",
        "-- SELECT\nINSERT INTO t FROM FILE 'x'",
        "SET a = ';'; insert into t FROM FILE 'x'",
    ],
)
def test_an_insert_is_seen(sql: str) -> None:
    assert writes(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t",
        "SELECT '; INSERT INTO t' FROM t",
        'SELECT "; INSERT" FROM t',
        "SELECT 1 -- ; INSERT\n",
        "SELECT 'it''s; INSERT'",
        "SELECT 1 /* ; INSERT */",
    ],
)
def test_what_only_looks_like_an_insert_is_sent(sql: str) -> None:
    assert not writes(sql)


@pytest.mark.parametrize(
    ("sql", "limit"),
    [
        ("SELECT * FROM t LIMIT 5", 5),
        ("select * from t limit 5 ; ", 5),
        ("SELECT * FROM t LIMIT 20, 5", 5),
        ("SELECT * FROM t LIMIT 5 OFFSET 20", 5),
        ("SELECT * FROM t LIMIT 5 OPTION(timeoutMs=1)", 5),
        ("SELECT * FROM t LIMIT 5 -- all", 5),
        ("SELECT * FROM t", None),
        ("SELECT 'LIMIT 5'", None),
        ("SELECT * FROM (SELECT * FROM t LIMIT 5) WHERE a = 1", None),
    ],
)
def test_the_limit_at_the_end(sql: str, limit: int | None) -> None:
    assert limit_of(sql) == limit


def test_every_word_may_be_a_table() -> None:
    assert {"sales", "my-table", "clicks"} <= possible_tables(
        'SELECT 1 FROM sales_OFFLINE, "my-table" JOIN clicks_REALTIME'
    )


@pytest.mark.parametrize(
    ("sql", "does"),
    [("EXPLAIN PLAN FOR SELECT 1", True), ("set a=1; explain plan for x", True), ("SELECT 'EXPLAIN'", False)],
)
def test_a_plan_is_no_selection(sql: str, does: bool) -> None:
    assert explains(sql) is does


def test_the_console_opens_with_the_query() -> None:
    assert console_url("http://c:9000/", first_rows_query("a-b")) == (
        "http://c:9000/#/query?query=SELECT+*+FROM+%22a-b%22+LIMIT+10"
    )
