"""Generated tables: Pinot's builder makes the same bytes, Pinot's loader reads all values and nulls back."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from oracle.case import property_of
from oracle.chunks import assert_same_chunks
from oracle.generated_indexes import SORTABLE, bounded, index_settings
from py4j.protocol import Py4JJavaError

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import BuildError, UnsupportedFeature
from pinot_assets.segment import Segment, SegmentSpec, build_segment

CREATED = 1_790_000_000_000
TYPES = ["INT", "LONG", "FLOAT", "DOUBLE", "STRING", "BOOLEAN", "TIMESTAMP", "JSON", "BYTES", "BIG_DECIMAL"]
METRICS = ["INT", "LONG", "FLOAT", "DOUBLE", "BYTES", "BIG_DECIMAL"]
LISTS = [kind for kind in TYPES if kind not in ("JSON", "BIG_DECIMAL")]
CODECS = ["PASS_THROUGH", "LZ4", "GZIP", "SNAPPY", "ZSTANDARD"]
ARROW = {
    "INT": pa.int32(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("ms"),
    "JSON": pa.string(),
    "BYTES": pa.binary(),
    "BIG_DECIMAL": pa.string(),
}
NAMES = [
    "a",
    "a-b",
    "a.b",
    "a.dict",
    "a_b",
    "a$b",
    "A b",
    "k=v",
    "x:y",
    "back\\slash",
    "é",
    "日本",
    "q\uffff",
]
JUNK = ["x", "{", "01", "nul", "[1,", "'a'", "-", "1.", "NaN", "truex", "[1}", '"open', "{1:2}", "+1", ".5"]
IMPLICIT = {
    "INT": -(2**31),
    "LONG": -(2**63),
    "FLOAT": -math.inf,
    "DOUBLE": -math.inf,
    "STRING": "null",
    "BOOLEAN": 0,
    "TIMESTAMP": 0,
    "JSON": "null",
    "BYTES": b"",
    "BIG_DECIMAL": Decimal(0),
}

TEXT = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="ab ,\\=\0\x01\x7f\ud7ff\ue000\uffff\U0001f600\U00010000é\n#!${}", max_size=12),
    st.sampled_from(["x" * 511, "x" * 513, "é" * 600, "\U0001f600" * 300, "y" + "\U0001f600" * 300, ""]),
)
BLANK = st.sampled_from(["", "", " ", "\n\t"])
NUMBER = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
LEAF = st.one_of(
    NUMBER,
    st.sampled_from(["true", "false", "null"]),
    st.builds(json.dumps, TEXT, ensure_ascii=st.booleans()),
)


def _joined(opening: str, closing: str) -> Any:
    return lambda parts, blank: opening + blank + f",{blank}".join(parts) + closing


JSON = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.builds(_joined("[", "]"), st.lists(inner, max_size=4), BLANK),
        st.builds(
            _joined("{", "}"),
            st.lists(st.builds("{}:{}".format, st.builds(json.dumps, TEXT), inner), max_size=4),
            BLANK,
        ),
    ),
    max_leaves=8,
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "INT": st.integers(-(2**31), 2**31 - 1),
    "LONG": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "STRING": TEXT,
    "BOOLEAN": st.booleans(),
    "TIMESTAMP": st.integers(-(2**50), 2**50),
    "JSON": st.one_of(JSON, st.sampled_from(JUNK)),
    "BYTES": st.one_of(st.binary(max_size=6), st.binary(min_size=3, max_size=3), st.just(b"x" * 700)),
    "BIG_DECIMAL": NUMBER,
}
DEFAULTS: dict[str, st.SearchStrategy[Any]] = {
    "BYTES": st.binary(max_size=4).map(bytes.hex),
    # The default keeps zeros at its end; beside the same number without them Pinot's order is chance.
    "BIG_DECIMAL": st.sampled_from(["7", "-1.5", "0.003", "1E-9", "0"]),
    # A fixed-width dictionary gives back no NUL at the end, and SUBSTITUTE_DEFAULT_VALUE does not cut it.
    "STRING": TEXT.filter(lambda text: "\0" not in text),
}

NULL = object()  # None is what the JSON text null means


@dataclass
class GeneratedColumn:
    """A column: its schema, the values it draws from, and each value's choice, -1 for null.

    :ivar lengths: how many values each row of a multi-value column has, -1 for a null row.
    :ivar config: its entry of `fieldConfigList`.
    """

    name: str
    kind: str
    section: str
    options: JsonObject
    pool: list[Any]
    choice: np.ndarray = field(repr=False)
    encoded: bool = False
    lengths: np.ndarray | None = field(default=None, repr=False)
    config: JsonObject = field(default_factory=dict)
    format: str = "1:MILLISECONDS:EPOCH"

    @property
    def schema(self) -> JsonObject:
        extra = {"format": self.format, "granularity": "1:DAYS"} if self.section.startswith("date") else {}
        several = {"singleValueField": False} if self.lengths is not None else {}
        return {"name": self.name, "dataType": self.kind, **extra, **several, **self.options}

    def arrow(self) -> pa.ChunkedArray:
        values = [None if value is None else value for value in self.pool]
        indices = pa.array(self.choice, pa.int32(), mask=self.choice < 0)
        pool = (
            pa.array(values, pa.int64()).cast(ARROW[self.kind])
            if self.kind == "TIMESTAMP"
            else pa.array(values, ARROW[self.kind])
        )
        values = pa.DictionaryArray.from_arrays(indices, pool)
        if not self.encoded:
            values = values.cast(ARROW[self.kind])
        if self.lengths is not None:
            ends = np.concatenate(([0], np.cumsum(np.maximum(self.lengths, 0))))
            values = pa.ListArray.from_arrays(
                pa.array(ends, pa.int32()), values, mask=pa.array(self.lengths < 0)
            )
        third = len(values) // 3
        return pa.chunked_array([values[:third], values[third:]])

    def by_row(self, values: list[Any]) -> list[Any]:
        """One of `values` for each row, or a list of them; the last stands for null."""
        chosen = [values[choice] for choice in self.choice]
        if self.lengths is None:
            return chosen
        rows, end = [], 0
        for length in self.lengths.tolist():
            rows.append(None if length < 0 else chosen[end : end + length])
            end += max(length, 0)
        return rows

    def stored(self) -> tuple[list[Any], list[int]]:
        """What Pinot stores of each row, and the rows that are null."""
        values = [NULL if value is None or value != value else self.expected(value) for value in self.pool]
        rows = self.by_row([*values, NULL])
        fill = self.expected(None)
        if self.lengths is not None:
            rows = [[value for value in row or [] if value is not NULL] or NULL for row in rows]
            fill = [fill]
        return [fill if row is NULL else row for row in rows], [
            n for n, row in enumerate(rows) if row is NULL
        ]

    def sort_keys(self) -> list[Any]:
        """What each row is sorted by; texts by UTF-16, before half a pair becomes a question mark."""
        if self.kind != "STRING":
            return self.stored()[0]
        keys = [self._units(self.default() if value is None else value) for value in self.pool]
        return self.by_row([*keys, self._units(self.default())])

    def default(self) -> Any:
        if "defaultNullValue" in self.options:
            given = self.options["defaultNullValue"]
            if self.kind == "BYTES":
                return bytes.fromhex(given)
            return (
                Decimal(given)
                if self.kind == "BIG_DECIMAL"
                else given + 0
                if self.kind == "BOOLEAN"
                else given
            )
        if self.kind in ("BYTES", "BIG_DECIMAL"):
            return IMPLICIT[self.kind]
        return 0 if self.section.startswith("metric") else IMPLICIT[self.kind]

    def expected(self, value: Any) -> Any:
        """What Pinot stores for a value: a plain, row-wise statement of the rules."""
        if value is None or value != value:
            value = self.default()
            if self.kind == "JSON":
                return ("text", value)
        elif self.kind == "JSON":
            return ("text", value) if value == "" else _meaning(value)
        if self.kind == "STRING":
            return self._cut(value)
        if self.kind == "BYTES":
            return self._cut_bytes(value)
        if self.kind == "BIG_DECIMAL":
            return Decimal(value)
        return value + 0 if self.kind in ("FLOAT", "DOUBLE") else int(value)

    def _cut(self, text: str) -> str:
        return self._units(text).decode("utf-16-be", "surrogatepass").encode("utf-8", "replace").decode()

    def _units(self, text: str) -> bytes:
        """What is kept of a text, in UTF-16."""
        whole = text.encode("utf-16-be", "surrogatepass")
        strategy = self.options.get("maxLengthExceedStrategy", "TRIM_LENGTH")
        if strategy == "NO_ACTION" and "\0" not in text:
            return whole
        units = text.split("\0")[0].encode("utf-16-be")[: 2 * self.options.get("maxLength", 512)]
        if strategy == "SUBSTITUTE_DEFAULT_VALUE" and units != whole:
            return str(self.default()).encode("utf-16-be")
        return units

    def _cut_bytes(self, value: bytes) -> bytes:
        kept = value[: self.options.get("maxLength", 512)]
        strategy = self.options.get("maxLengthExceedStrategy", "NO_ACTION")
        if strategy == "NO_ACTION" or kept == value:
            return value
        return kept if strategy == "TRIM_LENGTH" else self.default()


def _meaning(text: str) -> Any:
    """A JSON text as a value that does not depend on how it is written."""
    if text in JUNK:
        return text
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


@dataclass
class GeneratedTable:
    columns: list[GeneratedColumn]
    null_handling: str
    indexing: JsonObject
    time_column: str | None = None
    custom: dict[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> JsonObject:
        sections: JsonObject = {
            "schemaName": "t",
            "enableColumnBasedNullHandling": self.null_handling == "column",
        }
        for column in self.columns:
            sections.setdefault(column.section, []).append(column.schema)
        return sections

    @property
    def table_config(self) -> JsonObject:
        return {
            "tableName": "t_OFFLINE",
            "tableType": "OFFLINE",
            "segmentsConfig": {"replication": "1", "timeColumnName": self.time_column},
            "tenants": {},
            "tableIndexConfig": {"nullHandlingEnabled": self.null_handling == "table", **self.indexing},
            "metadata": {},
            "fieldConfigList": [
                {"name": column.name, **column.config} for column in self.columns if column.config
            ],
        }

    def compresses_alike(self) -> bool:
        """Whether all chunks must be identical; those of Snappy and zstd depend on the library."""
        forward = [(column.config.get("indexes") or {}).get("forward") or {} for column in self.columns]
        return not {one.get("compressionCodec") for one in forward} & {"SNAPPY", "ZSTANDARD"}

    def nullable(self, column: GeneratedColumn) -> bool:
        if self.null_handling == "column":
            return not column.options.get("notNull", False)
        return self.null_handling == "table"

    def order(self) -> list[int]:
        """The rows as `sortedColumn` sorts them."""
        keys = [
            column.sort_keys()
            for name in self.indexing.get("sortedColumn", [])
            for column in self.columns
            if column.name == name
        ]
        count = len(self.columns[0].by_row([*self.columns[0].pool, None]))
        return sorted(range(count), key=lambda row: tuple(key[row] for key in keys))

    def rows(self) -> list[JsonObject]:
        cells = [column.by_row([*map(_cell, column.pool), None]) for column in self.columns]
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]


def _cell(value: Any) -> Any:
    """A value as JSON; NaN, infinity and bytes go in as text, which Pinot parses."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    return value.hex() if isinstance(value, bytes) else value


