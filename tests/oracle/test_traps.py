"""The traps that concern the writer, each against Pinot's own builder and loader.

Source: docs/design/segment-format.md#s13.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fakes.processes.other_jvm import java_fails
from oracle.case import CREATED, Case, alone, arrow_array, property_of

from pinot_assets.errors import BuildError, UnsupportedFeature
from pinot_assets.segment import SegmentSpec, build_segment, rename_tar, write_tar

STRING = {"dataType": "STRING"}
DOUBLE = {"dataType": "DOUBLE"}
FLOAT = {"dataType": "FLOAT"}
INT = {"dataType": "INT"}


def test_trap01_blanks_at_a_lines_end_are_stripped(case: Case) -> None:
    segment = case.same({"s": (STRING, ["", "", ""])}, custom={"a": "  x  ", "b": "a=b:c#d!", "z": "é\t\\"})
    assert property_of(segment, "column.s.minValue") == ""
    assert b"column.s.minValue =\n" in segment.files["metadata.properties"]
    assert b"custom.a =   x\n" in segment.files["metadata.properties"]


def test_trap02_texts_and_names_are_in_utf16_order(case: Case) -> None:
    texts = ["\uffff", "\U00010000", "\ue000", "\ud7ff", "\U0001f600", "z", "é"]
    ordered = sorted(texts, key=lambda text: text.encode("utf-16-be"))
    segment = case.same(
        {"s": (STRING, texts), "q\uffff": (STRING, ordered), "\ue000": (STRING, sorted(texts))}
    )
    sortedness = {column.name: column.is_sorted for column in segment.columns}
    assert sortedness == {"s": False, "q\uffff": True, "\ue000": False}


def test_trap03_data_crc_goes_by_file_name(case: Case) -> None:
    names = ["a", "a-b", "a.b", "a.dict", "a_b", "a$b", "a b", "A"]
    case.same({name: (INT, [3, 1, 2]) for name in names})


@pytest.mark.parametrize(
    "values",
    [
        [2e23, 1.4e-45, 3.4028234663852886e38],
        [0.001, 9999999.0, 1e7],
        [0.0009999, 123456789.0, -2.0],
        [4.9e-324, 1e-5, 3e10],
    ],
    ids=["extreme", "plain", "scientific", "single-digit"],
)
def test_trap04_floating_point_texts(case: Case, values: list[float]) -> None:
    case.same({f"d{i}": (DOUBLE, [value]) for i, value in enumerate(values)})
    case.same({f"f{i}": (FLOAT, [float(np.float32(value))]) for i, value in enumerate(values)})


def test_trap04_many_floating_point_texts(case: Case) -> None:
    bits = np.random.default_rng(4).integers(0, 2**64, 300, dtype=np.uint64)
    doubles, floats = bits.view(np.float64), bits.astype(np.uint32).view(np.float32)
    columns = {f"d{i}": (DOUBLE, [float(value)]) for i, value in enumerate(doubles)}
    columns |= {f"f{i}": (FLOAT, [float(value)]) for i, value in enumerate(floats)}
    case.same(columns)


@pytest.mark.parametrize(
    "text",
    [
        "\x7f",
        "\x80",
        "é",
        "\x01\x1f",
        "\b\t\n\f\r",
        "a\\b",
        "=:#!${}\"'",
        "\u2028",
        "\uffff",
        "#x",
        "!x",
        "${x}",
    ],
    ids=ascii,
)
def test_trap05_escapes_of_values(case: Case, text: str) -> None:
    case.same({"s": (STRING, [text])})


@pytest.mark.parametrize(
    "text",
    [",", "a,b", " a", "a ", " ", "  ", ", ", "a\\,b", "\U0001f600", "a\U0001f600", "x" * 512, "é" * 511],
    ids=lambda text: ascii(text)[:20],
)
def test_trap06_values_that_properties_cannot_hold(case: Case, text: str) -> None:
    case.same({"s": ({**STRING, "defaultNullValue": text}, [text]), "absent": (STRING, [])})
    case.same({"t": (STRING, [text, "m", text])})
    case.same({"j": ({"dataType": "JSON"}, [f'"{text[:300]}"' * 2, '"m"'])})


@pytest.mark.parametrize("side", ["z", "A"])
def test_trap06_only_the_bound_beyond_512_units_is_dropped(case: Case, side: str) -> None:
    field = {**STRING, "maxLength": 2000}
    segment = case.same({"s": (field, [side * 513, "m"]), "both": (field, ["b" * 513, "c" * 600])})
    written = {key for key in ("minValue", "maxValue") if property_of(segment, f"column.s.{key}") is not None}
    assert written == {"minValue" if side == "z" else "maxValue"}
    assert property_of(segment, "column.both.minMaxValueInvalid") == "true"


@pytest.mark.parametrize("strategy", [None, "TRIM_LENGTH", "NO_ACTION", "SUBSTITUTE_DEFAULT_VALUE"])
@pytest.mark.parametrize("length", [None, 0, 4])
def test_trap07_maximum_length_and_nul(case: Case, strategy: str | None, length: int | None) -> None:
    texts = ["abcdef", "ab\0cdef", "abcdef\0g", "\0", "", "x" * 600, "é" * 600, "\0abcdef", None, "abcd"]
    field = {**STRING, **({"maxLength": length} if length is not None else {})}
    field |= {"maxLengthExceedStrategy": strategy} if strategy else {}
    case.same({"s": (field, texts), "d": ({**field, "defaultNullValue": "a long default\0value"}, texts)})


def test_trap07_strategy_error_refuses(case: Case) -> None:
    field = {**STRING, "maxLength": 3, "maxLengthExceedStrategy": "ERROR"}
    case.same({"s": ({**field, "defaultNullValue": "x"}, ["abc", None])})
    with pytest.raises(BuildError, match="Column s"):
        alone({"name": "s", **field}, ["abcd"])


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("section", ["dimension", "metric"])
def test_trap08_nan_and_negative_zero(case: Case, kind: str, section: str) -> None:
    nan, inf = float("nan"), float("inf")
    field = {"dataType": kind, "section": section}
    case.same(
        {
            "mixed": (field, [nan, -0.0, 0.0, 1.5, None, inf, -inf]),
            "nans": (field, [nan] * 7),
            "zeros": (field, [-0.0] * 7),
        }
    )


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
def test_trap08_nan_and_negative_zero_in_lists(case: Case, oracle: Any, kind: str) -> None:
    nan = float("nan")
    rows = [[nan, 1.5, nan], [-0.0, 0.0], [nan], [nan, None], [2.5, -0.0, nan], None, []]
    field = {"dataType": kind, "singleValueField": False, "defaultNullValue": 7.5}
    segment = case.same({"c": (field, rows)})
    read = oracle.read(oracle.segment_folder(segment.files), {"c": kind})["c"]
    assert read.values == [[1.5], [0.0, 0.0], [7.5], [7.5], [2.5, 0.0], [7.5], [7.5]]
    assert read.nulls == [2, 3, 5, 6]


JSON_TEXTS = [
    '{"a": 1.10}', "1.0", "1e10", "1E400", "-0", "-0.0", "0.10e-3", "1e-7",
    "123456789012345678901234567890", '{"b":1,"a":2,"b":3}', '{ "a" : [ 1 , 2 ] }', r'"\/"', r'"\u00e9"',
    r'"\u001f\u007f\b\"\\"', r'"\ud83d\ude00"', "", " ", "\t\n", "x", "01", "1 2", "12abc", "true", "truex",
    "true,", "true é", "trueé", "null", "null]", "[1] x", '{"a":1}}', '{"a"', "'a'", "NaN", "Infinity",
    '{"a":NaN}', '"a\tb"', "[1,]", '{"a":1,}', "/*c*/1", "\ufeff1", "1.", ".5", "+1", "1e", "-", "--1",
    "9" * 1000, "1e2147483646", "[" * 400 + "]" * 400, '"\u2028"', r'"\u0000"', '"\x7f"', "[[],{}]",
    '{"":""}', "0.0000001", "0.000001", "100.00", "1.5E+3", "00", "-01", "tru", "$",
]  # fmt: skip


@pytest.mark.parametrize("text", JSON_TEXTS, ids=lambda text: ascii(text)[:30])
def test_trap13_json_is_written_again(case: Case, text: str) -> None:
    case.same({"j": ({"dataType": "JSON", "maxLength": 3000}, [text])})


@pytest.mark.parametrize(
    "text", ["1e999999999999", "9" * 1001, f"[1.{'9' * 1000}]"], ids=["exponent", "long", "real"]
)
def test_trap13_json_that_pinot_fails_on_is_refused(case: Case, text: str) -> None:
    with java_fails():  # Pinot builds first
        case.same({"j": ({"dataType": "JSON"}, [text])})
    with pytest.raises(BuildError, match="Column j"):
        alone({"name": "j", "dataType": "JSON"}, [text])


@pytest.mark.parametrize("text", [r'"\ud83d"', r'"a\ude00b"', r'["\ud83d", "\ude00"]', r'{"\ud83d":1}'])
def test_trap13_json_with_half_a_surrogate_pair(case: Case, text: str) -> None:
    case.same({"j": ({"dataType": "JSON"}, [text, '"?"', '"\U0001f600"', '"\uffff"', '"\ue000"'])})


def test_trap19_sorted_columns(case: Case) -> None:
    segment = case.same(
        {
            "i": (INT, [1, 1, 2, 5]),
            "nulls": (INT, [None] * 4),
            "m": ({**INT, "section": "metric"}, [None, None, 0, 0]),
            "down": (INT, [4, 3, 2, 1]),
        }
    )
    assert {c.name: c.is_sorted for c in segment.columns} == {
        "i": True,
        "nulls": True,
        "m": True,
        "down": False,
    }


@pytest.mark.parametrize("cardinality", [1, 2, 3, 4, 5, 8, 9, 16, 17, 255, 256, 257, 65_536, 65_537])
def test_trap20_bits_of_a_dictionary_id(case: Case, cardinality: int) -> None:
    values = np.random.default_rng(cardinality).permutation(cardinality)
    case.same({"i": (INT, [*values.tolist(), *range(min(cardinality, 21))])})


def test_trap21_containers_of_the_null_vector(case: Case) -> None:
    rng = np.random.default_rng(21)
    rows = 4 * 65_536 + 100
    patterns = {
        "sparse": rng.random(rows) < 0.01,
        "dense": rng.random(rows) < 0.3,
        "array4096": _chosen(rng, rows, 4096),
        "bitmap4097": _chosen(rng, rows, 4097),
        "runs": np.repeat(rng.random(rows // 500 + 1) < 0.5, 500)[:rows],
        "one": np.arange(rows) < 1_000,
        "three": np.arange(rows) < 3 * 65_536,  # with runs, offsets only from the fourth container on
        "some": np.arange(rows) < 200_000,
        "tie": np.isin(np.arange(rows), [0, 1, 2]),  # a run of three takes as much as three entries
        "last": np.arange(rows) == rows - 1,
        "all": np.ones(rows, dtype=bool),
    }
    case.same(
        {name: (INT, [None if null else 7 for null in nulls.tolist()]) for name, nulls in patterns.items()}
    )


def _chosen(rng: np.random.Generator, rows: int, count: int) -> np.ndarray:
    chosen = np.zeros(rows, dtype=bool)
    chosen[65_536 + 2 * rng.choice(30_000, count, replace=False)] = True
    return chosen


@pytest.mark.parametrize("not_null", [True, False])
@pytest.mark.parametrize("table_wide", [True, False])
def test_trap24_column_based_null_handling_wins(case: Case, not_null: bool, table_wide: bool) -> None:
    segment = case.same(
        {"i": ({**INT, "notNull": not_null}, [1, None])},
        schema={"enableColumnBasedNullHandling": True},
        indexing={"nullHandlingEnabled": table_wide},
    )
    assert (b"nullvalue_vector" in segment.files["index_map"]) is not not_null


NOON = 1_600_000_000_000
TIMES: list[tuple[str, str, list[Any]]] = [
    ("LONG", "1:MILLISECONDS:EPOCH", [NOON, NOON + 5]),
    ("LONG", "EPOCH", [NOON, NOON + 5]),
    ("INT", "1:DAYS:EPOCH", [18_000, 18_500]),
    ("INT", "EPOCH|DAYS", [18_000, 18_500]),
    ("LONG", "6:HOURS:EPOCH", [70_000, 71_000]),
    ("LONG", "EPOCH|HOURS|6", [70_000, 71_000]),
    ("LONG", "1:SECONDS:EPOCH", [1_600_000_000, 1_600_000_001]),
    ("LONG", "5:MINUTES:EPOCH", [5_300_000, 5_300_001]),
    ("TIMESTAMP", "1:MILLISECONDS:TIMESTAMP", [NOON, NOON + 5]),
    ("TIMESTAMP", "TIMESTAMP", [NOON, NOON + 5]),
    ("STRING", "1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd", ["2020-02-29", "2021-12-31"]),
    ("STRING", "SIMPLE_DATE_FORMAT|yyyy-MM-dd", ["2020-02-29", "2021-12-31"]),
    ("STRING", "SIMPLE_DATE_FORMAT|yyyy-MM-dd|UTC", ["2020-02-29", "2021-12-31"]),
    ("STRING", "1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd tz(GMT)", ["2020-02-29", "2021-12-31"]),
    ("INT", "1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd", [20_200_229, 20_211_231]),
    ("LONG", "SIMPLE_DATE_FORMAT|yyyyMMddHHmmss", [20_200_229_235_959, 20_211_231_000_000]),
    (
        "STRING",
        "SIMPLE_DATE_FORMAT|yyyy-MM-dd HH:mm:ss.SSS",
        ["2020-02-29 23:59:59.007", "2020-03-01 00:00:00.120"],
    ),
    (
        "STRING",
        "SIMPLE_DATE_FORMAT|yyyy-MM-dd'T'HH:mm:ss'Z'",
        ["2020-02-29T23:59:59Z", "2020-03-01T00:00:00Z"],
    ),
    ("INT", "SIMPLE_DATE_FORMAT|yyyy", [1999, 2020]),
    ("STRING", "SIMPLE_DATE_FORMAT|yyyy/MM/dd", ["2020/02/29", "2020/03/01"]),
]


@pytest.mark.parametrize(("kind", "text", "values"), TIMES, ids=[f"{kind} {text}" for kind, text, _ in TIMES])
def test_trap26_time_formats(case: Case, kind: str, text: str, values: list[Any]) -> None:
    field = {"dataType": kind, "format": text, "granularity": "1:DAYS", "section": "dateTime"}
    segment = case.same({"ts": (field, values), "other": (field, values)}, time_column="ts")
    assert segment.start_ms is not None


@pytest.mark.parametrize(
    ("kind", "text", "value", "default"),
    [
        ("LONG", "1:MILLISECONDS:EPOCH", NOON, None),
        ("INT", "1:DAYS:EPOCH", 18_000, None),
        ("INT", "1:DAYS:EPOCH", 18_000, 12_000),
        ("INT", "1:DAYS:EPOCH", 18_000, 5),
        ("TIMESTAMP", "TIMESTAMP", NOON, None),
        ("TIMESTAMP", "TIMESTAMP", NOON, NOON - 1),
        ("STRING", "SIMPLE_DATE_FORMAT|yyyy-MM-dd HH:mm:ss.SSS", "2020-02-29 23:59:59.007", None),
        ("STRING", "SIMPLE_DATE_FORMAT|yyyy-MM-dd", "2020-02-29", "2010-01-01"),
        ("LONG", "SIMPLE_DATE_FORMAT|yyyyMMddHHmmss", 20_200_229_235_959, None),
    ],
)
def test_trap26_null_times(case: Case, kind: str, text: str, value: Any, default: Any) -> None:
    field = {"dataType": kind, "format": text, "granularity": "1:DAYS", "section": "dateTime"}
    field |= {"defaultNullValue": default} if default is not None else {}
    segment = case.same({"ts": (field, [value, None])}, time_column="ts")
    assert segment.columns[0].nulls == 1


def test_trap28_names_that_read_as_comments_are_refused(oracle: Any) -> None:
    schema = {
        "dimensionFieldSpecs": [{"name": name, "dataType": "INT"} for name in ("#c", "!x", "a,b", "😀")]
    }
    with pytest.raises(UnsupportedFeature) as caught:
        SegmentSpec.from_pinot(schema, {})
    assert all(f"column {name}: unsafe name" in str(caught.value) for name in ("#c", "!x", "a,b", "😀"))


@pytest.mark.parametrize("name", ["#c", "!x"])
def test_trap28_pinot_loses_the_columns_that_are_refused(oracle: Any, name: str) -> None:
    schema = {
        "schemaName": "t",
        "dimensionFieldSpecs": [{"name": one, "dataType": "INT"} for one in (name, "kept")],
    }
    config = {"tableName": "t_OFFLINE", "tableType": "OFFLINE", "segmentsConfig": {"replication": "1"}}
    config |= {"tenants": {}, "tableIndexConfig": {}, "metadata": {}}
    rows = [{name: 1, "kept": 2}, {name: 3, "kept": 1}]
    folder = oracle.segment_folder(oracle.build(rows, schema, config, name="t_0", creation_time_ms=CREATED))
    assert oracle.read(folder, {"kept": "INT"})["kept"].values == [2, 1]
    with java_fails():
        oracle.read(folder, {name: "INT"})


def test_trap29_pinot_reads_one_gzip_member_only(case: Case, oracle: Any, tmp_path: Path) -> None:
    write_tar(case.same({"i": (INT, [3, 1])}), tmp_path / "t_0.tar.gz")
    plain = gzip.decompress((tmp_path / "t_0.tar.gz").read_bytes())

    def untar_split_at(place: int) -> list[str]:
        tar = tmp_path / f"{place}.tar.gz"
        tar.write_bytes(gzip.compress(plain[:place]) + gzip.compress(plain[place:]))
        unpacked = oracle.untar(tar, tmp_path / str(place))
        return [Path(path).name for path in unpacked]

    assert untar_split_at(1024) == ["t_0", "v3"]  # between two entries the rest is lost without a word
    with java_fails():
        untar_split_at(1536)


def test_trap29_the_first_entry_counts_as_the_segments_directory(
    case: Case, oracle: Any, tmp_path: Path
) -> None:
    write_tar(case.same({"i": (INT, [3, 1])}), tmp_path / "t_0.tar.gz")
    plain = gzip.decompress((tmp_path / "t_0.tar.gz").read_bytes())
    (tmp_path / "files.tar.gz").write_bytes(gzip.compress(plain[1024:]))  # without the two directories
    unpacked = oracle.untar(tmp_path / "files.tar.gz", tmp_path / "out")
    assert Path(unpacked[0]).name == "columns.psf"


def test_trap29_two_blocks_of_zeros_end_the_tar(case: Case, oracle: Any, tmp_path: Path) -> None:
    """Readers that do not look at gzip's own end take anything shorter for a tar that was cut."""
    write_tar(case.same({"i": (INT, [3, 1])}), tmp_path / "t_0.tar.gz")
    plain = gzip.decompress((tmp_path / "t_0.tar.gz").read_bytes())
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        last = tar.getmembers()[-1]
    end = last.offset_data + -(-last.size // 512) * 512
    assert len(plain) % 512 == 0
    assert len(plain) - end >= 1024
    assert plain[end:] == bytes(len(plain) - end)
    assert Path(oracle.untar(tmp_path / "t_0.tar.gz", tmp_path / "out")[-1]).name == Path(last.name).name


def test_trap29_pinot_unpacks_the_tar(case: Case, oracle: Any, tmp_path: Path) -> None:
    segment = case.same({"i": (INT, [3, None, 1])}, custom={"file": "a"})
    write_tar(segment, tmp_path / "t_0.tar.gz")
    rename_tar(tmp_path / "t_0.tar.gz", tmp_path / "t_1.tar.gz", name="t_1")
    for name in ("t_0", "t_1"):
        unpacked = oracle.untar(tmp_path / f"{name}.tar.gz", tmp_path / f"{name}-out")
        assert Path(unpacked[0]) == tmp_path / f"{name}-out" / name
        metadata = oracle.metadata(Path(unpacked[0]))
        assert (metadata.getName(), metadata.getTotalDocs(), metadata.getTableName()) == (name, 3, "t")
        assert metadata.getCustomMap().get("file") == "a"
        assert oracle.read(Path(unpacked[0]), {"i": "INT"})["i"].nulls == [1]
        read = oracle.crc(Path(unpacked[0]))
        assert int(metadata.getCrc()) == read


def test_trap30_lists_without_columns_are_absent(case: Case) -> None:
    segment = case.same({"m": ({**INT, "section": "metric"}, [2, 1])})
    assert b"segment.dimension.column.names" not in segment.files["metadata.properties"]


def test_trap31_a_cut_may_split_a_surrogate_pair(case: Case, oracle: Any) -> None:
    texts = [
        "abcd\U0001f600",
        "abcd?",
        "abcd\U0001f4a9",
        "abcd\uffff",
        "abcd\ue000",
        "abcd",
        "abcd\U0010ffff",
    ]
    segment = case.same({"s": ({**STRING, "maxLength": 5}, texts)})
    assert segment.columns[0].cardinality == 6
    read = oracle.read(oracle.segment_folder(segment.files), {"s": "STRING"})["s"]
    assert read.values == ["abcd?", "abcd?", "abcd?", "abcd\uffff", "abcd\ue000", "abcd", "abcd?"]


def test_default_values(case: Case) -> None:
    case.same(
        {
            "i": ({**INT, "defaultNullValue": -5}, [None, 1]),
            "l": ({"dataType": "LONG", "defaultNullValue": "7"}, [None, 1]),
            "f": ({**FLOAT, "defaultNullValue": "1.00000017881393432617187499"}, [None, 1.0]),
            "d": ({**DOUBLE, "defaultNullValue": 1e22}, [None, 1.0]),
            "e": ({**DOUBLE, "defaultNullValue": "-Infinity"}, [None, 1.0]),
            "b": ({"dataType": "BOOLEAN", "defaultNullValue": True}, [None, False]),
            "c": ({"dataType": "BOOLEAN", "defaultNullValue": "TRUE"}, [None, False]),
            "t": ({"dataType": "TIMESTAMP", "defaultNullValue": "1600000000000"}, [None, 5]),
            "s": ({**STRING, "defaultNullValue": 1e22}, [None, "x"]),
            "n": ({**STRING, "defaultNullValue": ""}, [None, "x"]),
            "j": ({"dataType": "JSON", "defaultNullValue": '{ "a": 1.0 }'}, [None, "{}"]),
            "absent": ({**STRING, "defaultNullValue": "gone"}, []),
            "m": ({**DOUBLE, "section": "metric"}, [None, 1.0]),
        }
    )


def test_trap32_an_old_server_reads_what_is_built_for_it(old_server: Any) -> None:
    schema = {
        "schemaName": "t",
        "dimensionFieldSpecs": [{"name": kind.lower(), "dataType": kind} for kind in KINDS],
        "dateTimeFieldSpecs": [
            {"name": "day", "dataType": "INT", "format": "1:DAYS:EPOCH", "granularity": "1:DAYS"}
        ],
    }
    config = {"tableIndexConfig": {"nullHandlingEnabled": True}, "segmentsConfig": {"timeColumnName": "day"}}
    spec = SegmentSpec.from_pinot(schema, config, write_for="0.11")
    columns = {kind.lower(): values for kind, values in KINDS.items()} | {"day": [18_000, 18_001, 18_000]}
    table = pa.table(
        {name: arrow_array(columns[name], spec.arrow_schema().field(name).type) for name in columns}
    )
    segment = build_segment(table, spec, name="t_0", table_name="t", creation_time_ms=CREATED, now_ms=CREATED)
    folder = old_server.segment_folder(segment.files)
    read = old_server.read(folder, {column.name: column.data_type.value for column in spec.columns})
    assert {name: column.nulls for name, column in read.items() if column.nulls} == {
        kind.lower(): [2] for kind in KINDS
    }
    assert {name: column.values[:2] for name, column in read.items()} == {
        name: ['{"a":1}', "1"] if name == "json" else [*map(_stored, values[:2])]
        for name, values in columns.items()
    }
    bounds = old_server.metadata(folder).getColumnMetadataFor("string")
    assert (bounds.getMinValue(), bounds.getMaxValue()) == (None, None)
    assert old_server.metadata(folder).getColumnMetadataFor("int").getMaxValue() == 7


KINDS: dict[str, list[Any]] = {
    "INT": [7, -7, None],
    "LONG": [2**60, -1, None],
    "FLOAT": [1.5, 0.25, None],
    "DOUBLE": [0.1, 1e300, None],
    "STRING": ["a, b", "\U0001f600 ", None],
    "BOOLEAN": [True, False, None],
    "TIMESTAMP": [NOON, 5, None],
    "JSON": ['{"a": 1.0}', "1", None],
}


def _stored(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
