"""A table as Dagster's pages are to show it: one listing beside one ledger, spread over partitions."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

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
from pinot_assets.snapshot.manifest import PublishedFile, Snapshot
from pinot_assets.snapshot.receipt import Receipt
from pinot_assets.source import SourceFile
from pinot_assets.source.file_table import FileTable
from pinot_assets.table_spec import TableSpec

Event = dg.AssetObservation | dg.AssetMaterialization


@dataclass(frozen=True)
class PartitionEvents:
    """A table at one moment.

    :ivar rows: the listing beside what is published.
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
        """Put listing and ledger together.

        :param files: the listing, by URI.
        :param existing: partition keys that stand in Dagster; a grouped table stays grouped.
        """
        rows = SourceRows.beside(spec, FileTable.of(files).columns, snapshot)
        return cls(spec, rows, snapshot, choose(spec, rows, existing))

    @classmethod
    def of_ledger(cls, spec: TableSpec, snapshot: Snapshot, existing: Collection[str]) -> PartitionEvents:
        """As if the source held just what is published: for callers that did not list it."""
        rows = SourceRows.of_ledger(spec, snapshot)
        return cls(spec, rows, snapshot, choose(spec, rows, existing))

    @cached_property
    def ledger(self) -> Mapping[str, PublishedFile]:
        """What is published, by URI."""
        return self.snapshot.ledger if self.snapshot is not None else {}

    @cached_property
    def source(self) -> dict[str, str]:
        """Versions in the source, by partition key: every key that the table is to have."""
        return self.rows.versions(self.partitioning)

    @cached_property
    def published(self) -> dict[str, str]:
        """Versions that queries see, by partition key."""
        versions = {path_of(self.spec, uri): file.version for uri, file in self.ledger.items()}
        return by_partition(versions, self.partitioning.key_of)

    def observations(self, history: TableHistory) -> Iterator[Event]:
        """Add the partitions of new files, and say what is new in the source."""
        history.add_partitions(self.source)
        yield from history.observations(self.source)

    def staged(self, history: TableHistory, receipts: Iterable[Receipt], session: str) -> Iterator[Event]:
        """Say what was built. The observations must have been stored."""
        built = [PublishedFile.from_receipt(receipt, session) for receipt in receipts]
        versions = by_partition(
            {path_of(self.spec, f.uri): f.version for f in built}, self.partitioning.key_of
        )
        del versions[ALL_FILES]  # whatever was built, the table as a whole is not there yet
        yield from history.staged(versions, _metadata_by_key(self._members(built), "built, hidden"))

    def publications(self, history: TableHistory) -> Iterator[Event]:
        """Say what queries see now, and what they see no more."""
        members = self._members(self.ledger.values())
        builds = {key: _build(members.get(key, [])) for key in self.published}
        history.add_partitions(self.published)
        yield from history.first_observations(self.published)
        yield from history.published_segments(self.published, builds, _metadata_by_key(members, "published"))
        yield from history.absent_segments(self.published, DELETED)

    def forget_gone(self, history: TableHistory) -> None:
        """Take files that have left source and table off the list, when no run needs their partitions."""
        history.drop_partitions(DELETED, self.published)

    def forget_all_others(self, history: TableHistory) -> None:
        """As `forget_gone`, by a listing: it knows former groups and files that were never published, too."""
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
    """Six hex digits that tell two builds of the same versions apart, by their segments' names."""
    return digest(output.segment for file in files for output in file.outputs)[:6]


@dataclass(frozen=True, slots=True)
class Spread:
    """How the files of one table are spread over partitions.

    :ivar history: what Dagster knows of the table.
    :ivar now: as they are spread now.
    :ivar target: as the table spec alone would have it.
    """

    instance: dg.DagsterInstance
    spec: TableSpec
    history: TableHistory
    now: PartitionEvents
    target: PartitionEvents

    def refuse_beside_runs(self) -> None:
        """Nothing is moved below a run.

        :raises PinotAssetsError: a run of the table is under way.
        """
        if running := runs_under_way(self.instance, self.spec):
            raise PinotAssetsError(
                f"run {running[0].run_id} of {self.spec.name} is under way",
                why="Dagster fails a step whose partition has gone",
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
            "no Dagster instance to talk to",
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
