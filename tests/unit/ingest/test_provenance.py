"""Each row gets the path of its file, whatever the format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.builder import NAMES_SCHEMA, make_order, tasks_of, write_names

from pinot_assets.ingest.contract.build_spec import BuildSpec
from pinot_assets.ingest.task import build_file
from pinot_assets.snapshot.receipt import Failure, Receipt

COLUMN = "source_file"
ROWS = [{"name": "a", "count": 1}, {"name": "b", "count": 2}, {"name": "c", "count": 3}]


def order_of(root: Path, input_format: str = "csv", max_length: int = 512) -> BuildSpec:
    fields = [
        {"name": "name", "dataType": "STRING"},
        {"name": COLUMN, "dataType": "STRING", "maxLength": max_length},
    ]
    schema = {**NAMES_SCHEMA, "dimensionFieldSpecs": fields}
    return make_order(root, schema=schema, provenance_column=COLUMN, input_format=input_format)


def built(order: BuildSpec) -> Receipt:
    (task,) = tasks_of(order)
    result = build_file(order, task)
    assert isinstance(result, Receipt), result
    return result


def refused(order: BuildSpec) -> str:
    (task,) = tasks_of(order)
    result = build_file(order, task)
    assert isinstance(result, Failure), result
    assert result.code == "REJECTED"
    return result.reason


def values(receipt: Receipt) -> set[tuple[str | None, str | None]]:
    """Least and greatest value of the column, of each segment."""
    return {
        (column.low, column.high)
        for facts in receipt.facts
        for column in facts.columns
        if column.name == COLUMN
    }


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".json":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        names = [*rows[0]]
        lines = [",".join(str(row[name]) for name in names) for row in rows]
        path.write_text("\n".join([",".join(names), *lines, ""]))


@pytest.mark.parametrize("input_format", ["csv", "json", "parquet"])
@pytest.mark.parametrize("name", ["a", "day=1/x", "ü b/c%20d"])
def test_the_path_is_decoded_and_below_the_source(tmp_path: Path, input_format: str, name: str) -> None:
    order = order_of(tmp_path, input_format)
    write(tmp_path / "in" / f"{name}.{input_format}", ROWS)
    receipt = built(order)
    assert receipt.rows == 3
    assert values(receipt) == {(f"{name}.{input_format}",) * 2}
    assert COLUMN not in receipt.missing


def test_all_segments_of_a_file_have_it(tmp_path: Path) -> None:
    order = replace(order_of(tmp_path), max_rows_per_segment=1000)
    write_names(tmp_path / "in" / "a.csv", 2500)
    receipt = built(order)
    assert len(receipt.outputs) == 3
    assert values(receipt) == {("a.csv", "a.csv")}


def test_a_file_that_must_have_all_columns_need_not_have_this_one(tmp_path: Path) -> None:
    order = replace(order_of(tmp_path), missing_column="fail", max_bad_rows="1")
    write_names(tmp_path / "in" / "a.csv", 3)
    assert values(built(order)) == {("a.csv", "a.csv")}


@pytest.mark.parametrize("input_format", ["csv", "json", "parquet"])
def test_a_file_with_values_there_fails(tmp_path: Path, input_format: str) -> None:
    order = order_of(tmp_path, input_format)
    write(tmp_path / "in" / f"a.{input_format}", [row | {COLUMN: "mine"} for row in ROWS])
    reason = refused(order)
    assert f"it has values in the column {COLUMN}" in reason
    assert "provenanceColumn" in reason


def test_a_path_that_does_not_fit_fails_the_file_and_is_not_cut(tmp_path: Path) -> None:
    order = order_of(tmp_path, max_length=9)
    write_names(tmp_path / "in" / "12345.csv", 1)
    assert values(built(order)) == {("12345.csv", "12345.csv")}
    reason = refused(order_of(tmp_path, max_length=8))
    assert "its path has 9 characters, and source_file takes 8" in reason


def test_a_path_that_is_not_utf8_fails_the_file(tmp_path: Path) -> None:
    order = order_of(tmp_path)
    write_names(tmp_path / "in" / "a\udcff.csv", 1)
    assert "is not UTF-8" in refused(order)


def test_a_file_without_rows_is_built(tmp_path: Path) -> None:
    order = order_of(tmp_path)
    (tmp_path / "in" / "a.csv").write_text(f"name,count,{COLUMN}\n")
    assert built(order).rows == 0
