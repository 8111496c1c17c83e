from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.segment import SegmentSpec
from pinot_assets.segment.column.types import Codec, Encoding, Optimize, RawFormat
from pinot_assets.segment.write.segment import uses_dictionary

SCHEMA = {
    "dimensionFieldSpecs": [
        {"name": "s", "dataType": "STRING"},
        {"name": "i", "dataType": "INT"},
        {"name": "mi", "dataType": "INT", "singleValueField": False},
        {"name": "ms", "dataType": "STRING", "singleValueField": False},
    ],
    "metricFieldSpecs": [{"name": "m", "dataType": "DOUBLE"}],
}
NAMES = ["s", "i", "mi", "ms", "m"]


def encodings(
    indexing: JsonObject | None = None, *fields: JsonObject, server: str = "1.5"
) -> dict[str, Encoding]:
    config = {"tableIndexConfig": indexing or {}, "fieldConfigList": list(fields)}
    spec = SegmentSpec.from_pinot(SCHEMA, config, write_for=server)
    return {column.name: column.encoding for column in spec.columns}


def forward(name: str, **settings: Any) -> JsonObject:
    return {"name": name, "encodingType": "RAW", "indexes": {"forward": settings}}


@pytest.mark.parametrize(
    ("indexing", "fields"),
    [
        ({"noDictionaryColumns": ["s"]}, []),
        ({"noDictionaryConfig": {"s": "SNAPPY"}}, []),
        ({}, [{"name": "s", "encodingType": "RAW"}]),
        ({}, [{"name": "s", "indexes": {"dictionary": {"disabled": True}}}]),
        ({"optimizeDictionary": True, "jsonIndexColumns": ["s"]}, []),
        ({"optimizeDictionary": True}, [{"name": "s", "indexTypes": ["TEXT"]}]),
    ],
)
def test_places_that_make_a_column_raw(indexing: JsonObject, fields: list[JsonObject]) -> None:
    found = encodings(indexing, *fields)
    assert [name for name in NAMES if not found[name].has_dictionary] == ["s"]


@pytest.mark.parametrize(
    ("indexing", "fields"),
    [
        ({"varLengthDictionaryColumns": ["s"]}, []),
        ({}, [{"name": "s", "indexes": {"dictionary": {"useVarLengthDictionary": True}}}]),
    ],
)
def test_places_that_ask_for_a_variable_length_dictionary(
    indexing: JsonObject, fields: list[JsonObject]
) -> None:
    found = encodings(indexing, *fields)
    assert [name for name in NAMES if found[name].variable_length] == ["s"]


def test_trap14_the_codec_goes_by_the_role_of_a_column() -> None:
    found = encodings({"noDictionaryColumns": NAMES})
    assert {name: one.raw.codec for name, one in found.items() if one.raw.codec is not Codec.LZ4} == {
        "m": Codec.PASS_THROUGH
    }


def test_settings_of_a_raw_column_in_both_spellings() -> None:
    old = {"name": "i", "encodingType": "RAW", "compressionCodec": "GZIP"}
    old["properties"] = {"rawIndexWriterVersion": "3", "deriveNumDocsPerChunkForRawIndex": "true"}
    assert encodings({}, old)["i"].raw == RawFormat(Codec.GZIP, 3, True)
    new = forward("s", chunkCompressionType="SNAPPY", targetMaxChunkSize="1.5K", targetDocsPerChunk=-1)
    assert encodings({}, new)["s"].raw == RawFormat(Codec.SNAPPY, 4, False, 1536, -1)


