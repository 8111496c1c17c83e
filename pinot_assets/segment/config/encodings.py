"""How the table config wants each column stored (docs/design/segment-format.md#s6-2, #s6-3 and #s7).

The settings come from several places; which of them count is Pinot's choice (`DictionaryIndexType`,
`ForwardIndexType`). What a server of the oldest version cannot read is refused here
(docs/design/segment-format.md#s11).
"""

from __future__ import annotations

import re

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.segment.column.encoding import Codec, Encoding, Optimize, RawFormat
from pinot_assets.segment.column.fields import Column
from pinot_assets.segment.column.json_values import is_true, java_int, number
from pinot_assets.segment.column.support import Feature, Problems
from pinot_assets.segment.column.types import FieldType

_MAX_INT = 2**31 - 1
_DATA_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP])?B?", re.IGNORECASE | re.ASCII)
_MULTI_VALUE_V4_SINCE = (1, 1)
_GZIP_SINCE = (1, 2)
_V5_SINCE = (1, 3)
_ENTRY_DICTIONARY_SINCE = (1, 5)
_UNREADABLE = ("DELTA", "DELTADELTA")
_FORWARD_KEYS = {
    "compressionCodec",
    "chunkCompressionType",
    "dictIdCompressionType",
    "deriveNumDocsPerChunk",
    "rawIndexWriterVersion",
    "targetMaxChunkSize",
    "targetDocsPerChunk",
}
_DICTIONARY_KEYS = {"disabled", "onHeap", "useVarLengthDictionary", "intern"}


def read_encoding(
    column: Column, config: JsonMapping, server: tuple[int, int], inverted: bool
) -> tuple[Encoding, Problems]:
    """One column's encoding, and what of it cannot be done.

    :param config: table config.
    :param inverted: whether an inverted index is written, which takes a dictionary.
    :param server: the oldest server that must read the segment, (major, minor).
    """
    indexing = config.get("tableIndexConfig") or {}
    entries = config.get("fieldConfigList") or []
    entry: JsonMapping = next((one for one in entries if one.get("name") == column.name), {})
    raw, variable_length, problems = _dictionary(column, indexing, entry)
    if inverted:
        optimize = None
        if raw:
            problems.append((Feature.ENCODING_INVALID, "an inverted index without dictionary"))
    else:
        optimize, always, found = _optimize(column, indexing, entry)
        raw = raw or always
        problems += found
    settings, found = _forward(entry)
    problems += found
    codec_name = settings.get("compressionCodec") or settings.get("chunkCompressionType")
    codec_name = str(codec_name or settings.get("dictIdCompressionType") or "")
    raw_format = RawFormat()
    if raw or optimize:
        raw_format, found = _raw_format(column, settings, codec_name, server)
        problems += [*found, *_fake_values(entry)]
    if raw or (optimize and (column.is_fixed_width or optimize.cardinality_ratio is not None)):
        problems += _unbuildable(column, indexing, entry)
    wants_entries = codec_name == "MV_ENTRY_DICT" and not column.single_value and not raw
    if wants_entries and server < _ENTRY_DICTIONARY_SINCE:
        problems.append((Feature.ENCODING_TOO_NEW, "codec MV_ENTRY_DICT, which servers read since 1.5 only"))
    return Encoding(not raw, optimize, variable_length, wants_entries, raw_format), problems


def _dictionary(column: Column, indexing: JsonMapping, entry: JsonMapping) -> tuple[bool, bool, Problems]:
    """Whether there is to be none, whether a variable-length one is asked for, and problems."""
    listed = {
        key: column.name in (indexing.get(key) or ())
        for key in (
            "noDictionaryColumns",
            "noDictionaryConfig",
            "onHeapDictionaryColumns",
            "varLengthDictionaryColumns",
        )
    }
    raw = listed["noDictionaryColumns"] or listed["noDictionaryConfig"]
    raw = raw or str(entry.get("encodingType") or "").upper() == "RAW"
    variable_length = listed["varLengthDictionaryColumns"]
    problems: Problems = []
    settings = (entry.get("indexes") or {}).get("dictionary")
    if settings is not None:
        problems += [
            (Feature.OTHER_ENCODING, f"indexes.dictionary.{key}")
            for key in settings.keys() - _DICTIONARY_KEYS
        ]
        if raw or any(listed.values()):
            problems.append((Feature.ENCODING_INVALID, "a dictionary configured in two ways"))
        raw = raw or is_true(settings.get("disabled"))
        variable_length = variable_length or is_true(settings.get("useVarLengthDictionary"))
    if is_true(indexing.get("optimizeDictionaryType")) and column.data_type.is_text:
        variable_length = True
    return raw, variable_length, problems


