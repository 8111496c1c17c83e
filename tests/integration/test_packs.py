"""Packs as a run makes them: small files, Spark, a real Pinot, and queries at both brokers all the while."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from fakes.pinot.queries import Queries

from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_context, local_session
from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.pinot.client.broker_answer import BrokerAnswer
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients, open_staging
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.settings.environment import Settings
from pinot_assets.settings.local_stack import StackState
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.table_spec import TableSpec, load_table
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply

pytestmark = [pytest.mark.integration, pytest.mark.spark]
_runs = itertools.count(1)


class Events:
    """A table of events whose files are small; each row knows its file."""

    def __init__(self, stack: StackState, folder: Path, mode: str) -> None:
        self.stack, self.folder, self.mode = stack, folder, mode
        self.columns, self.merges = {"v": "INT", "source_file": "STRING"}, "2g"
        self.name = f"packed_{time.time_ns()}"
        self.source = folder / "in"
        self.source.mkdir()
        self.spec = self._spec()
        self.builder = SparkBuilder(lambda: local_session("packs", 2), lambda: local_context("packs", 2))
        self.settings = Settings(PinotConnection(stack.controller_url), stack.zookeeper, stack.cluster)

    def _spec(self) -> TableSpec:
        path = self.folder / "events.yaml"
        path.write_text(yaml.safe_dump(self._document()))
        return load_table(path)

    def _document(self) -> JsonObject:
        return {
            "schema": {
                "schemaName": self.name,
                "dimensionFieldSpecs": [
                    {"name": name, "dataType": kind} for name, kind in self.columns.items()
                ],
            },
            "table": {
                "tableName": self.name,
                "tableType": "OFFLINE",
                "segmentsConfig": {"replication": "2"},
                "tenants": {},
                "tableIndexConfig": {"loadMode": "MMAP", "sortedColumn": ["v"]},
                "ingestionConfig": {
                    "batchIngestionConfig": {
                        "segmentIngestionType": "REFRESH",
                        "segmentIngestionFrequency": "DAILY",
                    }
                },
                "metadata": {},
            },
            "fileIngestion": {
                "inputDirURI": str(self.source),
                "inputFormat": "csv",
                "output.segment.dir.uri": str(self.folder / "staging"),
                "consistentPushEnabled": True,
                "ingestionMode": self.mode,
                "consistentPushMaxRetries": 1,
            },
            "layout": {"pack": True, "provenanceColumn": "source_file", "maxMergeBytes": self.merges},
        }

    def add_column(self, name: str, kind: str) -> None:
        self.columns[name] = kind
        self.spec = self._spec()
        self.apply()

    def apply(self) -> None:
        with HttpPinotClient(PinotConnection(self.stack.controller_url)) as pinot:
            apply_plan(plan_apply(self.spec, pinot), pinot)

    def write(self, files: Mapping[str, int]) -> None:
        """Files with so many rows."""
        for name, rows in files.items():
            lines = "\n".join(str(n) for n in range(rows))
            (self.source / name).write_text(f"v\n{lines}\n")

    def run(self) -> TriggerReport:
        with (
            open_clients(self.spec, self.settings, self.builder) as clients,
            Driver(self.spec, clients, f"run-{next(_runs)}") as driver,
        ):
            report = driver.trigger()
            if report.result is TriggerResult.STAGED:
                _, findings = driver.audit()
                assert [f for f in findings if not f.passed] == []
                assert "packs_as_read" in {f.name for f in findings}
                driver.publish()
            return report

    def rollback(self) -> Snapshot:
        with (
            open_clients(self.spec, self.settings, self.builder) as clients,
            Driver(self.spec, clients, f"run-{next(_runs)}") as driver,
        ):
            return driver.rollback()

    @property
    def snapshot(self) -> Snapshot:
        with (
            open_clients(self.spec, self.settings, self.builder) as clients,
            Driver(self.spec, clients, "look") as driver,
        ):
            ref = driver.observe().pointer.current_snapshot
            assert ref is not None
            return open_staging(self.spec).snapshot(ref)

    @property
    def brokers(self) -> list[str]:
        return self.stack.broker_urls

    def answer(self, broker: str, sql: str) -> BrokerAnswer:
        with HttpPinotClient(PinotConnection(self.stack.controller_url)) as pinot:
            return pinot.broker(broker).ask(sql, {}, 30.0)

    def shown_by(self, broker: str) -> Counter[str]:
        """Rows by their file."""
        sql = f'SELECT source_file, COUNT(*) FROM "{self.name}" GROUP BY source_file LIMIT 100000'
        with HttpPinotClient(PinotConnection(self.stack.controller_url)) as pinot:
            return Counter({str(name): int(str(rows)) for name, rows in pinot.broker(broker).query(sql).rows})


class Celled(Events):
    """The same, whose segments have rows of one day and of one of four partitions of `v`."""

    def _document(self) -> JsonObject:
        document = super()._document()
        table, config = document["table"], {"v": {"functionName": "Modulo", "numPartitions": 4}}
        table["tableIndexConfig"]["segmentPartitionConfig"] = {"columnPartitionMap": config}
        table["segmentsConfig"]["timeColumnName"] = "day"
        table["routing"] = {"segmentPrunerTypes": ["partition", "time"]}
        day = {"name": "day", "dataType": "STRING", "format": "1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd"}
        document["schema"]["dateTimeFieldSpecs"] = [{**day, "granularity": "1:DAYS"}]
        document["layout"] |= {"partition": True, "timeSlice": "DAY"}
        return document

    def write(self, files: Mapping[str, int]) -> None:
        """Rows of three days and of all partitions, in no order."""
        for name, rows in files.items():
            lines = "\n".join(f"{7 * n % 100},2026-11-0{1 + n % 3}" for n in range(rows))
            (self.source / name).write_text(f"v,day\n{lines}\n")


@pytest.fixture(params=[(Events, "append")])
def events(request: pytest.FixtureRequest, stack: StackState, tmp_path: Path) -> Iterator[Events]:
    kind, mode = request.param
    made = kind(stack, tmp_path, mode)
    with HttpPinotClient(PinotConnection(stack.controller_url)) as pinot:
        made.apply()
        yield made
        pinot.delete_table(made.name)
        pinot.delete_schema(made.name)


def names(report: TriggerReport) -> list[str]:
    return sorted(receipt.uri.rpartition("/")[2] for receipt in report.built)


def test_two_hundred_files_a_bad_one_a_deleted_one_and_a_way_back(events: Events) -> None:
    files = {f"{n:03}.csv": 1 + n % 5 for n in range(200)}
    events.write(files)
    assert len(names(events.run())) == 200
    first = events.snapshot
    [pack] = first.packs
    assert ([*first.segments], pack.files) == ([o.segment for o in pack.outputs], 200)

    with Queries(events.brokers, events.shown_by) as queries:
        more = {f"more{n}.csv": 7 for n in range(20)}
        events.write(more)
        (events.source / "more3.csv").write_text("v\nno number\n")
        failed = events.run()
        assert failed.result is TriggerResult.FAILED
        assert [failure.uri.rpartition("/")[2] for failure in failed.failed] == ["more3.csv"]
        events.write({"more3.csv": 7})
        (events.source / "more5.csv").unlink()
        assert names(events.run()) == ["more3.csv"]
        del more["more5.csv"]
        assert [one.files for one in events.snapshot.packs] == [219], "the new pack was merged with the first"
        assert events.rollback().segments.keys() == first.segments.keys()
        expected = [Counter(files), Counter(files | more), Counter(files)]
        assert queries.answers() == dict.fromkeys(events.brokers, expected)
    assert [error for error in queries.failed if "ServerSegmentMissing" not in str(error)] == []


@pytest.mark.parametrize("events", [(Events, "sync")], indirect=True)
def test_members_are_rewritten_and_deleted_and_no_other_file_is_read(events: Events) -> None:
    events.merges = "0"
    events.spec = events._spec()
    files = {f"{n:03}.csv": 1 + n % 5 for n in range(60)}
    more = {f"more{n}.csv": 7 for n in range(20)}
    events.write(files)
    events.run()
    events.write(more)
    events.run()
    both = files | more
    with Queries(events.brokers, events.shown_by) as queries:
        events.write({"007.csv": 9, "more2.csv": 1, "new.csv": 3})
        for name in ("003.csv", "011.csv"):
            (events.source / name).unlink()
        report = events.run()
        assert names(report) == ["007.csv", "more2.csv", "new.csv"]
        second = both | {"007.csv": 9, "more2.csv": 1, "new.csv": 3}
        for name in ("003.csv", "011.csv"):
            del second[name]
        assert [one.files for one in events.snapshot.packs] == [58, 20, 1]

        # A column that the kept rows do not have, and rows objects that are lost.
        events.add_column("region", "STRING")
        events.write({"008.csv": 6})
        assert names(events.run()) == ["008.csv"]
        third = second | {"008.csv": 6}
        assert [one.files for one in events.snapshot.packs] == [20, 1, 57, 1]  # read otherwise: its own pack

        for path in (events.folder / "staging" / f"{events.name}_OFFLINE" / "rows").iterdir():
            if "000.csv" in pq.read_table(path)["source_file"].to_pylist():
                path.unlink()
        events.write({"009.csv": 2, "more1.csv": 2})
        waits = events.run()
        fourth = third | {"more1.csv": 2}
        assert any("the changes of 1 file wait" in note for note in waits.notes)
        expected = [Counter(one) for one in (both, second, third, fourth)]
        assert queries.answers() == dict.fromkeys(events.brokers, expected)
    assert [error for error in queries.failed if "ServerSegmentMissing" not in str(error)] == []


@pytest.mark.parametrize("events", [(Celled, "sync")], indirect=True)
def test_brokers_skip_the_segments_of_other_partitions_and_days(events: Events) -> None:
    files = {f"{n:03}.csv": 60 + n for n in range(12)}
    events.write(files)
    events.run()
    first = events.snapshot
    assert len(first.packs) == len(first.segments) == 12
    one_cell = f"SELECT COUNT(*) FROM \"{events.name}\" WHERE v = 21 AND day = '2026-11-01' LIMIT 10"
    with Queries(events.brokers, events.shown_by) as queries:
        for broker in events.brokers:
            answer = events.answer(broker, one_cell)
            assert (answer.segments, answer.rows[0][0]) == (1, 12)  # row 3 of each file
        events.write({"004.csv": 10, "new.csv": 1})  # it leaves two cells, and the new one has one
        (events.source / "003.csv").unlink()
        report = events.run()
        assert names(report) == ["004.csv", "new.csv"]
        second = files | {"004.csv": 10, "new.csv": 1}
        del second["003.csv"]
        assert len(events.snapshot.packs) == 13, "packs that change are not merged with new ones"
        for broker in events.brokers:
            answer = events.answer(broker, one_cell)
            assert (answer.segments, answer.rows[0][0]) == (1, 11)
        assert (
            len(events.rollback().segments) == 12
        )  # published again: a revert opens a gap where brokers prune
        expected = [Counter(files), Counter(second), Counter(files)]
        assert queries.answers() == dict.fromkeys(events.brokers, expected)
    assert [error for error in queries.failed if "ServerSegmentMissing" not in str(error)] == []
