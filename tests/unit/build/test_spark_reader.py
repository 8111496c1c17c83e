"""What is said of Spark's readers without Spark; the rest is in tests/integration/test_spark_sql.py."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pinot_assets.build.query import Query
from pinot_assets.build.spark_reader import check_readers, hadoop_path
from pinot_assets.errors import BuildError


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
