"""Jobs that want the table's name once more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest
from fakes.realtime.memory import S1, S2, FakeRealtime
from fakes.realtime.specs import write_realtime_table
from fakes.zookeeper.memory import FakeZooKeeper

from pinot_assets.assets import realtime as operations
from pinot_assets.assets.realtime import BREAK, LOAD_FROM_PEERS, MEND, OPERATIONS, OperationInputs
from pinot_assets.errors import PinotAssetsError, PinotError
from pinot_assets.realtime.lease import OperationsLease, OperationsStore
from pinot_assets.realtime.operations import table_operation
from pinot_assets.realtime.operations.drill import DrillObservation, Lengths
from pinot_assets.resources import PinotResource
from pinot_assets.session.values.state import Owner
from pinot_assets.settings.environment import Settings

PINOT = PinotResource(controller_url="http://controller:9000", zookeeper="127.0.0.1:1", cluster="test")
*_, RESTART, DRILL = OPERATIONS


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRealtime:
    made, zookeeper = FakeRealtime(), FakeZooKeeper()
    zookeeper.client().ensure_path("/test/PROPERTYSTORE")

    @contextmanager
    def hold(settings: Settings, table: str, run: str) -> Iterator[OperationsLease]:
        store = OperationsStore(zookeeper.client(), settings.cluster, table)  # type: ignore[arg-type]
        with store.take(Owner(run, "host", 1, 1)) as lease:
            yield lease

    monkeypatch.setattr(operations, "RealtimePinot", lambda _: made.pinot())
    monkeypatch.setattr(table_operation, "hold_table", hold)
    monkeypatch.setattr(operations, "open_deep_store", lambda _: None)
    monkeypatch.setattr(table_operation, "read_state", lambda *_, **__: made.look())
    return made


def work(folder: Path, **config: object) -> OperationInputs:
    log = dg.build_op_context().log
    return OperationInputs(write_realtime_table(folder), PINOT.settings(), "run 1", config, log)


def writes(fake: FakeRealtime) -> list[str]:
    return [call for call in fake.asked if not call.startswith("GET") and "/sql" not in call]


def test_a_restart_without_the_tables_name_is_only_shown(tmp_path: Path, fake: FakeRealtime) -> None:
    lost = fake.segment(sequence=1, status="COMMITTING", states={S1: "ERROR", S2: "ERROR"})
    fake.segment(sequence=2, status="IN_PROGRESS")
    said = RESTART.act(work(tmp_path, segments=[lost], confirm="other"))
    assert said.startswith("2 segments would be deleted")
    assert writes(fake) == []


def test_a_confirmed_restart_is_done_or_refused(tmp_path: Path, fake: FakeRealtime) -> None:
    with pytest.raises(PinotError, match="no segment nope"):
        RESTART.act(work(tmp_path, segments=["nope"], confirm="clicks"))
    assert writes(fake) == []


class WatchedDrill:
    """Takes the place of `Drill`."""

    passed = True
    lengths: Lengths
    ran: list[str]

    def __init__(self, read: object, *does: object, lengths: Lengths, tell: object) -> None:
        WatchedDrill.lengths = lengths
        self.does = does

    def run(self) -> tuple[DrillObservation, ...]:
        broken, mended, _query, _repair, peers = self.does
        for command in (broken, peers, mended):
            if callable(command):
                command()
        return (DrillObservation("bypass", WatchedDrill.passed, "3 segments"),)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(operations, "Drill", WatchedDrill)
    for name in (BREAK, MEND, LOAD_FROM_PEERS):
        monkeypatch.setenv(name, f"touch {tmp_path / name}")
    return tmp_path


def test_a_drill_runs_the_commands_of_the_environment(commands: Path, fake: FakeRealtime) -> None:
    said = DRILL.act(work(commands, confirm="clicks_REALTIME", seconds=5.0))
    assert said == "bypass: 3 segments"
    assert {path.name for path in commands.iterdir()} >= {BREAK, MEND, LOAD_FROM_PEERS}
    assert WatchedDrill.lengths.outage == 5.0


def test_what_a_drill_did_not_show_fails_the_run(
    commands: Path, fake: FakeRealtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WatchedDrill, "passed", False)
    monkeypatch.delenv(LOAD_FROM_PEERS)
    with pytest.raises(dg.Failure, match="3 segments"):
        DRILL.act(work(commands, confirm="clicks", seconds=5.0))
    assert not (commands / LOAD_FROM_PEERS).exists()


def test_no_drill_without_the_tables_name_or_the_commands(
    commands: Path, fake: FakeRealtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PinotAssetsError, match="confirm does not name the table"):
        DRILL.act(work(commands, confirm="", seconds=5.0))
    monkeypatch.delenv(MEND)
    with pytest.raises(PinotAssetsError, match=f"does not set {MEND}"):
        DRILL.act(work(commands, confirm="clicks", seconds=5.0))
    assert not (commands / BREAK).exists()
