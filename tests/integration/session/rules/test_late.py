"""Calls that arrive late, when something else was done since: all of the old or all of the new, nothing lost.

Rules R1, R4, R14, R18, R19 and R21, edge cases E12, E20 and E22.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from fakes.pinot.lineage import SERVERS

from pinot_assets.errors import PinotAssetsError, PinotError, SessionError, SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot import LineageEntry, LineageState
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome

pytestmark = pytest.mark.integration

PLAIN = {"consistentPushEnabled": False, "consistentPushMaxRetries": 0}
Make = Callable[..., Any]


def published(world: Any) -> Any:
    world.write("P1", "P2")
    world.run()
    world.watch_anew()
    return world


@pytest.fixture
def synced(make_world: Make) -> Any:
    return published(make_world("sync"))


def segment_of(world: Any, value: str) -> str:
    (name,) = (segment for segment, values in world.builder.rows.items() if values == (value,))
    return str(name)


# --- an end ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", range(7))
@pytest.mark.parametrize(("mode", "step"), [("append", "run"), ("swap", "clear")])
def test_r19_an_end_that_arrives_between_two_looks_is_not_taken_for_a_loss(
    make_world: Make, mode: str, step: str, look: int
) -> None:
    """What it showed was deleted and what it replaced stayed hidden; or it was shown twice."""
    world = published(make_world(mode))
    world.write("P3")
    world.pinot.lose_call("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        world.run()
    entry = world.read_session().lineage_entry_id

    def arrive() -> None:
        with suppress(PinotError):
            world.pinot.end_replace_segments(world.table, entry)

    for _ in range(look):
        world.pinot.before("lineage", lambda: None)
    world.pinot.before("lineage", arrive)
    with suppress(PinotAssetsError):
        getattr(world, step)()
    world.pinot._before.clear()
    for _ in range(2):
        with suppress(PinotAssetsError):
            world.run()
    assert world.visible == ["P1", "P2", "P3"]
    assert set(world.shown) <= {("P1", "P2"), ("P1", "P2", "P3")}
    world.assert_settled()


def ends_late(world: Any, then: Callable[[], None] = lambda: None) -> None:
    """What was changed is staged, and its end gives no answer: it completes when the next forced start has
    checked what is visible and is about to write."""
    world.pinot.lose_call("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        world.run()
    entry, end = world.read_session().lineage_entry_id, world.pinot.end_replace_segments
    world.pinot.before_lineage_write(world.table, lambda: end(world.table, entry))
    world.pinot.after("force_start_replace_segments", then)


@pytest.mark.parametrize("step", ["clear", "run"])
@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_r01_an_end_that_completes_while_its_entry_is_renewed_is_shown_and_recorded(
    make_world: Make, mode: str, step: str
) -> None:
    """Queries saw neither side, and giving up deleted what was published."""
    world = published(make_world(mode))
    world.write("P3")
    ends_late(world)
    entry = world.read_session().lineage_entry_id
    if step == "run":
        world.pinot.age_entry(world.table, entry, 21)
    with pytest.raises(SwitchConflict, match="has just been switched"):
        getattr(world, step)()
    assert world.visible == ["P1", "P2", "P3"]
    assert (world.read_session().lineage_entry_id, world.read_session().revert_issued) == (entry, "")
    assert "force_revert_replace_segments" not in world.pinot.calls
    world.run()
    assert [s.outcome for s in world.read_sessions()] == [Outcome.PUBLISHED, Outcome.PUBLISHED]
    world.assert_settled()


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_r01_a_driver_that_dies_before_it_shows_that_end_again_is_gone_on_for(
    make_world: Make, mode: str
) -> None:
    world = published(make_world(mode))
    world.write("P3")
    ends_late(world, world.die)
    with suppress(BaseException):
        world.clear()
    assert world.visible != ["P1", "P2", "P3"]
    world.clear()
    assert world.visible == ["P1", "P2", "P3"]
    assert world.read_sessions()[-1].outcome is Outcome.PUBLISHED
    world.assert_settled()


def test_r01_a_removal_that_completes_while_its_entry_is_renewed_is_recorded(synced: Any) -> None:
    synced.remove("P2")
    ends_late(synced)
    with pytest.raises(SwitchConflict, match="has just been switched"):
        synced.clear()
    synced.run()
    assert synced.visible == ["P1"]
    assert synced.read_sessions()[-1].outcome is Outcome.PUBLISHED


def test_e20_a_source_that_goes_after_the_end_was_sent_makes_a_new_switch(synced: Any) -> None:
    """The end cannot be repeated: until the entry was a day old, every run was refused."""
    synced.write(P1="P1.1")
    synced.pinot.lose_call("end_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        synced.run()
    synced.pinot.delete_segments(synced.table, [segment_of(synced, "P1")])
    synced.run()
    assert (synced.visible, synced.builds) == (["P1.1", "P2"], 2)
    synced.assert_settled()


# --- a revert --------------------------------------------------------------------------------------


def test_r02_what_a_revert_by_hand_brought_back_is_not_swept(synced: Any) -> None:
    """It was deleted as a stray, and its successor had gone with the revert: rows lost for good."""
    synced.write(P1="P1.1")
    synced.run()
    synced.pinot.revert_replace_segments(synced.table, synced.read_snapshot().lineage_entry_id)
    synced.pinot.run_retention(synced.table)  # the lineage knows nothing of it any more
    with pytest.raises(SessionError, match="another program undid"):
        synced.run()
    assert synced.visible == ["P1", "P2"]
    synced.rollback()
    assert synced.read_ledger() == {"P1": ("P1",), "P2": ("P2",)}
    assert synced.run().result is TriggerResult.HELD
    synced.resume()
    synced.run()
    assert synced.visible == ["P1.1", "P2"]
    synced.assert_settled()


def test_r04_an_entry_whose_revert_is_under_way_is_not_adopted(synced: Any) -> None:
    """The source goes back to what an earlier switch of the session had: only removals have equal names."""
    synced.write("P3")
    synced.run()
    aside = synced.folder / "aside"
    (synced.source / "P1").rename(aside)
    synced.trigger()
    entry = synced.read_session().lineage_entry_id
    aside.rename(synced.source / "P1")
    (synced.source / "P2").rename(aside)
    synced.pinot.lose_call("force_revert_replace_segments")
    with pytest.raises(SwitchConflict, match="could not be reverted"):
        synced.trigger()
    aside.rename(synced.source / "P2")
    synced.remove("P1")
    synced.run()
    with suppress(PinotError):
        synced.pinot.force_revert_replace_segments(synced.table, entry)
    assert synced.visible == ["P2", "P3"]
    synced.assert_settled()


def test_r21_a_republish_is_given_up_though_the_first_revert_of_its_entry_was_lost(synced: Any) -> None:
    synced.write("F1")
    synced.run()
    synced.write("F2")
    synced.run()
    synced.pinot.before("end_replace_segments", synced.die)
    with pytest.raises(BaseException, match=r"^$"), synced.driver() as driver:
        driver.rollback("1")
    synced.pinot.lose_call("force_revert_replace_segments")
    with pytest.raises(SwitchConflict, match="could not be reverted"):
        synced.clear()
    synced.clear()
    assert synced.read_sessions()[-1].outcome is Outcome.CLEARED
    assert synced.visible == ["F1", "F2", "P1", "P2"]
    synced.assert_settled()


# --- a start ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["earlier", "before", "after"])
def test_r01_a_start_of_what_was_replaced_since_does_not_hide_what_a_rollback_brings_back(
    synced: Any, when: str
) -> None:
    late = LineageEntry(
        "late", frozenset(), frozenset([segment_of(synced, "P1")]), LineageState.IN_PROGRESS, synced.now_ms
    )
    synced.write(P1="P1.1")
    synced.run()

    def land() -> None:
        synced.pinot.put_entry(synced.table, late)

    if when == "earlier":
        land()
    else:
        getattr(synced.pinot, when)("revert_replace_segments", land)
    synced.rollback()
    assert synced.visible == ["P1", "P2"]
    assert synced.pinot.visible_segments(synced.table) == set(synced.read_snapshot().segments)


def test_e22_a_late_start_of_a_removal_is_ours_and_stops_nothing(synced: Any) -> None:
    """It names no output, and so nothing of ours, beside what it was to remove."""
    synced.remove("P1")
    synced.pinot.lose_call("start_replace_segments")
    with pytest.raises(SwitchStateUnknown):
        synced.run()
    synced.clear()
    synced.pinot.start_replace_segments(synced.table, [segment_of(synced, "P1")], [])
    synced.write(P1="P1.1")
    synced.run()
    assert synced.visible == ["P1.1", "P2"]
    synced.assert_settled()


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_r18_what_a_late_start_hides_is_shown_when_the_ledger_is_rebuilt(make_world: Make, mode: str) -> None:
    """It was reverted as a lost session's, which deleted what was published."""
    world = published(make_world(mode))
    (done,) = world.pinot.lineage(world.table).in_state(LineageState.COMPLETED)
    late = replace(done, id="late", state=LineageState.IN_PROGRESS, timestamp_ms=done.timestamp_ms + 1)
    world.pinot.put_entry(world.table, late)
    with world.store() as store:
        store.zk.delete(store.path, recursive=True)
    assert world.run().result is TriggerResult.NOTHING
    assert (world.visible, world.builds) == (["P1", "P2"], 1)
    world.assert_settled()


