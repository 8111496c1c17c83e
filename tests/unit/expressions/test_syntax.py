"""How an expression is taken apart, and what is refused because parsers differ."""

from __future__ import annotations

import re
import time

import pytest

from pinot_assets.expressions.spark import check_spark_expression
from pinot_assets.expressions.syntax import (
    MOST_DEPTH,
    PINOT,
    SPARK,
    ExpressionRefused,
    read_tokens,
    without_comments,
)
from pinot_assets.table_spec.blocks.assertion_sql import read_question
from pinot_assets.table_spec.blocks.pinot_code import _GROOVY


@pytest.mark.parametrize(
    ("dialect", "text", "tokens"),
    [
        (SPARK, "a+ `b``c`", ["word a", "sign +", "quoted `b``c`"]),
        (SPARK, "'it\\'s' \"x\" r'\\'", ["text 'it\\'s'", 'text "x"', "text r'\\'"]),
        (SPARK, "1e3D 2BD .5 1.", ["number 1e3D", "number 2BD", "number .5", "number 1."]),
        (SPARK, "a /* b */ -- c\nd", ["word a", "word d"]),
        (SPARK, "a->b::int", ["word a", "sign -", "sign >", "word b", "sign :", "sign :", "word int"]),
        (PINOT, "'it''s' \"x\"", ["text 'it''s'", 'quoted "x"']),
        (PINOT, "'a -- b' $docId größe", ["text 'a -- b'", "word $docId", "word größe"]),
    ],
)
def test_tokens(dialect: re.Pattern[str], text: str, tokens: list[str]) -> None:
    assert [f"{token.kind} {token.text}" for token in read_tokens(text, dialect)] == tokens


@pytest.mark.parametrize("dialect", [SPARK, PINOT])
@pytest.mark.parametrize(
    "text",
    [
        "a /*+ hint */",
        "a /* /* */ b */",
        "a -- b \\\n c",
        "a /* b",
        "a 'b",
        'a "b',
        "a\u00a0b",
        "a{b}",
        "a#b",
        "a\x00",
    ],
)
def test_what_parsers_read_differently_is_refused(dialect: re.Pattern[str], text: str) -> None:
    with pytest.raises(ExpressionRefused):
        read_tokens(without_comments(text, dialect), dialect)


def test_comments_go_and_lines_stay() -> None:
    text = "a -- b\n/* c\n d */ 'e -- /* f */'"
    assert without_comments(text, PINOT) == "a     \n    \n      'e -- /* f */'"


def test_a_letter_of_another_alphabet_is_none_of_ours() -> None:
    kelvin, ascii_k = read_tokens("loo\u212aup look", PINOT)
    assert (kelvin.name, ascii_k.name) == ("", "look")


@pytest.mark.parametrize("opened", ["(", "[", "abs("])
def test_what_is_nested_too_deeply_is_refused_and_stops_nothing(opened: str) -> None:
    closed = "]" if opened == "[" else ")"
    check_spark_expression("abs(" * MOST_DEPTH + "a" + ")" * MOST_DEPTH)
    for depth in (MOST_DEPTH + 1, 5000):
        text = opened * depth + "a" + closed * depth
        with pytest.raises(ExpressionRefused, match="too many parentheses"):
            check_spark_expression(text)
        with pytest.raises(ValueError, match=r"too many|deeply|understood"):
            read_question(f"SELECT COUNT(*) FROM t WHERE {text} = 1")


def test_what_takes_long_to_read_is_refused_at_once() -> None:
    for text in ("/* " * 30_000, "a" * 100_001, "SELECT COUNT(*) FROM t WHERE a " + "/* " * 30_000):
        began = time.process_time()
        with pytest.raises(ValueError, match=r"."):
            read_question(text)
        with pytest.raises(ValueError, match=r"."):
            check_spark_expression(text)
        without_comments(text[:90_000], PINOT)
        assert time.process_time() - began < 2


def test_groovy_is_looked_for_in_a_time_that_comments_do_not_double() -> None:
    for between in ("/**/", "/* a * b */", '/**/"', "-- x\n"):
        began = time.process_time()
        assert _GROOVY.search("groovy" + between * 60) is None
        assert time.process_time() - began < 1
        assert _GROOVY.search("groovy" + between * 60 + "(") is not None


@pytest.mark.parametrize("text", ["'option(useMultistageEngine=true)'", "'x' OR b = 'OPTION\n (a=b)'"])
def test_a_text_holds_no_options_of_the_query(text: str) -> None:
    with pytest.raises(ValueError, match=r"has option\("):
        read_question(f"SELECT COUNT(*) FROM t WHERE a = {text}")
