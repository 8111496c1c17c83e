"""Our side of `small_runs`: `small_build.py JOB`, where JOB is a JSON file. Imports only what a run needs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, Query
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_context, local_session
from pinot_assets.snapshot.receipt import FileResult, Receipt, SourceFile
from pinot_assets.source import open_store

CORES = 2
_CREATED_MS = 1_790_000_000_000


def build(job: JsonObject) -> None:
    """Build all files with the product's own builder, in this process."""
    root = Path(job["out"]).as_uri()
    query = Query.of("", {}, job["tableConfig"])
    spec = BuildSpec(
        table="bench", session="cp1-000000", attempt=1, creation_time_ms=_CREATED_MS, schema=job["schema"],
        table_config=job["tableConfig"], input_format=job["format"], reader={},
        source_uri=Path(job["in"]).as_uri(), source_props={}, staging_uri=f"{root}/session",
        segments_uri=f"{root}/segments", staging_props={}, max_rows_per_segment=1 << 40,
        write_for="0.11", policy=UNLIMITED, query=query if query.expressions else None,
    )  # fmt: skip
    listed = open_store(spec.source_uri, {}, UNLIMITED).list()
    tasks = [FileTask(SourceFile(info.uri, info.fingerprint), n) for n, info in enumerate(listed)]
    done: list[FileResult] = []
    spark = SparkBuilder(lambda: local_session("bench", CORES), lambda: local_context("bench", CORES))
    spark.build(spec, tasks, done.append)
    assert all(isinstance(one, Receipt) for one in done), done


if __name__ == "__main__":
    build(json.loads(Path(sys.argv[1]).read_text()))
