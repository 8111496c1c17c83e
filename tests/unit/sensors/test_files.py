"""The files sensor's ticks on files, with a ledger in memory: what Dagster gets to see and to do."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from fakes.tables import SYNC, write_table

from pinot_assets.assets.history import TICK_S, TableHistory
from pinot_assets.assets.keys import keys_of, partitions_name
from pinot_assets.assets.looks import table_health
from pinot_assets.assets.partition_events import PartitionEvents
from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import ListingFailed, PinotAssetsError, SessionError, SourceError
from pinot_assets.resources import PinotResource
from pinot_assets.scheduling.files_tick import FilesCursor
from pinot_assets.sensors import files
from pinot_assets.sensors.files import files_sensor
from pinot_assets.session.detect.listing import KeptParts
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.state import Pointer
from pinot_assets.source import ObjectStore, file_table, open_store
from pinot_assets.table_spec import TableSpec


class UnpublishedTable:
    """A table that was never published, and the cursor of its sensor."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.folder = folder
        self.instance = instance
        self.spec = write_table(folder, "t", dict(SYNC))
        self.seen = Observation(Pointer(), None, (), {}, None, None, NO_HOLD)
        self.standing = ""
        self.cursor: str | None = None
        self.recorded: list[dg.AssetCheckEvaluation] = []
        self._sensor: dg.SensorDefinition | None = None

    def write(self, *names: str) -> None:
        for name in names:
            path = self.folder / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)

    def sensor(self) -> dg.SensorDefinition:
        """That of the code location, which lives as long as the table spec stays as it is."""
        if self._sensor is None or self._spec is not self.spec:
            self._sensor, self._spec = files_sensor(self.spec), self.spec
        return self._sensor

    def tick(self) -> str:
        """What the tick says, after `launched` where it starts a run."""
        sensor = self.sensor()
        with dg.build_sensor_context(
            self.instance, cursor=self.cursor, resources={"pinot": PinotResource()}
        ) as context:
            result = sensor.evaluate_tick(context)
        self.cursor = result.cursor
        for event in result.asset_events:  # as the sensor daemon does
            assert isinstance(event, dg.AssetCheckEvaluation)
            self.instance.report_runless_asset_event(event)
            self.recorded.append(event)
        if result.run_requests:
            (request,) = result.run_requests
            return request.tags["pinot/tick"]
        return str(result.skip_message)

    @property
    def parts(self) -> list[Path]:
        return [*self.folder.rglob("listings/*.arrow")]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[UnpublishedTable]:
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PINOT_ZOOKEEPER", "127.0.0.1:9")
    with dg.DagsterInstance.ephemeral() as instance:
        table = UnpublishedTable(tmp_path, instance)
        monkeypatch.setattr(files, "open_session_store", lambda *_: nullcontext())
        monkeypatch.setattr(files, "observe", lambda *_: table.seen)
        monkeypatch.setattr(files, "published_token", lambda *_: table.standing)
        yield table


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick has time for one file."""
    monkeypatch.setattr(file_table, "_PAGE", 1)
    monkeypatch.setattr(files, "LISTING_S", 0)


def test_few_files_are_one_tick(table: UnpublishedTable) -> None:
    table.write("a.csv", "b.csv")
    assert table.tick() == "2 new, 0 rewritten, 0 deleted; launched"
    assert table.parts == []


def test_many_files_are_listed_over_ticks_and_launched_at_the_end(
    table: UnpublishedTable, slow: None
) -> None:
    table.write("a.csv", "b.csv")
    assert table.tick() == "listed 1 object so far, up to a.csv; the next tick continues"
    assert table.tick() == "listed 2 objects so far, up to b.csv; the next tick continues"
    assert TableHistory(table.instance, table.spec).observed() == {}, "half a listing is shown"
    assert len(table.parts) == 2
    assert table.tick() == "2 new, 0 rewritten, 0 deleted; launched"
    assert table.parts == []
    assert json.loads(str(table.cursor))["sweep"] is None


def test_what_was_launched_is_remembered_through_the_next_sweep(table: UnpublishedTable, slow: None) -> None:
    table.write("a.csv")
    while not table.tick().endswith("launched"):
        pass
    assert "so far" in table.tick()
    assert "launched before" in table.tick()


def test_a_ledger_that_cannot_be_read_costs_no_listing(
    table: UnpublishedTable, slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> Observation:
        raise SessionError("ZooKeeper is away")

    table.write("a.csv")
    table.tick()
    listed = FilesCursor.read(table.cursor or "").sweep
    assert listed is not None
    with monkeypatch.context() as patch:
        patch.setattr(files, "observe", away)
        assert table.tick() == "ZooKeeper is away"
    assert (FilesCursor.read(table.cursor or "").sweep, len(table.parts)) == (listed, 1)
    assert table.tick().endswith("launched")


def test_a_run_in_the_middle_pauses_the_sweep(table: UnpublishedTable, slow: None) -> None:
    table.write("a.csv")
    table.tick()
    cursor = table.cursor
    run = dg.DagsterRun(job_name="t_ingest", status=dg.DagsterRunStatus.STARTED, tags={"pinot/table": "t"})
    table.instance.add_run(run)
    assert table.tick().startswith("paused: run ")
    assert table.cursor == cursor
    table.instance.delete_run(run.run_id)
    assert table.tick().endswith("launched")


def test_parts_that_cannot_be_cleared_away_stop_nothing(
    table: UnpublishedTable, slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise SourceError("the staging area refuses")

    monkeypatch.setattr(KeptParts, "drop", refused)
    table.write("a.csv")
    table.tick()
    assert table.tick().endswith("launched")
    assert len(table.parts) == 1


class Mailbox:
    """A queue that a test fills."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.deleted: list[str] = []
        self.is_away = False

    def receive(self) -> tuple[str, ...]:
        if self.is_away:
            raise SourceError("the queue is away")
        taken, self.waiting = tuple(self.waiting), []
        return taken

    def delete(self, handles: Sequence[str]) -> None:
        if self.is_away:
            raise SourceError("the queue is away")
        self.deleted += handles


