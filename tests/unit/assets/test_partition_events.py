"""What Dagster shows of a table's partitions, in an instance of its own, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from fakes.tables import APPEND, SYNC, write_table

from pinot_assets.assets.history import Budget, TableHistory
from pinot_assets.assets.keys import keys_of, partitions_name
from pinot_assets.assets.partition_events import PartitionEvents
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.code_location import build_table_definitions
from pinot_assets.resources import profile_resources
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output, Receipt
from pinot_assets.source import Fingerprint, SourceFile
from pinot_assets.table_spec import TableSpec


class PartitionedTable:
    """A table, its source and its ledger as values, and a Dagster that is told of them."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance, options: Mapping[str, str]) -> None:
        self.spec: TableSpec = write_table(folder, "t", dict(options))
        self.instance = instance
        self.history = TableHistory(instance, self.spec)
        self.files: dict[str, SourceFile] = {}
        self.snapshot: Snapshot | None = None

    def uri(self, name: str) -> str:
        return f"{self.spec.input_uri()}/{name}"

    def write(self, **sizes: int) -> None:
        for name, size in sizes.items():
            self.files[self.uri(name)] = SourceFile(self.uri(name), Fingerprint(size, 0))

    def touch(self, name: str, mtime_us: int) -> None:
        file = self.files[self.uri(name)]
        self.files[file.uri] = SourceFile(file.uri, Fingerprint(file.fingerprint.size, mtime_us))

    def delete(self, name: str) -> None:
        del self.files[self.uri(name)]

    def receipts(self) -> list[Receipt]:
        return [
            Receipt(file.uri, n, 0, file.fingerprint, "00", 1, 0, (output,), 1.0, "w")
            for n, file in enumerate(self.files.values())
            for output in [Output(f"s{n}", 1, 1, "u", 1, "0", "m")]
        ]

    def picture(self) -> PartitionEvents:
        return PartitionEvents.take(self.spec, self.files, self.snapshot, self.history.partitions())

    def observe(self) -> int:
        before = self.events()
        assert self.history.report(self.picture().observations(self.history))
        self.picture().forget_all_others(self.history)
        return self.events() - before

    def build(self) -> None:
        self.observe()
        assert self.history.report(self.picture().staged(self.history, self.receipts(), "cp1-0"))

    def publish(self) -> int:
        """The source as it stands becomes what queries see."""
        files = [PublishedFile.from_receipt(receipt, "cp1-0") for receipt in self.receipts()]
        return self.show(files)

    def show(self, files: list[PublishedFile]) -> int:
        self.snapshot = Snapshot(1, "t_OFFLINE", "cp1-0", "SYNC", "e", None, "", "", 0, tuple(files))
        before = self.events()
        shown = PartitionEvents.of_ledger(self.spec, self.snapshot, self.history.partitions())
        assert self.history.report(shown.publications(self.history))
        told = self.events() - before
        shown.forget_gone(self.history)
        return told

    def events(self) -> int:
        return sum(
            len(fetch(key, limit=10_000).records)
            for fetch, key in (
                (self.instance.fetch_observations, keys_of(self.spec).source_files),
                (self.instance.fetch_materializations, keys_of(self.spec).segments),
            )
        )

    def stale(self) -> dict[str, bool]:
        """What the page of `segments` says of every partition that is materialized."""
        own = dg.Definitions(resources=dict(profile_resources()))
        graph = dg.Definitions.merge(own, build_table_definitions(self.spec)).resolve_asset_graph()
        resolver = CachingStaleStatusResolver(self.instance, graph, LoadingContextForTest(self.instance))
        key = keys_of(self.spec).segments
        there = self.history.partitions() & set(self.history.materialized())
        return {p: resolver.get_status(key, p).name == "STALE" for p in sorted(there)}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def partitioned(tmp_path: Path, instance: dg.DagsterInstance) -> PartitionedTable:
    return PartitionedTable(tmp_path, instance, SYNC)


def test_files_become_partitions_and_are_observed_once(partitioned: PartitionedTable) -> None:
    partitioned.write(a=1, b=2)
    assert partitioned.observe() == 3
    assert partitioned.history.partitions() == {"a", "b", ALL_FILES}
    assert partitioned.observe() == 0
    partitioned.write(b=3)
    assert partitioned.observe() == 2, "b and the table as a whole"


