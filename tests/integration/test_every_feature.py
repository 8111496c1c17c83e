"""One table with every feature of the segment writer, in the real cluster: queries give what the file held.

Byte for byte equal to Pinot's builder is what tests/oracle show; here servers load, index, prune and answer.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from types import ModuleType
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.pinot.staged import STAGED
from fakes.waiting import until

from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.task import build_file
from pinot_assets.pinot import Broker, HttpPinotClient, NoResult, PinotConnection, wait_online
from pinot_assets.settings.local_stack import StackState
from pinot_assets.snapshot.receipt import Receipt

pytestmark = pytest.mark.integration

ROWS = 2600  # more than two chunks of a raw column
NAN, INF = float("nan"), math.inf
ARROW = {
    "INT": pa.int32(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("ms", "UTC"),
    "STRING": pa.string(),
    "JSON": pa.string(),
    "BYTES": pa.binary(),
    "BIG_DECIMAL": pa.string(),
}
VALUES: dict[str, list[Any]] = {
    "INT": [0, -1, 2**31 - 1, -(2**31), 7, 1000],
    "LONG": [0, -1, 2**53, -(2**62), 7, 10**12],
    "FLOAT": [0.0, -0.0, 1.5, NAN, -2.25, 3e38],
    "DOUBLE": [0.0, -0.0, 1.1, NAN, -2.25, 1e300, 5e-324],
    "BOOLEAN": [True, False],
    "TIMESTAMP": [0, 1_577_836_800_123, -1, 253_402_300_799_999],
    "STRING": ["", "a", "é, ü", "astral \U0001f600", " edge ", "\uffff", "x" * 600, "quote \" and ' and \\"],
    "JSON": ['{"a": 1.10, "b": [null, "\u00e9"]}', "[]", '"text"', "{}", '{"a":{"b":{"c":1}}}'],
    "BYTES": [b"", b"\x00\xff", b"abc", bytes(range(256))],
    "BIG_DECIMAL": ["0", "1.50", "-12345678901234567890.5", "1E+5", "0.0000001"],
}
DEFAULTS = {
    "INT": 42, "LONG": 43, "FLOAT": 1.25, "DOUBLE": 2.5, "BOOLEAN": True, "TIMESTAMP": 86_400_000,
    "STRING": "nothing", "JSON": '{"none":1}', "BYTES": "00ff", "BIG_DECIMAL": "9.75",
}  # fmt: skip
CODECS = ["PASS_THROUGH", "SNAPPY", "ZSTANDARD", "LZ4"]


@dataclass
class Column:
    """A column and its values in the file, None for null."""

    name: str
    kind: str
    values: list[Any] = field(repr=False)
    single: bool = True
    config: JsonObject = field(default_factory=dict)
    default: Any = None

    @property
    def schema(self) -> JsonObject:
        several = {} if self.single else {"singleValueField": False}
        default = {} if self.default is None else {"defaultNullValue": self.default}
        return {"name": self.name, "dataType": self.kind, **several, **default}

    def arrow(self) -> pa.Array:
        kind = ARROW[self.kind] if self.single else pa.list_(ARROW[self.kind])
        if self.kind == "TIMESTAMP":
            whole = pa.int64() if self.single else pa.list_(pa.int64())
            return pa.array(self.values, whole).cast(kind)
        return pa.array(self.values, kind)

    def expected(self) -> list[Any]:
        """What a query shows."""
        fill = self._shown(bytes.fromhex(self.default) if self.kind == "BYTES" else self.default)
        if self.single:
            return [fill if _is_null(value) else self._shown(value) for value in self.values]
        rows = [[self._shown(one) for one in row or [] if not _is_null(one)] for row in self.values]
        return [row or [fill] for row in rows]

    def nulls(self) -> int:
        if self.single:
            return sum(map(_is_null, self.values))
        return sum(all(map(_is_null, row or [])) for row in self.values)

    def _shown(self, value: Any) -> Any:
        match self.kind:
            case "FLOAT":
                return _float(value + 0.0)
            case "DOUBLE":
                return value + 0.0
            case "TIMESTAMP":
                return _java_time(value)
            case "BYTES":
                return value.hex()
            case "STRING":
                return value[:512]
            case "JSON":
                return json.loads(value, parse_float=Decimal)
            case "BIG_DECIMAL":
                return Decimal(value)
        return value


def _is_null(value: Any) -> bool:
    return value is None or value != value


def _float(value: float) -> float:
    return float(pa.scalar(value, pa.float32()).as_py())


def _java_time(ms: int) -> str:
    """`Timestamp.toString` in the zone of the servers, which is that of this machine."""
    text = datetime.fromtimestamp(ms // 1000).isoformat(" ")
    return f"{text}.{f'{ms % 1000:03}'.rstrip('0') or '0'}"


def columns(is_new: bool) -> list[Column]:
    """The table's columns.

    :param is_new: whether servers read what 0.11 does not.
    """
    all_columns = [Column("id", "INT", [*range(ROWS)])]
    for kind, values in VALUES.items():
        some = [None if n % 11 == 3 else values[n % len(values)] for n in range(ROWS)]
        all_columns.append(Column(f"sv_{kind}", kind, some, default=DEFAULTS[kind]))
        codecs = [*CODECS, "GZIP"] if is_new else CODECS
        for codec in codecs:
            config = {"encodingType": "RAW", "compressionCodec": codec}
            all_columns.append(
                Column(f"raw_{kind}_{codec}", kind, some, config=config, default=DEFAULTS[kind])
            )
        if kind in ("JSON", "BIG_DECIMAL"):
            continue
        lists = [
            None if n % 13 == 5 else [*(values * 2)[n % 3 : n % 3 + n % 4], *([None] if n % 7 == 0 else [])]
            for n in range(ROWS)
        ]
        all_columns.append(Column(f"mv_{kind}", kind, lists, single=False, default=DEFAULTS[kind]))
        if kind != "BYTES":
            raw = {"encodingType": "RAW"}
            all_columns.append(
                Column(f"rawmv_{kind}", kind, lists, single=False, config=raw, default=DEFAULTS[kind])
            )
        if is_new:
            entries = {"compressionCodec": "MV_ENTRY_DICT"}
            all_columns.append(
                Column(f"entries_{kind}", kind, lists, single=False, config=entries, default=DEFAULTS[kind])
            )
    all_columns.append(
        Column("sorted", "STRING", [f"s{n * 7919 % 50:03}" for n in range(ROWS)], default="none")
    )
    all_columns.append(
        Column("long_texts", "STRING", [f"{'t' * (n % 90)}{n}" for n in range(ROWS)], default="none")
    )
    all_columns.append(Column("part", "INT", [n % 20 * 4 + 1 for n in range(ROWS)], default=1))
    all_columns.append(Column("city", "STRING", [f"c{n % 30}" for n in range(ROWS)], default="none"))
    return all_columns


def table_config(name: str, all_columns: list[Column]) -> JsonObject:
    def partition(function: str) -> JsonObject:
        return {"functionName": function, "numPartitions": 4}

    return {
        "tableName": name,
        "tableType": "OFFLINE",
        "segmentsConfig": {"replication": "1"},
        "tenants": {},
        "tableIndexConfig": {
            "loadMode": "MMAP",
            "nullHandlingEnabled": True,
            "sortedColumn": ["sorted"],
            "noDictionaryColumns": [c.name for c in all_columns if c.config.get("encodingType") == "RAW"],
            "varLengthDictionaryColumns": ["long_texts"],
            "invertedIndexColumns": ["sv_STRING", "mv_INT", "city", "sv_LONG"],
            "createInvertedIndexDuringSegmentGeneration": True,
            "bloomFilterColumns": ["sv_STRING", "sv_INT", "city", "raw_STRING_LZ4"],
            "segmentPartitionConfig": {
                "columnPartitionMap": {"part": partition("Modulo"), "city": partition("Murmur")}
            },
        },
        "routing": {"segmentPrunerTypes": ["partition"]},
        "metadata": {},
        "fieldConfigList": [{"name": c.name, **c.config} for c in all_columns if c.config],
    }


@dataclass
class Served:
    columns: dict[str, Column]
    broker: Broker
    table: str

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return [*self.broker.query(sql.replace("FROM t", f'FROM "{self.table}"')).rows]

    def ask_exactly(self, sql: str) -> list[list[Any]]:
        """0.11 answers with a decimal as a JSON number, of which a client makes a float."""
        body = {"sql": sql.replace("FROM t", f'FROM "{self.table}"')}
        reply = httpx.post(f"{self.broker.url}/query/sql", json=body).text
        rows: list[list[Any]] = json.loads(reply, parse_float=Decimal)["resultTable"]["rows"]
        return rows


@pytest.fixture(scope="module")
def served(
    stack: StackState, tmp_path_factory: pytest.TempPathFactory, fakes: ModuleType
) -> Iterator[Served]:
    """The table in the running cluster."""
    folder = tmp_path_factory.mktemp("every-feature")
    with HttpPinotClient(PinotConnection(stack.controller_url)) as pinot:
        is_new = tuple(map(int, pinot.version().split(".")[:2])) >= (1, 5)
        all_columns = columns(is_new)
        name = f"every_{time.time_ns()}"
        # 0.11 has no such dimension.
        metrics = [column for column in all_columns if column.kind == "BIG_DECIMAL"]
        schema = {
            "schemaName": name,
            "dimensionFieldSpecs": [column.schema for column in all_columns if column not in metrics],
            "metricFieldSpecs": [column.schema for column in metrics],
        }
        config = table_config(name, all_columns)
        order = fakes.make_order(
            folder,
            table=name,
            schema=schema,
            table_config=config,
            input_format="parquet",
            max_rows_per_segment=ROWS - 400,  # a small second segment
            write_for="1.5" if is_new else "0.11",
        )
        pq.write_table(pa.table({c.name: c.arrow() for c in all_columns}), folder / "in" / "all.parquet")
        [task] = fakes.tasks_of(order)
        receipt = build_file(order, task)
        assert isinstance(receipt, Receipt), receipt
        assert [output.rows for output in receipt.outputs] == [ROWS - 400, 400]
        pinot.put_schema(schema)
        pinot.create_table(config)
        try:
            until(lambda: len(pinot.brokers(name)) > 0)
            pinot.push(name, receipt.outputs, staged=STAGED)
            wait_online(pinot, name, [output.segment for output in receipt.outputs], seconds=120)
            broker = pinot.broker(pinot.brokers(name)[0])
            until(lambda: broker.rows(name) == ROWS)
            yield Served({column.name: column for column in all_columns}, broker, name)
        finally:
            pinot.delete_table(name)
            pinot.delete_schema(name)


def _read(column: Column, value: Any) -> Any:
    """A value of a query's answer as Python has it."""
    if isinstance(value, list):
        return [_read(column, one) for one in value]
    match column.kind:
        case "FLOAT":
            return _float(float(value))
        case "DOUBLE":
            return float(value)
        case "JSON":
            return json.loads(value, parse_float=Decimal)
        case "BIG_DECIMAL":
            return Decimal(value)
    return value


