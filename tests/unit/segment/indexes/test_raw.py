from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pinot_assets.errors import BuildError
from pinot_assets.segment import SegmentSpec
from pinot_assets.segment.column.types import Codec, RawFormat
from pinot_assets.segment.indexes.raw import compressed, raw_index
from pinot_assets.segment.values.normalize import normalize
from pinot_assets.segment.values.ordered_values import unordered_values

PLAIN = Codec.PASS_THROUGH


def index(kind: str, values: list[Any], how: RawFormat) -> bytes:
    single = not any(isinstance(value, list) for value in values)
    field = {"name": "c", "dataType": kind, "singleValueField": single}
    spec = SegmentSpec.from_pinot({"dimensionFieldSpecs": [field]}, {})
    (column,) = spec.columns
    data = pa.chunked_array([pa.array(values, spec.arrow_schema().field("c").type)])
    cleaned = normalize(column, data, len(values), column.default)
    return raw_index("c", unordered_values(column, cleaned), cleaned.lengths, how)


def test_trap15_fixed_width_header_and_offsets() -> None:
    values = [7, 1, 7]
    body = struct.pack(">iii", *values)
    v2 = index("INT", values, RawFormat(PLAIN, 2))
    assert v2 == struct.pack(">8i", 2, 1, 1000, 4, 3, 0, 28, 32) + body
    v4 = index("INT", values, RawFormat(PLAIN, 4))
    assert v4 == struct.pack(">7iq", 4, 1, 1024, 4, 3, 0, 28, 36) + body


def test_variable_width_in_chunks_of_so_many_rows() -> None:
    payload = index("STRING", ["bb", "a", "ccc"], RawFormat(PLAIN, 3, target_docs=2))
    header = struct.pack(">7i2q", 3, 2, 2, 3, 3, 0, 28, 44, 55)
    assert payload == header + struct.pack(">2i", 8, 10) + b"bba" + struct.pack(">2i", 8, 0) + b"ccc"


def test_trap16_variable_width_4_is_little_endian_inside() -> None:
    payload = index("STRING", ["bb", "a"], RawFormat(PLAIN, 4))
    chunk = struct.pack("<3i", 2, 12, 14) + b"bba"
    assert payload == struct.pack(">4i", 4, 4096, 0, 24) + struct.pack("<2I", 0, 0) + chunk


def test_trap17_a_huge_record_stands_alone_and_is_marked() -> None:
    # 4 + 4 + length must be at most 4096 to share a chunk.
    payload = index("BYTES", [b"a", b"b" * 4088, b"c" * 4089, b"d"], RawFormat(PLAIN, 4, target_docs=1))
    heads = np.frombuffer(payload, "<u4", 8, 16).reshape(4, 2)
    assert heads[:, 0].tolist() == [0, 1, 2 | 1 << 31, 3]
    assert np.diff(heads[:, 1]).tolist() == [9, 8 + 4088, 4089]


def test_rows_of_fixed_width_carry_their_number_but_in_version_5() -> None:
    rows = [[1, 2], [3]]
    counted = struct.pack("<3i", 2, 12, 24) + struct.pack(">3i2i", 2, 1, 2, 1, 3)
    assert index("INT", rows, RawFormat(PLAIN, 4))[24:] == counted
    assert index("INT", rows, RawFormat(PLAIN, 5))[24:] == struct.pack("<3i", 2, 12, 20) + struct.pack(
        ">3i", 1, 2, 3
    )


def test_rows_of_variable_width_carry_number_and_lengths() -> None:
    payload = index("STRING", [["b", "aa"], ["b"]], RawFormat(PLAIN, 4))
    first, second = struct.pack(">3i", 2, 1, 2) + b"baa", struct.pack(">2i", 1, 1) + b"b"
    assert payload[24:] == struct.pack("<3i", 2, 12, 27) + first + second


@pytest.mark.parametrize("little", [True, False])
def test_trap16_length_after_a_gzip_chunk(little: bool) -> None:
    packed = compressed(Codec.GZIP, b"x" * 300, little_endian=little)
    assert zlib.decompress(packed[:-4]) == b"x" * 300
    assert int.from_bytes(packed[-4:], "little" if little else "big") == 300


def test_trap14_lz4_has_two_forms() -> None:
    plain, prefixed = (compressed(Codec.LZ4, b"x" * 300, little_endian=little) for little in (False, True))
    assert prefixed == (300).to_bytes(4, "little") + plain
    assert pa.Codec("lz4_raw").decompress(plain, 300, asbytes=True) == b"x" * 300


def test_a_chunk_beyond_2_gib_is_refused_by_name() -> None:
    with pytest.raises(BuildError, match="raw forward index of column c is too large"):
        index("BYTES", [b"x" * 1_000_000], RawFormat(PLAIN, 2, target_docs=3000))