def test_what_is_built_is_stale_until_it_is_published(partitioned: PartitionedTable) -> None:
    partitioned.write(a=1, b=2)
    partitioned.build()
    assert partitioned.stale() == {"a": True, "b": True}
    partitioned.publish()
    assert partitioned.stale() == {"a": False, "b": False, ALL_FILES: False}
    assert partitioned.publish() == 0, "what is shown already is told again"


def test_a_rewritten_file_is_stale_until_its_new_segment_is_published(partitioned: PartitionedTable) -> None:
    partitioned.write(a=1, b=2)
    partitioned.build()
    partitioned.publish()
    partitioned.write(a=9)
    partitioned.observe()
    assert partitioned.stale() == {"a": True, "b": False, ALL_FILES: True}
    partitioned.build()
    assert partitioned.stale()["a"]
    partitioned.publish()
    assert partitioned.stale() == {"a": False, "b": False, ALL_FILES: False}


def test_a_file_that_is_written_back_is_fresh_again(partitioned: PartitionedTable) -> None:
    partitioned.write(a=1)
    partitioned.build()
    partitioned.publish()
    for _ in range(2):
        partitioned.write(a=2)
        partitioned.observe()
        assert partitioned.stale() == {"a": True, ALL_FILES: True}
        partitioned.write(a=1)
        partitioned.observe()
        assert partitioned.stale() == {"a": False, ALL_FILES: False}


def test_written_back_after_it_was_built_and_not_published(partitioned: PartitionedTable) -> None:
    partitioned.write(a=1)
    partitioned.build()
    partitioned.publish()
    partitioned.write(a=2)
    partitioned.build()
    assert partitioned.stale()["a"]
    partitioned.write(a=1)
    partitioned.observe()
    assert not partitioned.stale()["a"]


def test_a_touched_file_is_fresh_again_when_its_content_was_compared(partitioned: PartitionedTable) -> None:
    partitioned.write(a=1)
    partitioned.build()
    partitioned.publish()
    partitioned.touch("a", 7)
    partitioned.observe()
    assert partitioned.stale()["a"], "by its fingerprint it may be another content"
    assert partitioned.snapshot is not None
    (file,) = partitioned.snapshot.files
    touched = partitioned.files[file.uri].fingerprint
    # A trigger has read it: the ledger takes the new fingerprint, and the version that was built stays.
    partitioned.show([PublishedFile(file.uri, touched, "00", 1, 0, "cp1-0", file.outputs, file.version, 1.0)])
    partitioned.observe()
    assert partitioned.stale() == {"a": False, ALL_FILES: False}


def test_a_deleted_file_leaves_the_list_with_its_rows(partitioned: PartitionedTable) -> None:
    partitioned.write(a=1, b=2)
    partitioned.build()
    partitioned.publish()
    partitioned.delete("b")
    partitioned.observe()
    assert partitioned.stale() == {"a": False, "b": True, ALL_FILES: True}, "queries still see its rows"
    partitioned.publish()
    assert partitioned.history.partitions() == {"a", ALL_FILES}
    assert partitioned.stale() == {"a": False, ALL_FILES: False}


