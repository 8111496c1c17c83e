"""One version of a file while a task reads its rows, and what its receipt says of them."""

from __future__ import annotations

import os
import pickle
import socket
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import pyarrow as pa

from pinot_assets.core.this_machine import (
    keep_freed_memory,
    take_memory_from_arrow,
    take_memory_from_system,
)
from pinot_assets.errors import SourceChanged, SourceError
from pinot_assets.ingest.contract.accepted_rows import (
    BadRowAllowance,
    BadRowPolicy,
    EmptyColumns,
    Quarantine,
    TargetSchema,
)
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.failures import BecameFolder, Vanished
from pinot_assets.ingest.contract.task_outputs import Heartbeat, bad_rows_key
from pinot_assets.ingest.formats.content import check_not_torn
from pinot_assets.ingest.formats.read import FIRST_ROWS
from pinot_assets.ingest.provenance import path_below_source, with_provenance
from pinot_assets.ingest.stores import stores_of
from pinot_assets.segment import SegmentSpec
from pinot_assets.snapshot.receipt import Fingerprint, Receipt
from pinot_assets.source.allowed_places import require_data
from pinot_assets.source.object_store import ObjectStore

Rows = Callable[[Path, Fingerprint, TargetSchema, BadRowPolicy], Iterator[pa.Table]]
"""Reads a file's rows: takes the local copy, its version, the target schema and the policy that collects bad
rows; yields tables of exactly the target schema."""

_BAD_ROWS: Final = "bad-rows.parquet"


class OpenFile:
    """One version of a file, copied to the worker, with its rows as tables of the target schema.

    :param rows_of: reads them.
    :param folder: for the copy, and for the bad rows.
    :ivar read: the version that was copied.
    :raises PinotAssetsError: the file cannot be copied. More follows when the tables are read.
    """

    def __init__(
        self, build_spec: BuildSpec, task: FileTask, rows_of: Rows, folder: Path, signs: Heartbeat
    ) -> None:
        self._started = time.monotonic()
        self._build_spec, self._task, self._folder = build_spec, task, folder
        spec, target = columns_of_table(build_spec)
        local = folder / "source"
        self.read, self._sha256 = fetch(build_spec, task.file.uri, local)
        signs.worked()
        check_not_torn(task.file.uri, self.read.size, build_spec.input_format)
        self._verdicts = _verdicts(build_spec, task, folder)
        self._values = EmptyColumns(target.schema.names)
        tables = rows_of(local, self.read, target, self._verdicts)
        if name := build_spec.provenance_column:
            column = next(column for column in spec.columns if column.name == name)
            tables = with_provenance(tables, column, path_below_source(build_spec, task))
        self._tables = signs.counted(self._values.watched(tables))

    @property
    def tables(self) -> Iterator[pa.Table]:
        """The accepted rows; to be read once."""
        return self._tables

    def receipt(self, rows: int) -> Receipt:
        """Return the receipt of the file, without segments; put its bad rows aside.

        :param rows: how many rows its tables had, all of which were read.
        :raises TooManyBadRows: compared with them, too many rows were bad.
        """
        build_spec, task, verdicts = self._build_spec, self._task, self._verdicts
        verdicts.finish(rows)
        aside = verdicts.bad_rows
        return Receipt(
            uri=task.file.uri,
            ordinal=task.ordinal,
            attempt=build_spec.attempt,
            read=self.read,
            sha256=self._sha256,
            rows=rows,
            bad_rows=verdicts.bad_rows,
            outputs=(),
            seconds=round(time.monotonic() - self._started, 3),
            worker=f"{socket.gethostname()}/{os.getpid()}",
            bad_rows_uri=_put_bad_rows(build_spec, task, self.read, self._folder) if aside else "",
            missing=self._values.missing(verdicts.missing),
            rows_read=verdicts.rows,
            rows_filtered=_filtered(build_spec, verdicts, rows),
            format=build_spec.format,
        )


