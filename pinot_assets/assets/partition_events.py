"""Make the events with which Dagster shows a table: listing and ledger, divided into partitions."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import dagster as dg

from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.metadata import Metadata, of_files
from pinot_assets.assets.partitions import (
    ALL_FILES,
    DELETED,
    FilePartitioning,
    SourceRows,
    by_partition,
    choose,
    digest,
    path_of,
)
from pinot_assets.assets.runs import runs_under_way
from pinot_assets.errors import PinotAssetsError
from pinot_assets.session.detect.observe import list_source, observe
from pinot_assets.session.stores.clients import open_session_store, open_source, open_staging
from pinot_assets.settings.environment import load_settings
from pinot_assets.settings.local_stack import default_home
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Receipt
from pinot_assets.source import SourceFile
from pinot_assets.source.file_table import FileTable
from pinot_assets.table_spec import TableSpec

Event = dg.AssetObservation | dg.AssetMaterialization


@dataclass(frozen=True)
class PartitionEvents:
    """A table at one moment, divided into partitions.

    :ivar rows: the listing compared with the ledger.
    """

    spec: TableSpec
    rows: SourceRows
    snapshot: Snapshot | None
    partitioning: FilePartitioning

    @classmethod
    def take(
        cls,
        spec: TableSpec,
        files: Mapping[str, SourceFile],
        snapshot: Snapshot | None,
        existing: Collection[str],
    ) -> PartitionEvents:
        """Combine a listing and a ledger.

        :param files: the listing, by URI.
        :param existing: partition keys that exist in Dagster; a grouped table stays grouped.
        """
        rows = SourceRows.beside(spec, FileTable.of(files).columns, snapshot)
        return cls(spec, rows, snapshot, choose(spec, rows, existing))

    @classmethod
    def of_ledger(cls, spec: TableSpec, snapshot: Snapshot, existing: Collection[str]) -> PartitionEvents:
        """Assume that the source has exactly the published files, for callers that did not list it."""
        rows = SourceRows.of_ledger(spec, snapshot)
        return cls(spec, rows, snapshot, choose(spec, rows, existing))

    @cached_property
    def ledger(self) -> Mapping[str, PublishedFile]:
        """The published files, by URI."""
        return self.snapshot.ledger if self.snapshot is not None else {}

    @cached_property
    def source(self) -> dict[str, str]:
        """Versions in the source, by partition key; these are all keys that the table should have."""
        return self.rows.versions(self.partitioning)

    @cached_property
    def published(self) -> dict[str, str]:
        """Versions of the published files, by partition key."""
        versions = {path_of(self.spec, uri): file.version for uri, file in self.ledger.items()}
        return by_partition(versions, self.partitioning.key_of)

    def observations(self, history: TableHistory) -> Iterator[Event]:
        """Add the partitions of new files, and yield an observation for each version that changed."""
        history.add_partitions(self.source)
        yield from history.observations(self.source)

    def staged(self, history: TableHistory, receipts: Iterable[Receipt], session: str) -> Iterator[Event]:
        """Yield events for the files that were built. Store the observations first."""
        built = [PublishedFile.from_receipt(receipt, session) for receipt in receipts]
        versions = by_partition(
            {path_of(self.spec, f.uri): f.version for f in built}, self.partitioning.key_of
        )
        del versions[ALL_FILES]  # single files were built; the whole table is not published yet
        yield from history.staged(versions, _metadata_by_key(self._members(built), "built, hidden"))

    def publications(self, history: TableHistory) -> Iterator[Event]:
        """Yield events for what queries see now, and for what they do not see any more."""
        members = self._members(self.ledger.values())
        builds = {key: _build(members.get(key, [])) for key in self.published}
        history.add_partitions(self.published)
        yield from history.first_observations(self.published)
        yield from history.published_segments(self.published, builds, _metadata_by_key(members, "published"))
        yield from history.absent_segments(self.published, DELETED)

    def forget_gone(self, history: TableHistory) -> None:
        """Delete the partitions of files that are in neither source nor table; no run may be under way."""
        history.drop_partitions(DELETED, self.published)

    def forget_all_others(self, history: TableHistory) -> None:
        """As `forget_gone`, but also delete former groups, and deleted files that were never published."""
        history.keep_partitions(self.source)

    def _members(self, files: Iterable[PublishedFile]) -> dict[str, list[PublishedFile]]:
        members: dict[str, list[PublishedFile]] = defaultdict(list)
        for file in files:
            members[self.partitioning.key_of(path_of(self.spec, file.uri))].append(file)
            members[ALL_FILES].append(file)
        return members


def _metadata_by_key(members: Mapping[str, Sequence[PublishedFile]], state: str) -> dict[str, Metadata]:
    by_key = {key: {"state": state, **of_files(group)} for key, group in members.items()}
    return {ALL_FILES: of_files([]), **by_key}


def _build(files: Iterable[PublishedFile]) -> str:
    """Return six hex digits, from the segments' names, that distinguish two builds of the same versions."""
    files = [*files]
    segments = (output.segment for file in files for output in file.outputs)
    return digest(chain(segments, (name for file in files for name in file.packs)))[:6]


@dataclass(frozen=True, slots=True)
class Spread:
    """How the files of one table are divided into partitions, now and as its spec alone wants it.

    :ivar history: the table's events and partitions in Dagster.
    :ivar now: the current division.
    :ivar target: the division that follows from the table spec alone.
    """

    instance: dg.DagsterInstance
    spec: TableSpec
    history: TableHistory
    now: PartitionEvents
    target: PartitionEvents

    def refuse_beside_runs(self) -> None:
        """Raise an error if a run could lose its partition.

        :raises PinotAssetsError: a run of the table is under way.
        """
        if running := runs_under_way(self.instance, self.spec):
            raise PinotAssetsError(
                f"run {running[0].run_id} of {self.spec.name} has not ended",
                why="Dagster fails a step whose partition was deleted",
                hint=f"stop the sensor {self.spec.asset_name}_files, wait for the run to end, and run this "
                "again",
            )


@contextmanager
def open_spread(spec: TableSpec) -> Iterator[Spread]:
    """Read Dagster, the ledger and the source of a table.

    :raises PinotAssetsError: there is no Dagster instance, or something cannot be read.
    """
    if not os.environ.get("DAGSTER_HOME") and (default_home() / "dagster").is_dir():
        os.environ["DAGSTER_HOME"] = str(default_home() / "dagster")
    if not os.environ.get("DAGSTER_HOME"):
        raise PinotAssetsError(
            "there is no Dagster instance to write to",
            why="DAGSTER_HOME is not set, and `pinot-assets dev` has not run here",
            hint="export DAGSTER_HOME=<the folder of its dagster.yaml>",
        )
    with dg.DagsterInstance.get() as instance:
        history = TableHistory(instance, spec)
        with open_session_store(spec, load_settings()) as store:
            snapshot = observe(store, open_staging(spec)).snapshot
        files = list_source(spec, open_source(spec)).files
        now = PartitionEvents.take(spec, files, snapshot, history.partitions())
        yield Spread(instance, spec, history, now, PartitionEvents.take(spec, files, snapshot, ()))
