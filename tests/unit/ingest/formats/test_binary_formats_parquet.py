from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pinot_assets.core.file_errors import FileRejected, FileTooLarge, TypeMismatch, Unreadable, ZoneMissing
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats.read import read_batches
from pinot_assets.settings.file_limits import DEFAULTS, FileLimits

MOMENT = pa.timestamp("ms", "UTC")
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
LAST_DAY = datetime(9999, 12, 31, tzinfo=UTC)


def read_parquet(
    path: Path, wanted: TargetSchema, verdicts: BadRowPolicy, limits: FileLimits = DEFAULTS
) -> Iterator[pa.Table]:
    return read_batches(path, wanted, "parquet", reader={}, verdicts=verdicts, limits=limits)


def parquet(**columns: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, write_page_checksum=True)
    return sink.getvalue()


def read(folder: Path, data: bytes, schema: pa.Schema) -> pa.Table:
    (folder / "x").write_bytes(data)
    return pa.concat_tables(
        [schema.empty_table(), *read_parquet(folder / "x", TargetSchema(schema), BadRowPolicy())]
    )


def convert(folder: Path, values: pa.Array, target: pa.DataType) -> list[Any]:
    schema = pa.schema([("x", target)])
    table = read(folder, parquet(x=values), schema)
    assert table.schema.equals(schema)
    found: list[Any] = table["x"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("values", "target", "expected"),
    [
        (pa.array([1, None], pa.int64()), pa.int32(), [1, None]),
        (pa.array([1.0, None]), pa.int64(), [1, None]),
        (pa.array([2**53 + 1]), pa.float64(), [float(2**53)]),
        (pa.array([Decimal("1.50")]), pa.float64(), [1.5]),
        (pa.array([1.1], pa.float64()), pa.float32(), [pytest.approx(1.1)]),
        (pa.array(["a", None], pa.large_string()), pa.string(), ["a", None]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), pa.string(), ["a", "b", "a"]),
        (pa.array([7]), pa.string(), ["7"]),
        (pa.array([True]), pa.string(), ["true"]),
        (pa.array(["7"]), pa.int32(), [7]),
        (pa.nulls(2), pa.int32(), [None, None]),
        (pa.array([1357041600000]), MOMENT, [NOON]),
        (pa.array([None, "00fF", "", "a1"]), pa.binary(), [None, b"\0\xff", b"", b"\xa1"]),
        (pa.array([b"a", None], pa.large_binary()), pa.binary(), [b"a", None]),
        (pa.array([[1, None], None, []]), pa.list_(pa.int32()), [[1, None], None, []]),
        (pa.array([["7"], ["8", "9"]], pa.large_list(pa.string())), pa.list_(pa.int64()), [[7], [8, 9]]),
        (pa.array([1, None]), pa.list_(pa.string()), [["1"], None]),
        (pa.array([[NOON]]), pa.list_(MOMENT), [[NOON]]),
        (pa.array([NOON], pa.timestamp("us", "America/New_York")), MOMENT, [NOON]),
        (pa.array([NOON.replace(tzinfo=None, microsecond=999)], pa.timestamp("us")), MOMENT, [NOON]),
        (pa.array(["2013-01-01T12:00:00.000999Z", "1357041600000"]), MOMENT, [NOON, NOON]),
        (pa.array(["2013-01-01T12:00:00.000999999Z", "9999-12-31T00:00:00Z"]), MOMENT, [NOON, LAST_DAY]),
        (pa.array(["7", None], pa.string_view()), pa.int32(), [7, None]),
        (pa.array(["7"], pa.string_view()), pa.float64(), [7.0]),
        (pa.array(["true"], pa.string_view()), pa.bool_(), [True]),
        (pa.array(["1357041600000"], pa.string_view()), MOMENT, [NOON]),
        (pa.array(["00ff"], pa.string_view()), pa.binary(), [b"\0\xff"]),
        (pa.array(["a"], pa.string_view()), pa.string(), ["a"]),
        (pa.array([b"a"], pa.binary_view()), pa.binary(), [b"a"]),
        (pa.array([["7"]], pa.list_(pa.string_view())), pa.list_(pa.int32()), [[7]]),
        (pa.array([[1, None], None], pa.list_view(pa.int32())), pa.list_(pa.int32()), [[1, None], None]),
        (pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)), pa.list_(pa.float32()), [[1.0, 2.0], None]),
        (pa.array([["a"], ["b"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))), pa.list_(pa.string()),
         [["a"], ["b"]]),
    ],
)  # fmt: skip
def test_types(tmp_path: Path, values: pa.Array, target: pa.DataType, expected: list[Any]) -> None:
    assert convert(tmp_path, values, target) == expected


