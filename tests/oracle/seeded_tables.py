"""Tables by seed: a seed gives the same table with every release of Python, NumPy and Hypothesis.

So what Pinot's builder makes of them can be stored as hashes. Only `Random.random` is used, the one method
whose numbers are promised to stay.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import pyarrow as pa

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.segment import SegmentSpec

Cell = int | float | str | bytes | bool | None
T = TypeVar("T")

_LETTERS = "ab ,\\=:é日\x7f#$"
_TEXTS = ("", " ", "a, b", "x" * 511, "x" * 600, "é" * 300, "\U0001f600", "null", "a\0b")
_JSON = ('{"b":1.50,"a":[true,null]}', "[]", '"é, b"', "1e3", "not json", "{ }", '{"a":{"b":[1,2]}}')
_DECIMALS = ("0", "1E+5", "100000", "-0.003", "12.50", "1e-20", "-99999999999999999999", "7")
_SINGLE_ONLY = ("JSON", "BIG_DECIMAL")
_METRICS = ("INT", "LONG", "FLOAT", "DOUBLE", "BYTES", "BIG_DECIMAL")
_VARIABLE = ("STRING", "JSON", "BYTES", "BIG_DECIMAL")
_DEFAULTS: dict[str, tuple[JsonValue, ...]] = {
    "INT": (0, -7),
    "LONG": (0, 1 << 40),
    "FLOAT": (1.5, 3e38),
    "DOUBLE": (0.1, 2e23),
    "STRING": ("", "n/a", "a, b", "é"),
    "BOOLEAN": (True, False),
    "TIMESTAMP": (0, 1_600_000_000_000),
    "JSON": ("{}", "é"),
    "BYTES": ("", "00ff"),
    "BIG_DECIMAL": ("1E+5", "-1.5", "7"),
}
_NAMES = ("a", "a-b", "a.b", "é", "k=v", "z")


class Dice:
    """Choices of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, end: int) -> int:
        return int(self._random.random() * end)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def bits(self, count: int) -> int:
        """A whole number of so many bits, by 16 at a time."""
        number = 0
        for _ in range(0, count, 16):
            number = number << 16 | self.below(1 << 16)
        return number

    def value(self, kind: str) -> Cell:
        return _VALUES[kind](self)


def _signed(dice: Dice, bits: int) -> int:
    if dice.chance(0.7):
        return dice.below(9)
    return dice.bits(bits) - (1 << bits - 1)


