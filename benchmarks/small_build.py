"""Our side of `small_runs`: `small_build.py JOB`, where JOB is a JSON file. Imports only what a run needs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.stored_format import WITH_PACKS
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, PackSettings, Query, TaskKind
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_context, local_session
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.packs import accepted_members, cut_at
from pinot_assets.session.values.plan import Plan, Row, RowStatus
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.packs import MemberList
from pinot_assets.snapshot.receipt import FileResult, Fingerprint, Receipt, SourceFile
from pinot_assets.source import open_store

CORES = 2
TARGET_BYTES = 300 << 20
"""Of a pack's segment, as a table spec has it by default."""
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
    kind = TaskKind.SMALL_FILE if job.get("pack") else TaskKind.FILE
    tasks = [FileTask(SourceFile(info.uri, info.fingerprint), n, kind) for n, info in enumerate(listed)]
    if kind is TaskKind.SMALL_FILE:
        spec = replace(spec, packs=PackSettings(root, TARGET_BYTES), format=WITH_PACKS)
    spark = SparkBuilder(lambda: local_session("bench", CORES), lambda: local_context("bench", CORES))
    receipts = built(spark, spec, tasks)
    if kind is TaskKind.SMALL_FILE:
        built(spark, spec, [*packs_of(spec, root, receipts)])


def built(spark: SparkBuilder, spec: BuildSpec, tasks: Sequence[FileTask]) -> list[Receipt]:
    """Build the tasks; all of them have to succeed."""
    done: list[FileResult] = []
    spark.build(spec, tasks, done.append)
    receipts = [one for one in done if isinstance(one, Receipt)]
    assert len(receipts) == len(done) == len(tasks), done
    return receipts


def packs_of(spec: BuildSpec, root: str, receipts: Sequence[Receipt]) -> Iterator[FileTask]:
    """Decide packs as a session does, and store their member lists."""
    staging = Staging(open_store(root, {}, UNLIMITED))
    rows = tuple(Row(r.uri, r.ordinal, r.read, RowStatus.DONE, "", is_small=True) for r in receipts)
    plan = Plan(spec.session, spec.attempt, Mode.APPEND, rows, (), {}, "")
    accepted = accepted_members(plan, {receipt.ordinal: receipt for receipt in receipts})
    for ordinal, pack in enumerate(cut_at(TARGET_BYTES, accepted), start=plan.next_ordinal):
        members = MemberList(tuple(one.member for one in pack), "", format=WITH_PACKS)
        version = Fingerprint(sum(one.bytes for one in pack), 0)
        yield FileTask(SourceFile(staging.put_members(members), version), ordinal, TaskKind.PACK)


if __name__ == "__main__":
    build(json.loads(Path(sys.argv[1]).read_text()))
