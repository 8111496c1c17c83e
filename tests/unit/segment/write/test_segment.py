from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from pinot_assets.errors import BuildError
from pinot_assets.segment import SegmentSpec, build_segment
from pinot_assets.segment.write.segment import build_and_release

# Recorded from Pinot 1.5.1's SegmentIndexCreationDriverImpl on JDK 25, custom map {"file": "a b"}.
PINOTS = {
    "columns.psf": "d06ef23dd609fd2a06f0defdf52332be38f191bed38d915295fcc7c24b28fb48",
    "index_map": "0cfd21b0e371051d9deec76e2ce09f90157797160fed1851837142aa1cab447e",
    "metadata.properties": "753f1ac0779c967d7c11d34ffede016ed95398b3c2c3fb59c43682b237b675a3",
    "creation.meta": "dca91aa51b936ab65e1c2de1235d16734d36d2d05b6c062fcbbf695781542df0",
}


def test_the_bytes_are_those_of_pinots_builder(golden: Any) -> None:
    segment = golden.build(custom={"file": "a b"})
    assert {name: hashlib.sha256(content).hexdigest() for name, content in segment.files.items()} == PINOTS
    assert (segment.crc, segment.data_crc) == (4_261_039_794, 2_052_271_586)
    assert (segment.rows, segment.start_ms, segment.end_ms) == (4, 1_600_000_000_000, 1_600_000_000_009)


def test_statistics_of_a_column(golden: Any) -> None:
    stats = {column.name: column for column in golden.build().columns}
    assert (stats["i"].cardinality, stats["i"].lowest, stats["i"].highest, stats["i"].nulls) == (4, 1, 7, 1)
    assert (stats["absent"].cardinality, stats["absent"].lowest, stats["absent"].nulls) == (1, "null", 4)
    assert stats["ts"].is_sorted
    assert not stats["i"].is_sorted


def test_the_crc_covers_the_three_files(golden: Any) -> None:
    segment = golden.build()
    content = b"".join(segment.files[name] for name in ("columns.psf", "index_map", "metadata.properties"))
    crc, created, data_crc = struct.unpack(">qqq", segment.files["creation.meta"])
    assert (crc, created, data_crc) == (zlib.adler32(content), golden.created, segment.data_crc)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: pa.concat_tables([table[:1], table[1:3], table[3:3], table[3:]]),
        lambda table: pa.concat_tables([table, table])[4:],
        lambda table: table.select(table.column_names[::-1]),
        lambda table: table.cast(pa.schema([_large(field) for field in table.schema])),
    ],
    ids=["chunks", "slice", "order of columns", "large_string"],
)
def test_trap33_arrow_layout_does_not_matter(golden: Any, change: Callable[[pa.Table], pa.Table]) -> None:
    assert golden.build(change(golden.table)).files == golden.build().files


def _large(field: pa.Field) -> pa.Field:
    return field.with_type(pa.large_string()) if field.type == pa.string() else field


@pytest.mark.parametrize("name", ["s", "j", "i", "d", "f", "b"])
def test_traps_33_and_34_dictionary_encoded_input(golden: Any, name: str) -> None:
    """Duplicate, unused and null dictionary entries, and another dictionary in the next chunk."""
    plain = golden.table.column(name)
    values = pa.concat_arrays([*plain.chunks, *plain.chunks])
    count = len(plain)
    unused = pa.array(values.to_pylist(), values.type)
    first = pa.DictionaryArray.from_arrays(pa.array([4, 1], pa.int8()), unused)
    second = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), values[2:count])
    encoded = pa.chunked_array([first, second.cast(first.type)])
    place = golden.table.column_names.index(name)
    table = golden.table.set_column(place, name, encoded)
    assert golden.build(table).files == golden.build().files


def test_a_table_without_rows_is_refused(golden: Any) -> None:
    with pytest.raises(BuildError, match="would have no rows"):
        golden.build(golden.table[:0])


def test_a_column_of_another_type_is_refused_by_name(golden: Any) -> None:
    place = golden.table.column_names.index("i")
    with pytest.raises(BuildError, match=r"Column i cannot be built.*string.*INT"):
        golden.build(golden.table.set_column(place, "i", pa.array(["1", "2", "3", "4"])))
    with pytest.raises(BuildError, match="Column i holds a value that is no INT"):
        golden.build(golden.table.set_column(place, "i", pa.array([1, 2, 3, 2**40])))


def test_instants_in_other_units_are_taken_when_no_digit_is_lost(golden: Any) -> None:
    place = golden.table.column_names.index("ts")
    micros = golden.table.column("ts").cast(pa.timestamp("us", "UTC"))
    assert golden.build(golden.table.set_column(place, "ts", micros)).files == golden.build().files
    finer = pa.array([1, 2, 3, 4], pa.timestamp("us"))
    with pytest.raises(BuildError, match="Column ts"):
        golden.build(golden.table.set_column(place, "ts", finer))


def test_a_null_time_becomes_now_or_a_valid_default(golden: Any) -> None:
    place = golden.table.column_names.index("ts")
    table = golden.table.set_column(place, "ts", pa.nulls(4))
    assert golden.build(table, now_ms=1_700_000_000_123).start_ms == 1_700_000_000_123
    golden.schema["dateTimeFieldSpecs"][0]["defaultNullValue"] = 1_500_000_000_000
    assert golden.build(table).end_ms == 1_500_000_000_000


