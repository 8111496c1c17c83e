"""Random tables through every format, written by others, come out equal."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats import binary_formats, content, csv_file
from pinot_assets.ingest.formats.read import read_batches

MOMENT = pa.timestamp("ms", "UTC")
SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("t", MOMENT),
        ("y", pa.binary()),
        ("n", pa.string()),
        ("ms", pa.list_(pa.string())),
        ("mi", pa.list_(pa.int32())),
        ("md", pa.list_(pa.float64())),
    ]
)
WANTED = TargetSchema(SCHEMA, decimals=frozenset("n"))

# CSV has no empty text and no empty list: both are null there.
text = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('\n",;#'), min_size=1, max_size=9
)
item = st.text("abé,#😀", min_size=1, max_size=4)
real32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
real = st.floats(allow_nan=False, allow_infinity=False)
cells = {
    "i": st.integers(-(2**31), 2**31 - 1),
    "l": st.integers(-(2**63), 2**63 - 1),
    "f": real32,
    "d": real,
    "s": text,
    "b": st.booleans(),
    "t": st.integers(-(2**40), 2**40).map(
        lambda ms: datetime.fromtimestamp(ms / 1000, UTC).replace(microsecond=0)
    ),
    "y": st.binary(min_size=1, max_size=4),
    "n": st.integers().map(str) | st.sampled_from(["0.5", "-1.25", "12345678901234567890.5"]),
    "ms": st.lists(item, min_size=1, max_size=3),
    "mi": st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=3),
    "md": st.lists(real, min_size=1, max_size=3),
}
rows = st.lists(st.fixed_dictionaries({name: st.none() | cell for name, cell in cells.items()}), max_size=8)


def as_csv(rows: list[JsonObject]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(SCHEMA.names)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in SCHEMA.names])
    return out.getvalue().encode()


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bytes():
            return value.hex()
        case datetime():
            return value.isoformat()
        case list():
            return ";".join(map(_cell, value))
        case float():
            return repr(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_json(rows: list[JsonObject]) -> bytes:
    return "\n".join(json.dumps(_plain(row), ensure_ascii=False) for row in rows).encode()


def as_array(rows: list[JsonObject]) -> bytes:
    return json.dumps([_plain(row) for row in rows]).encode()


def as_pretty_array(rows: list[JsonObject]) -> bytes:
    return json.dumps([_plain(row) for row in rows], indent=2).encode()


def _plain(row: JsonObject) -> JsonObject:
    changed = {"y": row["y"] and row["y"].hex(), "t": row["t"] and row["t"].isoformat()}
    return {name: value for name, value in (row | changed).items() if value is not None or name < "m"}


def table_of(rows: list[JsonObject]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def as_parquet(rows: list[JsonObject]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table_of(rows), sink, row_group_size=3)
    return sink.getvalue()


def as_orc(rows: list[JsonObject]) -> bytes:
    sink = io.BytesIO()
    orc.write_table(table_of(rows), sink)
    return sink.getvalue()


AVRO = {
    "i": "int", "l": "long", "f": "float", "d": "double", "s": "string", "b": "boolean", "y": "bytes",
    "t": {"type": "long", "logicalType": "timestamp-millis"}, "n": "string",
    "ms": {"type": "array", "items": "string"},
    "mi": {"type": "array", "items": ["int", "null"]},
    "md": {"type": "array", "items": "double"},
}  # fmt: skip


def as_avro(rows: list[JsonObject]) -> bytes:
    fields = [{"name": name, "type": ["null", kind]} for name, kind in AVRO.items()]
    sink = io.BytesIO()
    fastavro.writer(
        sink, {"type": "record", "name": "row", "fields": fields}, rows, "deflate", sync_interval=200
    )
    return sink.getvalue()


WRITERS: dict[str, Callable[[list[JsonObject]], bytes]] = {
    "csv": as_csv,
    "json": as_json,
    "json array": as_array,
    "json pretty array": as_pretty_array,
    "parquet": as_parquet,
    "orc": as_orc,
    "avro": as_avro,
}


def read(data: bytes, input_format: str) -> pa.Table:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(data)
        verdicts = BadRowPolicy()
        tables = list(read_batches(path, WANTED, input_format.split()[0], reader={}, verdicts=verdicts))
        rows = sum(table.num_rows for table in tables)
        assert verdicts.rows in (rows, None)
        assert verdicts.rows is not None or rows == 0  # nothing to count in a blank file
        return pa.concat_tables([SCHEMA.empty_table(), *tables])


@pytest.fixture(scope="module", autouse=True)
def _small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(content, "BLOCK_BYTES", 700)
        patch.setattr(csv_file, "BLOCK_BYTES", 700)
        patch.setattr(binary_formats, "BATCH_ROWS", 3)
        yield


@pytest.mark.parametrize("written", WRITERS)
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(rows)
def test_a_table_comes_out_equal(written: str, rows: list[JsonObject]) -> None:
    found = read(WRITERS[written](rows), written)
    assert found.schema.equals(SCHEMA)
    assert found.to_pylist() == table_of(rows).to_pylist()


@pytest.mark.parametrize("written", WRITERS)
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_every_format_may_be_packed(written: str, pack: Callable[[bytes], bytes]) -> None:
    rows = [dict.fromkeys(SCHEMA.names) | {"i": n, "s": "é" * (n + 1)} for n in range(50)]
    assert read(pack(WRITERS[written](rows)), written).to_pylist() == rows
