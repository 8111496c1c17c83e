"""`snapshots`, `rollback` and `resume`: what they show before, and say after."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pinot_assets.cli.commands import snapshots as rollback
from pinot_assets.cli.main import app
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import RollbackRefused
from pinot_assets.session.checks.server_checks import RowCount
from pinot_assets.session.rollback.rollback_plan import RollbackPlan, RollbackWay
from pinot_assets.session.stores.stored_snapshots import StoredSnapshot
from pinot_assets.session.values.state import HoldEnd
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output
from pinot_assets.source import Fingerprint


def kept(seq: int, **rows: int) -> StoredSnapshot:
    files = tuple(
        PublishedFile(f"file:///in/[a]/{name}", Fingerprint(1, 1), "h", n, 0, "cp1", (), version=f"v{n}")
        for name, n in rows.items()
    )
    session = f"cp{seq}-aaaaaa"
    snapshot = Snapshot(seq, "t_OFFLINE", session, "SYNC", "e", None, "", "", 1_700_000_000_000, files)
    return StoredSnapshot(SnapshotRef(f"snapshots/{seq}", "h"), snapshot)


OUTPUT = Output("s1", 1, 2, "u", 3 * 1024**2, "h", "m")
NOW = 1_700_000_000_000
REVERT = RollbackPlan(
    kept(3, a=5, b=7),
    kept(2, a=4),
    RollbackWay.REVERT,
    "entry-1",
    NOW + 9_000_000,
    (OUTPUT,),
    ("s2", "s3"),
    "",
    "",
)
REPUBLISH = replace(
    REVERT, way=RollbackWay.REPUBLISH, entry_id="", until_ms=None, no_revert="the switch is old"
)
NONE = replace(REPUBLISH, way=None, no_republish="1 of its tars are missing")
RIGHT = (RowCount("http://b1", 4, 4), RowCount("http://b2", 4, 4))


class FakeDriver:
    """Answers with what it is given; an error is raised."""

    def __init__(self, answers: JsonObject) -> None:
        self._answers = answers
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, step: str) -> Any:
        def answer(*arguments: Any) -> Any:
            self.asked.append((step, *arguments))
            found = self._answers[step]
            if isinstance(found, BaseException):
                raise found
            return found

        return answer


def call(*arguments: str, answer: str | None = None, **answers: Any) -> tuple[Result, FakeDriver]:
    driver = FakeDriver(answers)

    @contextmanager
    def driver_of(spec: Any, command: str) -> Iterator[Any]:
        assert (spec, command) == ("flights", arguments[0])
        yield driver

    def spec_of(name: str, tables: Path | None) -> Any:
        return name

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollback, "one_table", spec_of)
        patch.setattr(rollback, "open_driver", driver_of)
        return CliRunner().invoke(app, list(arguments), input=answer), driver


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollback.time, "time_ns", lambda: NOW * 1_000_000)


def test_rollback_shows_and_asks() -> None:
    shown, driver = call("rollback", "flights", answer="n\n", rollback_plan=REVERT)
    assert shown.exit_code == 1
    assert driver.asked == [("rollback_plan", "")]
    for text in (
        "cp3-aaaaaa (SYNC) of 2023-11-14 22:13:20 UTC: 2 files, 12 rows",
        "cp2-aaaaaa (SYNC)",
        "revert of lineage entry entry-1",
        "until 2023-11-15 00:43:20 UTC, for 2.5 h",
        "2 files, 12 rows, 2 segments: a, b",
        "1 file, 4 rows, 1 segment: a",
    ):
        assert text in shown.stdout


def test_rollback_does_what_it_showed_and_counts() -> None:
    restored = kept(4, a=4).snapshot
    shown, driver = call(
        "rollback", "flights", "--to", "2", answer="y\n", rollback_plan=REVERT, rollback=restored, count=RIGHT
    )
    assert shown.exit_code == 0, shown.output
    assert driver.asked == [("rollback_plan", "2"), ("rollback", "2", REVERT), ("count", restored)]
    assert "rolled back: 1 file, 4 rows are visible" in shown.stdout
    assert "pinot-assets resume flights" in shown.stdout
    assert "✓ http://b2 counts 4 rows, 4 expected" in shown.stdout


def test_a_broker_that_counts_other_rows_is_told() -> None:
    wrong = (RIGHT[0], RowCount("http://b2", None, 4, "[a] server is away"))
    restored = kept(4, a=4).snapshot
    shown, _ = call("rollback", "flights", "--yes", rollback_plan=REVERT, rollback=restored, count=wrong)
    assert shown.exit_code == 2
    assert "✗ http://b2 gave no complete answer: [a] server is away" in shown.stdout


def test_a_dry_run_asks_nothing_and_does_nothing() -> None:
    shown, driver = call("rollback", "flights", "--dry-run", rollback_plan=REPUBLISH)
    assert shown.exit_code == 0
    assert driver.asked == [("rollback_plan", "")]
    assert "re-publish of 1 staged segments (3.0 MB) under new names, no Spark" in shown.stdout
    assert "no revert: the switch is old" in shown.stdout


def test_without_a_way_it_does_not_ask() -> None:
    refused = RollbackRefused("no way")
    shown, _ = call("rollback", "flights", rollback_plan=NONE, rollback=refused)
    assert shown.exception is refused
    assert "none; no revert: the switch is old; no re-publish: 1 of its tars are missing" in shown.stdout
    assert "[y/N]" not in shown.stdout


def test_snapshots() -> None:
    current = replace(NONE, target=NONE.current)
    ways = (current, REVERT, REPUBLISH, NONE)
    shown, _ = call("snapshots", "flights", "--newest", "4", rollback_plans=ways, hold_ended=None)
    lines = shown.stdout.splitlines()
    assert [word in line for word, line in zip(("reached by", "current"), lines, strict=False)] == [
        True,
        True,
    ]
    assert lines[2].split()[0] == "2"
    assert "revert until 2023-11-15 00:43:20 UTC" in lines[2]
    assert lines[3].endswith("re-publish")
    assert "not: no revert: the switch is old" in lines[4]
    values = json.loads(
        call("snapshots", "flights", "--json", rollback_plans=ways, hold_ended=None)[0].stdout
    )
    assert [(v["seq"], v["current"], v["way"]) for v in values] == [
        (3, True, None),
        (2, False, "revert"),
        (2, False, "re-publish"),
        (2, False, None),
    ]
    assert (
        "has never been published"
        in call("snapshots", "flights", rollback_plans=(), hold_ended=None)[0].stdout
    )


def test_snapshots_shows_who_asked_for_each_and_for_the_end_of_a_hold() -> None:
    current = replace(NONE.current, snapshot=replace(NONE.current.snapshot, asked_by="ann@host"))
    ways, ended = (replace(NONE, current=current, target=current), REVERT), HoldEnd(3, NOW, "bob@host")
    lines = call("snapshots", "flights", rollback_plans=ways, hold_ended=ended)[0].stdout.splitlines()
    assert [line.split()[7] for line in lines[1:3]] == ["ann@host", "-"]
    assert lines[3:] == ["the hold of cp3 was ended by bob@host at 2023-11-14 22:13:20 UTC"]
    values = json.loads(
        call("snapshots", "flights", "--json", rollback_plans=ways, hold_ended=ended)[0].stdout
    )
    assert [(v["askedBy"], v["holdEndedBy"]) for v in values] == [("ann@host", "bob@host"), (None, None)]


@pytest.mark.parametrize(
    ("held", "says"),
    [(True, "the next run of flights publishes again what was held"), (False, "flights holds nothing back")],
)
def test_resume(held: bool, says: str) -> None:
    shown, driver = call("resume", "flights", resume=held)
    assert shown.stdout.strip() == says
    assert driver.asked == [("resume",)]
