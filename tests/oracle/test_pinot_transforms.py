"""A file with Pinot's transformConfigs and filterConfig, by way of Spark, against Pinot's own transformers.

Pinot's builder puts its rows through `TransformPipeline`: expressions fill where a column is null, in the
order of their needs; rows for which the filter is true go; then values become the schema's types.
"""

from __future__ import annotations

import csv
import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.contract.build_spec import BuildSpec, Query
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.snapshot.receipt import Failure, Receipt

pytestmark = pytest.mark.spark

SCHEMA = {
    "schemaName": "names",
    "dimensionFieldSpecs": [
        {"name": "id", "dataType": "LONG"},
        {"name": "day", "dataType": "INT"},
        {"name": "label", "dataType": "STRING"},
        {"name": "ratio", "dataType": "DOUBLE"},
        {"name": "half", "dataType": "FLOAT"},
        {"name": "flag", "dataType": "BOOLEAN"},
        {"name": "tags", "dataType": "STRING", "singleValueField": False},
    ],
    "dateTimeFieldSpecs": [
        {"name": "at", "dataType": "TIMESTAMP", "format": "TIMESTAMP", "granularity": "1:MILLISECONDS"}
    ],
}
TRANSFORMS = {
    "label": "concat('day ', day)",  # stands before what it needs
    "day": "toEpochDays(ms)",
    "id": "ms / 1000",  # a DOUBLE for a LONG: cut off
    "at": "ms * 1",
    "ratio": "plus(a, b)",
    "half": "divide(a, 2)",
    "flag": "a > b",
    "tags": "upper(name)",
}
ROWS: list[JsonObject] = [
    {"id": 2**53 + 1, "ms": 1_577_836_799_999, "a": 1, "b": 2, "name": "x", "label": None, "ratio": 0.1},
    {
        "id": None,
        "ms": 1_577_836_799_999,
        "a": 3,
        "b": 2,
        "name": "Stra\u00dfe",
        "label": "given",
        "ratio": None,
    },
    {"id": None, "ms": -1_999, "a": None, "b": 2, "name": None, "label": None, "ratio": None},
    {"id": -(2**63) + 1, "ms": None, "a": 0, "b": 0, "name": "y", "label": None, "ratio": 1e300},
    {"id": 7, "ms": 5, "a": 9, "b": 1, "name": "dropped", "label": "goes", "ratio": 2.5},
]
FILTER = "a = 9 AND day < 1"


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    started = local_session("pinot transforms", 1)
    yield started
    started.stop()


@pytest.fixture
def build_spec(fakes: ModuleType, tmp_path: Path) -> BuildSpec:
    made: BuildSpec = fakes.make_order(tmp_path, schema=SCHEMA)
    transforms = [{"columnName": name, "transformFunction": sql} for name, sql in TRANSFORMS.items()]
    ingestion = {"transformConfigs": transforms, "filterConfig": {"filterFunction": FILTER}}
    # Without a time column: its nulls would become the present moment.
    segments = {"replication": "1"}
    config = {**made.table_config, "ingestionConfig": ingestion, "segmentsConfig": segments}
    return replace(made, table_config=config, query=Query.of("", {}, config))


def texts(rows: list[JsonObject]) -> list[JsonObject]:
    """As CSV has them, and Pinot's reader of it: text or nothing."""
    return [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]


def write(path: Path, input_format: str, rows: list[JsonObject]) -> None:
    if input_format == "json":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    elif input_format == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def built(
    session: SparkSession, fakes: ModuleType, build_spec: BuildSpec, root: Path
) -> tuple[str, dict[str, bytes]]:
    results: list[Receipt | Failure] = []
    SparkBuilder(lambda: session).build(build_spec, fakes.tasks_of(build_spec), results.append)
    [receipt] = results
    assert isinstance(receipt, Receipt), receipt
    [output] = receipt.outputs
    with tarfile.open(root / "staging" / "segments" / f"{output.segment}.tar.gz") as archive:
        files = {
            member.name.rpartition("/")[2]: archive.extractfile(member) for member in archive.getmembers()
        }
        return output.segment, {name: file.read() for name, file in files.items() if file is not None}


@pytest.mark.parametrize("input_format", ["csv", "json", "parquet"])
@pytest.mark.parametrize("columns", ["all", "few"])
def test_a_file_becomes_what_pinot_makes_of_its_rows(
    oracle: Any,
    session: SparkSession,
    fakes: ModuleType,
    build_spec: BuildSpec,
    tmp_path: Path,
    input_format: str,
    columns: str,
) -> None:
    """With few columns the file has none of those that are made."""
    rows = ROWS if columns == "all" else [{k: row[k] for k in ("ms", "a", "b", "name")} for row in ROWS]
    build_spec = replace(build_spec, input_format=input_format)
    write(tmp_path / "in" / f"a.{input_format}", input_format, rows)
    name, ours = built(session, fakes, build_spec, tmp_path)
    theirs = oracle.build(
        texts(rows) if input_format == "csv" else rows,
        build_spec.schema,
        build_spec.table_config,
        name=name,
        creation_time_ms=build_spec.creation_time_ms,
    )
    kinds = {
        field["name"]: field["dataType"]
        for part in SCHEMA.values()
        if isinstance(part, list)
        for field in part
    }
    read = oracle.read(oracle.segment_folder(ours), kinds)
    assert read == oracle.read(oracle.segment_folder(theirs), kinds)
    assert ours["index_map"] == theirs["index_map"]
    assert ours["columns.psf"] == theirs["columns.psf"]
    assert len(read["id"].values) == len(ROWS) - 1