@pytest.mark.parametrize(
    ("values", "target", "error", "said"),
    [
        (pa.array([1, 2**31]), pa.int32(), TypeMismatch, "column x, row 2: 2147483648 cannot become INT"),
        (pa.array([1.0] * 5000 + [1.5]), pa.int32(), TypeMismatch, "column x, row 5001: 1.5"),
        (pa.array([1.5]), pa.string(), TypeMismatch, "column x: double cannot become STRING"),
        (pa.array([1]), pa.bool_(), TypeMismatch, "column x: int64 cannot become BOOLEAN"),
        (pa.array([date(2013, 1, 1)]), MOMENT, TypeMismatch, "column x: date32[day] cannot become TIMESTAMP"),
        (pa.array([date(2013, 1, 1)]), MOMENT, TypeMismatch, "→ state with transforms.x what is meant"),
        (pa.array([NOON]), pa.int64(), TypeMismatch, "→ state with transforms.x what is meant"),
        (pa.array(["1", "x"], pa.string_view()), pa.int32(), TypeMismatch, "row 2: 'x' cannot become INT"),
        (pa.array(["9999-12-31T00:00:00"]), MOMENT, ZoneMissing, "column x, row 1: '9999-12-31T00:00:00'"),
        (pa.array(["2013-01-01T12:00:00.0001234567Z"]), MOMENT, TypeMismatch, "column x, row 1"),
        (pa.array([[1]]), pa.int32(), TypeMismatch, "column x: list"),
        (pa.array([b"a"]), pa.string(), TypeMismatch, "column x: binary"),
        (pa.array(["0", "00"]), pa.binary(), TypeMismatch, "column x, row 1: '0' cannot become BYTES"),
        (pa.array([[1], [2, 2**31]]), pa.list_(pa.int32()), TypeMismatch, "column x, row 2: [2, 2147483648]"),
        (pa.array([{"a": 1}]), pa.string(), TypeMismatch, "column x: struct"),
        (
            pa.array(["2013-01-01T12:00:00Z", "2013-01-01"]),
            MOMENT,
            ZoneMissing,
            "column x, row 2: '2013-01-01'",
        ),
    ],
)
def test_what_would_lose_something_is_refused(
    tmp_path: Path, values: pa.Array, target: pa.DataType, error: type[FileRejected], said: str
) -> None:
    with pytest.raises(error) as caught:
        convert(tmp_path, values, target)
    assert said in str(caught.value)


def test_only_the_columns_wanted_are_read(tmp_path: Path) -> None:
    data = parquet(y=pa.array([[1]]), x=pa.array([1]))
    table = read(tmp_path, data, pa.schema([("absent", pa.string()), ("x", pa.int64())]))
    assert table.to_pylist() == [{"absent": None, "x": 1}]


def test_a_file_without_rows(tmp_path: Path) -> None:
    assert read(tmp_path, parquet(y=pa.array([], pa.int32())), pa.schema([("x", pa.int32())])).num_rows == 0


def test_a_file_with_none_of_the_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="none of the table's columns: its columns are y"):
        read(tmp_path, parquet(y=pa.array([1])), pa.schema([("x", pa.int32())]))


@pytest.mark.parametrize("cut", [4, 100, -1])
def test_a_cut_file_is_unreadable(tmp_path: Path, cut: int) -> None:
    whole = parquet(x=pa.array(range(1000)))
    with pytest.raises(Unreadable, match="damaged or incomplete"):
        read(tmp_path, whole[:cut], pa.schema([("x", pa.int64())]))


def test_a_flipped_bit_is_seen_by_the_checksum(tmp_path: Path) -> None:
    data = bytearray(parquet(x=pa.array(range(1000))))
    data[200] ^= 1
    with pytest.raises(Unreadable):
        read(tmp_path, bytes(data), pa.schema([("x", pa.int64())]))


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(Unreadable, match="not UTF-8"):
        convert(tmp_path, text, pa.string())


def test_a_name_of_a_column_that_is_not_utf_8_is_damage(tmp_path: Path) -> None:
    data = parquet(xyz=pa.array([1])).replace(b"xyz", b"\xff\xfe\xfd")
    with pytest.raises(Unreadable, match="damaged or incomplete"):
        read(tmp_path, data, pa.schema([("x", pa.int64())]))