def _optimize(
    column: Column, indexing: JsonMapping, entry: JsonMapping
) -> tuple[Optimize | None, bool, Problems]:
    """When the values decide, whether the column is raw whatever they are, and problems."""
    if not is_true(indexing.get("optimizeDictionary")):
        metrics = is_true(indexing.get("optimizeDictionaryForMetrics"))
        if not metrics or column.field_type is not FieldType.METRIC:
            return None, False, []
    elif any(_has_index(key, key.upper(), column, indexing, entry) for key in ("json", "text")):
        return None, True, []
    if not column.single_value:
        return None, False, []
    keys = [f"noDictionary{what}RatioThreshold" for what in ("Size", "Cardinality")]
    size, distinct = (number(indexing.get(key)) for key in keys)
    problems = [
        (Feature.ENCODING_INVALID, f"{key} {indexing[key]}")
        for key, found in zip(keys, (size, distinct), strict=True)
        if found is None and indexing.get(key) is not None
    ]
    return Optimize(0.85 if size is None else size, distinct), False, problems


def _has_index(key: str, kind: str, column: Column, indexing: JsonMapping, entry: JsonMapping) -> bool:
    """Whether an index is configured for the column, in any of the places."""
    settings = (entry.get("indexes") or {}).get(key)
    kinds = (*(entry.get("indexTypes") or ()), entry.get("indexType"))
    return (
        column.name in (indexing.get(f"{key}IndexColumns") or ())
        or column.name in (indexing.get(f"{key}IndexConfigs") or ())
        or kind in (str(one).upper() for one in kinds)
        or (settings is not None and not is_true(settings.get("disabled")))
    )


def _unbuildable(column: Column, indexing: JsonMapping, entry: JsonMapping) -> Problems:
    """The indexes that no server can build of the column without dictionary."""
    keys = ["fst", "ifst", "vector", *([] if column.is_fixed_width else ["range"])]
    return [
        (Feature.INDEX_NEEDS_DICTIONARY, f"{key} index without dictionary")
        for key in keys
        if _has_index(key, key.upper(), column, indexing, entry)
    ]


def _forward(entry: JsonMapping) -> tuple[JsonMapping, Problems]:
    """The settings of the forward index, in the newer spelling, and problems."""
    properties = entry.get("properties") or {}
    legacy = {
        "compressionCodec": entry.get("compressionCodec"),
        "rawIndexWriterVersion": properties.get("rawIndexWriterVersion"),
        "deriveNumDocsPerChunk": properties.get("deriveNumDocsPerChunkForRawIndex"),
    }
    if is_true(properties.get("forwardIndexDisabled")):
        return legacy, [(Feature.OTHER_ENCODING, "forwardIndexDisabled")]
    settings = (entry.get("indexes") or {}).get("forward")
    if settings is None:
        return legacy, []
    problems: Problems = []
    if is_true(settings.get("disabled")):
        problems.append((Feature.OTHER_ENCODING, "indexes.forward.disabled"))
    other = {key for key, value in settings.items() if value is not None} - _FORWARD_KEYS
    ignored = {"disabled", "configs"} | (
        {"encodingType"} if settings.get("encodingType") == "DICTIONARY" else set()
    )
    problems += [(Feature.OTHER_ENCODING, f"indexes.forward.{key}") for key in sorted(other - ignored)]
    changed = legacy["compressionCodec"] or is_true(legacy["deriveNumDocsPerChunk"])
    if changed or str(legacy["rawIndexWriterVersion"] or 4) != "4":
        problems.append((Feature.ENCODING_INVALID, "a forward index configured in two ways"))
    return settings, problems