def _real(dice: Dice, form: str, bits: int) -> float:
    if dice.chance(0.7):
        return dice.below(2000) / 8 - 100
    number: float = struct.unpack(f">{form}", dice.bits(bits).to_bytes(bits // 8, "big"))[0]
    return number


def _text(dice: Dice) -> str:
    if dice.chance(0.1):
        return dice.one_of(_TEXTS)
    return "".join(dice.one_of(_LETTERS) for _ in range(dice.below(9)))


_VALUES: dict[str, Callable[[Dice], Cell]] = {
    "INT": lambda dice: _signed(dice, 32),
    "LONG": lambda dice: _signed(dice, 64),
    "FLOAT": lambda dice: _real(dice, "f", 32),
    "DOUBLE": lambda dice: _real(dice, "d", 64),
    "STRING": _text,
    "BOOLEAN": lambda dice: dice.chance(0.5),
    "TIMESTAMP": lambda dice: _signed(dice, 48),
    "JSON": lambda dice: dice.one_of(_JSON) if dice.chance(0.5) else json.dumps(_text(dice)),
    "BYTES": lambda dice: dice.bits(32).to_bytes(4, "big")[: 4 if dice.chance(0.5) else dice.below(5)],
    "BIG_DECIMAL": lambda dice: dice.one_of(_DECIMALS) if dice.chance(0.5) else str(dice.below(1000) / 4),
}


@dataclass(frozen=True)
class SeededTable:
    """A table and its settings.

    :ivar rows: the rows as Pinot's builder gets them, in order.
    """

    schema: JsonObject
    table_config: JsonObject
    data: pa.Table
    rows: list[JsonObject]


@dataclass(frozen=True)
class _Column:
    name: str
    kind: str
    section: str
    field: JsonObject
    config: JsonObject
    cells: list[Cell | list[Cell]]

    @property
    def single(self) -> bool:
        return bool(self.field.get("singleValueField", True))


def seeded_table(seed: int) -> SeededTable:
    """Return the table of a seed."""
    dice = Dice(seed)
    rows = 1 + dice.below(1500 if dice.chance(0.1) else 120)
    names = _NAMES[: 1 + dice.below(4)]
    columns = [_column(dice, name, rows) for name in names]
    by_column = dice.chance(0.3)
    schema: JsonObject = {"schemaName": "t", "enableColumnBasedNullHandling": by_column}
    for column in columns:
        schema.setdefault(f"{column.section}FieldSpecs", []).append(column.field)
    config: JsonObject = {
        "tableName": "t_OFFLINE",
        "tableType": "OFFLINE",
        "segmentsConfig": {"replication": "1"},
        "tenants": {},
        "tableIndexConfig": {"nullHandlingEnabled": dice.chance(0.6), **_indexing(dice, columns)},
        "metadata": {},
        "fieldConfigList": [{"name": c.name, **c.config} for c in columns if c.config],
    }
    kinds = SegmentSpec.from_pinot(
        {key: value for key, value in schema.items() if key != "schemaName"}, {}, write_for="1.6"
    ).arrow_schema()
    data = {c.name: _arrow(c.cells, kinds.field(c.name).type) for c in columns}
    cells = [[_json(cell) for cell in c.cells] for c in columns]
    named = [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
    return SeededTable(schema, config, pa.table(data), named)


def _column(dice: Dice, name: str, rows: int) -> _Column:
    kind = dice.one_of([*_VALUES])
    section = "metric" if kind in _METRICS and dice.chance(0.2) else "dimension"
    if kind == "TIMESTAMP" and dice.chance(0.3):
        section = "dateTime"
    several = section == "dimension" and kind not in _SINGLE_ONLY and dice.chance(0.3)
    field: JsonObject = {"name": name, "dataType": kind}
    if several:
        field["singleValueField"] = False
    if section == "dateTime":
        field |= {"format": "TIMESTAMP", "granularity": "1:DAYS"}
    if dice.chance(0.4):
        field["defaultNullValue"] = dice.one_of(_DEFAULTS[kind])
    if kind in ("STRING", "JSON", "BYTES") and dice.chance(0.3):
        field["maxLength"] = dice.one_of((3, 512, 2000))
    if kind in ("STRING", "BYTES") and dice.chance(0.3):
        field["maxLengthExceedStrategy"] = dice.one_of(("TRIM_LENGTH", "NO_ACTION"))
    if dice.chance(0.3):
        field["notNull"] = True
    pool = [dice.value(kind) for _ in range(1 + dice.below(dice.one_of((1, 12, 200))))]
    nulls = dice.one_of((0, 0, 0.1, 1))

    def cell() -> Cell:
        return None if nulls and dice.chance(nulls) else dice.one_of(pool)

    cells: list[Cell | list[Cell]]
    if several:
        cells = [[cell() for _ in range(dice.below(5))] for _ in range(rows)]
    else:
        cells = [cell() for _ in range(rows)]
        if dice.chance(0.2):
            cells = [cells[0]] * rows
    return _Column(name, kind, section, field, _config(dice, kind, several), cells)


def _config(dice: Dice, kind: str, several: bool) -> JsonObject:
    """An entry of `fieldConfigList`, without the name."""
    fixed = kind not in _VARIABLE
    forward: JsonObject = {}
    if dice.chance(0.5):
        forward["compressionCodec"] = dice.one_of(("PASS_THROUGH", "LZ4", "GZIP"))
    if dice.chance(0.6):
        forward["rawIndexWriterVersion"] = dice.one_of((2, 3, 4, 5, 6, 6))
    if dice.chance(0.4):
        forward["targetDocsPerChunk"] = dice.one_of((1, 7, 50, 1000))
    if dice.chance(0.3):
        forward |= {"targetMaxChunkSize": dice.one_of(("100", "4K")), "deriveNumDocsPerChunk": True}
    raw: JsonObject = {"encodingType": "RAW"}
    match dice.one_of(("plain", "plain", "raw", "raw", "shared", "both", "variable", "entries")):
        case "raw":
            return {**raw, "indexes": {"forward": forward}}
        case "shared":
            if dice.chance(0.5):
                return {**raw, "indexes": {"forward": forward, "inverted": {}}}
            return {**raw, "indexTypes": ["INVERTED"]}
        case "both":
            return {**raw, "indexes": {"forward": forward, "dictionary": {"onHeap": fixed}}}
        case "variable":
            return {"indexes": {"dictionary": {"useVarLengthDictionary": True}}}
        case "entries" if several:
            return {"compressionCodec": "MV_ENTRY_DICT"}
    return {}


def _indexing(dice: Dice, columns: Sequence[_Column]) -> JsonObject:
    """Settings of `tableIndexConfig`."""
    plain = [column for column in columns if not column.config]
    indexing: JsonObject = {}
    if dice.chance(0.4):
        indexing["invertedIndexColumns"] = [column.name for column in plain]
        if dice.chance(0.3):
            indexing["noDictionaryColumns"] = [column.name for column in plain]
            indexing["varLengthDictionaryColumns"] = [column.name for column in plain if dice.chance(0.5)]
    elif dice.chance(0.4):
        indexing["noDictionaryColumns"] = [column.name for column in plain if dice.chance(0.5)]
    if dice.chance(0.3):
        indexing["bloomFilterColumns"] = [column.name for column in columns if column.kind != "BOOLEAN"]
    if dice.chance(0.3):
        function = dice.one_of(("Murmur", "Murmur3", "HashCode", "ByteArray"))
        indexing["segmentPartitionConfig"] = {
            "columnPartitionMap": {
                column.name: {"functionName": function, "numPartitions": dice.one_of((1, 7, 40))}
                for column in columns
                if column.single
            }
        }
    switches = ("optimizeDictionary", "optimizeDictionaryForMetrics", "optimizeDictionaryType")
    if dice.chance(0.5):
        indexing[dice.one_of(switches)] = True
    return indexing


def _arrow(cells: Sequence[Cell | list[Cell]], kind: pa.DataType) -> pa.Array:
    inner = kind.value_type if pa.types.is_list(kind) else kind
    if not pa.types.is_timestamp(inner):
        return pa.array(cells, kind)
    numbers = pa.list_(pa.int64()) if pa.types.is_list(kind) else pa.int64()
    return pa.array(cells, numbers).cast(kind)


def _json(cell: Cell | list[Cell]) -> JsonValue:
    """A cell as JSON; what JSON lacks as text, which Pinot parses."""
    if isinstance(cell, list):
        return [_json(one) for one in cell]
    if isinstance(cell, bytes):
        return cell.hex()
    if isinstance(cell, float) and not math.isfinite(cell):
        return "NaN" if math.isnan(cell) else "Infinity" if cell > 0 else "-Infinity"
    return cell
