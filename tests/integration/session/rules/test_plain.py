"""Plain push: every file on its own, in append and sync (spec/session.md section 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pinot_assets.errors import PinotUnreachable, SnapshotIncomplete
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.model import Outcome, PushKind, State
from pinot_assets.session.report import Result

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
    assert plain.seen == [("P1",), ("F1", "P1"), ("F1", "F2", "P1")]
    last = plain.sessions[-1]
    assert (last.push, last.state, last.outcome) == (PushKind.PLAIN, State.DONE, Outcome.PUBLISHED)
    assert (last.counts["done"], last.counts["failed"]) == (2, 3)
    assert "3 files failed" in last.last_error
    assert set(plain.ledger) == {"P1", "F1", "F2"}
    plain.assert_settled()


def test_failed_files_are_tried_again_by_every_trigger(plain: Any) -> None:
    at_noon(plain)
    plain.builder.failing = {"F5"}
    plain.run()
    assert plain.built == ["F3", "F4", "F5"]
    assert plain.visible == ["F1", "F2", "F3", "F4", "P1"]
    for _ in range(3):  # nothing counts these
        report = plain.run()
        assert (report.result, plain.built) == (Result.FAILED, ["F5"])
        assert plain.session is None
    plain.builder.failing = set()
    plain.run()
    assert plain.visible == ["F1", "F2", "F3", "F4", "F5", "P1"]
    assert plain.sessions[-1].retry_count == 0
    plain.assert_settled()


def test_when_every_file_fails_nothing_is_left_and_the_ledger_stays(plain: Any) -> None:
    plain.write("P1")
    plain.run()
    before = plain.pointer.current_snapshot
    plain.write("F1")
    plain.builder.failing = {"F1"}
    report = plain.run()
    assert report.result is Result.FAILED
    last = plain.sessions[-1]
    assert last.outcome is Outcome.ABANDONED_RETRIES
    assert plain.pointer.current_snapshot == before
    assert not any(last.id in info.key for info in plain.staging.store.list("segments"))
    with pytest.raises(SnapshotIncomplete, match="could not be built"):
        plain.publish()


def test_the_gate_tells_of_failed_files_and_lets_the_others_pass(plain: Any) -> None:
    plain.write("F1", "F2")
    plain.builder.failing = {"F2"}
    assert plain.trigger().result is Result.STAGED
    assert plain.visible == []  # nothing is in Pinot before the gate
    session, findings = plain.audit()
    told = {f.name: f for f in findings}
    assert (told["files_built"].found, told["files_built"].expected) == (1, 2)
    assert not told["files_built"].passed
    assert told["tars_in_place"].passed
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
    assert world.seen == [
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
    assert plain.seen == [(), ("a", "b", "c")]
    plain.assert_settled()


def test_a_failed_rewrite_leaves_the_published_version(make_world: Make) -> None:
    world = make_world("sync", **PLAIN)
    world.write("F1", "F2")
    world.run()
    world.write(F1="F1.1", F2="F2.1")
    world.builder.failing = {"F1"}
    world.run()
    assert world.visible == ["F1", "F2.1"]
    assert world.ledger == {"F1": ("F1",), "F2": ("F2.1",)}
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
    assert set(plain.ledger) == {"F1", "F3"}
    last = plain.sessions[-1]
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
    assert plain.session is None
    assert plain.sessions[-1].outcome is Outcome.ABANDONED_RETRIES
    plain.run()
    assert plain.visible == ["F1"]


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
    for seen in world.seen:
        assert [sorted(v[:2] for v in seen).count(name) for name in ("F1", "F2")] == [1, 1], seen
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
    assert world.seen == [("F1",), ("F1", "F2")]
    assert [s.push for s in world.sessions] == [PushKind.PLAIN]
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
    assert plain.sessions[-1].failures is None


def test_from_plain_to_consistent_push_an_unpublished_session_is_dropped(plain: Any) -> None:
    plain.write("F1", "F2")
    plain.builder.die_after = 1
    plain.dies()
    plain.options["consistentPushEnabled"] = True
    plain.run()
    assert [s.outcome for s in plain.sessions] == [Outcome.ABANDONED_CONFIG, Outcome.PUBLISHED]
    assert plain.seen == [(), ("F1", "F2")]
