from __future__ import annotations

import numpy as np
import pytest

from pinot_assets.segment.column.types import (
    cut_utf16,
    escaped_key,
    java_double,
    java_float,
    property_line,
    protected_value,
    utf16_key,
    utf16_length,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (2e23, "2.0E23"),
        (-123.456, "-123.456"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_java_double(value: float, text: str) -> None:
    assert java_double(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1.4e-45, "1.4E-45"),
        (3.4028235e38, "3.4028235E38"),
        (16_777_216, "1.6777216E7"),
        (2, "2.0"),
    ],
)
def test_java_float_is_shortest_in_its_own_width(value: float, text: str) -> None:
    assert java_float(value) == text


def test_floating_point_texts_round_trip() -> None:
    bits = np.random.default_rng(1).integers(0, 2**63, 2000)
    for value in bits.view(np.float64)[np.isfinite(bits.view(np.float64))]:
        assert float(java_double(value)) == value


def test_property_lines() -> None:
    assert property_line("a b:c=d\\e", "x") == "a\\ b\\:c\\=d\\\\e = x\n"
    assert property_line("k", "") == "k =\n"
    assert property_line("k", " x  ") == "k =  x\n"
    assert (
        property_line("k", "\\\b\t\n\f\r\x01\x1f\x7f\x80é")
        == "k = \\\\\\b\\t\\n\\f\\r\\u0001\\u001F\x7f\\u0080\\u00E9\n"
    )
    assert property_line("k", "=:#!${}\"'") == "k = =:#!${}\"'\n"
    assert escaped_key("é#") == "é#"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (",", "\0\0"),
        (" a ", "\0 a \0"),
        (" ", "\0 \0"),
        ("a\\,b", "a\\\0\0b"),
        ("", ""),
        ("\U0001f600", None),
        ("\ud83d", None),
    ],
)
def test_protected_values(text: str, value: str | None) -> None:
    assert protected_value(text) == value


def test_utf16_units() -> None:
    assert sorted(["\uffff", "\U0001f600", "\ue000", "z"], key=utf16_key) == [
        "z",
        "\U0001f600",
        "\ue000",
        "\uffff",
    ]
    assert utf16_length("a\U0001f600") == 3
    assert cut_utf16("a\U0001f600", 2) == "a\ud83d"
    assert cut_utf16("a\U0001f600", 3) == "a\U0001f600"