@st.composite
def columns(draw: st.DrawFn, name: str, rows: int, kinds: Sequence[str] = TYPES) -> GeneratedColumn:
    kind = draw(st.sampled_from(kinds))
    sections = ["dimensionFieldSpecs", "dimensionFieldSpecs"]
    sections += ["metricFieldSpecs"] if kind in METRICS else []
    sections += ["dateTimeFieldSpecs"] if kind in ("LONG", "TIMESTAMP") else []
    options: JsonObject = {}
    if draw(st.booleans()):
        finite = VALUES[kind].filter(lambda v: not isinstance(v, float) or (math.isfinite(v) and v != 0))
        options["defaultNullValue"] = draw(DEFAULTS.get(kind, finite))
    if kind in ("STRING", "JSON", "BYTES") and draw(st.booleans()):
        options["maxLength"] = draw(st.sampled_from([1, 3, 5, 2000]))
    if kind in ("STRING", "BYTES") and draw(st.booleans()):
        options["maxLengthExceedStrategy"] = draw(
            st.sampled_from(["TRIM_LENGTH", "NO_ACTION", "SUBSTITUTE_DEFAULT_VALUE"])
        )
    if draw(st.booleans()):
        options["notNull"] = True
    pool = draw(st.lists(VALUES[kind], min_size=1, max_size=20))
    if rows > 1000:  # the JVM holds every row
        pool = [
            value[:40] if kind in ("STRING", "BYTES") else value
            for value in pool
            if len(str(value)) < 100 or kind in ("STRING", "BYTES")
        ]
        pool = pool or [None]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    wide = draw(st.sampled_from([0, 0, 300, 70_000] if rows > 1000 else [0, 0, 40])) if kind in WIDE else 0
    pool += WIDE[kind](rng, wide).tolist() if wide else []
    section = draw(st.sampled_from(sections))
    nulls = _nulls(draw, rng, rows)
    lengths = None
    if kind in LISTS and section.startswith("dim") and draw(st.booleans()):
        longest = draw(st.sampled_from([1, 3, 3, 12]))
        lengths = np.where(nulls, -1, rng.integers(0, longest + 1, rows))
        nulls = rng.random(int(np.maximum(lengths, 0).sum())) < draw(st.sampled_from([0, 0, 0.3]))
    choice = rng.integers(0, len(pool), len(nulls))
    match draw(st.sampled_from(["random", "random", "ascending", "runs"])):
        case "ascending":
            choice.sort()
        case "runs":
            choice = np.repeat(choice, 50)[: len(nulls)]
    return GeneratedColumn(
        name=name,
        kind=kind,
        section=section,
        options=options,
        pool=pool,
        choice=np.where(nulls, -1, choice),
        encoded=draw(st.booleans()),
        lengths=lengths,
        config=draw(field_configs(kind, lengths is None)),
    )