# --- plain -----------------------------------------------------------------------------------------


def test_plain_a_file_whose_revert_was_sent_is_published_under_other_names(make_world: Make) -> None:
    world = published(make_world("sync", **PLAIN))
    world.write(P1="P1.1")
    world.trigger()
    world.audit()
    refused = segment_of(world, "P1.1")
    world.pinot.refuse_push(refused)
    world.pinot.lose_call("force_revert_replace_segments")
    with pytest.raises(SwitchConflict, match="could not be reverted"):
        world.publish()
    (entry,) = world.pinot.lineage(world.table).in_state(LineageState.IN_PROGRESS)
    world.pinot.accept_push(refused)
    world.run()
    with suppress(PinotError):
        world.pinot.force_revert_replace_segments(world.table, entry.id)
    world.run()
    assert world.visible == ["P1.1", "P2"]
    world.assert_settled()


def test_plain_a_file_whose_deletion_was_sent_is_published_under_other_names(make_world: Make) -> None:
    world = published(make_world("append", **PLAIN))
    world.write("F1")
    world.trigger()
    world.audit()
    refused = segment_of(world, "F1")
    for server in SERVERS:
        world.pinot.break_replica(world.table, refused, server)
    world.pinot.lose_call("delete_segments")
    with pytest.raises(SwitchStateUnknown):
        world.publish()
    for server in SERVERS:
        world.pinot.mend_replica(world.table, refused, server)
    world.run()
    world.pinot.delete_segments(world.table, [refused])
    assert world.visible == ["F1", "P1", "P2"]
    world.assert_settled()


