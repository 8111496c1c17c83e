"""Trap 32: what is built for 0.11, raw, multi-value, BYTES and BIG_DECIMAL, 0.11 and 1.5.1 read alike."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from oracle.case import CREATED, arrow_array

from pinot_assets.segment import Segment, SegmentSpec, build_segment

ROWS = 1100
SINGLE: dict[str, list[Any]] = {
    "INT": [n * 7919 % 1013 for n in range(ROWS)],
    "LONG": [n << 40 for n in range(ROWS)],
    "FLOAT": [n / 4 for n in range(ROWS)],
    "DOUBLE": [n / 7 for n in range(ROWS)],
    "STRING": [f"{'é' * (n % 9)}{n}" for n in range(ROWS)],
    "BOOLEAN": [n % 3 == 0 for n in range(ROWS)],
    "TIMESTAMP": [n * 86_400_000 for n in range(ROWS)],
    "BYTES": [bytes([n % 256]) * (n % 5) for n in range(ROWS)],
    "BIG_DECIMAL": [f"{n}.{n % 10}" for n in range(ROWS)],
}
MULTI = {
    kind: [values[n : n + 1 + n % 4] for n in range(ROWS - 4)] + [[values[0]]] * 4
    for kind, values in SINGLE.items()
    if kind != "BIG_DECIMAL"
}


def build(kinds: dict[str, list[Any]], *, single: bool, raw: bool, codec: str | None = None) -> Segment:
    """A segment for 0.11 with a column of each kind."""
    names = [kind.lower() for kind in kinds]
    specs = [{"name": kind.lower(), "dataType": kind, "singleValueField": single} for kind in kinds]
    config = {
        "tableIndexConfig": {"noDictionaryColumns": names if raw else []},
        "fieldConfigList": [{"name": name, "compressionCodec": codec} for name in names if codec],
    }
    spec = SegmentSpec.from_pinot({"dimensionFieldSpecs": specs}, config, write_for="0.11")
    arrow = spec.arrow_schema()
    table = pa.table({name: arrow_array(kinds[name.upper()], arrow.field(name).type) for name in names})
    return build_segment(table, spec, name="t_0", table_name="t", creation_time_ms=CREATED, now_ms=CREATED)


@pytest.mark.parametrize("codec", [None, "PASS_THROUGH", "SNAPPY", "ZSTANDARD"])
def test_trap32_raw_columns(oracle: Any, old_server: Any, codec: str | None) -> None:
    same_values(build(SINGLE, single=True, raw=True, codec=codec), SINGLE, oracle, old_server)


def test_trap32_dictionaries(oracle: Any, old_server: Any) -> None:
    same_values(build(SINGLE, single=True, raw=False), SINGLE, oracle, old_server)
    same_values(build(MULTI, single=False, raw=False), MULTI, oracle, old_server)


def test_trap32_raw_multi_value_columns(oracle: Any, old_server: Any) -> None:
    """0.11 cannot read version 4; it gets version 2, which its forward index readers take."""
    same_values(build(MULTI, single=False, raw=True), MULTI, oracle, old_server)


@pytest.mark.parametrize("default", ["a, b", " x ", ",", "\\,", "\u00a0a", "x\t", "é,ü"])
@pytest.mark.parametrize("single", [True, False])
def test_trap32_default_values_that_old_servers_cannot_read_from_metadata(
    oracle: Any, old_server: Any, default: str, single: bool
) -> None:
    """Metadata protect such a text by NULs, which 0.11 takes for a part of it; what rows hold is in the
    dictionary, and what a missing column becomes is in the schema."""
    field = {"name": "s", "dataType": "STRING", "defaultNullValue": default, "singleValueField": single}
    config = {"tableIndexConfig": {"nullHandlingEnabled": True}}
    spec = SegmentSpec.from_pinot({"dimensionFieldSpecs": [field]}, config, write_for="0.11")
    table = pa.table({"s": arrow_array(["q", None, default, "z"], pa.string())})
    segment = build_segment(table, spec, name="t_0", table_name="t", creation_time_ms=CREATED, now_ms=CREATED)
    folder = oracle.segment_folder(segment.files)
    new, old = (reader.read(folder, {"s": "STRING"})["s"] for reader in (oracle, old_server))
    values = ["q", default, default, "z"]
    assert new.values == old.values == (values if single else [[value] for value in values])
    assert new.nulls == old.nulls == [1]


def same_values(segment: Segment, kinds: dict[str, list[Any]], oracle: Any, old_server: Any) -> None:
    columns = {kind.lower(): kind for kind in kinds}
    folder = oracle.segment_folder(segment.files)
    new, old = oracle.read(folder, columns), old_server.read(folder, columns)
    assert old == new
    assert new["int"].values == [kinds["INT"][row] for row in new["int"].rows]
    assert new["string"].values == [kinds["STRING"][row] for row in new["string"].rows]
    assert new["bytes"].values == [kinds["BYTES"][row] for row in new["bytes"].rows]
