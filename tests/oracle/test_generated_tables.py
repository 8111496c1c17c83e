"""Generated tables: Pinot's builder makes the same bytes, Pinot's loader reads all values and nulls back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pinot_assets.segment import SegmentSpec, build_segment

CREATED = 1_790_000_000_000
TYPES = ["INT", "LONG", "FLOAT", "DOUBLE", "STRING", "BOOLEAN", "TIMESTAMP", "JSON"]
ARROW = {
    "INT": pa.int32(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("ms"),
    "JSON": pa.string(),
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
}


@dataclass
class GeneratedColumn:
    """A column: its schema, the values it draws from, and each row's choice, -1 for null."""

    name: str
    kind: str
    section: str
    options: dict[str, Any]
    pool: list[Any]
    choice: np.ndarray = field(repr=False)
    encoded: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        extra = (
            {"format": "1:MILLISECONDS:EPOCH", "granularity": "1:DAYS"}
            if self.section.startswith("date")
            else {}
        )
        return {"name": self.name, "dataType": self.kind, **extra, **self.options}

    def arrow(self) -> pa.ChunkedArray:
        values = [None if value is None else value for value in self.pool]
        indices = pa.array(self.choice, pa.int32(), mask=self.choice < 0)
        pool = (
            pa.array(values, pa.int64()).cast(ARROW[self.kind])
            if self.kind == "TIMESTAMP"
            else pa.array(values, ARROW[self.kind])
        )
        encoded = pa.DictionaryArray.from_arrays(indices, pool)
        third = len(encoded) // 3
        chunks = pa.chunked_array([encoded[:third], encoded[third:]])
        return chunks if self.encoded else chunks.cast(ARROW[self.kind])

    def default(self) -> Any:
        if "defaultNullValue" in self.options:
            given = self.options["defaultNullValue"]
            return int(given) if self.kind == "BOOLEAN" else given
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
        return value + 0 if self.kind in ("FLOAT", "DOUBLE") else int(value)

    def _cut(self, text: str) -> str:
        strategy = self.options.get("maxLengthExceedStrategy", "TRIM_LENGTH")
        if strategy == "NO_ACTION" and "\0" not in text:
            return text
        units = text.split("\0")[0].encode("utf-16-le")[: 2 * self.options.get("maxLength", 512)]
        kept = units.decode("utf-16-le", "surrogatepass")
        if strategy == "SUBSTITUTE_DEFAULT_VALUE" and kept != text:
            kept = self.default()
        return kept.encode("utf-8", "replace").decode()


def _meaning(text: str) -> Any:
    """A JSON text as a value that does not depend on how it is written."""
    if text in JUNK:
        return text
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


@dataclass
class GeneratedTable:
    columns: list[GeneratedColumn]
    null_handling: str

    @property
    def schema(self) -> dict[str, Any]:
        sections: dict[str, Any] = {
            "schemaName": "t",
            "enableColumnBasedNullHandling": self.null_handling == "column",
        }
        for column in self.columns:
            sections.setdefault(column.section, []).append(column.schema)
        return sections

    @property
    def table_config(self) -> dict[str, Any]:
        return {
            "tableName": "t_OFFLINE",
            "tableType": "OFFLINE",
            "segmentsConfig": {"replication": "1"},
            "tenants": {},
            "tableIndexConfig": {"nullHandlingEnabled": self.null_handling == "table"},
            "metadata": {},
        }

    def nullable(self, column: GeneratedColumn) -> bool:
        if self.null_handling == "column":
            return not column.options.get("notNull", False)
        return self.null_handling == "table"

    def rows(self) -> list[dict[str, Any]]:
        cells = [[*map(_cell, column.pool), None] for column in self.columns]
        rows = []
        for i in range(len(self.columns[0].choice)):
            rows.append({c.name: cell[c.choice[i]] for c, cell in zip(self.columns, cells, strict=True)})
        return rows


