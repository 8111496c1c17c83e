from __future__ import annotations

import pytest

from pinot_assets.segment.values.json_text import MAX_NESTING, JsonRefused, java_decimal, pinot_json


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ('{ "b" : 1.10 , "a":[1e10, -0, 0.0] }', '{"b":1.1,"a":[1E+10,0,0]}'),
        ('{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'),
        (r'"\/\u00e9\u001f"', '"/é\\u001F"'),
        (r'"\\u001f"', r'"\\u001f"'),
        ("1 2", "1"),
        ("[1]x", "[1]"),
        ("12abc", '"12abc"'),
        ("truex", '"truex"'),
        ("true]", "true"),
        ('say "hi"\n', '"say \\"hi\\"\\n"'),
        ("NaN", '"NaN"'),
        ("", ""),
        (" \n", ""),
        ("1.50E+2", "1.5E+2"),
    ],
)
def test_canonical_json(text: str, stored: str) -> None:
    assert pinot_json(text) == stored


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.0", "1"),
        ("100.00", "1E+2"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1E-7"),
        ("1e400", "1E+400"),
        ("-12.50e3", "-1.25E+4"),
        ("-0.0", "0"),
        ("1.25e-10", "1.25E-10"),
        ("123456789.123456789123456789", "123456789.123456789123456789"),
    ],
)
def test_java_decimal(text: str, number: str) -> None:
    assert java_decimal(text) == number


@pytest.mark.parametrize(
    "text",
    ["1e99999999999", "9" * 1001, "1." + "9" * 1000, "[" * (MAX_NESTING + 1)],
    ids=["exponent", "long", "real", "deep"],
)
def test_what_pinot_cannot_build_is_refused(text: str) -> None:
    with pytest.raises(JsonRefused):
        pinot_json(text)


def test_brackets_in_texts_do_not_count_as_nesting() -> None:
    text = '["' + "[" * 2000 + '"]'
    assert pinot_json(text) == text