def test_structures_become_json(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(parquet(j=pa.array([{"a": [1, None], "b": "é"}, None])))
    wanted = TargetSchema(pa.schema([("j", pa.string())]), json=frozenset("j"))
    [table] = read_parquet(tmp_path / "x", wanted, BadRowPolicy())
    assert table["j"].to_pylist() == ['{"a":[1,null],"b":"é"}', None]


def test_decimals_are_text(tmp_path: Path) -> None:
    wanted = TargetSchema(pa.schema([("n", pa.string())]), decimals=frozenset("n"))
    for values, expected in (([Decimal("1.50")], ["1.50"]), ([7], ["7"]), ([" -1e5 "], ["-1e5"])):
        (tmp_path / "x").write_bytes(parquet(n=pa.array(values)))
        assert next(read_parquet(tmp_path / "x", wanted, BadRowPolicy()))["n"].to_pylist() == expected
    (tmp_path / "x").write_bytes(parquet(n=pa.array(["1", "1,5"])))
    with pytest.raises(TypeMismatch, match="column n, row 2: '1,5'"):
        list(read_parquet(tmp_path / "x", wanted, BadRowPolicy()))


@pytest.mark.parametrize("nested", [False, True])
def test_int96_holds_every_year(tmp_path: Path, nested: bool) -> None:
    moments = [datetime(9999, 12, 31, 23, 59), datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999000)]
    values = pa.array(
        [moments] if nested else moments, pa.list_(pa.timestamp("us")) if nested else pa.timestamp("us")
    )
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": values}), sink, use_deprecated_int96_timestamps=True)
    table = read(tmp_path, sink.getvalue(), pa.schema([("x", pa.list_(MOMENT) if nested else MOMENT)]))
    expected = [moment.replace(tzinfo=UTC) for moment in moments]
    assert table["x"].to_pylist() == ([expected] if nested else expected)


def test_structures_that_have_no_json_text(tmp_path: Path) -> None:
    twice = pa.array([[("k", 1)], [("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64()))
    far = pa.StructArray.from_arrays([pa.array([0, 10**18], pa.timestamp("us"))], ["t"])
    wanted = TargetSchema(pa.schema([("j", pa.string())]), json=frozenset("j"))
    for values, row in ((twice, 2), (far, 1), (pa.array([{"a": 1.5}, {"a": float("nan")}]), 2)):
        (tmp_path / "x").write_bytes(parquet(j=values))
        with pytest.raises(TypeMismatch, match=f"column j, row {row}: .* cannot become JSON"):
            list(read_parquet(tmp_path / "x", wanted, BadRowPolicy()))
    (tmp_path / "x").write_bytes(parquet(j=pa.array([1.5])))
    with pytest.raises(TypeMismatch, match="column j: double cannot become JSON"):
        list(read_parquet(tmp_path / "x", wanted, BadRowPolicy()))


def json_array(*values: str | None) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.json_(), pa.array(values, pa.string()))


def uuid_array(*values: bytes | None) -> pa.Array:
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(values, pa.binary(16)))


def test_json_and_uuid_are_text_and_bytes(tmp_path: Path) -> None:
    """Parquet's logical types, which Arrow gives as extension types."""
    texts, ids = json_array('{"a":1.50}', None), uuid_array(b"0123456789abcdef", None)
    offsets = pa.array([0, 2, 2])
    data = parquet(
        j=texts,
        s=texts,
        u=ids,
        js=pa.ListArray.from_arrays(offsets, texts),
        us=pa.ListArray.from_arrays(offsets, ids),
        o=pa.StructArray.from_arrays([texts], ["j"]),
        m=pa.MapArray.from_arrays(offsets, pa.array(["k", "l"]), texts),
    )
    schema = pa.schema(
        [
            *[(name, pa.string()) for name in "jsom"],
            ("u", pa.binary()),
            ("js", pa.list_(pa.string())),
            ("us", pa.list_(pa.binary())),
        ]
    )
    (tmp_path / "x").write_bytes(data)
    [table] = read_parquet(tmp_path / "x", TargetSchema(schema, json=frozenset("jom")), BadRowPolicy())
    inner = r'{"a":1.50}'
    escaped = r'"{\"a\":1.50}"'
    assert table.to_pydict() == {
        "j": [inner, None],
        "s": [inner, None],
        "o": [f'{{"j":{escaped}}}', '{"j":null}'],
        "m": [f'{{"k":{escaped},"l":null}}', "{}"],
        "u": [b"0123456789abcdef", None],
        "js": [[inner, None], []],
        "us": [[b"0123456789abcdef", None], []],
    }


def test_json_that_is_too_large_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(parquet(j=json_array('"' + "x" * 100 + '"')))
    wanted = TargetSchema(pa.schema([("j", pa.string())]), json=frozenset("j"))
    with pytest.raises(FileTooLarge, match="column j has a value of 102 bytes"):
        list(read_parquet(tmp_path / "x", wanted, BadRowPolicy(), FileLimits(value_bytes=50)))
