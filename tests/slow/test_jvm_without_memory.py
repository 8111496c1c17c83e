"""A file of which Spark's JVM dies, in a real one of this process: it is named, and all others are built."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pinot_assets.ingest.contract.build_spec import Query
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.snapshot.receipt import Failure, Receipt

pytestmark = pytest.mark.spark


def session() -> SparkSession:
    return local_session("without memory", 2)


@pytest.fixture(autouse=True)
def no_spark_stays() -> Iterator[None]:
    yield
    session().stop()


def with_names_of(path: Path, *megabytes: int) -> None:
    names = [os.urandom(size << 19).hex() for size in megabytes]
    moments = pa.array([1_600_000_000_000] * len(names), pa.timestamp("ms"))
    table = pa.table({"name": names, "count": pa.array([1] * len(names), pa.int32()), "at": moments})
    pq.write_table(table, path, use_dictionary=False, compression="none")


def test_a_file_that_ends_the_jvm_is_named_and_fails_alone(fakes: ModuleType, tmp_path: Path) -> None:
    order = fakes.make_order(tmp_path, input_format="parquet", query=Query("count >= 0"))
    for n in range(3):
        with_names_of(tmp_path / "in" / f"{n}.parquet", 0)
    with_names_of(tmp_path / "in" / "large.parquet", 65)
    with_names_of(tmp_path / "in" / "killer.parquet", *[60] * 6)  # each as large as it may be
    results: list[Receipt | Failure] = []
    SparkBuilder(session).build(order, fakes.tasks_of(order), results.append)
    failed = {Path(result.uri).stem: result.code for result in results if isinstance(result, Failure)}
    assert failed == {"killer": "OUT_OF_MEMORY", "large": "TOO_LARGE"}
    assert len(results) == 5