@st.composite
def field_configs(draw: st.DrawFn, kind: str, single: bool) -> JsonObject:
    """How a column is to be stored: mostly with a dictionary, else raw in any form."""
    match draw(st.sampled_from(["plain", "plain", "raw", "raw", "variable", "entries"])):
        case "raw":
            fixed = kind in ("INT", "LONG", "FLOAT", "DOUBLE", "BOOLEAN", "TIMESTAMP")
            forward: JsonObject = {}
            if draw(st.booleans()):
                forward["compressionCodec"] = draw(st.sampled_from(CODECS))
            if draw(st.booleans()):
                versions = [2, 3, 4, 5] if fixed and single else [2, 3, 4, 5, 6]
                forward["rawIndexWriterVersion"] = draw(st.sampled_from(versions))
            if draw(st.booleans()):
                forward["targetDocsPerChunk"] = draw(st.sampled_from([1, 7, 50, 1000, 5000]))
            if draw(st.booleans()):
                forward["targetMaxChunkSize"] = draw(st.sampled_from(["100", "4K", "9K", "1M"]))
                forward["deriveNumDocsPerChunk"] = draw(st.booleans())
            return {"encodingType": "RAW", "indexes": {"forward": forward}}
        case "variable":
            return {"indexes": {"dictionary": {"useVarLengthDictionary": True}}}
        case "entries" if not single:
            return {"compressionCodec": "MV_ENTRY_DICT"}
    return {}


