"""Every line of the support table is what the writer does."""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import UnsupportedFeature
from pinot_assets.segment import SegmentSpec
from pinot_assets.segment.column.types import Codec
from pinot_assets.segment.column.unsupported import Feature
from pinot_assets.segment.functions.time_format import PATTERNS
from tools.docs.formats_page import FormatLine, SupportLevel

SINGLE = ["INT", "LONG", "FLOAT", "DOUBLE", "BIG_DECIMAL", "BOOLEAN", "TIMESTAMP", "STRING", "JSON", "BYTES"]
MULTIPLE = [kind for kind in SINGLE if kind not in ("BIG_DECIMAL", "JSON")]

Example = tuple[JsonObject, JsonObject]


def dimension(kind: str = "STRING", **options: Any) -> JsonObject:
    return {"dimensionFieldSpecs": [{"name": "c", "dataType": kind, **options}]}


def metric(kind: str, **options: Any) -> JsonObject:
    return {"metricFieldSpecs": [{"name": "c", "dataType": kind, **options}]}


def time(kind: str, text: str, **options: Any) -> Example:
    field = {"name": "c", "dataType": kind, "format": text, "granularity": "1:DAYS", **options}
    return {"dateTimeFieldSpecs": [field]}, {"segmentsConfig": {"timeColumnName": "c"}}


def indexing(**settings: Any) -> Example:
    return dimension(), {"tableIndexConfig": settings}


def field(**settings: Any) -> Example:
    return dimension(), {"fieldConfigList": [{"name": "c", **settings}]}


def raw(**settings: Any) -> Example:
    return field(encodingType="RAW", **settings)


def ingestion(**settings: Any) -> Example:
    return dimension(), {"ingestionConfig": settings}


def transform(function: str) -> Example:
    return ingestion(transformConfigs=[{"columnName": "c", "transformFunction": function}])


def partitioned(schema: JsonObject, name: str, count: int = 2, **config: Any) -> Example:
    entry = {"functionName": name, "numPartitions": count, "functionConfig": config}
    return schema, {"tableIndexConfig": {"segmentPartitionConfig": {"columnPartitionMap": {"c": entry}}}}


def plain(schema: JsonObject) -> Example:
    return schema, {}


