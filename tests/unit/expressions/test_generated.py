"""Generated expressions: calls of names that are on no list are refused, nestings of listed ones pass."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pinot_assets.expressions import pinot, spark
from pinot_assets.expressions.pinot import COSTS_OF_PINOT, check_question, plain_question
from pinot_assets.expressions.pinot import pinot_refusal as refused_by_pinot
from pinot_assets.expressions.spark import COSTS_OF_SPARK, check_spark_expression
from pinot_assets.expressions.spark import spark_refusal as refused_by_spark
from pinot_assets.expressions.syntax import ExpressionRefused, words

GENERATED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine makes a test slow, and not wrong."""
VALUES = ("carrier", "flight", "1", "-2.5e3", "'a text, (with) -- all'", "''", "NULL", "true")
KEYWORDS = words(
    """
    all and any as at between both by case character collate dec decimal distinct div else end escape for from
    having ilike in interval is leading like not null numeric or placing regexp rlike select some then
    timestamp_ltz timestamp_ntz to trailing using values varchar when where with char filter table
    """
)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,24}", fullmatch=True).filter(
    lambda name: name.lower() not in KEYWORDS
)
BLANKS = st.sampled_from(["", " ", "\n", "\t ", "/* a comment */", " -- a comment\n"])


def check_pinot(expression: str) -> None:
    """An expression in the WHERE of an assertion, as it is read and as it is sent."""
    text = plain_question(f"SELECT COUNT(*) FROM flights WHERE {expression} = 1")
    check_question(text)


Check = Callable[[str], None]
CHECKS = [check_spark_expression, check_pinot]
REFUSED = {check_spark_expression: refused_by_spark, check_pinot: refused_by_pinot}
CASTS = {"cast", "try_cast"}
"""Between their brackets is no list of values."""
LISTED = {
    check_spark_expression: sorted(spark.ALLOWED - COSTS_OF_SPARK.judged - CASTS),
    check_pinot: sorted(pinot.ALLOWED - COSTS_OF_PINOT.judged - KEYWORDS - CASTS),
}


def nested(listed: list[str]) -> st.SearchStrategy[str]:
    """Expressions of listed functions in each other."""

    def around(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        name = st.sampled_from(listed).flatmap(
            lambda name: st.sampled_from([name, name.upper(), name.title()])
        )
        calls = st.builds(
            lambda name, blank, values: f"{name}{blank}({', '.join(values)})",
            name,
            BLANKS,
            st.lists(inner, min_size=1, max_size=3),
        )
        return st.one_of(
            calls,
            st.builds(
                lambda a, sign, b: f"({a} {sign} {b})", inner, st.sampled_from(["+", "<=", "AND"]), inner
            ),
            st.builds(lambda a, b: f"CASE WHEN {a} THEN ({b}) ELSE {a} END", inner, inner),
            st.builds(lambda a, b: f"{a} IN ({b}, {a})", inner, inner),
        )

    return st.recursive(st.sampled_from(VALUES), around, max_leaves=12)


@pytest.mark.parametrize("check", CHECKS)
@GENERATED
@given(data=st.data())
def test_a_name_that_is_on_no_list_is_refused_wherever_it_is_called(
    check: Check, data: st.DataObject
) -> None:
    name = data.draw(NAMES.filter(lambda name: REFUSED[check](name) is not None))
    call = f"{name}{data.draw(BLANKS)}({data.draw(st.sampled_from(VALUES))})"
    listed = data.draw(st.sampled_from(LISTED[check]))
    for expression in (call, f"{listed}({call})", f"CASE WHEN true THEN {call} END", f"({call})"):
        with pytest.raises(ExpressionRefused):
            check(expression)


@pytest.mark.parametrize("check", CHECKS)
@GENERATED
@given(data=st.data())
def test_listed_functions_in_each_other_pass(check: Check, data: st.DataObject) -> None:
    check(data.draw(nested(LISTED[check])))


@pytest.mark.parametrize("check", CHECKS)
@GENERATED
@given(data=st.data())
def test_a_reference_is_refused_wherever_it_stands(check: Check, data: st.DataObject) -> None:
    expression = data.draw(nested(LISTED[check]))
    place = data.draw(st.integers(0, len(expression)))
    with pytest.raises(ExpressionRefused):
        check(f"{expression[:place]}${{env:HOME}}{expression[place:]}")


@pytest.mark.parametrize("check", CHECKS)
@GENERATED
@given(text=st.text(st.sampled_from("aG(){}[];:'\"`$-/*+\\\n.,=?@#\u200b\u00a0\u212a1"), max_size=40))
def test_whatever_the_text_it_passes_or_is_refused(check: Check, text: str) -> None:
    with suppress(ExpressionRefused):
        check(text)
