"""Plain push: every file on its own, in append and sync (docs/design/session.md#plain-push)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from pinot_assets.errors import PinotUnreachable, PushRefused, SnapshotIncomplete, SwitchStateUnknown
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome, PushKind, State

pytestmark = pytest.mark.integration

PLAIN = {"consistentPushEnabled": False, "consistentPushMaxRetries": 0}
Make = Callable[..., Any]


@pytest.fixture(params=["append", "sync"])
def plain(request: pytest.FixtureRequest, make_world: Make) -> Any:
    return make_world(request.param, **PLAIN)


def at_noon(plain: Any) -> None:
    """F1 and F2 are built, F3 to F5 have failed; P1 was published before."""
    plain.write("P1")
    plain.run()
    plain.write("F1", "F2", "F3", "F4", "F5")
    plain.builder.failing = {"F3", "F4", "F5"}
    plain.watch_anew()
    plain.run()


def test_files_are_seen_one_after_the_other_and_failed_ones_keep_none_back(plain: Any) -> None:
    at_noon(plain)
    assert plain.shown == [("P1",), ("F1", "P1"), ("F1", "F2", "P1")]
    last = plain.read_sessions()[-1]
    assert (last.push, last.state, last.outcome) == (PushKind.PLAIN, State.DONE, Outcome.PUBLISHED)
    assert (last.counts["done"], last.counts["failed"]) == (2, 3)
    assert "3 files failed" in last.last_error
    assert set(plain.read_ledger()) == {"P1", "F1", "F2"}
    plain.assert_settled()


def test_failed_files_are_tried_again_by_every_trigger(plain: Any) -> None:
    at_noon(plain)
    plain.builder.failing = {"F5"}
    plain.run()
    assert plain.built == ["F3", "F4", "F5"]
    assert plain.visible == ["F1", "F2", "F3", "F4", "P1"]
    for _ in range(3):  # nothing counts these
        report = plain.run()
        assert (report.result, plain.built) == (TriggerResult.FAILED, ["F5"])
        assert plain.read_session() is None
    plain.builder.failing = set()
    plain.run()
    assert plain.visible == ["F1", "F2", "F3", "F4", "F5", "P1"]
    assert plain.read_sessions()[-1].retry_count == 0
    plain.assert_settled()


def test_when_every_file_fails_nothing_is_left_and_the_ledger_stays(plain: Any) -> None:
    plain.write("P1")
    plain.run()
    before = plain.read_pointer().current_snapshot
    plain.write("F1")
    plain.builder.failing = {"F1"}
    report = plain.run()
    assert report.result is TriggerResult.FAILED
    last = plain.read_sessions()[-1]
    assert last.outcome is Outcome.ABANDONED_RETRIES
    assert plain.read_pointer().current_snapshot == before
    assert not any(last.id in info.key for info in plain.staging.store.list("segments"))
    with pytest.raises(SnapshotIncomplete, match="could not be built"):
        plain.publish()


def test_the_gate_tells_of_failed_files_and_lets_the_others_pass(plain: Any) -> None:
    plain.write("F1", "F2")
    plain.builder.failing = {"F2"}
    assert plain.trigger().result is TriggerResult.STAGED
    assert plain.visible == []  # nothing is in Pinot before the gate
    session, findings = plain.audit()
    by_name = {f.name: f for f in findings}
    assert (by_name["files_built"].found, by_name["files_built"].expected) == (1, 2)
    assert not by_name["files_built"].passed
    assert by_name["tars_in_place"].passed
    assert not any(f.blocks for f in findings)
    assert session.gate_open
    plain.publish()
    assert plain.visible == ["F1"]


def test_append_shows_a_rewritten_file_beside_its_older_version(make_world: Make) -> None:
    world = make_world("append", **PLAIN)
    world.write("F1", "F2")
    world.run()
    world.write(F1="F1.1")
    world.remove("F2")
    world.run()
    assert world.visible == ["F1", "F1.1", "F2"]
    world.assert_settled()


def test_sync_replaces_each_rewritten_file_under_its_own_entry(make_world: Make) -> None:
    world = make_world("sync", **PLAIN)
    world.write("F1", "F2", "F3")
    world.run()
    assert list(world.pinot.lineage(world.table)) == []  # new files need no entry
    world.watch_anew()
    world.write(F1="F1.1", F2="F2.1")
    world.remove("F3")
    world.run()
    assert world.shown == [
        ("F1", "F2", "F3"),
        ("F1.1", "F2", "F3"),
        ("F1.1", "F2.1", "F3"),
        ("F1.1", "F2.1"),
    ]
    entries = list(world.pinot.lineage(world.table))
    assert [e.state for e in entries] == [LineageState.COMPLETED] * 3
    assert [len(e.segments_to) for e in entries] == [1, 1, 0]
    world.assert_settled()


def test_a_pinot_that_takes_no_replacement_by_nothing_deletes_what_was_removed(make_world: Make) -> None:
    world = make_world("sync", pinot={"version": "0.11.0"}, **PLAIN)
    world.write("F1", "F2")
    world.run()
    world.remove("F2")
    world.run()
    assert world.visible == ["F1"]
    world.assert_settled()


def test_a_file_of_several_segments_is_seen_whole(plain: Any) -> None:
    plain.options["maxNumRecordsPerSegment"] = 1
    plain.write(F1="a b c")
    plain.run()
    assert plain.shown == [(), ("a", "b", "c")]
    plain.assert_settled()


def test_a_failed_rewrite_leaves_the_published_version(make_world: Make) -> None:
    world = make_world("sync", **PLAIN)
    world.write("F1", "F2")
    world.run()
    world.write(F1="F1.1", F2="F2.1")
    world.builder.failing = {"F1"}
    world.run()
    assert world.visible == ["F1", "F2.1"]
    assert world.read_ledger() == {"F1": ("F1",), "F2": ("F2.1",)}
    world.builder.failing = set()
    world.run()
    assert world.built == ["F1"]
    assert world.visible == ["F1.1", "F2.1"]


def test_a_file_that_pinot_refuses_keeps_no_other_back(plain: Any) -> None:
    plain.write("F1", "F2", "F3")
    report = plain.trigger()
    doomed = report.built[1].outputs[0].segment
    plain.pinot.refuse_push(doomed)
    plain.audit()
    plain.publish()
    assert plain.visible == ["F1", "F3"]
    assert set(plain.read_ledger()) == {"F1", "F3"}
    last = plain.read_sessions()[-1]
    (failure,) = plain.staging.failures(last.failures)
    assert (failure.code, failure.uri.rsplit("/", 1)[-1]) == ("NOT_PUBLISHED", "F2")
    plain.pinot.accept_push(doomed)
    plain.run()
    assert plain.visible == ["F1", "F2", "F3"]
    plain.assert_settled()


def test_a_file_that_no_server_loads_is_taken_back(plain: Any) -> None:
    plain.write("F1", "F2")
    report = plain.trigger()
    doomed = report.built[1].outputs[0].segment
    for server in ("Server_127.0.0.1_7051", "Server_127.0.0.1_7052"):
        plain.pinot.break_replica(plain.table, doomed, server)
    plain.audit()
    plain.publish()
    assert plain.visible == ["F1"]
    assert doomed not in plain.pinot.all_segments(plain.table)
    plain.assert_settled()


def test_a_tar_that_has_gone_keeps_its_own_file_back(plain: Any) -> None:
    plain.options["push.mode"] = "TAR"
    plain.write("F1", "F2")
    report = plain.trigger()
    gone = report.built[1].outputs[0]
    staging = plain.staging
    staging.store.delete(staging.key_of(gone.tar_uri))
    staging.store.delete(staging.key_of(gone.metadata_uri))
    _, findings = plain.audit()
    assert [f.name for f in findings if not f.passed] == ["tars_in_place"]
    plain.publish()
    assert plain.visible == ["F1"]


def test_when_pinot_takes_no_file_the_session_is_given_up(plain: Any) -> None:
    plain.write("F1")
    report = plain.trigger()
    plain.pinot.refuse_push(report.built[0].outputs[0].segment)
    plain.audit()
    with pytest.raises(SnapshotIncomplete, match="no file"):
        plain.publish()
    assert plain.read_session() is None
    assert plain.read_sessions()[-1].outcome is Outcome.ABANDONED_RETRIES
    plain.run()
    assert plain.visible == ["F1"]


# --- many files ------------------------------------------------------------------------------------


def reads_of(world: Any) -> int:
    """Looks at the whole table."""
    return sum(world.pinot.calls.count(read) for read in ("all_segments", "visible_segments", "segment_crcs"))


def test_new_files_of_one_segment_go_together(make_world: Make) -> None:
    reads = []
    for count in (6, 18):
        world = make_world("sync", **PLAIN)
        world.write(*(f"F{n:02}" for n in range(count)))
        world.trigger()
        world.audit()
        world.pinot.calls.clear()
        world.publish()
        assert world.pinot.calls.count("push") == 2  # the first shows what goes out in time
        assert len(world.visible) == count
        reads.append(reads_of(world))
        world.assert_settled()
        shutil.rmtree(world.folder)
        world.folder.mkdir()
    assert reads[0] == reads[1]


def test_what_takes_an_entry_goes_alone_and_in_its_turn(make_world: Make) -> None:
    world = make_world("sync", **PLAIN)
    world.write("D", "A")
    world.run()
    world.options["maxNumRecordsPerSegment"] = 1
    world.write("B", "C", "E", "F", A="A.1", D="D.1 D.2")
    world.watch_anew()
    world.run()
    assert [set(after) ^ set(before) for before, after in pairwise(world.shown)] == [
        {"A", "A.1"},
        {"B"},  # the first of them shows what goes out in time
        {"C"},
        {"D", "D.1", "D.2"},
        {"E", "F"},
    ]
    world.assert_settled()


@pytest.mark.parametrize("bad", [{2}, {2, 3}, {2, 5}, {1, 2, 3, 4, 5}])
def test_of_files_that_go_together_pinot_keeps_back_those_that_it_refuses(plain: Any, bad: set[int]) -> None:
    plain.write(*(f"F{n}" for n in range(6)))
    report = plain.trigger()
    doomed = {receipt.outputs[0].segment for receipt in report.built if int(receipt.uri[-1]) in bad}
    for name in doomed:
        plain.pinot.refuse_push(name)
    plain.audit()
    plain.publish()
    assert plain.visible == [f"F{n}" for n in range(6) if n not in bad]
    failed = plain.staging.failures(plain.read_sessions()[-1].failures)
    assert {int(f.uri[-1]) for f in failed} == bad
    for name in doomed:
        plain.pinot.accept_push(name)
    plain.run()
    assert plain.visible == [f"F{n}" for n in range(6)]
    plain.assert_settled()


def test_an_upload_of_many_that_is_left_unknown_is_looked_at_by_the_next_trigger(plain: Any) -> None:
    plain.write(*(f"F{n}" for n in range(6)))
    plain.trigger()
    plain.audit()
    plain.pinot.after("push", lambda: plain.pinot.lose_reply("push"))
    with pytest.raises(SwitchStateUnknown):
        plain.publish()
    plain.slept.clear()
    pushes = plain.pinot.calls.count("push")
    plain.run()
    assert plain.slept[0] > plain.waits.pinot_write - 5
    assert plain.pinot.calls.count("push") == pushes
    assert plain.visible == [f"F{n}" for n in range(6)]
    assert plain.read_sessions()[-1].failures is None
    plain.assert_settled()


def test_what_is_to_come_is_weighed_before_anything_is_published(
    plain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.write("F1", "F2")
    with monkeypatch.context() as patch:
        patch.setattr("pinot_assets.session.checks.capacity.quota_bytes", lambda table: 1)
        for _ in range(3):
            with pytest.raises(PushRefused, match=r"raise quota\.storage"):
                plain.run()
    assert "push" not in plain.pinot.calls
    builds = plain.builds
    plain.run()
    assert plain.builds == builds  # nothing is built twice
    assert plain.visible == ["F1", "F2"]
    plain.assert_settled()


CALLS = (
    "push",
    "start_replace_segments",
    "end_replace_segments",
    "online_replicas",
    "rebuild_routing",
)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", CALLS)
def test_a_driver_that_dies_is_followed_by_one_that_does_what_is_missing(
    make_world: Make, call: str, when: str
) -> None:
    world = make_world("sync", **PLAIN)
    world.write("F1", "F2", "F3")
    world.run()
    world.watch_anew()
    world.write("N1", "N2", F1="F1.1", F2="F2.1")
    world.remove("F3")
    built = world.builds
    getattr(world.pinot, when)(call, world.die)
    world.dies()
    world.run()
    assert world.visible == ["F1.1", "F2.1", "N1", "N2"]
    assert world.builds == built + 1  # nothing is built twice
    # Each file is there in one version at any time, new or old.
    for values in world.shown:
        assert [sorted(v[:2] for v in values).count(name) for name in ("F1", "F2")] == [1, 1], values
    world.assert_settled()


def test_a_change_of_the_spec_does_not_undo_what_began_to_be_published(make_world: Make) -> None:
    world = make_world("sync", **PLAIN)
    world.write("F1", "F2")
    world.pinot.after("push", world.die)
    world.dies()
    assert world.visible == ["F1"]
    world.options["consistentPushEnabled"] = True
    world.watch_anew()
    world.run()
    assert world.shown == [("F1",), ("F1", "F2")]
    assert [s.push for s in world.read_sessions()] == [PushKind.PLAIN]
    world.assert_settled()


def test_a_clear_finishes_what_began_to_be_published(plain: Any) -> None:
    plain.write("F1", "F2")
    plain.pinot.after("push", plain.die)
    plain.dies()
    plain.clear()
    assert plain.visible == ["F1", "F2"]
    plain.assert_settled()


def test_a_pinot_that_cannot_be_reached_is_no_file_s_fault(plain: Any) -> None:
    plain.write("F1", "F2")
    plain.trigger()
    plain.audit()
    plain.pinot.refuse_connection("push")
    with pytest.raises(PinotUnreachable):
        plain.publish()
    plain.run()
    assert plain.visible == ["F1", "F2"]
    assert plain.read_sessions()[-1].failures is None


def test_from_plain_to_consistent_push_an_unpublished_session_is_dropped(plain: Any) -> None:
    plain.write("F1", "F2")
    plain.builder.die_after = 1
    plain.dies()
    plain.options["consistentPushEnabled"] = True
    plain.run()
    assert [s.outcome for s in plain.read_sessions()] == [Outcome.ABANDONED_CONFIG, Outcome.PUBLISHED]
    assert plain.shown == [(), ("F1", "F2")]
