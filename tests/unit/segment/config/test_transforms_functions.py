"""What of Pinot's functions is translated, and what is not. The values are compared in tests/oracle."""

from __future__ import annotations

import pytest

from pinot_assets.segment.column.unsupported import Feature
from pinot_assets.segment.config.transforms import NotTranslated, translate


@pytest.mark.parametrize(
    ("function", "sql"),
    [
        ("ts", "`ts`"),
        ("toEpochDays(ts)", "(cast(`ts` AS bigint) DIV 86400000L)"),
        ("to_epoch_days(ts)", "(cast(`ts` AS bigint) DIV 86400000L)"),
        ("UPPER(concat(a, 'it''s \\'))", r"upper(concat(cast(`a` AS string), 'it\'s \\'))"),
        ('"my ""col"', '`my "col`'),
        ("`a``b`", None),
        ("fromDateTime(d, 'yyyy-MM-dd')", "unix_millis(to_timestamp(cast(`d` AS string), 'yyyy-MM-dd'))"),
        ("a + -2 * 3", "(cast(`a` AS double) + (cast(-2L AS double) * cast(3L AS double)))"),
        ("a IS NOT NULL", "(`a` IS NOT NULL)"),
        ("isNull(a)", "(`a` IS NULL)"),
    ],
)
def test_translated(function: str, sql: str | None) -> None:
    if sql is None:
        with pytest.raises(NotTranslated):
            translate(function)
    else:
        assert translate(function).sql == sql


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        ("concat(a, upper(b))", {"a", "b"}),
        ("length(a) > b", {"a"}),
        ("fromDateTime(d, 'yyyy')", {"d"}),
        ("a + b = c OR isNull(d)", set()),
        ("toDateTime(a, 'yyyy')", set()),
    ],
)
def test_columns_that_are_used_as_text_are_known(function: str, texts: set[str]) -> None:
    assert translate(function).texts == texts


@pytest.mark.parametrize("number", ["7", " -7.5 ", "+.5", "1.", "1e-7", "1.5E+10"])
def test_a_text_that_is_a_number_may_be_compared(number: str) -> None:
    assert translate(f"a = '{number}'").is_boolean


def test_precedence_is_that_of_sql() -> None:
    found = translate("isNull(a) OR isNull(b) AND NOT isNull(c)")
    assert found.sql == "((`a` IS NULL) OR ((`b` IS NULL) AND (NOT (`c` IS NULL))))"
    assert found.is_boolean
    assert found.columns == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("Groovy({x + 1}, x)", "Groovy"),
        (" groovy ({true})", "Groovy"),
        ("now()", "the function now of 0 values"),
        ("jsonPathString(a, '$.b')", "jsonpathstring of 2 values"),
        ("upper(a, b)", "upper of 2 values"),
        ("fromDateTime(d, 'EEE')", "its pattern must be one of"),
        ("fromDateTime(d, p)", "its pattern must be one of"),
        ("concat(a, 1.5)", "a DOUBLE is used as text"),
        ("a AND b", "neither true nor false"),
        ("a IN (1, 2)", "IN"),
        ("a BETWEEN 1 AND 2", "BETWEEN"),
        ("CASE WHEN a THEN 1 END", "CASE"),
        ("a; drop", "';"),
        ("upper(a", "no )"),
        ("", "an end"),
        ("99999999999999999999", "no LONG"),
        ("null", "null"),
        ("a b", "'b'"),
        ("status = 'deleted'", "equals: 'deleted' is not a DOUBLE"),
        ("'x' < a", "lessthan: 'x' is not a DOUBLE"),
        ("plus(a, '')", "plus: '' is not a DOUBLE"),
        ("toEpochDays('2020-01-01')", "toepochdays: '2020-01-01' is not a LONG"),
        ("round(a, '1.5')", "round: '1.5' is not a LONG"),
    ],
)
def test_refused_with_the_reason(function: str, why: str) -> None:
    with pytest.raises(NotTranslated) as refused:
        translate(function)
    assert why in str(refused.value)
    assert (refused.value.feature is Feature.GROOVY) == (why == "Groovy")


def test_a_translation_does_not_double_with_each_call() -> None:
    expression = "carrier"
    for _ in range(40):
        expression = f"equals({expression}, 1)"
    with pytest.raises(NotTranslated, match="too many functions in each other"):
        translate(expression)
