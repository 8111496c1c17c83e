"""With `PINOT_ASSETS_LOG_FORMAT=json`, each line on standard error is one JSON object."""

from __future__ import annotations

import json

import pytest

from pinot_assets.cli.json_progress import JsonProgress
from pinot_assets.core.decision_log import LOGGER, log_decision
from pinot_assets.session.values.progress import RunPhase
from pinot_assets.snapshot.receipt import Failure, Fingerprint, Receipt


def test_each_line_is_one_object_with_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    with JsonProgress() as progress:
        progress.begin(RunPhase.LIST)
        progress.note("swept\n1 stray")
        progress.building({0: 7, 1: 3})
        progress.moving(5)
        progress.advance(1)
        progress.built(Failure("s3://b/a.csv", 0, 0, "UNREADABLE", "torn"))
        progress.built(Receipt("s3://b/b.csv", 1, 0, Fingerprint(1, 1), "", 12, 0, (), 0.1, "h/1"))
        progress.rest()
        log_decision("step", {"step": "trigger", "table": "t_OFFLINE", "result": "", "seconds": 0.0})
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {line["level"] for line in said} == {"info"}
    assert all(line.pop("time").endswith("Z") and line.pop("level") for line in said)
    assert said == [
        {"event": "phase", "phase": "listing the source"},
        {"event": "note", "text": "swept\n1 stray"},
        {"event": "phase", "phase": "building", "total": 2, "bytes": 10},
        {"event": "file", "file": "s3://b/a.csv", "error": "UNREADABLE", "reason": "torn"},
        {"event": "file", "file": "s3://b/b.csv", "rows": 12, "segments": 0},
        {"event": "step", "step": "trigger", "table": "t_OFFLINE", "seconds": 0.0},
    ]


def test_afterwards_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with JsonProgress():
        pass
    log_decision("note", {"text": "later"})
    assert capsys.readouterr().err == ""
    assert LOGGER.handlers == []
