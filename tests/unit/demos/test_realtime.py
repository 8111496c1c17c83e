"""What the realtime demo does to its stack, and what its last line says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from demos.realtime import DrillSummary, Producer, write_spec
from demos.stack import StoreOutage, end_process, tar_in
from pinot_assets.realtime.model.settings import table_settings
from pinot_assets.settings.local_stack import StackState
from pinot_assets.table_spec import load_tables

KAFKA = "127.0.0.1:9092"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "controller"
    (folder / "clicks").mkdir(parents=True)
    return folder


def outage_of(store: Path) -> StoreOutage:
    return StoreOutage(StackState(store.parent, "0.11.0", "pinot", "", "", [], [], [], deep_store=store))


def test_a_store_that_is_away_takes_nothing_and_comes_back_whole(store: Path) -> None:
    outage = outage_of(store)
    outage.begin()
    with pytest.raises(NotADirectoryError):
        (store / "clicks" / "segment").write_text("rows")
    outage.end()
    outage.end()
    assert [path.name for path in store.iterdir()] == ["clicks"]


def test_a_store_that_never_went_is_left_alone(store: Path) -> None:
    outage_of(store).end()
    assert store.is_dir()


def test_a_process_is_gone_when_it_was_ended() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        end_process(process.pid)
        assert process.wait(1) == -9


def test_the_committer_is_known_by_its_tar(tmp_path: Path) -> None:
    (tmp_path / "clicks__0__0__20261122T1414Z").mkdir()
    assert tar_in(tmp_path) is None
    (tmp_path / "clicks__0__1__20261122T1415Z.tar.gz").touch()
    assert tar_in(tmp_path) == "clicks__0__1__20261122T1415Z"


def test_a_backlog_never_shrinks() -> None:
    producer = Producer(KAFKA)
    producer.have_waiting(100, 0)
    producer.have_waiting(100, 50)
    producer.have_waiting(100, 20)
    assert producer.target == 150


def test_the_table_passes_a_deep_store_that_is_down(tmp_path: Path) -> None:
    write_spec(tmp_path, KAFKA)
    settings = table_settings(load_tables(tmp_path).realtime["clicks"].table_json)
    assert (settings.replication, settings.bypasses, settings.commit_timeout_s) == (2, True, 10)


def test_the_last_line() -> None:
    outcome = DrillSummary(produced=9, queryable=9, ratio=0.996, missing=0)
    assert str(outcome) == (
        "produced 9, queryable 9, ingest rate during outage / before: 1.00, "
        "missing deep-store copies after repair: 0"
    )
    assert outcome.well
    assert not DrillSummary(9, 8, 1.0, 0).well
    assert not DrillSummary(9, 9, 0.94, 0).well
    assert not DrillSummary(9, 9, 1.0, 1).well