def test_append_keeps_the_rows_of_deleted_files(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    partitioned = PartitionedTable(tmp_path, instance, APPEND)
    partitioned.write(a=1, b=2)
    partitioned.build()
    partitioned.publish()
    partitioned.delete("b")
    partitioned.observe()
    assert partitioned.stale() == {"a": False, "b": False, ALL_FILES: False}


def test_what_a_rollback_brings_back_is_stale(partitioned: PartitionedTable) -> None:
    partitioned.write(a=1)
    partitioned.build()
    partitioned.publish()
    assert partitioned.snapshot is not None
    before = list(partitioned.snapshot.files)
    partitioned.write(a=2)
    partitioned.build()
    partitioned.publish()
    partitioned.show(before)
    assert partitioned.stale() == {"a": True, ALL_FILES: True}
    partitioned.write(a=1)
    partitioned.observe()
    assert partitioned.stale() == {"a": False, ALL_FILES: False}


def test_a_new_file_that_a_rollback_takes_away_is_stale(partitioned: PartitionedTable) -> None:
    partitioned.write(a=1)
    partitioned.build()
    partitioned.publish()
    assert partitioned.snapshot is not None
    before = list(partitioned.snapshot.files)
    partitioned.write(b=1)
    partitioned.build()
    partitioned.publish()
    assert partitioned.show(before) == 2, "b is told as absent once, and the table as a whole"
    assert partitioned.stale() == {"a": False, "b": True, ALL_FILES: True}
    assert partitioned.show(before) == 0
    partitioned.build()
    partitioned.publish()
    assert partitioned.stale() == {"a": False, "b": False, ALL_FILES: False}


def test_a_file_that_went_and_came_back_is_stale_until_it_is_published_again(
    partitioned: PartitionedTable,
) -> None:
    partitioned.write(a=1, b=1)
    partitioned.build()
    partitioned.publish()
    partitioned.delete("b")
    partitioned.observe()
    partitioned.publish()
    partitioned.write(b=1)
    partitioned.observe()
    assert partitioned.stale() == {"a": False, "b": True, ALL_FILES: True}
    partitioned.build()
    partitioned.publish()
    assert partitioned.stale() == {"a": False, "b": False, ALL_FILES: False}


def test_the_same_versions_built_anew_are_told_anew(partitioned: PartitionedTable) -> None:
    partitioned.write(a=1)
    partitioned.build()
    partitioned.publish()
    assert partitioned.snapshot is not None
    (file,) = partitioned.snapshot.files
    output = replace(file.outputs[0], segment="another")
    assert partitioned.show([replace(file, outputs=(output,))]) == 2
    assert partitioned.stale() == {"a": False, ALL_FILES: False}


def test_a_table_that_dagster_has_never_seen_is_shown_from_its_ledger(partitioned: PartitionedTable) -> None:
    partitioned.write(a=1, b=2)
    partitioned.publish()
    assert partitioned.stale() == {"a": False, "b": False, ALL_FILES: False}
    partitioned.write(a=3)
    partitioned.observe()
    assert partitioned.stale() == {"a": True, "b": False, ALL_FILES: True}


def test_a_group_is_stale_when_one_of_its_files_is(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    partitioned = PartitionedTable(tmp_path, instance, SYNC | {"maxFilePartitions": "1"})
    partitioned.write(**{"x/a": 1, "x/b": 1, "y/a": 1})
    partitioned.build()
    assert partitioned.stale() == {"dir:x": True, "dir:y": True}
    partitioned.publish()
    assert partitioned.stale() == {"dir:x": False, "dir:y": False, ALL_FILES: False}
    partitioned.write(**{"x/b": 2})
    partitioned.observe()
    assert partitioned.stale() == {"dir:x": True, "dir:y": False, ALL_FILES: True}
    partitioned.delete("y/a")
    partitioned.observe()
    partitioned.publish()
    partitioned.observe()
    assert partitioned.history.partitions() == {"dir:x", ALL_FILES}


def test_a_tick_does_no_more_than_it_has_time_for(partitioned: PartitionedTable) -> None:
    def late() -> TableHistory:
        return TableHistory(partitioned.instance, partitioned.spec, Budget(0))

    partitioned.write(a=1, b=1, c=1)
    told = []
    while not (history := late()).report(partitioned.picture().observations(history)):
        told.append(len(history.observed()))
    assert told == [1, 2, 3]
    assert partitioned.observe() == 0
    partitioned.files.clear()
    partitioned.write(a=1)
    partitioned.picture().forget_all_others(late())
    assert partitioned.history.partitions() == {"a", "c", ALL_FILES}
    partitioned.picture().forget_all_others(late())
    assert partitioned.history.partitions() == {"a", ALL_FILES}


def test_what_was_left_undone_is_said(partitioned: PartitionedTable) -> None:
    """By the deletions, too: nothing that means `all is told` may follow."""
    partitioned.instance.add_dynamic_partitions(partitions_name(partitioned.spec), ["x", "y", "z"])
    history = TableHistory(partitioned.instance, partitioned.spec, Budget(0))
    history.keep_partitions([])
    assert not history.report(iter([]))
