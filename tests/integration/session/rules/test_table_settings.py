"""Settings of the Pinot table beside a session: E20, E23, E32, R3 as the table shortens it, hybrid tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from fakes.pinot.releases import PINOT_0_11, PINOT_1_5, PINOT_1_6, Dialect, dialect_of

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError, SpecError, SwitchConflict
from pinot_assets.pinot import LineageState
from pinot_assets.session.values.report import TriggerResult

if TYPE_CHECKING:
    from integration.session.conftest import SessionWorld

    MakeTable = Callable[..., SessionWorld]

pytestmark = pytest.mark.integration


@pytest.fixture
def make_table(make_world: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`make_table("sync", change)`: a world whose table config was changed by `change(config)`."""

    def make(mode: str, change: Callable[[JsonObject], object], **more: Any) -> Any:
        names = make_world.__globals__
        plain = names["_document"]

        def document(*arguments: Any) -> JsonObject:
            whole: JsonObject = plain(*arguments)
            change(whole["table"])
            return whole

        monkeypatch.setitem(names, "_document", document)
        return make_world(mode, **more)

    return make


def append_type(config: JsonObject) -> None:
    config["ingestionConfig"]["batchIngestionConfig"]["segmentIngestionType"] = "APPEND"


def expire(world: Any, *files: str) -> None:
    """What Pinot's time retention does: the segments of these files are deleted, and nobody is told."""
    doomed = {o.segment for f in world.read_snapshot().files if f.uri.endswith(files) for o in f.outputs}
    assert doomed
    world.pinot.delete_segments(world.table, doomed)


def lose_a_source_before_the_end(world: Any) -> None:
    """Where Pinot locks the sources of an open entry, it is not lost and the switch ends."""
    world.write("P1", "Q")
    world.run()
    world.write(P1="P1.1", Q="Q.1")
    world.trigger()
    world.audit()
    if dialect_of(world.pinot.version()).locks_deletes:
        with pytest.raises(PinotError, match=r"live (segment lineage )?entry"):
            expire(world, "Q")
        world.publish()
        return
    expire(world, "Q")
    with pytest.raises(SwitchConflict, match="are missing"):
        world.publish()


@pytest.mark.parametrize(
    ("dialect", "left"), [(PINOT_0_11, ["P1"]), (PINOT_1_5, ["P1"]), (PINOT_1_6, ["P1.1", "Q.1"])]
)
def test_e20_a_source_that_was_deleted_by_hand_makes_a_new_switch_without_it(
    make_world: Any, dialect: Dialect, left: list[str]
) -> None:
    world = make_world("sync", pinot={"version": dialect.version})
    lose_a_source_before_the_end(world)
    assert world.visible == left
    world.run()
    assert world.builds == 2
    assert world.visible == ["P1.1", "Q.1"]
    world.assert_settled()


def test_e20_on_a_real_pinot(real_world: Any) -> None:
    world = real_world
    lose_a_source_before_the_end(world)
    world.run()
    assert world.builds == 2
    assert [world.shown_by(broker) for broker in world.brokers] == [["P1.1", "Q.1"]] * 2
    world.assert_settled()


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_e23_a_merge_task_that_only_pinot_knows_of_stops_the_table(make_world: Any, mode: str) -> None:
    world = make_world(mode)
    world.write("P1")
    world.run()
    stored = world.pinot._tables[world.table].config
    stored["task"] = {"taskTypeConfigsMap": {"MergeRollupTask": {"1day.bucketTimePeriod": "1d"}}}
    world.write("P2")
    with pytest.raises(SpecError, match=r"MergeRollupTask: merges segments(.|\n)*in Pinot"):
        world.run()
    assert (world.visible, world.builds, world.read_session()) == (["P1"], 1, None)
    del stored["task"]
    world.run()
    assert world.visible == ["P1", "P2"]


def test_e23_segments_that_were_merged_already_pause_a_sync_table(make_world: Any) -> None:
    world = make_world("sync")
    world.write("P1", "P2")
    world.run()
    sources = set(world.read_snapshot().segments)
    entry = world.pinot.start_replace_segments(world.table, sources, {"merged_P1_P2"})
    some = next(iter(world.read_snapshot().segments.values()))
    world.pinot._tables[world.table].segments["merged_P1_P2"] = some
    world.pinot.end_replace_segments(world.table, entry)
    world.write(P1="P1.1")
    with pytest.raises(SwitchConflict, match="another program replaced") as paused:
        world.run()
    assert min(sources) in str(paused.value)
    assert world.pinot.visible_segments(world.table) == {"merged_P1_P2"}


@pytest.mark.parametrize("setting", ["lineageEntryCleanupRetentionPeriod"])
def test_a_period_too_short_for_a_switch_that_only_pinot_knows_of_is_refused(
    make_world: Any, setting: str
) -> None:
    world = make_world("sync", pinot={"version": "1.6.0"})
    world.pinot._tables[world.table].config["segmentsConfig"][setting] = "10m"
    world.write("P1")
    with pytest.raises(SpecError, match="shorter than a switch"):
        world.run()
    assert world.builds == 0


@pytest.mark.parametrize(("version", "renewed"), [("1.6.0", True), ("1.5.1", False)])
def test_r03_an_entry_is_renewed_at_half_of_what_the_table_says(
    make_table: Any, version: str, renewed: bool
) -> None:
    world = make_table(
        "sync",
        lambda config: config["segmentsConfig"].update(lineageEntryCleanupRetentionPeriod="4h"),
        pinot={"version": version},
    )
    world.write("P1")
    world.trigger()
    first = world.read_session().lineage_entry_id
    world.later(2.1)
    world.audit()
    world.publish()
    assert (first != world.read_snapshot().lineage_entry_id) == renewed
    assert world.visible == ["P1"]
    world.assert_settled()