WIDE = {
    "INT": lambda rng, n: rng.integers(-(2**31), 2**31, n),
    "LONG": lambda rng, n: rng.integers(-(2**40), 2**40, n),
    "FLOAT": lambda rng, n: rng.standard_normal(n).astype(np.float32),
    "DOUBLE": lambda rng, n: rng.standard_normal(n),
    "STRING": lambda rng, n: rng.integers(0, 10**9, n).astype(str),
    "TIMESTAMP": lambda rng, n: rng.integers(0, 2**41, n),
}


def _nulls(draw: st.DrawFn, rng: np.random.Generator, rows: int) -> np.ndarray:
    """Which rows are null."""
    match draw(st.sampled_from(["none", "few", "many", "all", "runs"])):
        case "none":
            return np.zeros(rows, dtype=bool)
        case "few":
            return rng.random(rows) < 0.02
        case "many":
            return rng.random(rows) < 0.4
        case "all":
            return np.ones(rows, dtype=bool)
    return np.repeat(rng.random(rows // 1000 + 1) < 0.5, 1000)[:rows]


@st.composite
def time_columns(
    draw: st.DrawFn, name: str, rows: int, time_format: tuple[str, str] | None = None
) -> GeneratedColumn:
    """A column that tells a segment's time range: no nulls, which would become the time of the build."""
    days = draw(st.lists(st.integers(DAY_1971 + 1, DAY_2071 - 1), min_size=1, max_size=9, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind, text = time_format or [*TIMES][rng.integers(len(TIMES))]  # by the seed: few tables shall have many
    made = TIMES[kind, text]
    return GeneratedColumn(
        name=name,
        kind=kind,
        section="dateTimeFieldSpecs",
        options={},
        pool=[made(day) for day in days],
        choice=rng.integers(0, len(days), rows),
        encoded=draw(st.booleans()),
        format=text,
    )


DAY_1971, DAY_2071 = 365, 36_890
TIMES: dict[tuple[str, str], Callable[[int], Any]] = {
    ("INT", "1:DAYS:EPOCH"): lambda day: day,
    ("LONG", "1:MILLISECONDS:EPOCH"): lambda day: day * 86_400_000 + 7,
    ("TIMESTAMP", "TIMESTAMP"): lambda day: day * 86_400_000 + 7,
    ("STRING", "SIMPLE_DATE_FORMAT|yyyy-MM-dd|UTC"): lambda day: f"{date.fromordinal(719_163 + day)}",
    ("LONG", "SIMPLE_DATE_FORMAT|yyyyMMdd|UTC"): lambda day: int(f"{date.fromordinal(719_163 + day):%Y%m%d}"),
}


@st.composite
def tables(
    draw: st.DrawFn, rows: st.SearchStrategy[int], most: int, names: list[str] = NAMES
) -> GeneratedTable:
    found = draw(st.lists(st.sampled_from(names), min_size=1, max_size=most, unique=True))
    count = draw(rows)
    drawn = [draw(columns(name, count)) for name in found]
    indexing = draw(st.sampled_from([{}, {}, *({switch: True} for switch in SWITCHES)]))
    indexing |= draw(st.one_of(st.just({}), index_settings(drawn)))
    time_column = draw(st.sampled_from([None, "time"]))
    if time_column is not None:
        drawn.append(draw(time_columns(time_column, count)))
    null_handling = draw(st.sampled_from(["off", "table", "column"]))
    custom = draw(st.dictionaries(st.sampled_from(["k", "input.data.file.uri", "a-b"]), CUSTOM, max_size=3))
    return GeneratedTable(drawn, null_handling, indexing, time_column, custom)


CUSTOM = st.text(st.sampled_from("ab:/=%&é\u65e5?"), min_size=1, max_size=20)


SWITCHES = ["optimizeDictionary", "optimizeDictionaryForMetrics", "optimizeDictionaryType"]


def has_many_nulls(table: GeneratedTable) -> bool:
    """Whether some null vector needs more than an array container."""
    rows = [c.choice if c.lengths is None else c.lengths for c in table.columns if table.nullable(c)]
    return any(np.count_nonzero(one < 0) > 4096 for one in rows)


def check(table: GeneratedTable, oracle: Any) -> None:
    spec = SegmentSpec.from_pinot(table.schema, table.table_config, write_for=oracle.write_for)
    data = pa.table({column.name: column.arrow() for column in table.columns})
    order, rows = table.order(), table.rows()

    def build_theirs() -> dict[str, bytes]:
        files: dict[str, bytes] = oracle.build(
            [rows[row] for row in order],
            table.schema,
            table.table_config,
            name="t_0",
            creation_time_ms=CREATED,
            custom=table.custom,
        )
        return files

    try:
        ours = build_segment(
            data,
            spec,
            name="t_0",
            table_name="t",
            creation_time_ms=CREATED,
            now_ms=CREATED,
            custom=table.custom,
        )
    except BuildError as refused:
        if "half a surrogate pair" not in str(refused):
            raise
        with pytest.raises(Py4JJavaError, match="Unpaired surrogate"):
            build_theirs()
        return
    theirs = build_theirs()
    note_features(table, ours)
    (oracle.assert_identical if table.compresses_alike() else assert_same_chunks)(theirs, ours.files)
    read = oracle.read(oracle.segment_folder(ours.files), {c.name: c.kind for c in table.columns})
    for column in table.columns:
        actual = read[column.name]
        stored, nulls = column.stored()
        expected = [stored[order[row]] for row in actual.rows]
        nulls = np.flatnonzero(np.isin(order, nulls)).tolist()
        if column.kind == "JSON":
            meanings = {text: text for text in set(actual.values)}
            assert [
                _same_json(meanings[text], want) for text, want in zip(actual.values, expected, strict=True)
            ].count(False) == 0
        else:
            assert actual.values == expected
        assert actual.nulls == (nulls if table.nullable(column) else [])


DRAWN: set[str] = set()
"""Features that the tables so far had, see `test_the_tables_had_all_of_it`."""


def note_features(table: GeneratedTable, segment: Segment) -> None:
    kinds = {column.name: column.kind for column in table.columns}
    for column in segment.columns:
        if column.name in table.indexing.get("segmentPartitionConfig", {}).get("columnPartitionMap", {}):
            values = property_of(segment, f"column.{column.name}.partitionValues") or ""
            DRAWN.add(property_of(segment, f"column.{column.name}.partitionFunction") or "")
            DRAWN.update(["more than 13 partitions"] if values.count(",") > 13 else [])
    DRAWN.update(f"sorted {kinds[name]}" for name in table.indexing.get("sortedColumn", []))
    DRAWN.update(f"time {c.kind} {c.format}" for c in table.columns if c.name == table.time_column)
    DRAWN.update(["custom"] if table.custom else [])
    texts = (value for c in table.columns if c.kind == "STRING" for value in c.pool if value)
    DRAWN.update(["astral"] if any(max(text) > "\uffff" for text in texts) else [])


def _same_json(stored: str, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return stored == expected[1]
    return _meaning(stored) == expected


COMMON = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
    ],
)


SMALL = int(os.environ.get("ORACLE_EXAMPLES", "52"))


@settings(COMMON, max_examples=SMALL)
@given(table=tables(st.integers(1, 300), 8))
def test_small_tables(table: GeneratedTable, oracle: Any) -> None:
    check(table, oracle)


@st.composite
def tables_sorted_by_text(draw: st.DrawFn) -> GeneratedTable:
    rows = draw(st.integers(20, 300))
    text = draw(columns("text", rows, ["STRING"]).filter(lambda column: column.lengths is None))
    others = [draw(columns(name, rows)) for name in ("a", "b")]
    second = [column.name for column in others if column.kind in SORTABLE and column.lengths is None]
    return GeneratedTable([text, *others], "table", {"sortedColumn": ["text", *second[:1]]})


@settings(COMMON, max_examples=15)
@given(table=tables_sorted_by_text())
def test_tables_sorted_by_text(table: GeneratedTable, oracle: Any) -> None:
    check(table, oracle)


@pytest.mark.parametrize("time", TIMES, ids=" ".join)
@settings(COMMON, max_examples=2)
@given(drawn=st.data())
def test_every_time_column(time: tuple[str, str], drawn: st.DataObject, oracle: Any) -> None:
    both = [drawn.draw(columns("a", 50)), drawn.draw(time_columns("time", 50, time))]
    check(GeneratedTable(both, "off", {}, "time", {}), oracle)


@settings(COMMON, max_examples=3)
@given(column=columns("a", 50, ["STRING"]).filter(lambda c: c.lengths is None), function=bounded())
def test_partitions_by_value(column: GeneratedColumn, function: JsonObject, oracle: Any) -> None:
    indexing = {"segmentPartitionConfig": {"columnPartitionMap": {"a": function}}}
    check(GeneratedTable([column], "off", indexing, None, {}), oracle)


ASCII_NAMES = [name for name in NAMES if name.isascii()]


@settings(COMMON, max_examples=20)
@given(table=tables(st.integers(1, 300), 4, ASCII_NAMES))
def test_tables_for_an_old_server(table: GeneratedTable, oracle: Any, old_server: Any) -> None:
    """Built for 0.11, they are read alike by 0.11 and 1.5.1; Pinot's builder of 1.5.1 makes others."""
    try:
        spec = SegmentSpec.from_pinot(table.schema, table.table_config, write_for="0.11")
    except UnsupportedFeature as error:
        if "SERVER_TOO_OLD" not in str(error) and "Murmur3" not in str(error):
            raise
        reject()
    data = pa.table({column.name: column.arrow() for column in table.columns})
    segment = build_segment(data, spec, name="t_0", table_name="t", creation_time_ms=CREATED, now_ms=CREATED)
    folder = oracle.segment_folder(segment.files)
    kinds = {column.name: column.kind for column in table.columns}
    assert old_server.read(folder, kinds) == oracle.read(folder, kinds)


@settings(COMMON, max_examples=4, phases=[Phase.generate])
@given(table=tables(st.integers(70_001, 90_000), 3).filter(has_many_nulls))
def test_tables_of_more_than_70000_rows_and_4096_nulls(table: GeneratedTable, oracle: Any) -> None:
    check(table, oracle)


def test_the_tables_had_all_of_it() -> None:
    """Chance is fixed (`derandomize`), so this is the same for the same number of tables."""
    if not DRAWN:
        pytest.fail("run it together with the tests before it")
    needed = {"custom", "astral", "more than 13 partitions", "sorted STRING", "BoundedColumnValue", "Modulo"}
    needed |= {f"time {kind} {text}" for kind, text in TIMES}
    assert needed - DRAWN == set()
