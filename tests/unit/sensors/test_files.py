"""The files sensor's ticks on files, with a ledger in memory: what Dagster gets to see and to do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from fakes.tables import SYNC, write_table

from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.picture import Picture
from pinot_assets.assets.table import table_assets
from pinot_assets.errors import SessionError, SourceError
from pinot_assets.resources import PinotResource
from pinot_assets.sensors import files, files_sensor
from pinot_assets.session.kept_parts import KeptParts
from pinot_assets.session.model import Pointer
from pinot_assets.session.observe import Observation
from pinot_assets.session.plan import NO_HOLD
from pinot_assets.source import listed_files


class Table:
    """A table that was never published, and the cursor of its sensor."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.folder = folder
        self.instance = instance
        self.spec = write_table(folder, "t", dict(SYNC))
        self.seen = Observation(Pointer(), None, (), {}, None, None, NO_HOLD)
        self.standing = ""
        self.cursor: str | None = None

    def write(self, *names: str) -> None:
        for name in names:
            path = self.folder / "source" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)

    def tick(self) -> str:
        """What the tick says, after `launched` where it starts a run."""
        sensor = files_sensor(table_assets(self.spec))
        with dg.build_sensor_context(
            self.instance, cursor=self.cursor, resources={"pinot": PinotResource()}
        ) as context:
            result = sensor(context)
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor
        if result.run_requests:
            (request,) = result.run_requests
            return request.tags["pinot/tick"]
        assert isinstance(result.skip_reason, dg.SkipReason)
        return str(result.skip_reason.skip_message)

    @property
    def parts(self) -> list[Path]:
        return [*self.folder.rglob("listings/*.arrow")]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    monkeypatch.setenv("PINOT_CONTROLLER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PINOT_ZOOKEEPER", "127.0.0.1:9")
    with dg.DagsterInstance.ephemeral() as instance:
        table = Table(tmp_path, instance)
        monkeypatch.setattr(files, "open_session_store", lambda *_: nullcontext())
        monkeypatch.setattr(files, "observe", lambda *_: table.seen)
        monkeypatch.setattr(files, "standing", lambda *_: table.standing)
        yield table


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick has time for one file."""
    monkeypatch.setattr(listed_files, "_PAGE", 1)
    monkeypatch.setattr(files, "LISTING_S", 0)


def test_few_files_are_one_tick(table: Table) -> None:
    table.write("a.csv", "b.csv")
    assert table.tick() == "2 new, 0 rewritten, 0 deleted; launched"
    assert table.parts == []


def test_many_files_are_listed_over_ticks_and_launched_at_the_end(table: Table, slow: None) -> None:
    table.write("a.csv", "b.csv")
    assert table.tick() == "listed 1 object so far, up to a.csv; goes on at the next tick"
    assert table.tick() == "listed 2 objects so far, up to b.csv; goes on at the next tick"
    assert TableHistory(table.instance, table.spec).observed() == {}, "half a listing is shown"
    assert len(table.parts) == 2
    assert table.tick() == "2 new, 0 rewritten, 0 deleted; launched"
    assert table.parts == []
    assert json.loads(str(table.cursor))["sweep"] is None


def test_what_was_launched_is_remembered_through_the_next_sweep(table: Table, slow: None) -> None:
    table.write("a.csv")
    while not table.tick().endswith("launched"):
        pass
    assert "so far" in table.tick()
    assert "launched before" in table.tick()


def test_a_ledger_that_cannot_be_read_costs_no_listing(
    table: Table, slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> Observation:
        raise SessionError("ZooKeeper is away")

    table.write("a.csv")
    table.tick()
    cursor = table.cursor
    with monkeypatch.context() as patch:
        patch.setattr(files, "observe", away)
        assert table.tick() == "ZooKeeper is away"
    assert (table.cursor, len(table.parts)) == (cursor, 1)
    assert table.tick().endswith("launched")


def test_a_run_in_the_middle_pauses_the_sweep(table: Table, slow: None) -> None:
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
    table: Table, slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise SourceError("the staging area refuses")

    monkeypatch.setattr(KeptParts, "drop", refused)
    table.write("a.csv")
    table.tick()
    assert table.tick().endswith("launched")
    assert len(table.parts) == 1


class Mailbox:
    """`Hints` that a test fills."""

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
def mailbox(table: Table, monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    mailbox = Mailbox()
    monkeypatch.setattr(files, "open_hints", lambda _: mailbox)
    return mailbox


NOTHING = "0 new, 0 rewritten, 0 deleted of 0 files listed"


def test_without_a_message_the_table_rests_between_sweeps(
    table: Table, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_800_000_000.0]
    monkeypatch.setattr(files.time, "time", lambda: clock[0])
    assert table.tick() == NOTHING
    clock[0] += 100
    assert table.tick() == "no message of changes, the next sweep is in 800 s"
    table.write("a.csv")  # whose message got lost
    assert "no message" in table.tick()
    clock[0] += 800
    assert table.tick().endswith("launched")
    clock[0] += 1
    assert "launched before" in table.tick(), "what was launched is looked after"


def test_a_message_wakes_a_sweep_and_is_deleted_at_its_end(
    table: Table, mailbox: Mailbox, slow: None
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


def test_a_forged_message_costs_a_sweep_and_starts_nothing(table: Table, mailbox: Mailbox) -> None:
    assert table.tick() == NOTHING
    mailbox.waiting = ["forged"]
    assert table.tick() == NOTHING
    assert mailbox.deleted == ["forged"]


def test_a_sweep_that_failed_is_due_at_the_next_tick(
    table: Table, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
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


def test_a_queue_that_is_away_changes_nothing(table: Table, mailbox: Mailbox) -> None:
    assert table.tick() == NOTHING
    mailbox.is_away = True
    assert table.tick() == NOTHING
    table.write("a.csv")
    assert table.tick().endswith("launched")


def test_another_pattern_is_listed_at_once(table: Table, mailbox: Mailbox) -> None:
    assert table.tick() == NOTHING
    table.spec = write_table(table.folder, "t", {**SYNC, "includeFileNamePattern": "glob:**/*.csv"})
    assert table.tick() == NOTHING


def test_what_waits_for_its_time_is_looked_after(table: Table, mailbox: Mailbox) -> None:
    table.spec = write_table(table.folder, "t", {**SYNC, "minFileAgeSec": 3600})
    table.write("a.csv")
    for _ in range(2):
        assert "1 file is not ready" in table.tick()


@pytest.fixture
def looks(table: Table, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One for each time that listing and ledger were compared. The table is published, without a session."""
    found: list[object] = []
    take = Picture.take

    def counted(*arguments: Any) -> Picture:
        found.append(arguments)
        return take(*arguments)

    monkeypatch.setattr(Picture, "take", counted)
    table.standing = "snapshot 1"
    return found


