"""`pinot-assets partitions migrate` beside sensors and runs that work on the same partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from fakes.tables import SYNC, write_files, write_table
from typer.testing import CliRunner

from pinot_assets.assets import partition_events
from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.keys import TABLE_TAG, partitions_name
from pinot_assets.assets.partition_events import PartitionEvents
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.cli.commands import partitions
from pinot_assets.errors import PinotAssetsError

FILES = {"F1.csv", "F2.csv", ALL_FILES}
GROUPED = {"dir:.", ALL_FILES}


class Grouped:
    """A table whose two files were a group, in an instance of its own."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.spec = write_table(folder, "t", SYNC)
        self.instance = instance
        self.history = TableHistory(instance, self.spec)
        write_files(folder, F1="a", F2="b")
        self.history.add_partitions(GROUPED)

    def migrate(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(partitions, "one_table", lambda _: self.spec)
            CliRunner().invoke(partitions.app, ["migrate", "t"], catch_exceptions=False)

    def tick(self) -> None:
        """Of a sensor that saw the group before it went."""
        self.history.keep_partitions(GROUPED)
        self.history.add_partitions(GROUPED)


@pytest.fixture
def grouped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Grouped]:
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setattr(partition_events, "load_settings", lambda: None)
    monkeypatch.setattr(partition_events, "open_session_store", lambda spec, settings: nullcontext())
    monkeypatch.setattr(partition_events, "observe", lambda store, staging: SimpleNamespace(snapshot=None))
    with dg.DagsterInstance.get() as instance:
        yield Grouped(tmp_path, instance)


def ticks(monkeypatch: pytest.MonkeyPatch, before: str, tick: Callable[[], None], times: int) -> None:
    """Let a sensor tick just before a part of the migration, the first times that it is reached."""
    left = iter(range(times))
    original: Any = getattr(PartitionEvents, before)

    def interrupted(self: PartitionEvents, history: TableHistory) -> Any:
        if next(left, None) is not None:
            tick()
        return original(self, history)

    monkeypatch.setattr(PartitionEvents, before, interrupted)


def test_a_group_becomes_files(grouped: Grouped) -> None:
    grouped.migrate()
    assert grouped.history.partitions() == FILES


@pytest.mark.parametrize("when", ["observations", "publications"])
def test_one_tick_meanwhile_is_made_good(
    grouped: Grouped, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    ticks(monkeypatch, when, grouped.tick, times=1)
    grouped.migrate()
    assert grouped.history.partitions() == FILES


def test_it_is_said_when_ticks_win(grouped: Grouped, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks(monkeypatch, "publications", grouped.tick, times=2)
    with pytest.raises(PinotAssetsError, match="changed meanwhile") as caught:
        grouped.migrate()
    assert "stop the sensor t_files" in str(caught.value.hint)


def test_between_the_keys_nothing_says_that_the_table_is_grouped(
    grouped: Grouped, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[frozenset[str]] = []
    ticks(monkeypatch, "observations", lambda: seen.append(grouped.history.partitions()), times=1)
    grouped.migrate()
    assert seen == [{ALL_FILES}]


def test_not_beside_a_run_of_the_table(grouped: Grouped) -> None:
    tags = {TABLE_TAG: "t"}
    grouped.instance.add_run(dg.DagsterRun("t_ingest", "r1", tags=tags, status=dg.DagsterRunStatus.STARTED))
    with pytest.raises(PinotAssetsError, match="run r1 of t has not ended"):
        grouped.migrate()
    assert set(grouped.instance.get_dynamic_partitions(partitions_name(grouped.spec))) == GROUPED
