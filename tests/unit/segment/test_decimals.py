from __future__ import annotations

from decimal import Decimal

import pytest

from pinot_assets.segment.decimals import decimal_bytes, parse_decimal, stored_decimal


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1.50", "1.5"),
        ("100000", "1E+5"),
        ("0.00", "0"),
        ("-0", "0"),
        (" +7 ", "7"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1E-20", "1E-20"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1E-7"),
        ("1e3", "1E+3"),
        (12, "12"),
        (Decimal("1.20"), "1.2"),
        ("9" * 400 + "0", "9" * 400 + "E+1"),
    ],
)
def test_trap12_trailing_zeros_are_stripped(value: object, text: str) -> None:
    stored = stored_decimal(value)  # type: ignore[arg-type]
    # 400 digits times ten are written by Java with a point after the first digit.
    expected = text if len(text) < 100 else f"9.{'9' * 399}E+400"
    assert str(stored) == expected


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("0", "0000 00"),
        ("127", "0000 7f"),
        ("128", "0000 0080"),
        ("-128", "0000 80"),
        ("-129", "0000 ff7f"),
        ("1.5", "0001 0f"),
        ("1E+5", "fffb 01"),
        ("-0.01", "0002 ff"),
        ("1.50", "0002 0096"),
    ],
)
def test_trap12_bytes_are_scale_and_twos_complement(text: str, stored: str) -> None:
    assert decimal_bytes(Decimal(text)) == bytes.fromhex(stored)


@pytest.mark.parametrize(
    "text", ["", "x", "1,5", "NaN", "Infinity", "1e", "1_000", "٣", "1E-40000", "1E+32768"]
)
def test_what_is_no_decimal_or_has_no_scale_for_it_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"decimal|scale"):
        parse_decimal(text)
    with pytest.raises(ValueError, match=r"decimal|scale"):
        stored_decimal(text)