def _raw_format(
    column: Column, settings: JsonMapping, codec_name: str, server: tuple[int, int]
) -> tuple[RawFormat, Problems]:
    """How the column is written without dictionary, and problems."""
    problems: Problems = []
    codec = Codec.PASS_THROUGH if column.field_type is FieldType.METRIC else Codec.LZ4
    if codec_name in Codec.__members__:
        codec = Codec[codec_name]
    elif codec_name:
        unreadable = codec_name in _UNREADABLE
        feature = Feature.CODEC_UNREADABLE if unreadable else Feature.OTHER_ENCODING
        problems.append((feature, f"codec {codec_name} without dictionary"))
    if codec is Codec.GZIP and server < _GZIP_SINCE:
        problems.append((Feature.ENCODING_TOO_NEW, "codec GZIP, which servers read since 1.2 only"))
    version, found = _version(column, settings.get("rawIndexWriterVersion"), server)
    problems += found
    derive = is_true(settings.get("deriveNumDocsPerChunk"))
    target_bytes, docs = _data_size(settings.get("targetMaxChunkSize")), settings.get("targetDocsPerChunk")
    target_docs = 1000 if docs is None else java_int(docs)
    if target_bytes is None:
        problems.append((Feature.ENCODING_INVALID, f"targetMaxChunkSize {settings['targetMaxChunkSize']}"))
    counts_docs = (column.is_fixed_width and column.single_value) or (version < 4 and not derive)
    lowest, highest = (1, _MAX_INT // 16) if counts_docs else (-_MAX_INT, _MAX_INT)
    if target_docs is None or not lowest <= target_docs <= highest:
        problems.append((Feature.ENCODING_INVALID, f"targetDocsPerChunk {docs}"))
        target_docs = lowest
    return RawFormat(codec, version, derive, target_bytes or 1, target_docs), problems


def _version(column: Column, asked: object, server: tuple[int, int]) -> tuple[int, Problems]:
    """The version of the file that Pinot writes for the version asked for, and problems."""
    if asked is None:
        old = server < _MULTI_VALUE_V4_SINCE and not column.single_value
        return 2 if old else 4, []
    highest = 5 if column.is_fixed_width and column.single_value else 6
    if not re.fullmatch("[2-6]", str(asked)) or int(str(asked)) > highest:
        return 4, [(Feature.ENCODING_INVALID, f"rawIndexWriterVersion {asked}")]
    version = int(str(asked))
    if version == 6 or (version == 5 and not column.is_fixed_width):
        version = 4
    if version == 5 and server < _V5_SINCE:
        what = "rawIndexWriterVersion 5, which servers read since 1.3 only"
        return version, [(Feature.ENCODING_TOO_NEW, what)]
    if version == 4 and not column.single_value and server < _MULTI_VALUE_V4_SINCE:
        what = "multi-value rawIndexWriterVersion 4, which servers read since 1.1 only"
        return version, [(Feature.ENCODING_TOO_NEW, what)]
    return version, []


def _data_size(text: object) -> int | None:
    """Bytes of a size such as 512K (`DataSizeUtils`), None if it is none."""
    if text is None:
        return 1 << 20
    found = _DATA_SIZE.fullmatch(str(text))
    if found is None:
        return None
    size = int(float(found[1]) * 1024 ** (" KMGTP".index(found[2].upper()) if found[2] else 0))
    return size if size <= _MAX_INT else None


def _fake_values(entry: JsonMapping) -> Problems:
    """A text index may keep the values out of the forward index; that is not imitated."""
    text = (entry.get("indexes") or {}).get("text") or {}
    hides = is_true((entry.get("properties") or {}).get("noRawDataForTextIndex"))
    if not hides and text.get("rawValue") is None:
        return []
    return [(Feature.OTHER_ENCODING, "noRawDataForTextIndex")]
