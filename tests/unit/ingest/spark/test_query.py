"""What of an expression is seen without Spark. The rest is in tests/integration/test_spark_sql.py."""

from __future__ import annotations

import pytest

from pinot_assets.ingest.spark.query import moving_literal


@pytest.mark.parametrize(
    ("sql", "literal"),
    [
        ("at < date'today'", "date'today'"),
        ("at < DATE 'Today'", "DATE 'Today'"),
        ("timestamp'now' > at", "timestamp'now'"),
        ("TIMESTAMP_NTZ /* as of */ ' yesterday UTC '", "TIMESTAMP_NTZ /* as of */ ' yesterday UTC '"),
        ('timestamp_ltz -- so\n "tomorrow"', 'timestamp_ltz -- so\n "tomorrow"'),
    ],
)
def test_a_moment_that_moves_is_found(sql: str, literal: str) -> None:
    assert moving_literal(sql) == literal


@pytest.mark.parametrize(
    "sql",
    [
        "at < date'2020-01-01'",
        "timestamp'1970-01-01 00:00:00 UTC' > at",
        "timestamp'epoch' > at",
        "name = 'today'",
        "update 'now'",
        "to_date(name) = 'now'",
        "date",
    ],
)
def test_moments_that_stay_and_names_are_let_through(sql: str) -> None:
    assert moving_literal(sql) is None