def test_every_value_is_what_the_file_held(served: Served) -> None:
    wrong = {}
    for column in served.columns.values():
        if column.kind == "BYTES" and not column.single:
            continue  # no Pinot answers with such a column; its values can be asked for, see below
        sql = f'SELECT id, "{column.name}" FROM t ORDER BY id LIMIT {ROWS + 1}'
        rows = (served.ask_exactly if column.kind == "BIG_DECIMAL" else served.ask)(sql)
        assert [row[0] for row in rows] == [*range(ROWS)]
        got, expected = [_read(column, row[1]) for row in rows], column.expected()
        differ = [n for n in range(ROWS) if got[n] != expected[n]]
        if differ:
            wrong[column.name] = (len(differ), got[differ[0]], expected[differ[0]])
    assert wrong == {}


def test_nulls_are_where_the_file_had_none(served: Served) -> None:
    counted = {
        name: served.ask(f'SELECT COUNT(*) FROM t WHERE "{name}" IS NULL')[0][0] for name in served.columns
    }
    assert counted == {name: column.nulls() for name, column in served.columns.items()}


@pytest.mark.parametrize(
    ("name", "literal", "value"),
    [
        ("sv_STRING", "'é, ü'", "é, ü"),
        ("sv_STRING", "'astral \U0001f600'", "astral \U0001f600"),
        ("sv_STRING", "'not there'", "not there"),
        ("raw_STRING_LZ4", "'a'", "a"),
        ("sv_INT", "2147483647", 2**31 - 1),
        ("sv_INT", "12345", 12345),
        ("sv_LONG", "-4611686018427387904", -(2**62)),
        ("sv_DOUBLE", "0", 0.0),
        ("sv_BYTES", "'00ff'", "00ff"),
        ("sorted", "'s007'", "s007"),
        ("part", "5", 5),
        ("part", "6", 6),
        ("city", "'c29'", "c29"),
        ("city", "'nowhere'", "nowhere"),
        ("long_texts", "'tttt4'", "tttt4"),
    ],
)
def test_indexes_and_pruning_find_every_row(served: Served, name: str, literal: str, value: Any) -> None:
    expected = served.columns[name].expected().count(value)
    try:
        [(counted,)] = served.ask(f'SELECT COUNT(*) FROM t WHERE "{name}" = {literal}')
    except NoResult:  # the broker has pruned all segments by their partitions
        counted = 0
    assert counted == expected


@pytest.mark.parametrize(
    ("name", "literal", "value"),
    [("mv_INT", "1000", 1000), ("mv_STRING", "'\uffff'", "\uffff"), ("mv_BYTES", "'00ff'", "00ff")],
)
def test_filters_find_every_list(served: Served, name: str, literal: str, value: Any) -> None:
    expected = sum(value in row for row in served.columns[name].expected())
    assert served.ask(f"SELECT COUNT(*) FROM t WHERE {name} = {literal}") == [(expected,)]


def test_sums_over_raw_columns(served: Served) -> None:
    for codec in CODECS:
        expected = sum(served.columns[f"raw_INT_{codec}"].expected())
        assert served.ask(f"SELECT SUM(raw_INT_{codec}) FROM t") == [(float(expected),)]
