"""What is said of Spark's readers without Spark; the rest is in tests/integration/test_spark_sql.py."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from pinot_assets.core.installation_policy import Layer, Policy
from pinot_assets.errors import BuildError, SettingError
from pinot_assets.ingest.contract.build_spec import Query
from pinot_assets.ingest.spark.reader import check_readers, exact_types, hadoop_path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///in/a%20b%25.csv", "file:///in/a b%.csv"),
        ("s3://lake/in/%C3%A4.csv", "s3a://lake/in/ä.csv"),
    ],
)
def test_names_are_spelt_as_hadoop_spells_them(uri: str, path: str) -> None:
    assert hadoop_path(uri) == path


@pytest.mark.parametrize("source", ["gs://lake/in", "abfss://files@account.dfs.core.windows.net/in"])
def test_a_store_that_spark_does_not_read_is_refused_before_any_file_is(
    fakes: ModuleType, tmp_path: Path, source: str
) -> None:
    order = fakes.make_order(tmp_path, source_uri=source, query=Query(where="true"))
    session: Any = None  # nothing is asked of it
    with pytest.raises(BuildError, match="not set up for"):
        check_readers(session, order)


@pytest.mark.parametrize("written", ["https://minio.example", ""])
def test_spark_opens_no_bucket_where_the_machines_credentials_may_not_be_used(
    fakes: ModuleType, tmp_path: Path, written: str
) -> None:
    """The keys are the spec's, for its own store; Spark would take others, and read elsewhere."""
    props = {"endpoint": written, "accessKey": "k", "secretKey": "s"}
    layer = Layer(endpoints=("https://minio.example",), credentials=())
    source = {"source_uri": "s3://finance/in", "source_props": props, "query": Query(where="true")}
    order = fakes.make_order(tmp_path, policy=Policy((layer,)), **source)
    session: Any = None  # nothing is asked of it
    with pytest.raises(SettingError, match="is read by Spark, with this machine's own credentials"):
        check_readers(session, order)


def test_text_of_digits_stays_text_where_fractions_are_decimals() -> None:
    """A postal code is no number: 01234 is not 1234."""
    decimals = StructType(
        [
            StructField("zip", DecimalType(5, 0)),
            StructField("price", DecimalType(3, 2)),
            StructField("n", LongType()),
            StructField("p", StructType([StructField("zips", ArrayType(DecimalType(5, 0)))])),
            StructField("prices", ArrayType(DecimalType(3, 2))),
        ]
    )
    plain = StructType(
        [
            StructField("zip", StringType()),
            StructField("price", DoubleType()),
            StructField("n", LongType()),
            StructField("p", StructType([StructField("zips", ArrayType(StringType()))])),
            StructField("prices", ArrayType(DoubleType())),
        ]
    )
    assert exact_types(decimals, plain).simpleString() == (
        "struct<zip:string,price:decimal(3,2),n:bigint,p:struct<zips:array<string>>,"
        "prices:array<decimal(3,2)>>"
    )


@pytest.mark.parametrize(
    ("found", "read"),
    [((1, -5), "decimal(6,0)"), ((3, -35), "decimal(38,0)"), ((1, -300), "double"), ((3, 2), "decimal(3,2)")],
)
def test_a_number_with_an_exponent_has_a_type_that_holds_it(found: tuple[int, int], read: str) -> None:
    assert exact_types(DecimalType(*found), DoubleType()).simpleString() == read
