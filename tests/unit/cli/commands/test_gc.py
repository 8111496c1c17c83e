"""`pinot-assets gc`: what it says, its JSON and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.pinot.left_nodes import left_by_a_table, store_of
from fakes.zookeeper.memory import FakeZooKeeper
from typer.testing import CliRunner, Result

from pinot_assets.cli.commands import gc
from pinot_assets.cli.main import app
from pinot_assets.cli.options import Chosen
from pinot_assets.errors import LeaseLost, PinotNotFound, PinotUnreachable
from pinot_assets.gc.bad_rows import KeptBadRows
from pinot_assets.gc.collect import Collected
from pinot_assets.gc.orphans import Garbage, Orphan, OrphanKind
from pinot_assets.table_spec import LeftOut, Problem

HOUR_MS = 3_600_000
TAR = Orphan(OrphanKind.TAR, "segments/[a].tar.gz", "no kept snapshot names it", 3 * 1024**2, 30 * HOUR_MS)
OTHERS = tuple(Orphan(OrphanKind.NODE, f"cp{n}", "beyond the newest") for n in range(5))
YOUNG = Orphan(OrphanKind.TAR, "segments/b.tar.gz", "no kept snapshot names it", 1024**2, HOUR_MS)
GARBAGE = Garbage((*OTHERS, TAR), (YOUNG,), (), ("a note",))
EMPTY = Garbage((), (), (), ())


@dataclass
class FakeDriver:
    """Answers with what it is given; an error is raised."""

    spec: Any
    answer: Any
    asked: list[tuple[str, int]] = field(default_factory=list)

    def garbage(self, grace_ms: int) -> Any:
        return self._answered("garbage", grace_ms)

    def collect(self, grace_ms: int, told: Any) -> Any:
        told(1, 2)
        return self._answered("collect", grace_ms)

    def _answered(self, step: str, grace_ms: int) -> Any:
        self.asked.append((step, grace_ms))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture(autouse=True)
def _fake_gc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "garbage", lambda driver, grace_ms: driver.garbage(grace_ms))
    monkeypatch.setattr(gc, "collect", lambda driver, grace_ms, told: driver.collect(grace_ms, told))


def call(
    *arguments: str, stores: tuple[Any, ...] = (), left_out: tuple[LeftOut, ...] = (), **answers: Any
) -> tuple[Result, dict[str, FakeDriver]]:
    drivers = {name: FakeDriver(SimpleNamespace(name=name), answer) for name, answer in answers.items()}

    @contextmanager
    def driver_of(spec: Any, command: str) -> Iterator[Any]:
        assert command == "gc"
        yield drivers[spec.name]

    def all_tables(*_: Any) -> Any:
        return Chosen([SimpleNamespace(name=each) for each in drivers], left_out)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "offline_tables", all_tables)
        patch.setattr(gc, "one_table", lambda name, _: SimpleNamespace(name=name))
        patch.setattr(gc, "open_driver", driver_of)
        patch.setattr(gc, "load_settings", lambda: None)
        patch.setattr(gc, "open_known_stores", lambda _: nullcontext(stores))
        return CliRunner().invoke(app, ["gc", *arguments]), drivers


def test_a_table_whose_spec_is_wrong_keeps_no_other_from_its_turn() -> None:
    file = Path("tables/b.yaml")
    one = LeftOut(file, "b", frozenset(("_OFFLINE",)), (Problem(file, 1, "", "is not valid YAML"),))
    result, drivers = call(left_out=(one,), t=GARBAGE)
    assert (result.exit_code, len(drivers["t"].asked)) == (1, 1)
    assert "b: the table specs have 1 problem:\n  tables/b.yaml:1: is not valid YAML." in result.stderr


def test_a_plan_says_what_would_go_why_and_how_large_it_is() -> None:
    result, drivers = call("t", t=GARBAGE)
    assert result.exit_code == 0
    assert drivers["t"].asked == [("garbage", 24 * HOUR_MS)]
    assert result.output.splitlines() == [
        "t: 6 things (3.0 MB) would be deleted",
        "t:   5 × session node  0 B  beyond the newest",
        "t:     cp0, cp1, cp2 and 2 more",
        "t:   1 × staged tar  3.0 MB  no kept snapshot names it",
        "t:     segments/[a].tar.gz",
        "t: too young to be deleted: 1 thing (1.0 MB)",
        "t: a note",
    ]


def test_all_tables_without_a_name_and_one_that_cannot_be_looked_at_keeps_no_other_from_its_turn() -> None:
    result, drivers = call("--json", a=PinotUnreachable("no table a", why="gone", hint="look"), b=EMPTY)
    assert result.exit_code == 1
    assert [len(driver.asked) for driver in drivers.values()] == [1, 1]
    first, second = json.loads(result.stdout)
    assert first == {"table": "a", "error": "no table a", "why": "gone", "hint": "look", "exit": 1}
    assert (second["table"], second["orphans"], second["removed"]) == ("b", [], None)


def test_one_that_the_system_refuses_keeps_no_other_from_its_turn() -> None:
    result, drivers = call("--json", a=OSError(28, "No space left on device"), b=EMPTY)
    assert result.exit_code == 1
    assert len(drivers) == 2
    first, second = json.loads(result.stdout)
    assert (first["error"], first["why"]) == ("the operating system refuses", "No space left on device")
    assert second["table"] == "b"


def test_a_table_that_was_not_applied_yet_has_nothing_to_take_away() -> None:
    result, _ = call(a=PinotNotFound("no table a"), b=EMPTY)
    assert result.exit_code == 0
    assert "a: it is not in Pinot; `pinot-assets tables apply a` makes it" in result.stdout


def test_what_cannot_be_looked_at_is_told_on_standard_error() -> None:
    result, _ = call(a=PinotUnreachable("no controller"))
    assert (result.exit_code, result.stdout, "a: no controller" in result.stderr) == (1, "", True)


def test_apply_takes_away_and_tells_what_it_could_not() -> None:
    collected = Collected(GARBAGE, {TAR.name: "access denied"})
    result, drivers = call("t", "--apply", "--grace-hours", "0.5", t=collected)
    assert result.exit_code == 2
    assert drivers["t"].asked == [("collect", HOUR_MS // 2)]
    assert "t: gone: 5 things (0 B)" in result.output
    assert "t: 1 could not be deleted:\nt:   segments/[a].tar.gz: access denied" in result.output


@pytest.mark.parametrize("hours", ["-1", "inf", "nan", "1e400", "soon"])
def test_a_grace_that_is_none_takes_nothing_away(hours: str) -> None:
    result, drivers = call("t", "--apply", "--grace-hours", hours, t=Collected(EMPTY, {}))
    assert result.exit_code == 2
    assert "Invalid value for '--grace-hours'" in result.output
    assert drivers["t"].asked == []


def test_values_for_other_programs() -> None:
    result, _ = call("t", "--apply", "--json", t=Collected(GARBAGE, {TAR.name: "access denied"}))
    (values,) = json.loads(result.stdout)
    assert (values["removed"], values["notRemoved"]) == (5, {TAR.name: "access denied"})
    assert values["orphans"][-1] == {
        "kind": "staged tar",
        "name": TAR.name,
        "why": TAR.why,
        "bytes": 3 * 1024**2,
        "ageHours": 30.0,
    }


def test_rows_put_aside_are_told_with_number_size_and_age() -> None:
    old = Orphan(OrphanKind.BAD_ROWS, "x.parquet", "kept for 30 days", 2048, 45 * 24 * HOUR_MS, is_due=True)
    kept = KeptBadRows(30, 2, 4096, 36 * HOUR_MS)
    garbage = Garbage((old,), (), (), (), kept)
    shown, _ = call("t", t=garbage)
    assert shown.output.splitlines() == [
        "t: 1 thing (2.0 KB) would go",
        "t:   1 × rows put aside  2.0 KB  kept for 30 days; the oldest is 45.0 days old",
        "t:     x.parquet",
        "t: rows put aside that stay: 2 objects (4.0 KB), the oldest 36.0 h old; each is kept for 30 days "
        "(badRowDaysToKeep)",
    ]
    (values,) = json.loads(call("t", "--json", t=garbage)[0].stdout)
    assert values["badRowsKept"] == {"days": 30, "objects": 2, "bytes": 4096, "oldestHours": 36.0}
    assert [(o["bytes"], o["ageHours"]) for o in values["orphans"]] == [(2048, 1080.0)]


def test_other_days_for_rows_put_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(gc, "keeping_bad_rows", lambda spec, days: asked.append(days) or spec)
    assert call("t", "--apply", "--bad-row-days", "0", t=Collected(EMPTY, {}))[0].exit_code == 0
    assert asked == [0]
    assert call("t", "--bad-row-days", "-1", t=EMPTY)[0].exit_code == 2
    assert asked == [0]


def test_nothing_to_take_away() -> None:
    result, _ = call("t", "--apply", t=Collected(EMPTY, {}))
    assert (result.exit_code, result.output) == (0, "t: nothing to delete\n")


def test_without_a_name_tables_that_pinot_does_not_have_any_more() -> None:
    zookeeper = left_by_a_table(FakeZooKeeper(ahead_ms=-30 * HOUR_MS))
    stores = (store_of(zookeeper),)
    shown, _ = call(stores=stores)
    assert "t_OFFLINE:   1 × nodes of a table  0 B  Pinot has no such table any more" in shown.output
    assert "/consistentPush/cp1" in "".join(zookeeper.nodes)
    applied, _ = call("--apply", stores=stores)
    assert (applied.exit_code, "t_OFFLINE: gone: 1 thing (0 B)" in applied.output) == (0, True)
    assert "consistentPush" not in "".join(zookeeper.nodes)
    assert "gone" not in call("t", t=EMPTY, stores=stores)[0].output


def test_nodes_that_were_written_just_now_stay() -> None:
    zookeeper = left_by_a_table(FakeZooKeeper())
    result, _ = call("--apply", stores=(store_of(zookeeper),))
    assert "too young to be deleted: 1 thing" in result.output
    assert "/consistentPush/cp1" in "".join(zookeeper.nodes)


def test_one_gone_table_that_cannot_be_forgotten_keeps_no_other_from_its_turn() -> None:
    zookeeper = left_by_a_table(FakeZooKeeper(ahead_ms=-30 * HOUR_MS))
    stuck = store_of(zookeeper)
    stuck.table = "stuck_OFFLINE"

    def lost(owner: object) -> None:
        raise LeaseLost("another run owns it")

    stuck.take_lease = lost  # type: ignore[assignment, method-assign]
    result, _ = call("--apply", stores=(stuck, store_of(zookeeper)))
    assert result.exit_code == 1
    assert "stuck_OFFLINE: another run owns it" in result.output
    assert "t_OFFLINE: gone: 1 thing (0 B)" in result.output
