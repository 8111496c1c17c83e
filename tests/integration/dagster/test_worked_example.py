"""StarTree's worked example, scene by scene: a schedule every four hours, three retries, files F1 to F6.

Its ticks are Dagster's own, and what a tick asks for is run for real; a load of queries at both brokers sees
nothing in all that time but the table as it was before a switch and as it is after one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._utils.schedules import schedule_execution_time_iterator
from fakes.locations.code_location import (
    QUIET,
    LocationTable,
    failures,
    materializations,
    said,
    staged_and_published,
    values,
)
from fakes.tables import SYNC, write_table

from demos.load import QueryLoad, answer
from pinot_assets.assets.keys import SESSION_TAG
from pinot_assets.assets.runs import WHY_TAG
from pinot_assets.session.values.state import State

pytestmark = pytest.mark.integration

EVERY_FOUR_HOURS = {**SYNC, "consistentPushMaxRetries": "3", "schedule": "0 0 0/4 * * ?"}
MORNING = dt.datetime(2026, 11, 21, 8, tzinfo=dt.UTC)


class Day:
    """A table whose schedule is on, from 08:00, and the queries that it answers meanwhile."""

    def __init__(self, table: LocationTable, load: QueryLoad) -> None:
        self.table = table
        self.load = load
        self.served: tuple[str, ...] = ()
        self._ticks = schedule_execution_time_iterator(
            MORNING.timestamp(), self._schedule.cron_schedule, "UTC", ascending=True
        )

    @property
    def _schedule(self) -> dg.ScheduleDefinition:
        return self.table.definitions.resolve_schedule_def(f"{self.table.name}_schedule")

    def tick(self, time: str) -> dg.ExecuteInProcessResult:
        """The next tick of the schedule, which must fall due at `time`, and the run that it asks for."""
        due = next(self._ticks)
        assert f"{due:%H:%M}" == time
        with dg.build_schedule_context(self.table.instance, due) as context:
            (request,) = self._schedule.evaluate_tick(context).run_requests
        assert request.tags[WHY_TAG] == "schedule 0 0 0/4 * * ?"
        return self.table.definitions.resolve_job_def(f"{self.table.name}_ingest").execute_in_process(
            instance=self.table.instance,
            raise_on_error=False,
            run_config=QUIET,
            partition_key=request.partition_key,
            tags=request.tags,
        )

    def expect(self, *rows: str) -> None:
        """From now on queries may see, beside what they see now, these rows and no others."""
        allowed = [self.served, rows]
        self.load.phase(str(rows), [answer((v, 1) for v in sorted(state)) for state in allowed])
        self.served = rows

    def must_show(self, *rows: str) -> None:
        """What queries at both brokers see now."""
        assert self.table.shown() == sorted(rows)
        self.served = rows

    def remove(self, name: str) -> None:
        (self.table.folder / "source" / f"{name}.csv").unlink()

    def retry(self, result: dg.ExecuteInProcessResult, first: dg.ExecuteInProcessResult) -> None:
        """The run went on with the session of the first one, as its first retry, and published it."""
        assert result.success, [said(event) for event in failures(result)]
        assert self.session(result) == self.session(first)
        (snapshot,) = materializations(result, "snapshot")
        assert values(snapshot.metadata)["retry_count"] == 1
        assert values(snapshot.metadata)["session"] == self.session(result)
        assert self.table.observe().session is None, "the session is not closed"

    def session(self, result: dg.ExecuteInProcessResult) -> str:
        run = self.table.instance.get_run_by_id(result.run_id)
        assert run is not None
        return run.tags[SESSION_TAG]


def built(result: dg.ExecuteInProcessResult) -> set[str]:
    """Files that were read in this run."""
    staged, _ = staged_and_published(result)
    return {key.removesuffix(".csv") for key in staged}


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """With its database in files: a schedule's context opens it anew."""
    overrides = {"telemetry": {"enabled": False}}
    with dg.DagsterInstance.local_temp(str(tmp_path), overrides=overrides) as instance:
        yield instance


@pytest.fixture
def day(table: LocationTable) -> Iterator[Day]:
    """At 08:00 P and Q are published; by noon Q has gone from the source, and F1 to F5 have come."""
    table.spec = write_table(table.folder, table.name, EVERY_FOUR_HOURS)
    sql = f'SELECT v, COUNT(*) FROM "{table.name}" GROUP BY v ORDER BY v LIMIT 100'
    with QueryLoad(table.pinot.brokers(table.name), sql, threads=2, pause_s=0.05) as load:
        day = Day(table, load)
        table.write(P="P", Q="Q")
        assert day.tick("08:00").success
        day.must_show("P", "Q")
        day.remove("Q")
        table.write(F1="F1", F2="F2")
        for name in ("F3", "F4", "F5"):
            table.corrupt(name)
        day.expect("P", "Q")
        yield day
    report = load.report()
    assert (report.mixed, report.errors) == (0, 0), report
    assert report.queries > 0


@pytest.fixture
def noon(day: Day) -> dg.ExecuteInProcessResult:
    """12:00, FIT_1: F1 and F2 are built, F3, F4 and F5 fail."""
    return day.tick("12:00")


