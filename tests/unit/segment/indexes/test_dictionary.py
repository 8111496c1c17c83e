from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pinot_assets.segment import SegmentSpec, build_segment
from pinot_assets.segment.column.types import Encoding
from pinot_assets.segment.indexes.dictionary import dictionary
from pinot_assets.segment.values.normalize import normalize
from pinot_assets.segment.values.ordered_values import order_values


def payload(kind: str, values: list[Any], variable_length: bool = False) -> bytes:
    spec = SegmentSpec.from_pinot({"dimensionFieldSpecs": [{"name": "c", "dataType": kind}]}, {})
    (column,) = spec.columns
    data = pa.chunked_array([pa.array(values, spec.arrow_schema().field("c").type)])
    ranked = order_values(column, normalize(column, data, len(values), column.default))
    return dictionary("c", column.data_type, ranked, Encoding(variable_length=variable_length))


def test_trap11_bytes_of_one_length_are_fixed_and_others_variable() -> None:
    assert payload("BYTES", [b"\xff\0", b"\x01\x02"]) == b"\x01\x02\xff\0"
    assert payload("BYTES", [b"\xff", b"", b"\0a"]) == bytes.fromhex(
        "2e766c3b 00000001 00000003 00000010 00000020 00000020 00000022 00000023 0061 ff"
    )


def test_trap11_text_is_padded_unless_asked() -> None:
    assert payload("STRING", ["b", "aaa"]) == b"aaab\0\0"
    variable = payload("STRING", ["b", "aaa"], True)
    assert (
        variable == bytes.fromhex("2e766c3b 00000001 00000002 00000010 0000001c 0000001f 00000020") + b"aaab"
    )


def test_trap11_decimals_of_one_length_are_fixed() -> None:
    assert payload("BIG_DECIMAL", ["2", "1.5"]) == bytes.fromhex("0001 0f 0000 02")
    assert payload("BIG_DECIMAL", ["2", "128"])[:4] == b".vl;"


def test_trap27_a_fixed_dictionary_that_looks_variable_is_written_variable() -> None:
    entries = [b".vl;\0\0\0\1", b"zzzzzzzz"]
    assert payload("BYTES", entries) == payload("BYTES", entries, True)
    assert payload("BYTES", [b".vl;\0\0\0\2"]) == b".vl;\0\0\0\2"


def test_a_dictionary_that_is_mostly_padding_is_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = ["a" * 100, *map(str, range(100))]
    payload("STRING", values)
    assert caplog.text == ""  # a small one is no matter
    monkeypatch.setattr("pinot_assets.segment.indexes.dictionary._WASTE_BYTES", 1000)
    payload("STRING", ["a" * 100] * 99 + ["b" * 99])
    assert caplog.text == ""
    payload("STRING", values)
    assert "the dictionary of column c takes" in caplog.text


def test_all_values_empty_make_an_empty_dictionary() -> None:
    assert payload("BYTES", [b"", b""]) == b""


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(2), pa.binary_view()])
def test_trap33_kinds_of_bytes_do_not_matter(kind: pa.DataType) -> None:
    spec = SegmentSpec.from_pinot({"dimensionFieldSpecs": [{"name": "c", "dataType": "BYTES"}]}, {})

    def files(values: Any) -> Any:
        table = pa.table({"c": values})
        return build_segment(table, spec, name="t", table_name="t", creation_time_ms=0, now_ms=0).files

    values = [b"ab", None, b"\0\1", b"ab"]
    assert files(pa.array(values, kind)) == files(pa.array(values, pa.binary()))


@pytest.mark.parametrize("kind", [pa.decimal128(9, 2), pa.decimal256(60, 4), pa.large_string()])
def test_trap33_kinds_of_decimals_do_not_matter(kind: pa.DataType) -> None:
    spec = SegmentSpec.from_pinot({"dimensionFieldSpecs": [{"name": "c", "dataType": "BIG_DECIMAL"}]}, {})
    texts = pa.array(["1.50", None, "-7", "1.5"])

    def files(values: Any) -> Any:
        return build_segment(
            pa.table({"c": values}), spec, name="t", table_name="t", creation_time_ms=0, now_ms=0
        ).files

    assert files(texts.cast(kind)) == files(texts)
