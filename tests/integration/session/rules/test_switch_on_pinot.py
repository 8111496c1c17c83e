"""What the switch's rules say about Pinot, on a running one: R1, R3, R5, …, E9, E21, E22, windows."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from fakes.pinot.direct import Inside
from fakes.waiting import until
from rich.console import Console

from pinot_assets.cli.doctor.environment import show_pinot
from pinot_assets.errors import PinotError, PinotUnreachable, SnapshotIncomplete, SwitchConflict
from pinot_assets.pinot import LineageState
from pinot_assets.session.values.report import TriggerResult

pytestmark = pytest.mark.integration

CLUSTER = "pinot"
HOUR_MS = 3_600_000


@pytest.fixture
def world(real_world: Any) -> Any:
    """Brokers that have answered once: the first query of a cold one may outlast its deadline."""
    for broker in real_world.brokers:
        until(lambda broker=broker: _answers(real_world, broker), 90)
    return real_world


def _answers(world: Any, broker: str) -> bool:
    try:
        world.shown_by(broker)
    except PinotUnreachable:
        return False
    except PinotError:
        pass  # it has nothing to ask servers for yet
    return True


@contextmanager
def inside(world: Any) -> Iterator[Inside]:
    """What only Pinot itself and its operators do."""
    with Inside(world.zookeeper, CLUSTER, world.pinot.connection.controller_url) as found:
        yield found


def age(world: Any, entry_id: str, hours: float) -> None:
    entry = world.pinot.lineage(world.table).get(entry_id)
    with inside(world) as pinot:
        pinot.put_entry(world.table, replace(entry, timestamp_ms=entry.timestamp_ms - int(hours * HOUR_MS)))


def reap(world: Any, entry_id: str) -> None:
    """Pinot's own retention gives the entry up: its segments in one pass, itself in a later one."""
    names = world.pinot.lineage(world.table).get(entry_id).segments_to
    age(world, entry_id, 25)
    with inside(world) as pinot:
        pinot.run_retention(world.table)
        until(lambda: names.isdisjoint(pinot.listed_segments(world.table)), 60)  # slow to forget, up to 0.11
        pinot.run_retention(world.table)
    assert world.pinot.lineage(world.table).get(entry_id) is None


def revert(world: Any, entry_id: str) -> None:
    world.pinot.force_revert_replace_segments(world.table, entry_id)


def assert_shown(world: Any, values: list[str]) -> None:
    for broker in world.brokers:
        assert world.shown_by(broker) == values
    world.assert_settled()


@pytest.mark.parametrize("lose", [revert, reap])
def test_r16_e09_a_lost_switch_goes_on_under_new_names(world: Any, lose: Callable[[Any, str], None]) -> None:
    world.write("P1", "P2")
    world.run()
    world.write("F1", P1="P1.1 P1.2")
    world.trigger()
    first = world.read_session()
    spent = world.pinot.lineage(world.table).get(first.lineage_entry_id).segments_to
    builds = world.builds
    lose(world, first.lineage_entry_id)
    assert world.run().result is TriggerResult.STAGED
    assert world.builds == builds
    assert spent.isdisjoint(world.pinot.all_segments(world.table))
    assert world.read_sessions()[-1].id == first.id
    assert_shown(world, ["F1", "P1.1", "P1.2", "P2"])


def test_r01_a_start_that_lands_after_our_end_is_undone(world: Any) -> None:
    world.write("P1")
    world.run()
    world.write(P1="P1.1")
    world.run()
    ended = world.pinot.lineage(world.table).in_state(LineageState.COMPLETED)[-1]
    with inside(world) as pinot:
        pinot.put_entry(world.table, replace(ended, id="late", state=LineageState.IN_PROGRESS))
    assert world.pinot.visible_segments(world.table) == frozenset()
    assert world.run().result is TriggerResult.NOTHING
    assert world.pinot.visible_segments(world.table) == set(world.read_snapshot().segments)
    until(lambda: all(world.shown_by(broker) == ["P1.1"] for broker in world.brokers), 30)
    world.assert_settled()


def test_r03_r08_an_old_entry_is_renewed_and_keeps_its_audit(world: Any) -> None:
    world.write("P1")
    world.run()
    world.write("P2")
    world.trigger()
    before, _ = world.audit()
    age(world, before.lineage_entry_id, 21)
    world.publish()
    after = world.read_sessions()[-1]
    assert after.audit == before.audit
    assert world.pinot.lineage(world.table).get(before.lineage_entry_id) is None
    entry = world.pinot.lineage(world.table).get(after.lineage_entry_id)
    assert entry is None or entry.state is LineageState.COMPLETED
    assert_shown(world, ["P1", "P2"])


def test_the_generation_before_goes_right_before_the_end(world: Any) -> None:
    """Up to 0.11 the forced start answers late, and the entry is read from the lineage."""
    for version in ("1", "2"):
        world.write(P1=version)
        world.run()
    world.write(P1="3")
    world.trigger()
    assert len(world.pinot.all_segments(world.table)) == 3
    world.audit()
    world.publish()
    assert len(world.pinot.all_segments(world.table)) == 2
    assert_shown(world, ["3"])
    world.rollback()
    assert_shown(world, ["2"])