@pytest.mark.parametrize("ms", [-1, 0, 4_000_000_000_000])
def test_times_outside_pinots_range_are_refused_unless_the_check_is_off(golden: Any, ms: int) -> None:
    place = golden.table.column_names.index("ts")
    table = golden.table.set_column(place, "ts", pa.array([ms] * 4, pa.timestamp("ms")))
    with pytest.raises(BuildError, match="Invalid segment start/end time of time column ts"):
        golden.build(table)
    config = {**golden.table_config, "ingestionConfig": {"segmentTimeValueCheck": False}}
    spec = SegmentSpec.from_pinot(golden.schema, config)
    unchecked = build_segment(table, spec, name="t", table_name="t", creation_time_ms=0, now_ms=0)
    assert (unchecked.start_ms, unchecked.end_ms) == (ms, ms)


def test_a_date_that_does_not_fit_the_pattern_is_refused() -> None:
    field = {
        "name": "day",
        "dataType": "STRING",
        "format": "SIMPLE_DATE_FORMAT|yyyy-MM-dd",
        "granularity": "1:DAYS",
    }
    config = {"segmentsConfig": {"timeColumnName": "day"}}
    spec = SegmentSpec.from_pinot({"dateTimeFieldSpecs": [field]}, config)
    with pytest.raises(BuildError, match="Time column day holds a value that is no time"):
        build_segment(
            pa.table({"day": ["2020-1-5"]}), spec, name="t", table_name="t", creation_time_ms=0, now_ms=0
        )


@pytest.mark.parametrize("name", ["", "a,b", "a/b", "a${b}", "a\n", "\U0001f600"])
def test_unsafe_segment_names_are_refused(golden: Any, name: str) -> None:
    with pytest.raises(BuildError, match="segment name"):
        golden.build(name=name)


@pytest.mark.parametrize("custom", [{"a": "1,2"}, {"a": "${b}"}, {"": "x"}, {" a": "x"}])
def test_custom_entries_that_would_not_come_back_are_refused(golden: Any, custom: dict[str, str]) -> None:
    with pytest.raises(BuildError, match="Custom entry"):
        golden.build(custom=custom)


def test_trap32_an_old_server_gets_no_protected_bounds(golden: Any) -> None:
    new, old = (golden.build(write_for=version).files["metadata.properties"] for version in ("1.5", "0.11"))
    dropped = set(new.decode().splitlines()) - set(old.decode().splitlines())
    assert dropped == {
        "column.s.minValue = \\u0000 \\u00E9",
        'column.j.maxValue = {"a":1.1\\u0000\\u0000"b":[1E+3]}',
    }
    assert set(old.splitlines()) < set(new.splitlines())


def test_a_dictionary_beyond_2_gib_is_refused_by_name(golden: Any) -> None:
    schema = {"dimensionFieldSpecs": [{"name": "s", "dataType": "STRING", "maxLength": 2**31 - 1}]}
    spec = SegmentSpec.from_pinot(schema, {})
    table = pa.table({"s": [*map(str, range(2200)), "x" * 1_000_000]})
    with pytest.raises(BuildError, match="dictionary of column s is too large"):
        build_segment(table, spec, name="t", table_name="t", creation_time_ms=0, now_ms=0)


@pytest.mark.parametrize(("text", "max_length"), [("ab\U0001f600", 3), ("\U0001f600", 1)])
def test_trap31_half_a_surrogate_pair_fails_by_name_for_1_6(text: str, max_length: int) -> None:
    schema = {"dimensionFieldSpecs": [{"name": "s", "dataType": "STRING", "maxLength": max_length}]}
    table = pa.table({"s": [text]})
    named = {"name": "t", "table_name": "t", "creation_time_ms": 0, "now_ms": 0}
    build_segment(table, SegmentSpec.from_pinot(schema, {}, write_for="1.5"), **named)
    with pytest.raises(BuildError, match="Column s holds half a surrogate pair"):
        build_segment(table, SegmentSpec.from_pinot(schema, {}, write_for="1.6"), **named)


def test_for_1_6_metadata_say_what_servers_need_to_know(golden: Any) -> None:
    table = golden.table.drop_columns(["s"])  # it has a character that maxLength cuts in two
    lines = golden.build(table, write_for="1.6").files["metadata.properties"].decode().splitlines()
    of_m = [line.removeprefix("column.m.") for line in lines if line.startswith("column.m.")]
    assert of_m[:2] == ["columnType = METRIC", "dataType = LONG"]
    assert of_m[2:4] == ["isSingleValues = true", "defaultNullValue = 0"]
    assert "forwardIndexEncoding = DICTIONARY" in of_m
    without_null = {name for name in ("i", "m", "ts", "b") if f"column.{name}.isNonNull = true" in lines}
    assert without_null == {"ts"}
    assert "column.absent.isAscii = true" in lines
    assert "column.absent.lengthOfShortestElement = 4" in lines
    assert not [line for line in lines if "isAutoGenerated" in line]


def test_columns_are_released_as_they_are_built_and_the_bytes_are_the_same(golden: Any) -> None:
    columns = dict(zip(golden.table.column_names, golden.table.columns, strict=True))
    released = build_and_release(
        columns,
        golden.table.num_rows,
        SegmentSpec.from_pinot(golden.schema, golden.table_config, write_for="1.5"),
        name="t_0",
        table_name="t",
        creation_time_ms=golden.created,
        now_ms=golden.created,
    )
    assert released.files == golden.build().files
    assert list(columns) == ["not in the schema"]
