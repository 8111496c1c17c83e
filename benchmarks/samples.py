"""The tables that are built: events of 13 columns, and one of what the builder does besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pinot_assets.core.json_object import JsonObject

_START_MS = 1_600_000_000_000


@dataclass(frozen=True)
class Sample:
    """Rows, and what Pinot knows of their table.

    :ivar schema: Pinot's schema.
    :ivar table_config: Pinot's table config.
    """

    rows: pa.Table
    schema: JsonObject
    table_config: JsonObject

    @property
    def is_flat(self) -> bool:
        """Whether no column is multi-value."""
        return not any(pa.types.is_list(field.type) for field in self.rows.schema)


def events(count: int, seed: int = 1) -> Sample:
    """Thirteen columns with dictionary: ids, measures, texts of few, many and only values, a time."""
    random = np.random.default_rng(seed)
    pick = _Picker(random, count)
    rows = {
        "id": pa.array(np.arange(count) * 7 + seed),
        "visitor": pa.array(random.integers(0, 10**12, count)),
        "quantity": pa.array(random.integers(0, 1000, count, dtype=np.int32)),
        "age": pa.array(random.integers(0, 90, count, dtype=np.int32)),
        "price": pa.array(np.round(random.random(count) * 1000, 2)),
        "score": pa.array(random.random(count)),
        "share": pa.array(random.random(count, dtype=np.float32)),
        "country": pick([f"{a}{b}" for a in "defgi" for b in "kltrs"]),
        "city": pick([f"city {i}" for i in range(400)]),
        "page": pick([f"https://example.com/p/{i}?ref={i * 7}" for i in range(50_000)]),
        "name": pa.array([f"visitor-{i}" for i in random.integers(0, 10**6, count)]),
        "paid": pa.array(random.random(count) > 0.5),
        "at": pa.array(_START_MS + np.arange(count) * 40).cast(pa.timestamp("ms", "UTC")),
    }
    types = [
        "LONG",
        "LONG",
        "INT",
        "INT",
        "DOUBLE",
        "DOUBLE",
        "FLOAT",
        "STRING",
        "STRING",
        "STRING",
        "STRING",
        "BOOLEAN",
    ]
    dimensions = [{"name": n, "dataType": t} for n, t in zip(list(rows)[:-1], types, strict=True)]
    return Sample(pa.table(rows), _schema(dimensions), _table_config())


def mixed(count: int, seed: int = 2) -> Sample:
    """Nulls, multi-values and columns without dictionary."""
    random = np.random.default_rng(seed)
    pick = _Picker(random, count)

    def nulls(share: float) -> npt.NDArray[np.bool_]:
        return random.random(count) < share

    counts = random.integers(1, 6, count)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    elements = int(counts.sum())
    tags = _Picker(random, elements)([f"tag-{i}" for i in range(3000)])
    codes = pa.array(random.integers(0, 20_000, elements, dtype=np.int32))
    rows = {
        "code": pa.array(random.integers(0, 5000, count, dtype=np.int32), mask=nulls(0.1)),
        "amount": pa.array(np.round(random.random(count) * 100, 2), mask=nulls(0.05)),
        "city": pick([f"city {i}" for i in range(400)], mask=nulls(0.2)),
        "tags": pa.ListArray.from_arrays(offsets, tags),
        "codes": pa.ListArray.from_arrays(offsets, codes),
        "rawLong": pa.array(random.integers(0, 10**12, count)),
        "rawDouble": pa.array(random.random(count), mask=nulls(0.1)),
        "rawText": pa.array([f"free text number {i}" for i in random.integers(0, 10**9, count)]),
        "at": pa.array(_START_MS + np.arange(count) * 40).cast(pa.timestamp("ms", "UTC")),
    }
    dimensions: list[JsonObject] = [
        {"name": "code", "dataType": "INT"},
        {"name": "amount", "dataType": "DOUBLE"},
        {"name": "city", "dataType": "STRING"},
        {"name": "tags", "dataType": "STRING", "singleValueField": False},
        {"name": "codes", "dataType": "INT", "singleValueField": False},
        {"name": "rawLong", "dataType": "LONG"},
        {"name": "rawDouble", "dataType": "DOUBLE"},
        {"name": "rawText", "dataType": "STRING"},
    ]
    raw = {"nullHandlingEnabled": True, "noDictionaryColumns": ["rawLong", "rawDouble", "rawText"]}
    return Sample(pa.table(rows), _schema(dimensions), _table_config(raw))


def wide(columns: int, count: int, start: int) -> Sample:
    """Rows `start` to `start + count` of a table of so many columns: seven kinds in turn, and a time.

    The kinds are those of `events`; texts are half of the bytes or more.
    """
    random = np.random.default_rng(start)
    pick = _Picker(random, count)
    cities = [f"city {i}" for i in range(400)]
    pages = [f"https://example.com/p/{i}?ref={i * 7}" for i in range(50_000)]
    kinds: list[tuple[str, Callable[[], pa.Array]]] = [
        ("LONG", lambda: pa.array(random.integers(0, 10**12, count))),
        ("INT", lambda: pa.array(random.integers(0, 1000, count, dtype=np.int32))),
        ("DOUBLE", lambda: pa.array(np.round(random.random(count) * 1000, 2))),
        ("STRING", lambda: pick(cities)),
        ("STRING", lambda: pick(pages)),
        ("STRING", lambda: pa.array([f"visitor-{i}" for i in random.integers(0, 10**6, count)])),
        ("INT", lambda: pa.array(random.integers(0, 90, count, dtype=np.int32))),
    ]
    chosen = {f"c{number:03d}": kinds[number % len(kinds)] for number in range(columns - 1)}
    rows = {name: values() for name, (_, values) in chosen.items()}
    rows["at"] = pa.array(_START_MS + (start + np.arange(count)) * 40)
    dimensions: list[JsonObject] = [{"name": n, "dataType": kind} for n, (kind, _) in chosen.items()]
    return Sample(pa.table(rows), _schema(dimensions), _table_config())


def slices(table: pa.Table, count: int) -> Iterator[pa.Table]:
    """So many tables of about equally many rows."""
    size = -(-table.num_rows // count)
    for start in range(0, table.num_rows, size):
        yield table.slice(start, size)


class _Picker:
    """Draws from a few texts."""

    def __init__(self, random: np.random.Generator, count: int) -> None:
        self._random, self._count = random, count

    def __call__(self, texts: list[str], mask: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        return pa.array(texts).take(pa.array(self._random.integers(0, len(texts), self._count), mask=mask))


def _schema(dimensions: list[JsonObject]) -> JsonObject:
    time = {
        "name": "at",
        "dataType": "TIMESTAMP",
        "format": "1:MILLISECONDS:TIMESTAMP",
        "granularity": "1:MILLISECONDS",
    }
    return {"schemaName": "bench", "dimensionFieldSpecs": dimensions, "dateTimeFieldSpecs": [time]}


def _table_config(indexing: JsonObject | None = None) -> JsonObject:
    return {
        "tableName": "bench_OFFLINE",
        "tableType": "OFFLINE",
        "segmentsConfig": {"replication": "1", "timeColumnName": "at"},
        "tenants": {},
        "tableIndexConfig": indexing or {},
        "metadata": {},
    }