def prepare_memory(build_spec: BuildSpec) -> None:
    """Choose where memory comes from. A worker of Spark builds files of several tables, one by one."""
    if build_spec.input_format in FIRST_ROWS:
        take_memory_from_system()
    else:
        take_memory_from_arrow()
    keep_freed_memory()


def heartbeat(build_spec: BuildSpec, task: FileTask) -> Heartbeat:
    """Return what leaves signs of life of a task that begins with this file."""
    return Heartbeat(stores_of(build_spec).staging, build_spec.attempt, task.ordinal)


def columns_of_table(build_spec: BuildSpec) -> tuple[SegmentSpec, TargetSchema]:
    """Return the columns of the build spec's table."""
    return _table(pickle.dumps((build_spec.schema, build_spec.table_config, build_spec.write_for)))


@lru_cache(maxsize=1)
def _table(pickled: bytes) -> tuple[SegmentSpec, TargetSchema]:
    """Return a table's columns. A worker builds many files of one table, and gets a new build spec with each.

    :param pickled: schema, table config, and the oldest server to write for.
    """
    schema, table_config, write_for = pickle.loads(pickled)
    spec = SegmentSpec.from_pinot(schema, table_config, write_for=write_for)
    return spec, TargetSchema.of(spec)


def _filtered(build_spec: BuildSpec, verdicts: BadRowPolicy, rows: int) -> int:
    """Return how many rows the query dropped: rows read, less bad and written ones. Spark counts none."""
    if verdicts.rows is None or build_spec.query is None or not build_spec.query.drops_rows:
        return 0
    return max(0, verdicts.rows - verdicts.bad_rows - rows)


def fetch(build_spec: BuildSpec, uri: str, local: Path) -> tuple[Fingerprint, str]:
    """Copy one version of the file; return that version and the sha256 of the copy (edge case E1).

    :raises SettingError: the policy says that the file is no data, as this machine sees it.
    :raises SourceChanged: the file changed during both attempts to copy it.
    """
    require_data(uri, build_spec.policy)
    source = stores_of(build_spec).source
    key = source.key_of(uri)
    for attempt in range(2):
        before = version_of(source, uri)
        try:
            sha256 = source.download(key, local, before.size)
        except SourceError as error:
            version_of(source, uri)  # raises if the file is gone, which says more than "unreadable"
            if attempt or not isinstance(error, SourceChanged):
                raise
            continue
        if version_of(source, uri) == before:
            return before, sha256
    raise SourceChanged(
        f"{uri} changed while it was read, twice",
        hint="wait for its writer; the next trigger reads it again",
    )


def version_of(source: ObjectStore, uri: str) -> Fingerprint:
    """Return the version of the file that is in the store now.

    :raises SourceError: the file is gone or became a folder, or the store does not answer.
    """
    key = source.key_of(uri)
    if (version := source.stat(key)) is None:
        if source.ask_if_folder(key):
            raise BecameFolder(
                f"{uri} was a file and became a folder",
                why="a writer made a folder of that name, or somebody made it by mistake",
                hint="move the folder, or deliver the file again; the file's published rows stay "
                "until the folder is gone",
            )
        raise Vanished(f"{uri} does not exist any more", hint="the next trigger lists again")
    return version


def _verdicts(build_spec: BuildSpec, task: FileTask, folder: Path) -> BadRowPolicy:
    if build_spec.max_bad_rows is None:
        return BadRowPolicy(build_spec.missing_column, build_spec.provenance_column)
    limit = BadRowAllowance.parse(build_spec.max_bad_rows)
    how = build_spec.missing_column, build_spec.provenance_column
    return Quarantine(folder / _BAD_ROWS, task.file.uri, limit, *how)


def _put_bad_rows(build_spec: BuildSpec, task: FileTask, read: Fingerprint, folder: Path) -> str:
    staging = stores_of(build_spec).staging
    key = bad_rows_key(task.file.uri, read, build_spec.attempt)
    staging.put_file_if_absent(key, folder / _BAD_ROWS)
    return staging.uri_of(key)