DAYS = {"granularities": ["DAY"]}
OLD_SERVER = {"writeFor": "0.11"}  # read by `spec_of` only
NEW_SERVER = {"writeFor": "1.6"}
EXAMPLES: dict[FormatLine, list[Example]] = {
    FormatLine.SINGLE_VALUE: [plain(dimension(kind)) for kind in SINGLE],
    FormatLine.MULTI_VALUE: [plain(dimension(kind, singleValueField=False)) for kind in MULTIPLE],
    FormatLine.COLUMN_INVALID: [
        plain(dimension("BIG_DECIMAL", singleValueField=False)),
        plain(dimension("JSON", singleValueField=False)),
        plain(dimension(maxLength="x")),
        plain(dimension(maxLength=-1)),
        plain(metric("INT", singleValueField=False)),
        time("TIMESTAMP", "TIMESTAMP", singleValueField=False),
        *(plain(metric(kind)) for kind in ("STRING", "JSON", "BOOLEAN", "TIMESTAMP")),
        plain({"dateTimeFieldSpecs": [{"name": "c", "dataType": "INT"}]}),
        plain({"dimensionFieldSpecs": dimension()["dimensionFieldSpecs"] * 2}),
        plain({}),
    ],
    FormatLine.NULLS: [
        indexing(nullHandlingEnabled=True),
        plain(dimension("INT", defaultNullValue=7, notNull=True) | {"enableColumnBasedNullHandling": True}),
    ],
    FormatLine.DEFAULT_VALUE: [
        plain(dimension("INT", defaultNullValue="x")),
        plain(dimension("TIMESTAMP", defaultNullValue="2020-01-01")),
    ],
    FormatLine.MAX_LENGTH: [plain(dimension(maxLength=7, maxLengthExceedStrategy="ERROR"))],
    FormatLine.TRAILING_ZEROS: [plain(dimension("BIG_DECIMAL", allowTrailingZeros=True))],
    FormatLine.OTHER_TYPE: [
        plain({"complexFieldSpecs": [{"name": "c", "dataType": "MAP"}]}),
        plain(dimension("LIST")),
        plain(dimension("STRUCT")),
        plain(dimension("UUID")),
        plain(dimension("OPEN_STRUCT")),
    ],
    FormatLine.OLD_FIELDS: [
        plain({"timeFieldSpec": {"incomingGranularitySpec": {"name": "c"}}}),
        plain(dimension(virtualColumnProvider="x")),
    ],
    FormatLine.COLUMN_NAME: [
        *(
            plain({"dimensionFieldSpecs": [{"name": name, "dataType": "INT"}]})
            for name in ("#c", "!c", "a,b", "${c}", "a\n", "\U0001f600")
        ),
        time("STRING", "SIMPLE_DATE_FORMAT|yyyy,MM"),
        ({"dimensionFieldSpecs": [{"name": "é", "dataType": "INT"}]}, OLD_SERVER),
    ],
    FormatLine.DICTIONARY: [
        plain(dimension()),
        indexing(varLengthDictionaryColumns=["c"]),
        (dimension(singleValueField=False), field(compressionCodec="MV_ENTRY_DICT")[1]),
    ],
    FormatLine.OPTIMIZE: [
        indexing(**{key: True})
        for key in ("optimizeDictionary", "optimizeDictionaryForMetrics", "optimizeDictionaryType")
    ],
    FormatLine.RAW: [
        indexing(noDictionaryColumns=["c"]),
        *(raw(compressionCodec=codec) for codec in Codec),
        *(raw(properties={"rawIndexWriterVersion": version}) for version in (2, 3, 4, 5)),
        (dimension(), {**raw(properties={"rawIndexWriterVersion": 6})[1], **NEW_SERVER}),
        (dimension(), {**raw(indexTypes=["INVERTED"])[1], **NEW_SERVER}),
    ],
    FormatLine.CODEC_UNREADABLE: [raw(compressionCodec="DELTA"), raw(compressionCodec="DELTADELTA")],
    FormatLine.OTHER_ENCODING: [
        field(properties={"forwardIndexDisabled": "true"}),
        raw(compressionCodec="CLP"),
        raw(properties={"noRawDataForTextIndex": "true"}),
        field(indexes={"dictionary": {"newer": 1}}),
        field(indexes={"forward": {"newer": 1}}),
        field(indexes={"forward": {"codecSpec": "LZ4"}}),
        field(codecSpec="LZ4"),
    ],
    FormatLine.ENCODING_INVALID: [
        raw(indexes={"dictionary": {}}),
        raw(properties={"rawIndexWriterVersion": 7}),
        raw(indexes={"forward": {"targetDocsPerChunk": "x"}}),
        indexing(optimizeDictionary=True, noDictionarySizeRatioThreshold="x"),
        indexing(optimizeDictionary=True, noDictionaryCardinalityRatioThreshold="x"),
    ],
    FormatLine.ENCODING_TOO_NEW: [
        raw(indexTypes=["INVERTED"]),
        (dimension(), {**raw(compressionCodec="GZIP")[1], **OLD_SERVER}),
        (dimension("INT"), {**raw(properties={"rawIndexWriterVersion": 5})[1], **OLD_SERVER}),
        (
            dimension(singleValueField=False),
            {**raw(properties={"rawIndexWriterVersion": 4})[1], **OLD_SERVER},
        ),
        (dimension(singleValueField=False), {**field(compressionCodec="MV_ENTRY_DICT")[1], **OLD_SERVER}),
    ],
    FormatLine.INVERTED_AT_BUILD: [
        indexing(invertedIndexColumns=["c"], createInvertedIndexDuringSegmentGeneration=True),
        field(indexTypes=["INVERTED"]),
        (dimension(), {**indexing(invertedIndexColumns=["c"])[1], **NEW_SERVER}),
    ],
    FormatLine.INVERTED: [indexing(invertedIndexColumns=["c"])],
    FormatLine.BLOOM: [indexing(bloomFilterColumns=["c"]), field(indexes={"bloom": {"fpp": 0.1}})],
    FormatLine.BLOOM_INVALID: [
        (dimension("BOOLEAN"), {"tableIndexConfig": {"bloomFilterColumns": ["c"]}}),
        field(indexes={"bloom": {"fpp": 2}}),
        indexing(bloomFilterConfigs={"c": {"fpp": "x"}}),
        indexing(bloomFilterConfigs={"c": {"maxSizeInBytes": "x"}}),
    ],
    FormatLine.SERVER_BUILT: [
        indexing(rangeIndexColumns=["c"]),
        field(indexes={"range": {}}),
        field(indexTypes=["TEXT"]),
        indexing(multiColumnTextIndexConfig={"columns": ["c"]}),
        indexing(jsonIndexColumns=["c"]),
        indexing(jsonIndexConfigs={"c": {}}),
        field(indexTypes=["FST"]),
        field(indexes={"ifst": {}}),
        field(indexTypes=["H3"]),
        field(indexTypes=["VECTOR"]),
        (dimension("TIMESTAMP"), field(indexTypes=["TIMESTAMP"], timestampConfig=DAYS)[1]),
    ],
    FormatLine.STAR_TREE: [indexing(starTreeIndexConfigs=[{}], enableDynamicStarTreeCreation=True)],
    FormatLine.STAR_TREE_AT_BUILD: [
        indexing(starTreeIndexConfigs=[{}]),
        indexing(enableDefaultStarTree=True),
    ],
    FormatLine.INDEX_NEEDS_DICTIONARY: [
        raw(indexTypes=["FST"]),
        raw(indexes={"ifst": {}}),
        raw(indexTypes=["RANGE"]),
        (dimension("FLOAT", singleValueField=False), raw(indexTypes=["VECTOR"])[1]),
    ],
    FormatLine.TIMESTAMP_INDEX_OF_NULLS: [
        (dimension("TIMESTAMP"), {**indexing(nullHandlingEnabled=True)[1], **field(timestampConfig=DAYS)[1]})
    ],
    FormatLine.NULL_BACKFILL: [field(indexes={"null": {"backfill": True}}), field(indexes={"null": {}})],
    FormatLine.OTHER_INDEX: [field(indexTypes=["NEWER"]), field(indexes={"newer": {}})],
    FormatLine.DECLARED_TWICE: [
        (dimension(), {**indexing(bloomFilterColumns=["c"])[1], **field(indexes={"bloom": {}})[1]})
    ],
    FormatLine.SORTED_COLUMN: [indexing(sortedColumn=["c"])],
    FormatLine.SORTED_COLUMN_INVALID: [
        indexing(sortedColumn=["gone"]),
        (dimension(singleValueField=False), {"tableIndexConfig": {"sortedColumn": ["c"]}}),
    ],
    FormatLine.PARTITIONS: [
        *(
            partitioned(dimension("INT"), name)
            for name in ("Modulo", "Murmur", "Murmur2", "Murmur3", "HashCode", "ByteArray")
        ),
        partitioned(dimension(), "BoundedColumnValue", columnValues="x", columnValuesDelimiter="|"),
    ],
    FormatLine.PARTITIONS_INVALID: [
        partitioned(dimension(singleValueField=False), "Murmur"),
        partitioned(dimension("DOUBLE"), "Modulo"),
        partitioned(dimension("BYTES"), "Murmur", useRawBytes=True),
        partitioned(dimension(), "Murmur", count=0),
        indexing(segmentPartitionConfig={"columnPartitionMap": {"c": None}}),
        indexing(
            segmentPartitionConfig={
                "columnPartitionMap": {
                    "c": {"functionName": "Murmur", "numPartitions": 2, "functionConfig": "x"}
                }
            }
        ),
        (dimension(), {**partitioned({}, "Murmur3")[1], **OLD_SERVER}),
    ],
    FormatLine.SEGMENT_FORMAT: [indexing(segmentFormatVersion="v1")],
    FormatLine.TIME_FORMAT: [
        time("INT", "6:HOURS:EPOCH"),
        time("TIMESTAMP", "TIMESTAMP"),
        *(time("STRING", f"SIMPLE_DATE_FORMAT|{pattern}|UTC") for pattern in PATTERNS),
    ],
    FormatLine.TIME_FORMAT_OTHER: [
        time("STRING", "SIMPLE_DATE_FORMAT|EEE"),
        time("STRING", "SIMPLE_DATE_FORMAT|yyyy-MM-dd|Europe/Berlin"),
    ],
    FormatLine.TIME_COLUMN: [
        (dimension(), {"segmentsConfig": {"timeColumnName": "c"}}),
        time("STRING", "1:DAYS:EPOCH"),
        time("LONG", "1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd"),
        time("INT", "SIMPLE_DATE_FORMAT|yyyyMMddHHmm"),
        time("INT", "1:MILLISECONDS:EPOCH"),
    ],
    FormatLine.ROW_TIMES: [ingestion(rowTimeValueCheck=True)],
    FormatLine.TRANSFORM: [
        transform("toEpochDays(at)"),
        transform("upper(concat(a, 'b'))"),
        ingestion(filterConfig={"filterFunction": "startsWith(c, 'x') AND NOT isNull(a) OR a > 1.5"}),
    ],
    FormatLine.TRANSFORM_OTHER: [
        transform("jsonPathString(a, '$.b')"),
        transform("now()"),
        ingestion(filterConfig={"filterFunction": "a IN (1; 2)"}),
    ],
    FormatLine.GROOVY: [
        transform("Groovy({x; y}, x, y)"),
        ingestion(filterConfig={"filterFunction": "groovy({x > 1}, x)"}),
    ],
    FormatLine.TRANSFORM_REFERENCE: [
        transform("lower('${env:HOME}')"),
        ingestion(filterConfig={"filterFunction": "startsWith(c, '${sys:user.home}')"}),
    ],
    FormatLine.TRANSFORM_INVALID: [
        transform("upper(c)"),
        ingestion(filterConfig={"filterFunction": "upper(c)"}),
    ],
    FormatLine.INGESTION: [
        *(ingestion(**{key: [{"x": "y"}]}) for key in ("complexTypeConfig", "enrichmentConfigs")),
        *(
            ingestion(**{key: [{"x": "y"}]})
            for key in ("aggregationConfigs", "schemaConformingTransformerConfig")
        ),
        indexing(aggregateMetrics=True),
        plain(dimension(transformFunction="x + 1")),
    ],
    FormatLine.UPSERT: [(dimension(), {key: {"mode": "FULL"}}) for key in ("upsertConfig", "dedupConfig")],
    FormatLine.CONFIG_SHAPE: [
        indexing(sortedColumn="c"),
        indexing(bloomFilterConfigs={"c": "x"}),
        (dimension(), {"tableIndexConfig": []}),
        (dimension(), {"fieldConfigList": {"name": "c"}}),
        (dimension(), {"fieldConfigList": [None]}),
        (dimension(), {"fieldConfigList": [{"name": "c", "indexes": {"bloom": "x"}}]}),
        (dimension(), {"fieldConfigList": [{"name": "c"}, {"name": "c", "encodingType": "RAW"}]}),
        ({"dimensionFieldSpecs": "c"}, {}),
        ({"dimensionFieldSpecs": ["c"]}, {}),
    ],
    FormatLine.OLD_SERVER: [(dimension(), {"writeFor": "0.10"})],
}
CASES = [(feature, example) for feature in FormatLine for example in EXAMPLES.get(feature, [])]


