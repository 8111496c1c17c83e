"""Which table a job of the location acts on, and that it acts beside no other run of it."""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.tags import BACKFILL_ID_TAG, PARTITION_NAME_TAG
from fakes.realtime.specs import write_realtime_table
from fakes.tables import write_table

from pinot_assets.assets.keys import TABLE_TAG
from pinot_assets.assets.location_jobs import TableChoice, claim, location_job, run_config, writing_job
from pinot_assets.table_spec import AnyTableSpec, label_of


class Location:
    """Two OFFLINE tables and a REALTIME one; a job that writes, and one that only reads."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.acted: list[str] = []
        specs: list[AnyTableSpec] = [write_table(folder, name) for name in ("flights", "trains")]
        tables = self.tables = TableChoice([*specs, write_realtime_table(folder)])

        def write(context: dg.OpExecutionContext) -> Iterator[dg.AssetObservation]:
            spec = tables.chosen(context)
            claim(context, spec)
            self.acted.append(label_of(spec))
            yield from ()

        def read(context: dg.OpExecutionContext) -> Iterator[dg.AssetObservation]:
            self.acted.append(label_of(tables.chosen(context)))
            yield from ()

        self.writing = writing_job(
            "mend", "Mends.", tables, write, {"hard": dg.Field(bool, default_value=False)}
        )
        self.reading = location_job("look", "Looks.", tables, read)

    def run(self, job: dg.JobDefinition, table: str = "", **tags: str) -> str:
        """The table that the run acted on, or what its error says."""
        config = run_config(job.name.removeprefix("pinot_"), table)
        named = {name.replace("__", "/"): value for name, value in tags.items()}
        before = len(self.acted)
        result = job.execute_in_process(
            run_config=config, instance=self.instance, tags=named, raise_on_error=False
        )
        if result.success:
            (acted,) = self.acted[before:]
            return acted
        (failure,) = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
        assert failure is not None
        assert failure.cause is not None
        return failure.cause.message

    def under_way(self, table: str, status: dg.DagsterRunStatus) -> dg.DagsterRun:
        run = dg.DagsterRun(f"{table}_ingest", tags={TABLE_TAG: table}, status=status)
        return self.instance.add_run(run)


@pytest.fixture
def location(tmp_path: Path) -> Iterator[Location]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Location(tmp_path, instance)


def test_the_launchpad_offers_the_tables_as_partitions(location: Location) -> None:
    job = location.writing
    assert job.partitions_def is not None
    assert job.partitions_def.get_partition_keys() == ["clicks_REALTIME", "flights", "trains"]
    assert job.partitioned_config is not None
    assert job.partitioned_config.get_tags_for_partition_key("flights")[TABLE_TAG] == "flights"
    config = job.partitioned_config.get_run_config_for_partition_key("flights")
    assert config == {"ops": {"pinot_mend_op": {"config": {"table": "flights"}}}}


def test_a_job_that_reads_holds_up_nobody(location: Location) -> None:
    config = location.reading.partitioned_config
    assert config is not None
    assert TABLE_TAG not in config.get_tags_for_partition_key("flights")
    location.under_way("flights", dg.DagsterRunStatus.STARTED)
    assert location.run(location.reading, "flights") == "flights"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("flights", "flights"),
        ("flights_OFFLINE", "flights"),
        ("clicks", "clicks_REALTIME"),
        ("clicks_REALTIME", "clicks_REALTIME"),
    ],
)
def test_a_table_is_named_as_commands_name_it(location: Location, name: str, label: str) -> None:
    assert location.run(location.writing, name) == label


def test_the_partition_is_enough(location: Location) -> None:
    assert location.run(location.writing, **{PARTITION_NAME_TAG.replace("/", "__"): "trains"}) == "trains"


@pytest.mark.parametrize(
    ("table", "partition", "words"),
    [
        ("", "", ("without a table", "choose a partition")),
        ("fligths", "", ("fligths is not a table of this job", "did you mean flights?")),
        ("nowhere", "", ("the job knows clicks_REALTIME, flights, trains",)),
        ("flights", "trains", ("was launched for flights and trains",)),
    ],
)
def test_a_launch_without_one_table_is_refused(
    location: Location, table: str, partition: str, words: tuple[str, ...]
) -> None:
    tags = {PARTITION_NAME_TAG.replace("/", "__"): partition} if partition else {}
    said = location.run(location.writing, table, **tags)
    assert all(word in said for word in words), said
    assert location.acted == []


def test_a_run_that_was_launched_without_the_tag_gets_it(location: Location) -> None:
    assert location.run(location.writing, "flights") == "flights"
    (run,) = location.instance.get_runs()
    assert run.tags[TABLE_TAG] == "flights"


def test_a_run_that_did_not_wait_for_another_one_is_refused(location: Location) -> None:
    other = location.under_way("flights", dg.DagsterRunStatus.STARTED)
    said = location.run(location.writing, "flights")
    assert "another run works on flights" in said
    assert other.run_id in said
    assert "with the partition flights" in said
    assert location.run(location.writing, "trains") == "trains"


def test_a_run_in_the_queue_waits_for_this_one(location: Location) -> None:
    location.under_way("flights", dg.DagsterRunStatus.NOT_STARTED)
    assert location.run(location.writing, "flights") == "flights"


def test_a_backfill_of_all_tables_changes_none(location: Location) -> None:
    said = location.run(location.writing, "flights", **{BACKFILL_ID_TAG.replace("/", "__"): "all"})
    assert "does not act on flights in a backfill" in said
    assert location.acted == []
