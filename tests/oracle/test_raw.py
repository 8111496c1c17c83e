"""Raw columns (docs/design/segment-format.md#s7) against Pinot's own builder."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from oracle.chunks import assert_same_chunks

from pinot_assets.core.json_object import JsonObject

RNG = np.random.default_rng(7)
ROWS = 3500


def _texts(longest: int) -> list[str | None]:
    letters = RNG.integers(97, 123, (ROWS, longest))
    return [
        None if n % 97 == 0 else bytes(letters[n][: 1 + n % longest].astype(np.uint8)).decode()
        for n in range(ROWS)
    ]


def _ints(bits: int) -> list[int | None]:
    values = RNG.integers(-(2**bits), 2**bits, ROWS).tolist()
    return [None if n % 89 == 0 else value for n, value in enumerate(values)]


FIXED: dict[str, list[Any]] = {
    "INT": _ints(31),
    "LONG": [n // 7 * 1000 for n in range(ROWS)],
    "FLOAT": [float(np.float32(value)) for value in RNG.standard_normal(ROWS)],
    "DOUBLE": [0.0 if n % 5 else -0.0 for n in range(ROWS)],
    "BOOLEAN": [None if n % 11 == 0 else bool(n % 3) for n in range(ROWS)],
    "TIMESTAMP": _ints(40),
}
VARIABLE: dict[str, list[Any]] = {
    "STRING": _texts(30),
    "JSON": [f'{{"a": {n}, "b": "{n % 7}"}}' for n in range(ROWS)],
    "BYTES": [(text or "").encode() * 3 for text in _texts(20)],
    "BIG_DECIMAL": [None if n % 50 == 0 else f"{n * n - 9000}.{n % 1000}0" for n in range(ROWS)],
}
SINGLE = FIXED | VARIABLE
MULTI: dict[str, list[Any]] = {
    kind: [values[n : n + n % 5] for n in range(700)]
    for kind, values in SINGLE.items()
    if kind not in ("JSON", "BIG_DECIMAL")
}
COMPARE = {"SNAPPY": assert_same_chunks, "ZSTANDARD": assert_same_chunks}
CODECS = ["PASS_THROUGH", "LZ4", "GZIP", "ZSTANDARD", "SNAPPY"]


def _columns(kinds: dict[str, list[Any]], **options: Any) -> dict[str, tuple[JsonObject, list[Any]]]:
    return {kind.lower(): ({"dataType": kind, **options}, values) for kind, values in kinds.items()}


def _raw(columns: Any, **forward: Any) -> list[JsonObject]:
    """Field configs that make all columns raw."""
    return [{"name": name, "encodingType": "RAW", "indexes": {"forward": forward}} for name in columns]


def test_trap14_default_codec_by_role(case: Any) -> None:
    columns = _columns(SINGLE) | {
        f"m_{kind.lower()}": ({"dataType": kind, "section": "metric"}, SINGLE[kind])
        for kind in ("INT", "DOUBLE", "BIG_DECIMAL", "BYTES")
    }
    case.same(columns, indexing={"noDictionaryColumns": [*columns]})


def test_trap14_no_dictionary_config_names_no_codec(case: Any) -> None:
    columns = _columns(SINGLE)
    case.same(columns, indexing={"noDictionaryConfig": dict.fromkeys(columns, "SNAPPY")})


def _forms(versions: list[int]) -> list[tuple[int, str]]:
    """Every version with LZ4, and all codecs where they differ: big-endian (2) and little-endian (4)."""
    return [
        (version, codec) for version in versions for codec in CODECS if version in (2, 4) or codec == "LZ4"
    ]


@pytest.mark.parametrize(("version", "codec"), _forms([2, 3, 4, 5]))
def test_trap15_trap16_single_value_versions(case: Any, version: int, codec: str) -> None:
    columns = _columns(SINGLE)
    fields = _raw(columns, rawIndexWriterVersion=version, compressionCodec=codec)
    case.same(columns, fields=fields, compare=COMPARE.get(codec))


@pytest.mark.parametrize(("version", "codec"), _forms([2, 3, 4, 5, 6]))
def test_trap18_multi_value_versions(case: Any, version: int, codec: str) -> None:
    columns = _columns(MULTI, singleValueField=False)
    fields = _raw(columns, rawIndexWriterVersion=version, compressionCodec=codec)
    case.same(columns, fields=fields, compare=COMPARE.get(codec))


def test_trap18_version_6_falls_back_to_4(case: Any) -> None:
    columns = _columns(VARIABLE)
    segment = case.same(columns, fields=_raw(columns, rawIndexWriterVersion=6))
    assert segment.files == case.same(columns, fields=_raw(columns)).files


@pytest.mark.parametrize(("version", "docs"), [(2, 1), (2, 1000), (2, 4000), (4, 3), (4, 1000), (4, 1024)])
def test_trap15_rows_of_a_chunk(case: Any, version: int, docs: int) -> None:
    columns = _columns(SINGLE)
    case.same(columns, fields=_raw(columns, rawIndexWriterVersion=version, targetDocsPerChunk=docs))


@pytest.mark.parametrize(("version", "size"), [(2, "1"), (2, "4K"), (3, "0.5M"), (4, "3000B"), (4, "9k")])
def test_trap17_derived_rows_of_a_chunk(case: Any, version: int, size: str) -> None:
    options = {"rawIndexWriterVersion": version, "deriveNumDocsPerChunk": True, "targetMaxChunkSize": size}
    columns = _columns(SINGLE) | {
        f"mv_{name}": column for name, column in _columns(MULTI, singleValueField=False).items()
    }
    short = {name: (field, values[:700]) for name, (field, values) in columns.items()}
    case.same(short, fields=_raw(short, **options))


@pytest.mark.parametrize(("codec", "docs"), [*((codec, -1) for codec in CODECS), ("LZ4", 1), ("LZ4", 20)])
def test_trap17_huge_records(case: Any, oracle: Any, codec: str, docs: int) -> None:
    lengths = [0, 5, 4087, 4088, 4089, 4090, 4092, 1, 5000, 2040, 2040, 4, 20_000, 4096]
    field = {"dataType": "BYTES"}
    values = [bytes(RNG.integers(0, 4, length, dtype=np.uint8)) for length in lengths]
    several = [[value, b"x"] for value in values]
    options = {"targetDocsPerChunk": docs, "targetMaxChunkSize": "4096", "compressionCodec": codec}
    segment = case.same(
        {"b": (field, values), "mv": ({**field, "singleValueField": False}, several)},
        fields=_raw(["b", "mv"], **options),
        compare=COMPARE.get(codec),
    )
    read = oracle.read(oracle.segment_folder(segment.files), {"b": "BYTES", "mv": "BYTES"})
    assert (read["b"].values, read["mv"].values) == (values, several)


@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["INT", "DOUBLE"])
def test_trap17_rows_beyond_a_chunk(case: Any, oracle: Any, kind: str, version: int) -> None:
    lengths = [1, 3, 1021, 1022, 1023, 2500, 1, 510, 511, 512, 9]
    rows = [[float(n % 50) if kind == "DOUBLE" else n % 50 for n in range(length)] for length in lengths]
    columns = {"c": ({"dataType": kind, "singleValueField": False}, rows)}
    options = {"rawIndexWriterVersion": version, "targetMaxChunkSize": "4K", "compressionCodec": "LZ4"}
    segment = case.same(columns, fields=_raw(columns, **options))
    assert oracle.read(oracle.segment_folder(segment.files), {"c": kind})["c"].values == rows


def test_raw_time_column(case: Any) -> None:
    field = {
        "dataType": "LONG",
        "format": "1:MILLISECONDS:EPOCH",
        "granularity": "1:DAYS",
        "section": "dateTime",
    }
    values = [1_600_000_000_000, None, 1_500_000_000_000]
    segment = case.same({"ts": (field, values)}, time_column="ts", indexing={"noDictionaryColumns": ["ts"]})
    assert segment.start_ms == 1_500_000_000_000


def test_trap19_sorted_raw_columns(case: Any) -> None:
    columns = {
        "up": ({"dataType": "INT"}, [1, 1, 2, 5]),
        "down": ({"dataType": "STRING"}, ["b", "a", "a", ""]),
        "text": ({"dataType": "STRING"}, ["a", "\U0001f600", "\ue000", "\uffff"]),
        "nulls": ({"dataType": "BYTES"}, [None] * 4),
        "many": ({"dataType": "INT", "singleValueField": False}, [[1], [2], [3], [4]]),
    }
    segment = case.same(columns, indexing={"noDictionaryColumns": [*columns]})
    assert {column.name for column in segment.columns if column.is_sorted} == {"up", "text", "nulls"}


def test_trap31_half_a_surrogate_pair_in_a_raw_column(case: Any) -> None:
    texts = ["abcd\U0001f600", "abcd?", "abcd\U0001f4a9", "abcd\uffff", "abcd"]
    field = {"dataType": "STRING", "maxLength": 5}
    case.same(
        {"s": (field, texts), "mv": ({**field, "singleValueField": False}, [texts] * 5)},
        indexing={"noDictionaryColumns": ["s", "mv"]},
    )


def test_raw_values_come_back(case: Any, oracle: Any) -> None:
    columns = _columns(SINGLE)
    segment = case.same(columns, indexing={"noDictionaryColumns": [*columns]})
    read = oracle.read(oracle.segment_folder(segment.files), {c: c.upper() for c in columns})
    assert [value for value in read["string"].values if value != "null"] == [
        VARIABLE["STRING"][row] for row in read["string"].rows if VARIABLE["STRING"][row] is not None
    ]
    assert read["big_decimal"].values == [
        Decimal(VARIABLE["BIG_DECIMAL"][row] or 0).normalize() for row in read["big_decimal"].rows
    ]
    assert read["bytes"].values == [VARIABLE["BYTES"][row] for row in read["bytes"].rows]
    assert read["long"].values == [FIXED["LONG"][row] for row in read["long"].rows]