def _cell(value: Any) -> Any:
    """A value as JSON; NaN and infinity go in as text, which Pinot parses."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    return value


@st.composite
def columns(draw: st.DrawFn, name: str, rows: int) -> GeneratedColumn:
    kind = draw(st.sampled_from(TYPES))
    sections = ["dimensionFieldSpecs", "dimensionFieldSpecs"]
    sections += ["metricFieldSpecs"] if kind in TYPES[:4] else []
    sections += ["dateTimeFieldSpecs"] if kind in ("LONG", "TIMESTAMP") else []
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        # A fixed-width dictionary gives back no NUL at the end, and SUBSTITUTE_DEFAULT_VALUE does not cut it.
        finite = VALUES[kind].filter(
            lambda v: (math.isfinite(v) and v != 0) if isinstance(v, float) else "\0" not in str(v)
        )
        options["defaultNullValue"] = draw(finite)
    if kind in ("STRING", "JSON") and draw(st.booleans()):
        options["maxLength"] = draw(st.sampled_from([1, 3, 5, 2000]))
    if kind == "STRING" and draw(st.booleans()):
        options["maxLengthExceedStrategy"] = draw(
            st.sampled_from(["TRIM_LENGTH", "NO_ACTION", "SUBSTITUTE_DEFAULT_VALUE"])
        )
    if draw(st.booleans()):
        options["notNull"] = True
    pool = draw(st.lists(VALUES[kind], min_size=1, max_size=20))
    if rows > 1000:  # the JVM holds every row
        pool = [
            value[:40] if kind == "STRING" else value
            for value in pool
            if len(str(value)) < 100 or kind == "STRING"
        ]
        pool = pool or [None]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    wide = draw(st.sampled_from([0, 0, 300, 70_000])) if rows > 1000 and kind in WIDE else 0
    pool += WIDE[kind](rng, wide).tolist() if wide else []
    choice = rng.integers(0, len(pool), rows)
    match draw(st.sampled_from(["random", "random", "ascending", "runs"])):
        case "ascending":
            choice.sort()
        case "runs":
            choice = np.repeat(choice, 50)[:rows]
    return GeneratedColumn(
        name=name,
        kind=kind,
        section=draw(st.sampled_from(sections)),
        options=options,
        pool=pool,
        choice=np.where(_nulls(draw, rng, rows), -1, choice),
        encoded=draw(st.booleans()),
    )


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
def tables(draw: st.DrawFn, rows: st.SearchStrategy[int], most: int) -> GeneratedTable:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=most, unique=True))
    count = draw(rows)
    return GeneratedTable(
        [draw(columns(name, count)) for name in names], draw(st.sampled_from(["off", "table", "column"]))
    )


def has_many_nulls(table: GeneratedTable) -> bool:
    """Whether some null vector needs more than an array container."""
    return any(table.nullable(c) and np.count_nonzero(c.choice < 0) > 4096 for c in table.columns)


def check(table: GeneratedTable, oracle: Any) -> None:
    spec = SegmentSpec.from_pinot(table.schema, table.table_config)
    data = pa.table({column.name: column.arrow() for column in table.columns})
    ours = build_segment(data, spec, name="t_0", table_name="t", creation_time_ms=CREATED, now_ms=CREATED)
    theirs = oracle.build(
        table.rows(), table.schema, table.table_config, name="t_0", creation_time_ms=CREATED
    )
    oracle.assert_identical(theirs, ours.files)
    read = oracle.read(oracle.segment_folder(ours.files), {c.name: c.kind for c in table.columns})
    for column in table.columns:
        found = read[column.name]
        stored = [column.expected(value) for value in [*column.pool, None]]
        wanted = [stored[choice] for choice in column.choice]
        if column.kind == "JSON":
            meanings = {text: text for text in set(found.values)}
            assert [
                _same_json(meanings[text], want) for text, want in zip(found.values, wanted, strict=True)
            ].count(False) == 0
        else:
            assert found.values == wanted
        is_null = np.array([value is None or value != value for value in [*column.pool, None]])[column.choice]
        assert found.nulls == (np.flatnonzero(is_null).tolist() if table.nullable(column) else [])


def _same_json(stored: str, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return stored == wanted[1]
    return _meaning(stored) == wanted


COMMON = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)


@settings(COMMON, max_examples=40)
@given(table=tables(st.integers(1, 300), 8))
def test_small_tables(table: GeneratedTable, oracle: Any) -> None:
    check(table, oracle)


@settings(COMMON, max_examples=8, phases=[Phase.generate])
@given(table=tables(st.integers(70_001, 90_000), 3).filter(has_many_nulls))
def test_tables_of_more_than_70000_rows_and_4096_nulls(table: GeneratedTable, oracle: Any) -> None:
    check(table, oracle)