def spec_of(example: Example) -> SegmentSpec:
    schema, config = example
    return SegmentSpec.from_pinot(schema, config, write_for=config.get("writeFor", "1.5"))


def test_every_refusal_has_a_line() -> None:
    refused = {(line.reason, line.code) for line in FormatLine if line.answer is SupportLevel.REFUSED}
    assert refused == {(feature.reason, feature.code) for feature in Feature}


def test_every_line_has_an_example() -> None:
    assert {*EXAMPLES} == {*FormatLine}


@pytest.mark.parametrize(
    ("feature", "example"), CASES, ids=[f"{f.name}-{i}" for i, (f, _) in enumerate(CASES)]
)
def test_the_writer_does_what_the_list_says(feature: FormatLine, example: Example) -> None:
    match feature.answer:
        case SupportLevel.REFUSED:
            with pytest.raises(UnsupportedFeature) as caught:
                spec_of(example)
            reasons = str(caught.value.why).split("; ")
            assert any(f"({feature.code}: {feature.reason})" in reason for reason in reasons)
            assert not any(reason.startswith("(") or ": " not in reason for reason in reasons)
        case SupportLevel.SERVER:
            assert any("the server builds the" in note for note in spec_of(example).notes)
        case SupportLevel.NATIVE:
            assert spec_of(example).notes == ()


@pytest.mark.parametrize("feature", FormatLine, ids=lambda feature: feature.name)
def test_what_is_not_written_has_a_reason_and_a_code(feature: FormatLine) -> None:
    assert bool(feature.code) is (feature.answer is not SupportLevel.NATIVE)
    assert feature.reason or not feature.code
    assert "; " not in feature.reason or not feature.code  # it separates problems