def test_scene_1_nothing_of_a_failed_ingestion_is_queryable(
    day: Day, noon: dg.ExecuteInProcessResult
) -> None:
    assert not noon.success
    assert built(noon) == {"F1", "F2"}
    gate = day.table.evaluation(noon)
    assert not gate.passed
    assert gate.description is not None
    assert gate.description.startswith("2 of 5 files are built: ")
    assert materializations(noon, "snapshot") == []
    day.must_show("P", "Q")
    # Not even hidden: Pinot hears of a session only when all of its files are built.
    segments = day.table.pinot.all_segments(day.table.name)
    assert not [name for name in segments if day.session(noon) in name]
    session = day.table.observe().session
    assert session is not None
    assert (session.state, session.retry_count) == (State.IN_PROGRESS, 0)
    _no_sensor_spends_a_retry(day.table, session.id)


def _no_sensor_spends_a_retry(table: LocationTable, session: str) -> None:
    """Until the next tick of the schedule (seed: retries do not auto-trigger), but for `sensorRetries`."""
    failed = (
        f"{session} failed with 3 files and waits for the schedule or a run by hand (sensorRetries is off)"
    )
    asks = f"{session} waits for 3 failed files to change"
    asked = {**EVERY_FOUR_HOURS, "sensorRetries": "true"}
    assert table.tick().skip_message == f"{failed}; 5 new, 0 rewritten, 1 deleted"

    table.write(F1="F1.1", F6="F6")  # neither of them failed
    assert table.tick().skip_message == f"{failed}; 6 new, 0 rewritten, 1 deleted"
    table.spec = write_table(table.folder, table.name, asked)
    assert table.tick().skip_message == f"{asks}; 6 new, 0 rewritten, 1 deleted"

    table.write(F3="F3")
    (request,) = table.tick().run_requests
    assert request.tags[WHY_TAG] == "6 new, 0 rewritten, 1 deleted; launched"
    table.spec = write_table(table.folder, table.name, EVERY_FOUR_HOURS)
    assert table.tick().skip_message == f"{failed}; 6 new, 0 rewritten, 1 deleted"


def test_scene_2_a_new_file_joins_the_retry(day: Day, noon: dg.ExecuteInProcessResult) -> None:
    day.table.write(F3="F3", F4="F4", F5="F5", F6="F6")
    day.expect("P", "F1", "F2", "F3", "F4", "F5", "F6")
    retry = day.tick("16:00")
    day.retry(retry, noon)
    assert built(retry) == {"F3", "F4", "F5", "F6"}
    day.must_show("P", "F1", "F2", "F3", "F4", "F5", "F6")


def test_scene_3_a_failed_file_is_read_in_its_new_version(day: Day, noon: dg.ExecuteInProcessResult) -> None:
    day.table.write(F3="F3.1", F4="F4", F5="F5")
    day.expect("P", "F1", "F2", "F3.1", "F4", "F5")
    retry = day.tick("16:00")
    day.retry(retry, noon)
    assert built(retry) == {"F3", "F4", "F5"}
    day.must_show("P", "F1", "F2", "F3.1", "F4", "F5")


def test_scene_4_a_built_file_stays_in_its_old_version_until_the_next_session(
    day: Day, noon: dg.ExecuteInProcessResult
) -> None:
    day.table.write(F1="F1.1", F3="F3", F4="F4", F5="F5")
    day.expect("P", "F1", "F2", "F3", "F4", "F5")
    retry = day.tick("16:00")
    day.retry(retry, noon)
    assert built(retry) == {"F3", "F4", "F5"}
    day.must_show("P", "F1", "F2", "F3", "F4", "F5")

    day.expect("P", "F1.1", "F2", "F3", "F4", "F5")
    evening = day.tick("20:00")
    assert evening.success
    assert day.session(evening) != day.session(noon)
    assert built(evening) == {"F1"}
    (snapshot,) = materializations(evening, "snapshot")
    assert values(snapshot.metadata)["retry_count"] == 0
    day.must_show("P", "F1.1", "F2", "F3", "F4", "F5")


def test_scene_5_a_built_file_that_is_deleted_leaves_the_session(
    day: Day, noon: dg.ExecuteInProcessResult
) -> None:
    day.remove("F1")
    day.table.write(F3="F3", F4="F4", F5="F5")
    day.expect("P", "F2", "F3", "F4", "F5")
    retry = day.tick("16:00")
    day.retry(retry, noon)
    assert built(retry) == {"F3", "F4", "F5"}
    day.must_show("P", "F2", "F3", "F4", "F5")


def test_scene_6_a_failed_file_that_is_deleted_is_forgotten(
    day: Day, noon: dg.ExecuteInProcessResult
) -> None:
    day.remove("F3")
    day.table.write(F4="F4", F5="F5")
    day.expect("P", "F1", "F2", "F4", "F5")
    retry = day.tick("16:00")
    day.retry(retry, noon)
    assert built(retry) == {"F4", "F5"}
    day.must_show("P", "F1", "F2", "F4", "F5")