@pytest.mark.parametrize(
    ("name", "asked", "written"),
    [("i", 5, 5), ("s", 5, 4), ("s", 6, 4), ("mi", 5, 5), ("mi", 6, 4), ("ms", 5, 4), ("ms", 3, 3)],
)
def test_trap18_versions_fall_back_to_4(name: str, asked: int, written: int) -> None:
    assert encodings({}, forward(name, rawIndexWriterVersion=asked))[name].raw.version == written


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        (forward("i", rawIndexWriterVersion=6), "column i: rawIndexWriterVersion 6"),
        (forward("s", rawIndexWriterVersion=1), "column s: rawIndexWriterVersion 1"),
        (
            forward("i", compressionCodec="DELTA"),
            "column i: codec DELTA without dictionary (CODEC_UNREADABLE_IN_1_5_1",
        ),
        (forward("i", compressionCodec="DELTADELTA"), "column i: codec DELTADELTA"),
        (forward("s", compressionCodec="CLP"), "column s: codec CLP"),
        (forward("s", compressionCodec="CLPV2_ZSTD"), "column s: codec CLPV2_ZSTD"),
        (
            forward("mi", compressionCodec="MV_ENTRY_DICT"),
            "column mi: codec MV_ENTRY_DICT without dictionary",
        ),
        (forward("s", disabled=True), "column s: indexes.forward.disabled"),
        (forward("s", codecSpec="x"), "column s: indexes.forward.codecSpec"),
        (forward("s", targetMaxChunkSize="1 MB"), "column s: targetMaxChunkSize 1 MB"),
        (forward("s", targetMaxChunkSize="3G"), "column s: targetMaxChunkSize 3G"),
        (forward("i", targetDocsPerChunk=-1), "column i: targetDocsPerChunk -1"),
        (forward("s", targetDocsPerChunk=0, rawIndexWriterVersion=2), "column s: targetDocsPerChunk 0"),
        (
            {"name": "s", "encodingType": "RAW", "indexes": {"dictionary": {"onHeap": True}}},
            "column s: a dictionary configured in two ways",
        ),
        (
            {"name": "s", "compressionCodec": "LZ4", "indexes": {"forward": {}}},
            "column s: a forward index configured in two ways",
        ),
        ({"name": "s", "properties": {"forwardIndexDisabled": "true"}}, "column s: forwardIndexDisabled"),
        (
            {"name": "s", "encodingType": "RAW", "properties": {"noRawDataForTextIndex": "true"}},
            "column s: noRawDataForTextIndex",
        ),
        (
            {"name": "s", "encodingType": "RAW", "indexTypes": ["INVERTED"]},
            "column s: an inverted index without dictionary",
        ),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(field: JsonObject, problem: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        encodings({}, field)
    assert problem in str(caught.value)


def test_trap32_an_old_server_gets_version_2_of_multi_value_raw_columns() -> None:
    found = encodings({"noDictionaryColumns": NAMES}, server="0.11")
    assert {name: one.raw.version for name, one in found.items()} == {
        "s": 4,
        "i": 4,
        "m": 4,
        "mi": 2,
        "ms": 2,
    }
    assert encodings({"noDictionaryColumns": NAMES}, server="1.1")["mi"].raw.version == 4


@pytest.mark.parametrize(
    ("field", "before", "since"),
    [
        (forward("s", compressionCodec="GZIP"), "1.1", "1.2"),
        (forward("i", rawIndexWriterVersion=5), "1.2", "1.3"),
        (forward("mi", rawIndexWriterVersion=4), "1.0", "1.1"),
        ({"name": "mi", "compressionCodec": "MV_ENTRY_DICT"}, "1.4", "1.5"),
    ],
)
def test_trap32_what_an_older_server_cannot_read_is_refused(
    field: JsonObject, before: str, since: str
) -> None:
    encodings({}, field, server=since)
    with pytest.raises(UnsupportedFeature, match=rf"column {field['name']}: .*since {since}"):
        encodings({}, field, server=before)


def test_optimize_dictionary_spares_multi_value_and_inverted_columns() -> None:
    found = encodings(
        {
            "optimizeDictionary": True,
            "invertedIndexColumns": ["i"],
            "createInvertedIndexDuringSegmentGeneration": True,
        }
    )
    assert {name for name, one in found.items() if one.optimize} == {"s", "m"}
    assert {
        name for name, one in encodings({"optimizeDictionaryForMetrics": True}).items() if one.optimize
    } == {"m"}


@pytest.mark.parametrize(
    ("kind", "cardinality", "rows", "expected"),
    [
        ("INT", 1, 1000, True),
        ("INT", 1000, 1000, False),  # 4000 / (4000 + 1250) = 0.76
        ("LONG", 1000, 1000, True),  # 8000 / (8000 + 1250) = 0.86
        ("STRING", 1000, 1000, True),
    ],
)
def test_trap25_the_values_decide(kind: str, cardinality: int, rows: int, expected: bool) -> None:
    schema = {"dimensionFieldSpecs": [{"name": "c", "dataType": kind}]}
    spec = SegmentSpec.from_pinot(schema, {"tableIndexConfig": {"optimizeDictionary": True}})
    assert spec.columns[0].encoding.optimize == Optimize()
    assert uses_dictionary(spec.columns[0], cardinality, rows) is expected


def test_trap25_the_threshold_itself_makes_a_column_raw() -> None:
    # 8 rows of INT, 7 distinct of 3 bits: 32 / (28 + 3) = 1.03…; the threshold is compared with <=.
    schema = {"dimensionFieldSpecs": [{"name": "c", "dataType": "INT"}]}
    for ratio, expected in ((32 / 31, False), (32 / 31 - 1e-9, True)):
        config = {"tableIndexConfig": {"optimizeDictionary": True, "noDictionarySizeRatioThreshold": ratio}}
        assert uses_dictionary(SegmentSpec.from_pinot(schema, config).columns[0], 7, 8) is expected


@pytest.mark.parametrize(("ratio", "expected"), [(0.5, False), (0.51, True)])
def test_trap25_variable_width_goes_by_cardinality(ratio: float, expected: bool) -> None:
    schema = {"dimensionFieldSpecs": [{"name": "c", "dataType": "STRING"}]}
    config = {
        "tableIndexConfig": {"optimizeDictionary": True, "noDictionaryCardinalityRatioThreshold": ratio}
    }
    assert uses_dictionary(SegmentSpec.from_pinot(schema, config).columns[0], 50, 100) is expected


@pytest.mark.parametrize(
    "field",
    [
        {"name": "s", "encodingType": "RAW", "indexTypes": ["INVERTED"]},
        {"name": "s", "encodingType": "RAW", "indexes": {"inverted": {}}},
        {"name": "s", "encodingType": "RAW", "indexTypes": ["FST"]},
        {
            "name": "s",
            "encodingType": "RAW",
            "indexes": {"dictionary": {}, "forward": {"encodingType": "RAW"}},
        },
    ],
)
def test_for_1_6_a_raw_column_gets_the_dictionary_that_its_indexes_need(field: JsonObject) -> None:
    with pytest.raises(UnsupportedFeature):
        encodings({}, field)
    found = encodings({}, field, server="1.6")["s"]
    assert (found.has_dictionary, found.raw_forward) == (True, True)


def test_for_1_6_the_older_list_gives_a_dictionary_of_fixed_width() -> None:
    lists = {"noDictionaryColumns": ["s"], "invertedIndexColumns": ["s"], "varLengthDictionaryColumns": ["s"]}
    found = encodings(lists, server="1.6")["s"]
    assert (found.has_dictionary, found.raw_forward, found.variable_length) == (True, True, False)
    assert not encodings(lists, server="1.5")["s"].has_dictionary  # there the server builds the index


def test_for_1_6_an_index_that_needs_a_dictionary_comes_before_a_disabled_one() -> None:
    field = {"name": "s", "indexTypes": ["INVERTED"], "indexes": {"dictionary": {"disabled": True}}}
    found = encodings({}, field, server="1.6")["s"]
    assert (found.has_dictionary, found.raw_forward) == (True, False)


def test_version_6_is_a_version_of_its_own_from_1_6_on() -> None:
    written = {
        server: {
            name: one.raw.version
            for name, one in encodings(
                {}, *(forward(name, rawIndexWriterVersion=6) for name in ("s", "mi", "ms")), server=server
            ).items()
            if name in ("s", "mi", "ms")
        }
        for server in ("1.5", "1.6")
    }
    assert written == {"1.5": dict.fromkeys(("s", "mi", "ms"), 4), "1.6": dict.fromkeys(("s", "mi", "ms"), 6)}
    assert encodings({}, forward("i", rawIndexWriterVersion=6), server="1.6")["i"].raw.version == 6
    with pytest.raises(UnsupportedFeature, match="rawIndexWriterVersion 6"):
        encodings({}, forward("i", rawIndexWriterVersion=6), server="1.5")


def test_optimize_dictionary_type_compares_lengths_from_1_6_on() -> None:
    asked = {"optimizeDictionaryType": True}
    before, since = (encodings(asked, server=server)["s"] for server in ("1.5", "1.6"))
    assert (before.variable_length, before.by_length) == (True, False)
    assert (since.variable_length, since.by_length) == (False, True)
