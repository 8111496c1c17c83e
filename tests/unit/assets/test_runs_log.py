"""What a run's log says of a build."""

from __future__ import annotations

import logging
from typing import cast

import dagster as dg
import pytest

from pinot_assets.assets.runs import RunLog
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source import Fingerprint


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> RunLog:
    caplog.set_level(logging.INFO)
    return RunLog(cast(dg.DagsterLogManager, logging.getLogger("run")))


def outcome(n: int) -> Receipt:
    return Receipt(f"file:///in/{n}", n, 0, Fingerprint(1, 1), "", 1, 0, (), 0.1, "h/1")


def messages(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_ten_thousand_files_are_ten_lines(log: RunLog, caplog: pytest.LogCaptureFixture) -> None:
    log.building(dict.fromkeys(range(10000), 1))
    for n in range(10_000):
        log.built(outcome(n))
    shown = messages(caplog)
    assert shown[0] == ("INFO", "building 10,000 files of 10,000 bytes on Spark")
    assert shown[1:] == [("INFO", f"built {n},000 of 10,000 files, {n},000 rows") for n in range(1, 11)]


def test_every_failure_is_a_warning_and_counts_as_through(
    log: RunLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.building({0: 1, 1: 1})
    log.built(Failure("file:///in/0", 0, 0, "UNREADABLE", "torn"))
    log.built(outcome(1))
    assert messages(caplog)[1:] == [
        ("WARNING", "file:///in/0 failed: UNREADABLE: torn"),
        ("INFO", "built 1 of 2 files, 1 failed, 1 row"),
    ]


def test_notes_are_shown(log: RunLog, caplog: pytest.LogCaptureFixture) -> None:
    log.note("swept a stray")
    assert messages(caplog) == [("INFO", "swept a stray")]


def test_a_long_file_is_a_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = [0.0]
    log = RunLog(cast(dg.DagsterLogManager, logging.getLogger("run")), lambda: now[0])
    log.building({0: 1})
    for _ in range(12):
        now[0] += 15
        log.moving(int(now[0]) * 1000)
    assert [text for _, text in messages(caplog)[1:]] == [
        f"built 0 of 1 file, {seconds * 1000:,} rows, 1,000 rows/s" for seconds in (60, 120, 180)
    ]