def test_what_left_nothing_to_be_done_is_not_looked_at_again(table: Table, looks: list[object]) -> None:
    assert table.tick() == table.tick() == table.tick() == NOTHING
    assert len(looks) == 1
    table.write("a.csv")
    assert table.tick().endswith("launched")
    assert "launched before" in table.tick()
    assert len(looks) == 3, "what is to be done is looked at at each tick"


@pytest.mark.parametrize("standing", ["snapshot 2", ""])
def test_another_ledger_or_an_open_session_is_looked_at(
    table: Table, looks: list[object], standing: str
) -> None:
    table.tick()
    table.standing = standing
    table.tick()
    assert len(looks) == 2


def test_another_spec_is_looked_at(table: Table, looks: list[object]) -> None:
    table.tick()
    table.spec = write_table(table.folder, "t", {**SYNC, "partitionGroup": "hash:4"})
    table.tick()
    assert len(looks) == 2


def test_what_is_settled_is_looked_at_once_an_hour(
    table: Table, looks: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_800_000_000.0]
    monkeypatch.setattr(files.time, "time", lambda: clock[0])
    for _ in range(5):
        table.tick()
        clock[0] += 1200
    assert len(looks) == 2


def test_what_dagster_was_not_told_to_the_end_is_looked_at_again(
    table: Table, looks: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(TableHistory, "report", lambda *_: False)
        table.tick()
    table.tick()
    table.tick()
    assert len(looks) == 2


def test_a_settled_sweep_over_ticks_clears_its_parts_away(
    table: Table, looks: list[object], slow: None
) -> None:
    table.write("a.csv")
    table.spec = write_table(table.folder, "t", {**SYNC, "includeFileNamePattern": "glob:**/*.json"})
    for _ in range(4):
        assert "so far" in table.tick()
        assert table.tick().startswith("0 new")
        assert table.parts == []
    assert len(looks) == 1


def test_a_cursor_of_a_newer_release_is_left_to_it(table: Table) -> None:
    """This release would begin anew, and forget what was launched."""
    table.write("a.csv")
    newer = json.dumps({"launched": "d", "format": 9, "needs": "7.5.0"})
    table.cursor = newer
    assert table.tick().startswith("the cursor of the files sensor is of format 9")
    assert table.cursor == newer
    table.cursor = json.dumps({"colour": "blue"})
    table.tick()
    assert json.loads(str(table.cursor))["colour"] == "blue"