def put_foreign(world: Any, name: str) -> None:
    """A copy of what is published, under a name that somebody else gives it."""
    staging = world.staging
    copy = staging.put_renamed(next(iter(world.read_snapshot().segments.values())), name)
    world.pinot.push(world.table, [copy], staged=staging)
    until(lambda: all(world.pinot.online_replicas(world.table, [name]).values()), 60)


def test_e21_a_foreign_segment_that_comes_after_w1_stays_and_is_told(make_real_world: Any) -> None:
    world = make_real_world("swap")
    world.write("P1")
    world.run()
    world.write("P2")
    world.trigger()
    put_foreign(world, "somebody_elses")
    world.audit()
    world.publish()
    for broker in world.brokers:
        assert world.shown_by(broker) == ["P1", "P1", "P2"]
    assert world.run().result is TriggerResult.NOTHING
    assert any("somebody_elses" in note for note in world.notes)
    world.write("P3")
    world.run()
    assert_shown(world, ["P1", "P2", "P3"])


def told_by_the_doctor(world: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("PINOT_CONTROLLER_URL", world.pinot.connection.controller_url)
    monkeypatch.setenv("PINOT_ZOOKEEPER", world.zookeeper)
    out = io.StringIO()
    show_pinot(Console(file=out, width=400))
    return [line for line in out.getvalue().splitlines() if line.startswith(world.table)]


def test_e22_an_open_entry_of_somebody_else_is_told_and_never_forced_away(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("P1", "P2")
    world.run()
    (mine, *_) = [s for s in world.read_snapshot().segments if world.builder.rows[s] == ("P1",)]
    foreign = world.pinot.start_replace_segments(world.table, [mine], ["merged_1"])
    world.write(P1="P1.1")
    for _ in range(2):
        with pytest.raises(SwitchConflict, match="merged_1"):
            world.run()
    assert world.pinot.lineage(world.table).get(foreign).state is LineageState.IN_PROGRESS
    assert world.read_session().retry_count == 0
    (line,) = told_by_the_doctor(world, monkeypatch)
    assert line.split()[1] == foreign
    assert "somebody else" in line
    world.pinot.force_revert_replace_segments(world.table, foreign)
    world.run()
    assert_shown(world, ["P1.1", "P2"])
    assert told_by_the_doctor(world, monkeypatch) == []


def test_an_open_entry_of_ours_is_told_with_its_session(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("P1")
    world.trigger()
    (line,) = told_by_the_doctor(world, monkeypatch)
    node = world.read_session().id.split("-")[0]
    assert line.split()[4] == node
    assert f"pinot-assets session show {world.table}" in line
    world.run()
    assert told_by_the_doctor(world, monkeypatch) == []


class Damages:
    """Passes every call on; the tar of one file is cut short before it is pushed."""

    def __init__(self, world: Any, file: str) -> None:
        self._world, self._pinot, self._file = world, world.pinot, file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pinot, name)

    def push(self, table: str, outputs: Any, **options: Any) -> Any:
        for output in outputs:
            if self._world.builder.rows[output.segment] == (self._file,):
                tar = Path(url2pathname(urlsplit(output.tar_uri).path))
                os.truncate(tar, tar.stat().st_size // 2)
        return self._pinot.push(table, outputs, **options)


def test_r14_a_segment_that_no_server_can_load_makes_its_file_fail(make_real_world: Any) -> None:
    world = make_real_world("sync")
    world.options["consistentPushMaxRetries"] = 1
    world.write("F1", "F2", "F3")
    real, world.pinot = world.pinot, Damages(world, "F2")
    world.trigger()
    world.pinot = real
    (broken,) = [s for s in world.pinot.all_segments(world.table) if world.builder.rows[s] == ("F2",)]
    session, _ = world.audit()
    (failure,) = world.staging.failures(session.failures)
    assert (failure.uri.rsplit("/", 1)[-1], failure.code) == ("F2", "AUDIT")
    with pytest.raises(SnapshotIncomplete, match=f"{broken} is ERROR on"):
        world.publish()
    world.run()
    assert world.built == ["F2"]
    assert world.read_sessions()[-1].retry_count == 1
    assert_shown(world, ["F1", "F2", "F3"])


def test_r05_a_published_segment_that_was_deleted_by_hand_is_no_source(world: Any) -> None:
    world.write("P1", "P2")
    world.run()
    (gone,) = [s for s in world.read_snapshot().segments if world.builder.rows[s] == ("P1",)]
    world.pinot.delete_segments(world.table, [gone])
    until(lambda: gone not in world.pinot.all_segments(world.table), 60)
    world.write(P1="P1.1")
    world.run()
    assert_shown(world, ["P1.1", "P2"])


def test_r20_what_changes_no_segment_writes_a_snapshot_too(world: Any) -> None:
    world.write("P1")
    world.run()
    before = world.read_snapshot()
    (world.source / "empty").write_text("v\n")
    world.run()
    assert world.read_snapshot().seq > before.seq
    assert world.run().result is TriggerResult.NOTHING
    assert_shown(world, ["P1"])
