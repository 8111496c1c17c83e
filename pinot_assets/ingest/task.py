"""What one task does with one file: read one version of it, stage its segments, write its receipt last.

A task writes under names that only this attempt of this session uses, and only if the object is absent. So
a task that runs twice (a lost executor, speculation) does no harm. The receipt comes after all tars: a file
is done when, and only when, its receipt exists (docs/design/session.md#receipt).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from pinot_assets.core.files import temporary_folder
from pinot_assets.core.untrusted import RECEIPT
from pinot_assets.errors import BuildError, PinotAssetsError
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema, cut
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, TaskKind
from pinot_assets.ingest.contract.failures import failure_of
from pinot_assets.ingest.contract.task_outputs import CutValues, Heartbeat, receipt_key, version_text
from pinot_assets.ingest.formats.content import check_not_torn
from pinot_assets.ingest.formats.read import read_batches
from pinot_assets.ingest.open_file import OpenFile, Rows, fetch, heartbeat, prepare_memory
from pinot_assets.ingest.packs.build_pack import build_pack
from pinot_assets.ingest.packs.small_files import read_small_files
from pinot_assets.ingest.staged_segment import (
    built_segment,
    columns_by_name,
    put_cut_values,
    put_segment,
    record,
)
from pinot_assets.ingest.stores import stores_of
from pinot_assets.snapshot.receipt import Failure, Fingerprint, Receipt


def build_file(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    """Build one file, with its rows read through Arrow, or one pack; see `build_from`.

    A build spec with a query becomes a failure: Arrow cannot apply the query.
    """
    if task.kind is TaskKind.PACK:
        return build_pack(build_spec, task)
    return build_from(build_spec, task, rows_through_arrow(build_spec))


def rows_through_arrow(build_spec: BuildSpec) -> Rows:
    """Return what reads the rows of a file through Arrow."""

    def rows(local: Path, _: Fingerprint, target: TargetSchema, verdicts: BadRowPolicy) -> Iterator[pa.Table]:
        if build_spec.query is not None:
            raise BuildError("a file with SQL was about to be read without it")
        return read_batches(
            local,
            target,
            build_spec.input_format,
            reader=build_spec.reader,
            verdicts=verdicts,
            limits=build_spec.limits,
        )

    return rows


def build_or_keep(build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
    """Build one file as `build_file` does, unless an earlier run of this task has done it.

    It asks the staging area first, so it is for tasks that are repeated because their worker died.
    """
    return built_before(build_spec, task) or build_file(build_spec, task)


def built_before(build_spec: BuildSpec, task: FileTask) -> Receipt | None:
    """Return the receipt that an earlier run of this task wrote for the planned version, if there is one."""
    key = receipt_key(task.file.uri, task.file.fingerprint, build_spec.attempt)
    with suppress(PinotAssetsError, ValueError):  # whatever is wrong with it: the file is built
        staging = stores_of(build_spec).staging
        if staging.stat(key) is not None:
            return Receipt.from_bytes(staging.read(key, RECEIPT), staging.uri_of(key))
    return None


def build_from(build_spec: BuildSpec, task: FileTask, rows: Rows) -> Receipt | Failure:
    """Build one file. Any error becomes a `Failure` of the file.

    :returns: the receipt in the staging area. If another run of this task wrote a receipt for the same
        version first, that receipt (rule R13).
    """
    prepare_memory(build_spec)
    if task.kind is TaskKind.SMALL_FILE:
        [result] = read_small_files(build_spec, [task], rows)
        return result
    try:
        with temporary_folder("build") as folder, closing(heartbeat(build_spec, task)) as signs:
            return _build(build_spec, task, rows, folder, signs)
    except Exception as error:
        # A bug, or a disk that is full, must fail this file only, and not the job with all other files.
        return failure_of(build_spec, task, error)


def inspected(build_spec: BuildSpec, task: FileTask, look: Callable[[Path], None]) -> Fingerprint | Failure:
    """Copy one version of a file and inspect it; build nothing.

    :param look: called with the path of the copy; an exception that it raises becomes the file's failure.
    :returns: the version that was copied, or the failure.
    """
    try:
        with temporary_folder("build") as folder, closing(heartbeat(build_spec, task)):
            read, _ = fetch(build_spec, task.file.uri, folder / "source")
            check_not_torn(task.file.uri, read.size, build_spec.input_format)
            look(folder / "source")
            return read
    except Exception as error:
        return failure_of(build_spec, task, error)


def _build(build_spec: BuildSpec, task: FileTask, rows_of: Rows, folder: Path, signs: Heartbeat) -> Receipt:
    file = OpenFile(build_spec, task, rows_of, folder, signs)
    cuts = cut(file.tables, build_spec.max_rows_per_segment, build_spec.desired_segment_bytes)
    custom = {
        "input.data.file.uri": task.file.uri,  # the key that Pinot's own batch jobs write
        "pinotAssets.file": task.file.uri,
        "pinotAssets.session": build_spec.session,
        "pinotAssets.version": version_text(file.read),
    }
    staged = [
        put_segment(build_spec, built_segment(build_spec, task, columns, k, custom), folder, signs)
        for k, columns in enumerate(map(columns_by_name, cuts))
    ]
    receipt = replace(
        file.receipt(sum(one.output.rows for one in staged)),
        outputs=tuple(one.output for one in staged),
        tars=tuple(one.token for one in staged),
        facts=tuple(one.facts for one in staged),
    )
    put_cut_values(build_spec, receipt, CutValues.of((one.columns for one in staged), build_spec.format))
    return record(build_spec, receipt)
