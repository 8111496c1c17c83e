"""Which names a query must quote, as the parsers of Pinot 0.11.0 and 1.5.1 have it."""

from __future__ import annotations

from oracle.conftest import Oracle

from pinot_assets.pinot.query_text import RESERVED, RESERVED_IN_SELECT


def refused(parser: Oracle, sql: str, words: str) -> set[str]:
    return {word for word in words.split() if not parser.parses(sql.format(word))}


def test_what_is_reserved_is_refused_by_one_of_them(oracle: Oracle, old_server: Oracle) -> None:
    table, column = "SELECT * FROM {} LIMIT 1", "SELECT {} FROM x LIMIT 1"
    of_tables = refused(oracle, table, RESERVED) | refused(old_server, table, RESERVED)
    assert of_tables == set(RESERVED.split())
    both = f"{RESERVED} {RESERVED_IN_SELECT}"
    assert refused(oracle, column, both) | refused(old_server, column, both) == set(both.split())


def test_what_is_not_is_a_name_in_both(oracle: Oracle, old_server: Oracle) -> None:
    words = "user value year count day hour name type status language result system position path source"
    for sql in ("SELECT * FROM {} LIMIT 1", "SELECT {} FROM x LIMIT 1"):
        assert refused(oracle, sql, words) == refused(old_server, sql, words) == set()