# --- a driver that dies ----------------------------------------------------------------------------


def test_r14_a_revoked_receipt_stays_revoked_when_the_retry_dies(synced: Any) -> None:
    """What failed the audit was taken up again under its name, which Pinot holds with another content."""
    synced.write("F1", "F2")
    synced.trigger()
    segments, bad = synced.pinot._tables[synced.table].segments, segment_of(synced, "F1")
    segments[bad] = replace(segments[bad], crc=1)
    synced.audit()
    synced.builder.die_after = 0
    synced.dies()
    synced.run()
    assert synced.built == ["F1"]
    assert synced.visible == ["F1", "F2", "P1", "P2"]
    synced.assert_settled()


def test_e12_a_rollback_that_its_table_did_not_outlive_is_closed(
    synced: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced.write("P3")
    synced.run()
    old = synced.read_snapshot()
    synced.pinot.before("revert_replace_segments", synced.die)
    with pytest.raises(BaseException, match=r"^$"):
        synced.rollback()
    synced.pinot.delete_table(synced.table)
    synced.pinot.create_table(synced.read_spec().table_json)
    monkeypatch.setattr(SessionStore, "table_made_ms", lambda store: old.published_ms + 1)
    synced.run()
    assert synced.visible == ["P1", "P2", "P3"]
    synced.assert_settled()


# --- an upload -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_r02_an_upload_of_unknown_end_is_waited_for_before_the_next_look(make_world: Make, mode: str) -> None:
    """Two uploads of the same segments at a time can undo each other."""
    world = published(make_world(mode))
    world.write("P3")
    late: list[tuple[Any, ...]] = []
    push = world.pinot.push
    world.pinot.push = lambda *args, **options: late.append((args, options)) or unknown()
    with pytest.raises(SwitchStateUnknown):
        world.run()
    sent: list[str] = []

    def pushing(table: str, outputs: Any, **options: Any) -> Any:
        sent.extend(o.segment for o in outputs)
        return push(table, outputs, **options)

    world.pinot.push = pushing
    world.slept.clear()
    underway = {o.segment for args, _ in late for o in args[1]}

    def lands() -> None:
        while late:
            args, options = late.pop()
            push(*args, **{**options, "before_upload": lambda: None})

    world.on_sleep = lands
    world.run()
    assert world.slept[0] > world.waits.pinot_write - 5
    assert underway.isdisjoint(sent)
    assert world.visible == ["P1", "P2", "P3"]
    world.assert_settled()


def unknown() -> Any:
    raise SwitchStateUnknown("the upload was sent and no answer came")


# --- an interrupt ----------------------------------------------------------------------------------


class Terminated(BaseException):
    """As Dagster's interrupt: no error of ours, and no KeyboardInterrupt."""


def interrupted(world: Any, by: type[BaseException]) -> None:
    """The whole job, which is interrupted and lets go of its table."""

    def job(driver: Driver) -> None:
        with driver:
            driver.trigger()
            driver.audit()
            driver.publish()

    with world.driver() as driver, pytest.raises(by):
        job(driver)


@pytest.mark.parametrize("by", [KeyboardInterrupt, Terminated])
@pytest.mark.parametrize("method", ["start_replace_segments", "push", "end_replace_segments"])
def test_r02_a_write_amid_which_its_driver_was_interrupted_is_waited_for(
    synced: Any, method: str, by: type[BaseException]
) -> None:
    """The controller goes on with it, and a driver that lets go in order has to say so."""

    def interrupt() -> None:
        raise by

    synced.write("P3")
    synced.pinot.before(method, interrupt)
    interrupted(synced, by)
    assert synced.read_pointer().owner is not None
    with synced.store() as store:
        assert store.holder() is None
    synced.slept.clear()
    synced.run()
    assert synced.slept[0] > synced.waits.pinot_write - 5
    assert synced.visible == ["P1", "P2", "P3"]
    synced.assert_settled()


def test_r02_a_driver_that_was_interrupted_between_two_writes_leaves_nothing_to_wait_for(synced: Any) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    synced.write("P3")
    synced.pinot.before("online_replicas", interrupt)
    interrupted(synced, KeyboardInterrupt)
    assert synced.read_pointer().owner is None