@pytest.fixture
def mailbox(table: UnpublishedTable, monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    mailbox = Mailbox()
    monkeypatch.setattr(files, "open_hints", lambda _: mailbox)
    return mailbox


NOTHING = "0 new, 0 rewritten, 0 deleted of 0 files listed"


def test_without_a_message_the_table_rests_between_sweeps(
    table: UnpublishedTable, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_800_000_000.0]
    monkeypatch.setattr(files.time, "time", lambda: clock[0])
    assert table.tick() == NOTHING
    clock[0] += 100
    assert table.tick() == "no message about changes, the next sweep is in 800 s"
    table.write("a.csv")  # whose message got lost
    assert "no message" in table.tick()
    clock[0] += 800
    assert table.tick().endswith("launched")
    clock[0] += 1
    assert "launched before" in table.tick(), "what was launched is looked after"


def test_a_message_wakes_a_sweep_and_is_deleted_at_its_end(
    table: UnpublishedTable, mailbox: Mailbox, slow: None
) -> None:
    assert table.tick() == NOTHING
    table.write("a.csv", "b.csv")
    mailbox.waiting = ["m1", "m2"]
    assert "so far" in table.tick()
    mailbox.waiting = ["m3"]
    assert "so far" in table.tick()
    assert mailbox.deleted == []
    assert table.tick().endswith("launched")
    assert mailbox.deleted == ["m1", "m2"]
    assert mailbox.waiting == ["m3"], "it may tell of what this sweep did not see"


def test_a_forged_message_costs_a_sweep_and_starts_nothing(table: UnpublishedTable, mailbox: Mailbox) -> None:
    assert table.tick() == NOTHING
    mailbox.waiting = ["forged"]
    assert table.tick() == NOTHING
    assert mailbox.deleted == ["forged"]


def test_a_sweep_that_failed_is_due_at_the_next_tick(
    table: UnpublishedTable, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> Observation:
        raise SessionError("ZooKeeper is away")

    assert table.tick() == NOTHING
    mailbox.waiting = ["m"]
    with monkeypatch.context() as patch:
        patch.setattr(files, "observe", away)
        assert table.tick() == "ZooKeeper is away"
    assert mailbox.deleted == []
    assert table.tick() == NOTHING, "not the wait for a message that was taken"


def test_a_queue_that_is_away_changes_nothing(table: UnpublishedTable, mailbox: Mailbox) -> None:
    assert table.tick() == NOTHING
    mailbox.is_away = True
    assert table.tick() == NOTHING
    table.write("a.csv")
    assert table.tick().endswith("launched")


def test_another_pattern_is_listed_at_once(table: UnpublishedTable, mailbox: Mailbox) -> None:
    assert table.tick() == NOTHING
    table.spec = write_table(table.folder, "t", {**SYNC, "includeFileNamePattern": "glob:**/*.csv"})
    assert table.tick() == NOTHING


def test_what_waits_for_its_time_is_looked_after(table: UnpublishedTable, mailbox: Mailbox) -> None:
    table.spec = write_table(table.folder, "t", {**SYNC, "minFileAgeSec": 3600})
    table.write("a.csv")
    for _ in range(2):
        assert "1 file is not ready" in table.tick()


@pytest.fixture
def looks(table: UnpublishedTable, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One for each time that listing and ledger were compared. The table is published, without a session."""
    found: list[object] = []
    take = PartitionEvents.take

    def counted(*arguments: Any) -> PartitionEvents:
        found.append(arguments)
        return take(*arguments)

    monkeypatch.setattr(PartitionEvents, "take", counted)
    table.standing = "snapshot 1"
    return found


def test_what_left_nothing_to_be_done_is_not_looked_at_again(
    table: UnpublishedTable, looks: list[object]
) -> None:
    assert table.tick() == table.tick() == table.tick() == NOTHING
    assert len(looks) == 1
    table.write("a.csv")
    assert table.tick().endswith("launched")
    assert "launched before" in table.tick()
    assert len(looks) == 3, "what is to be done is looked at at each tick"


@pytest.mark.parametrize("standing", ["snapshot 2", ""])
def test_another_ledger_or_an_open_session_is_looked_at(
    table: UnpublishedTable, looks: list[object], standing: str
) -> None:
    table.tick()
    table.standing = standing
    table.tick()
    assert len(looks) == 2


def test_another_spec_is_looked_at(table: UnpublishedTable, looks: list[object]) -> None:
    table.tick()
    table.spec = write_table(table.folder, "t", {**SYNC, "partitionGroup": "hash:4"})
    table.tick()
    assert len(looks) == 2


def test_what_is_settled_is_looked_at_once_an_hour(
    table: UnpublishedTable, looks: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_800_000_000.0]
    monkeypatch.setattr(files.time, "time", lambda: clock[0])
    for _ in range(5):
        table.tick()
        clock[0] += 1200
    assert len(looks) == 2


def test_what_dagster_was_not_told_to_the_end_is_looked_at_again(
    table: UnpublishedTable, looks: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(TableHistory, "report", lambda *_: False)
        table.tick()
    table.tick()
    table.tick()
    assert len(looks) == 2


def test_partitions_that_are_not_yet_deleted_are_no_matter_of_an_hour(
    table: UnpublishedTable, looks: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten thousand files that have gone a tick deletes as many as it has time for."""
    table.instance.add_dynamic_partitions(partitions_name(table.spec), ["x", "y", "z"])
    monkeypatch.setattr(files, "TICK_S", 0)
    for _ in range(5):
        assert table.tick() == NOTHING
    assert not {"x", "y", "z"} & TableHistory(table.instance, table.spec).partitions()
    assert len(looks) == 3, "once all are deleted, the table is settled"


def test_a_run_that_comes_up_during_the_look_is_not_doubled(
    table: UnpublishedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look takes up to a minute, and the schedule does not wait for it."""
    run = dg.DagsterRun(job_name="t_ingest", status=dg.DagsterRunStatus.STARTED, tags={"pinot/table": "t"})

    def comes_up(*_: object) -> Observation:
        table.instance.add_run(run)
        return table.seen

    table.write("a.csv")
    with monkeypatch.context() as patch:
        patch.setattr(files, "observe", comes_up)
        assert table.tick() == f"paused: run {run.run_id} of t has started meanwhile"
    table.instance.delete_run(run.run_id)
    assert table.tick() == "1 new, 0 rewritten, 0 deleted; launched", "it was not launched before"


def test_a_settled_sweep_over_ticks_clears_its_parts_away(
    table: UnpublishedTable, looks: list[object], slow: None
) -> None:
    table.write("a.csv")
    table.spec = write_table(table.folder, "t", {**SYNC, "includeFileNamePattern": "glob:**/*.json"})
    for _ in range(4):
        assert "so far" in table.tick()
        assert table.tick().startswith("0 new")
        assert table.parts == []
    assert len(looks) == 1


def test_a_cursor_of_a_newer_release_is_left_to_it(table: UnpublishedTable) -> None:
    """This release would begin anew, and forget what was launched."""
    table.write("a.csv")
    newer = json.dumps({"launched": "d", "format": 9, "needs": "7.5.0"})
    table.cursor = newer
    assert table.tick().startswith("the cursor of the files sensor is of format 9")
    assert table.cursor == newer
    table.cursor = json.dumps({"colour": "blue"})
    table.tick()
    assert json.loads(str(table.cursor))["colour"] == "blue"


# --- a table that cannot be looked at -----------------------------------------------------------------


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = NOON

    def later(self, minutes: float) -> None:
        self.now += 60 * minutes


NOON = 1_800_000_000.0 - 1_800_000_000 % 86_400 + 12 * 3600
SINCE = "since 2027-01-15 12:00:00 UTC"
LOST = "Listing the source did not complete: it is gone"
TOLD = f"{LOST}; for {{}}, {SINCE}\n  → bring it back"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(files.time, "time", lambda: clock.now)
    monkeypatch.setattr(files.time, "time_ns", lambda: int(clock.now * 1e9))
    return clock


class Source:
    """The input directory, which can be lost."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trouble: PinotAssetsError | None = None
        self._open = files.open_source
        monkeypatch.setattr(files, "open_source", self.opened)

    def lose(self) -> None:
        self.trouble = ListingFailed(
            "Listing the source did not complete", why="it is gone", hint="bring it back"
        )

    def opened(self, spec: TableSpec) -> ObjectStore:
        if self.trouble is not None:
            raise self.trouble
        return self._open(spec)


@pytest.fixture
def source(table: UnpublishedTable, monkeypatch: pytest.MonkeyPatch) -> Source:
    return Source(monkeypatch)


def newest(table: UnpublishedTable) -> tuple[bool, str, str]:
    """The newest evaluation in Dagster: passed, severity, description."""
    (record,) = table.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(keys_of(table.spec).table, "snapshot_equals_source"), limit=1
    )
    evaluation = record.evaluation
    assert evaluation is not None
    return evaluation.passed, evaluation.severity.value, evaluation.description or ""


def test_the_tick_says_for_how_long_the_source_cannot_be_listed(
    table: UnpublishedTable, clock: Clock, source: Source
) -> None:
    source.lose()
    assert table.tick() == f"{LOST}\n  → bring it back"
    clock.later(0.5)
    assert table.tick() == TOLD.format("30 s")
    clock.later(30)
    assert table.tick() == TOLD.format("30 min")
    clock.later(42)
    assert table.tick() == TOLD.format("1.2 h")


def test_a_look_that_succeeds_ends_the_row(table: UnpublishedTable, clock: Clock, source: Source) -> None:
    source.lose()
    table.tick()
    clock.later(50)
    source.trouble = None
    assert table.tick() == NOTHING
    source.lose()
    clock.later(50)
    assert table.tick() == f"{LOST}\n  → bring it back"
    assert table.recorded == []


def test_after_an_hour_the_table_is_red_and_is_recorded_every_quarter_of_an_hour(
    table: UnpublishedTable, clock: Clock, source: Source
) -> None:
    source.lose()
    recorded_at: list[float] = []
    for tick in range(2 * 100):
        before = len(table.recorded)
        table.tick()
        if len(table.recorded) > before:
            recorded_at.append(tick / 2)
        clock.later(0.5)
    assert recorded_at == [60, 75, 90]
    passed, severity, description = newest(table)
    assert (passed, severity) == (False, "ERROR")
    assert description == (
        f"not known: {LOST}; for 1.5 h, {SINCE}\n"
        "→ remove the cause (bring it back); sensors and `watch` then look again"
    )
    (evaluation, *_) = table.recorded
    assert (evaluation.asset_key, evaluation.check_name) == (
        keys_of(table.spec).table,
        "snapshot_equals_source",
    )
    assert not evaluation.blocking
    assert set(evaluation.metadata) == {"next_step", "not_known_since"}
    assert evaluation.metadata["not_known_since"].value == NOON


def test_the_check_that_is_recorded_is_one_of_the_table(
    table: UnpublishedTable, clock: Clock, source: Source
) -> None:
    source.lose()
    table.tick()
    clock.later(60)
    table.tick()
    (evaluation,) = table.recorded
    assert evaluation.asset_check_key in table_health(table.spec).check_keys


def test_the_red_ends_when_the_table_can_be_looked_at_again(
    table: UnpublishedTable, clock: Clock, source: Source
) -> None:
    source.lose()
    table.tick()
    clock.later(72)
    table.tick()
    clock.later(18)
    source.trouble = None
    table.write("a.csv")
    assert table.tick().endswith("launched")
    assert newest(table) == (
        True,
        "WARN",
        "the table could be read again at 2027-01-15 13:30:00 UTC, after 1.5 h: "
        "1 new, 0 rewritten, 0 deleted; launched",
    )
    recorded = len(table.recorded)
    for _ in range(3):
        clock.later(30)
        table.tick()
    assert len(table.recorded) == recorded == 2


def test_a_look_of_the_health_sensor_is_not_written_over(
    table: UnpublishedTable, clock: Clock, source: Source
) -> None:
    """It came after the source was back, and knows more than that."""
    source.lose()
    table.tick()
    clock.later(60)
    table.tick()
    found = dg.AssetCheckEvaluation(
        asset_key=keys_of(table.spec).table,
        check_name="snapshot_equals_source",
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        description="3 missing",
    )
    table.instance.report_runless_asset_event(found)
    source.trouble = None
    table.tick()
    assert newest(table) == (False, "WARN", "3 missing")


def test_a_stretch_of_a_long_listing_ends_the_red(
    table: UnpublishedTable, clock: Clock, source: Source, slow: None
) -> None:
    table.write("a.csv")
    source.lose()
    table.tick()
    clock.later(60)
    table.tick()
    source.trouble = None
    assert "so far" in table.tick()
    assert newest(table)[0]
    assert FilesCursor.read(table.cursor or "").failing_s == 0


def test_what_is_settled_ends_the_red(
    table: UnpublishedTable, clock: Clock, source: Source, looks: list[object]
) -> None:
    table.tick()
    source.lose()
    clock.later(-61)
    table.tick()
    clock.later(60)
    table.tick()
    assert not newest(table)[0]
    source.trouble = None
    clock.later(1)
    assert table.tick() == NOTHING
    assert newest(table)[0]
    assert len(looks) == 1
    assert FilesCursor.read(table.cursor or "").failing_s == 0


@pytest.mark.parametrize("away", ["observe", "published_token", "open_session_store", "open_staging"])
def test_zookeeper_and_the_staging_area_count_as_the_source_does(
    table: UnpublishedTable, clock: Clock, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    def raises(*_: object) -> None:
        raise SessionError(f"no answer to {away}")

    with monkeypatch.context() as patch:
        patch.setattr(files, away, raises)
        table.tick()
        clock.later(72)
        assert table.tick() == f"no answer to {away}; for 1.2 h, {SINCE}"
        assert newest(table)[:2] == (False, "ERROR")
    assert table.tick() == NOTHING
    assert newest(table)[0]


def test_a_table_that_rests_between_sweeps_does_so_again_after_trouble(
    table: UnpublishedTable, clock: Clock, source: Source, mailbox: Mailbox, looks: list[object]
) -> None:
    assert table.tick() == NOTHING
    clock.later(15)
    source.lose()
    table.tick()
    clock.later(0.5)
    assert table.tick() == f"{LOST}; for 30 s, since 2027-01-15 12:15:00 UTC\n  → bring it back"
    source.trouble = None
    assert table.tick() == NOTHING
    clock.later(1)
    assert table.tick() == "no message about changes, the next sweep is in 840 s"


def test_messages_that_wake_a_sweep_do_not_make_trouble_younger(
    table: UnpublishedTable, clock: Clock, source: Source, mailbox: Mailbox
) -> None:
    source.lose()
    table.tick()
    clock.later(60)
    mailbox.waiting = ["m"]
    assert table.tick() == TOLD.format("1.0 h")
    assert newest(table)[:2] == (False, "ERROR")


def test_a_run_under_way_neither_counts_nor_ends_the_row(
    table: UnpublishedTable, clock: Clock, source: Source
) -> None:
    source.lose()
    table.tick()
    cursor = table.cursor
    run = dg.DagsterRun(job_name="t_ingest", status=dg.DagsterRunStatus.STARTED, tags={"pinot/table": "t"})
    table.instance.add_run(run)
    clock.later(30)
    assert table.tick().startswith("paused: run ")
    assert table.cursor == cursor


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a store that takes every connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_store_that_is_silent_is_told_while_the_tick_still_counts(
    table: UnpublishedTable, clock: Clock, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client waits for a minute, and so does Dagster for the tick, of which nothing is kept then."""
    assert files.LOOK_S + TICK_S < 60
    monkeypatch.setattr(files, "LOOK_S", 0.5)
    monkeypatch.setattr(files, "LISTING_S", -4.5)
    monkeypatch.setenv("TABLE_KEY", "k")
    keys = {"accessKey": "${TABLE_KEY}", "secretKey": "${TABLE_KEY}"}
    opened = open_store("s3://bucket/x", {"endpoint": silent, **keys}, UNLIMITED)
    monkeypatch.setattr(files, "open_source", lambda _: opened)
    first = table.tick()
    assert first.startswith("t cannot be checked: the source file:///")
    assert "or the staging area, does not answer (not within " in first
    clock.later(72)
    second = table.tick()
    assert f"does not answer (an earlier call still waits for it); for 1.2 h, {SINCE}" in second
    assert newest(table)[:2] == (False, "ERROR")
    assert sum(thread.name == "waited for" for thread in threading.enumerate()) == 1