def test_e32_a_published_file_whose_rows_expired_is_not_read_again(make_table: Any) -> None:
    world = make_table("append", append_type)
    world.write("P1", "P2")
    world.run()
    expire(world, "P1")
    for _ in range(2):
        assert world.run().result is TriggerResult.NOTHING
    assert (world.visible, world.builds) == (["P2"], 1)
    world.write("P3")
    world.run()
    assert (world.visible, world.built) == (["P2", "P3"], ["P3"])
    world.write(P1="P1.1")  # another version is another matter
    world.run()
    assert (world.visible, world.built) == (["P1.1", "P2", "P3"], ["P1"])


def test_e32_rows_that_expire_before_the_switch_do_not_make_it_loop(make_table: Any) -> None:
    """Retention meets a segment that is pushed and still hidden: Pinot refuses the end, and the next triggers
    get there, with one more build at most."""
    world = make_table("append", append_type)
    world.write("P1", "P2")
    world.trigger()
    world.audit()
    world.pinot.delete_segments(world.table, {min(world.pinot.all_segments(world.table))})
    with pytest.raises(SwitchConflict):
        world.publish()
    assert world.visible == []
    world.run()
    world.run()
    assert world.visible == ["P1", "P2"]
    assert world.builds <= 2
    world.assert_settled()
    assert world.run().result is TriggerResult.NOTHING


def test_a_hybrid_table_is_told_where_the_border_moves(
    make_table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_table("sync", lambda config: None)
    world.pinot.realtime[world.table] = {"tableType": "REALTIME"}
    ends = iter([None, None, 1_700_000_000_000])
    monkeypatch.setattr(
        "pinot_assets.session.commit.one_switch.time_boundary_ms", lambda config, times: next(ends, None)
    )
    world.write("P1")
    world.run()
    assert not [note for note in world.notes if "hybrid" in note]  # None before, None after
    world.write("P2")
    world.run()
    (note,) = [note for note in world.notes if "hybrid" in note]
    assert note.endswith(
        "rows up to 2023-11-14 22:13:20 UTC came from files and the later ones from the stream;"
        " after the switch the time boundary is none (all from the stream)"
    )


@pytest.mark.parametrize("known", [True, False])
def test_no_move_of_a_border_is_told_that_was_set_by_hand(
    make_table: Any, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    world = make_table("sync", lambda config: None)
    world.pinot.realtime[world.table] = {"tableType": "REALTIME"}
    ends = iter([None, 1_700_000_000_000])
    monkeypatch.setattr(
        "pinot_assets.session.commit.one_switch.time_boundary_ms", lambda config, times: next(ends, None)
    )
    world.write("P1")
    world.pinot.fix_time_boundary(world.table, 1_600_000_000_000)
    if not known:
        world.pinot.refuse_connection("fixed_time_boundary_ms")
    world.run()
    notes = [note for note in world.notes if "hybrid" in note]
    assert all("set by hand to 2020-09-13 12:26:40 UTC and does not move" in note for note in notes)
    assert len(notes) == known


@pytest.mark.parametrize(("mode", "refused"), [("append", False), ("sync", False), ("swap", True)])
def test_the_task_that_moves_a_stream_into_the_table_and_a_swap(
    make_world: Any, mode: str, refused: bool
) -> None:
    world = make_world(mode)
    task = {"taskTypeConfigsMap": {"RealtimeToOfflineSegmentsTask": {}}}
    world.pinot.realtime[world.table] = {"tableType": "REALTIME", "task": task}
    world.write("P1")
    if refused:
        with pytest.raises(SpecError, match="every visible segment"):
            world.run()
    else:
        world.run()
    assert world.visible == ([] if refused else ["P1"])
    assert [e for e in world.pinot.lineage(world.table) if e.state is LineageState.IN_PROGRESS] == []


def append_that_keeps(config: JsonObject) -> None:
    append_type(config)
    config["segmentsConfig"]["replacedSegmentsRetentionPeriod"] = "1d"


@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_e31_an_append_table_may_replace_where_pinot_keeps_what_is_replaced(
    make_table: MakeTable, mode: str
) -> None:
    world = make_table(mode, append_that_keeps, pinot={"version": "1.6.0"})
    world.write("P1", "Q")
    world.run()
    world.write(P1="P1.1")
    world.run()
    world.later(19)
    world.pinot.run_retention(world.table)
    assert world.visible == ["P1.1", "Q"]
    world.rollback()
    assert world.visible == ["P1", "Q"]
    world.assert_settled()


@pytest.mark.parametrize(
    ("mode", "more"), [("sync", {}), ("swap", {}), ("append", {"onSpecChange": "rebuild"})]
)
def test_e31_and_is_refused_where_it_does_not(make_table: MakeTable, mode: str, more: dict[str, str]) -> None:
    world = make_table(mode, append_that_keeps, pinot={"version": "1.5.1"}, **more)
    world.write("P1")
    with pytest.raises(SpecError, match=r"no way back(.|\n)*1\.5\.1"):
        world.run()
    assert (world.builds, world.visible) == (0, [])


def test_e32_a_sync_table_of_that_type_does_not_read_again_what_expired(make_table: MakeTable) -> None:
    world = make_table("sync", append_that_keeps, pinot={"version": "1.6.0"})
    world.write("P1", "P2")
    world.run()
    expire(world, "P1")
    for _ in range(2):
        assert world.run().result is TriggerResult.NOTHING
    world.write(P1="P1.1")
    world.run()
    assert (world.visible, world.built) == (["P1.1", "P2"], ["P1"])
    expire(world, "P1")
    world.remove("P1")
    world.run()
    assert world.visible == ["P2"]
    world.assert_settled()
