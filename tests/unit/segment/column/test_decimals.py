from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from pinot_assets.segment.column.decimals import Decimals, parse_decimal, stored_decimals


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
    stored = stored_decimals(pa.array([value]))
    # 400 digits times ten are written by Java with a point after the first digit.
    expected = text if len(text) < 100 else f"9.{'9' * 399}E+400"
    assert [*map(str, stored.tolist())] == [expected]


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("0", "0000 00"),
        ("127", "0000 7f"),
        ("128", "0000 0080"),
        ("-128", "0000 80"),
        ("-129", "0000 ff7f"),
        ("32767", "0000 7fff"),
        ("32768", "0000 008000"),
        ("9223372036854775807", "0000 7fffffffffffffff"),
        ("-9223372036854775808", "0000 8000000000000000"),
        ("9223372036854775808", "0000 008000000000000000"),
        ("1.5", "0001 0f"),
        ("1E+5", "fffb 01"),
        ("-0.01", "0002 ff"),
    ],
)
def test_trap12_bytes_are_scale_and_twos_complement(text: str, stored: str) -> None:
    for values in ([text], [text, "1e400"]):  # with 64-bit integers and with Python's
        assert stored_decimals(pa.array(values)).serialized()[0].as_py() == bytes.fromhex(stored)


def test_trap12_the_last_keeps_its_zeros() -> None:
    values = stored_decimals(pa.array(["2.50"])).with_last(Decimal("1.50"))
    assert values.serialized().to_pylist() == [bytes.fromhex("0001 19"), bytes.fromhex("0002 0096")]
    assert stored_decimals(pa.array([], pa.string())).with_last(Decimal("1E+70")).tolist() == [
        Decimal("1E+70")
    ]


TEXTS = ["1.50", "-7", "0", "100000", "0.000000000000000001", "-999999999999999.999", "12345678901234567"]


@pytest.mark.parametrize("kind", [pa.decimal128(38, 18), pa.decimal256(60, 20), pa.large_string()])
def test_both_ways_of_holding_digits_agree(kind: pa.DataType) -> None:
    plain, odd = (
        stored_decimals(pa.array(TEXTS).cast(kind)),
        stored_decimals(pa.array([f" {t}" for t in TEXTS])),
    )
    assert plain.tolist() == odd.tolist() == [Decimal(text) for text in TEXTS]
    assert plain.serialized() == odd.serialized()
    assert np.argsort(plain.keys()).tolist() == np.argsort(odd.keys()).tolist()


def test_numbers_of_very_different_size_are_in_order() -> None:
    values = Decimals(np.array([1, 9 * 10**17, -(2**63), 1]), np.array([18, 0, 0, 0]))
    assert np.argsort(values.keys()).tolist() == [2, 0, 3, 1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1,5",
        "NaN",
        "Infinity",
        "1e",
        "1_000",
        "٣",
        "1E-40000",
        "1E+32768",
        "7" * 10_001,
        "-." + "7" * 2_000_000,
    ],
)
def test_what_is_no_decimal_or_has_no_scale_for_it_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"decimal|scale"):
        parse_decimal(text)
    with pytest.raises(ValueError, match=r"decimal|scale"):
        stored_decimals(pa.array([text]))
