"""Makes the archive of Spark's classes: `python -m pinot_assets.ingest.spark.class_training FOLDER KEY`.

It starts a local Spark, lets it do a little of everything that builds do, and ends its JVM, which then writes
the archive. `class_archive` starts this process when another one has ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pinot_assets.ingest.spark.class_archive import ClassArchive
from pinot_assets.ingest.spark.expression import column_of
from pinot_assets.ingest.spark.jvm import own_jvm, spark_home

_ENDING_S: Final = 120.0
_TWO: Final = 2


def make(archive: ClassArchive) -> None:
    """Start a JVM that writes the archive, and wait for its end.

    :raises OSError: as in `ClassArchive.making`, or the JVM failed.
    :raises PinotAssetsError: Spark does not start.
    """
    os.chdir(spark_home())  # a JVM that crashes leaves a report where it runs
    with archive.making() as options, _ended_jvm():
        with own_jvm("pinot-assets classes", _TWO, Path(os.devnull), options) as settings:
            session = SparkSession.builder.config(map={**settings}).getOrCreate()
        _use(session)


@contextmanager
def _ended_jvm() -> Iterator[None]:
    """End the JVM that starts in this block, so that it writes its archive; kill it if the block fails."""
    try:
        yield
        process = _process()
        process.communicate(timeout=_ENDING_S)  # closes its standard input, with which it ends
        if process.returncode != 0:
            raise OSError(f"the JVM ended with {process.returncode}")
    finally:
        if SparkContext._gateway is not None:
            _process().kill()
            _process().wait()


def _process() -> subprocess.Popen[bytes]:
    assert SparkContext._gateway is not None
    process: subprocess.Popen[bytes] = SparkContext._gateway.proc
    return process


def _use(session: SparkSession) -> None:
    """Let the JVM load the classes that builds need: Python workers, Spark's readers, SQL, Arrow."""
    session.sparkContext.parallelize(range(_TWO), _TWO).map(str).collect()
    file = spark_home() / "rows.json"
    file.write_text('{"a": "x", "b": 1.5, "c": [1]}\n')
    rows = session.read.json(str(file)).withColumn("n", F.monotonically_increasing_id())
    values = {"a": "upper(a)", "b": "cast(b AS decimal(9, 2))", "n": "size(c) + n"}
    rows = rows.where(column_of("b > 1")).select(
        *[column_of(sql).alias(name) for name, sql in values.items()]
    )
    rows.collect()
    with suppress(ImportError):  # Arrow needs pandas, which is only in the extra `sql`
        rows.mapInArrow(lambda batches: batches, rows.schema).collect()


if __name__ == "__main__":
    os.nice(19)
    make(ClassArchive(Path(sys.argv[1]), sys.argv[2]))
