"""What `pinot_assets.realtime.read.reading` promises, held against the fake and a real Pinot.

Every call is judged by what the table shows afterwards, never by its answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.realtime.operator_client import OperatorClient
from packaging.version import Version

from pinot_assets.errors import PinotError, PinotNotFound
from pinot_assets.pinot.realtime import SEGMENT_LEVEL
from pinot_assets.pinot.versions import release
from pinot_assets.realtime.model.state import (
    Copy,
    LlcSegment,
    PauseReason,
    RealtimeState,
    SegmentStatus,
    upload_of,
)
from pinot_assets.realtime.operations.rebalance_plan import Preview, Request, judge

Lab = Any  # fakes.realtime.flowing.FakeClicks or fakes.realtime.kafka_table.Clicks
URL = "segment.download.url"


def count(state: RealtimeState, status: SegmentStatus) -> int:
    return sum(segment.status is status for segment in state.segments)


def settled(state: RealtimeState, rows: int) -> bool:
    """Each broker finds all rows, in segments that were seen too, and all replicas are as they should be."""
    names = {segment.name for segment in state.segments}
    return (
        set(state.queryable.values()) == {rows}
        and all(names >= answered.keys() for answered in state.answered.values())
        and set(state.unread) <= {"tmp_uploads"}
        and all(r.ideal == r.external for segment in state.segments for r in segment.replicas)
    )


def filled(lab: Lab, rows: int) -> RealtimeState:
    """So many rows are sent, and all that makes segments is committed."""
    lab.send(rows)
    full = lab.sent // 1000 * 2
    state: RealtimeState = lab.until(lambda s: count(s, SegmentStatus.DONE) == full and settled(s, lab.sent))
    return state


def offsets(state: RealtimeState) -> list[tuple[int, int, SegmentStatus | None, str | None, str | None]]:
    return [(s.partition, s.sequence, s.status, s.start_offset, s.end_offset) for s in state.segments]


def named(state: RealtimeState, name: str) -> LlcSegment | None:
    return next((segment for segment in state.segments if segment.name == name), None)


def admin_url(state: RealtimeState, segment: LlcSegment) -> str:
    url = state.servers[segment.replicas[0].server].admin_url
    assert url is not None
    return url


def unknown(segment: LlcSegment) -> str:
    """A name like that, which no segment has."""
    return segment.name.replace("__0__", "__7__", 1)


# --- consumption ---------------------------------------------------------------------------------------


def test_a_new_table_consumes_each_partition_from_its_start(lab: Lab) -> None:
    state = lab.until(lambda s: settled(s, 0) and len(s.consumption) == 4)
    assert offsets(state) == [(p, 0, SegmentStatus.IN_PROGRESS, "0", None) for p in (0, 1)]
    assert {(s.copy, s.crc, s.size_bytes, s.total_docs) for s in state.segments} == {
        (Copy.NEVER_SET, None, None, None)
    }
    assert {r.external for s in state.segments for r in s.replicas} == {"CONSUMING"}
    assert {(one.state, one.offset) for one in state.consumption} == {("CONSUMING", 0)}
    assert (state.pause.whole, state.committing_listed) == (False, frozenset())


def test_a_full_segment_is_committed_and_the_next_one_follows(lab: Lab) -> None:
    state = filled(lab, 1200)
    assert offsets(state) == [
        (partition, *rest)
        for partition in (0, 1)
        for rest in ((0, SegmentStatus.DONE, "0", "500"), (1, SegmentStatus.IN_PROGRESS, "500", None))
    ]
    done = state.segments[0]
    assert (done.copy, done.total_docs, len(state.live_copies(done))) == (Copy.DEEP_STORE, 500, 2)
    assert str(done.crc).isdigit()
    assert (done.size_bytes is None) == (release(state.cluster.version) < Version("1.3"))
    state = lab.until(lambda s: {one.offset for one in s.consumption} == {600})
    assert {one.segment for one in state.consumption} == {s.name for s in state.latest().values()}
    assert {(p.earliest, p.latest) for p in state.stream.values()} == {(0, 600)}


def test_a_paused_table_commits_what_it_has_and_goes_on_where_it_stopped(lab: Lab) -> None:
    lab.send(200)
    lab.until(lambda s: settled(s, 200))
    lab.pinot.pause(lab.table)
    state = lab.until(lambda s: count(s, SegmentStatus.IN_PROGRESS) == 0 and settled(s, 200))
    assert state.pause.reason is PauseReason.ADMINISTRATIVE
    assert [(s.status, s.end_offset, s.total_docs) for s in state.segments] == [
        (SegmentStatus.DONE, "100", 100)
    ] * 2
    lab.send(200)
    lab.pinot.pause(lab.table)
    lab.pinot.run_validation(lab.table)
    assert count(lab.look(), SegmentStatus.IN_PROGRESS) == 0
    lab.pinot.resume(lab.table)
    state = lab.until(lambda s: settled(s, 400))
    assert not state.pause.whole
    assert [(s.sequence, s.start_offset) for s in state.latest().values()] == [(1, "100")] * 2
    lab.pinot.resume(lab.table)
    assert len(lab.look().segments) == 4


def test_a_forced_commit_ends_what_is_consumed_and_names_its_job_from_1_0_on(lab: Lab) -> None:
    lab.send(200)
    state = lab.until(lambda s: settled(s, 200))
    job = lab.pinot.force_commit(lab.table)
    assert (job is None) == (release(state.cluster.version) < Version("1.0"))
    state = lab.until(lambda s: count(s, SegmentStatus.DONE) == 2 and settled(s, 200))
    assert [s.end_offset for s in state.segments if s.status is SegmentStatus.DONE] == ["100", "100"]
    assert count(state, SegmentStatus.IN_PROGRESS) == 2


def test_a_validation_leaves_a_table_that_is_well_as_it_is(lab: Lab) -> None:
    state = filled(lab, 1200)
    lab.pinot.run_validation(lab.table)
    assert offsets(lab.until(lambda s: settled(s, 1200))) == offsets(state)


# --- copies ----------------------------------------------------------------------------------------------


def test_a_commit_passes_a_deep_store_that_is_away_and_a_server_uploads_it_later(lab: Lab) -> None:
    with lab.store_away():
        state = filled(lab, 1000)
        done = state.segments[0]
        assert {s.copy for s in state.segments if s.status is SegmentStatus.DONE} == {Copy.PEERS_ONLY}
        assert len(state.live_copies(done)) == 2
        with pytest.raises(PinotError, match="500"):
            lab.pinot.server_uploads(admin_url(state, done), lab.table, done.name, seconds=30)
    crcs = {
        lab.pinot.server_crc(str(state.servers[r.server].admin_url), lab.table, done.name)
        for r in done.replicas
    }
    assert done.crc in crcs  # the committer's; each replica that built it by itself may have another
    uploaded = lab.pinot.server_uploads(admin_url(state, done), lab.table, done.name, seconds=30)
    assert upload_of(uploaded.rpartition("/")[2]) == done.name
    assert lab.look().segments[0].copy is Copy.PEERS_ONLY  # the node is ours to write
    node = lab.pinot.segment_node(lab.table, done.name).with_fields(**{URL: uploaded})
    lab.pinot.write_segment(lab.table, node)
    after = lab.look().segments[0]
    assert (after.copy, after.url, after.crc) == (Copy.DEEP_STORE, uploaded, done.crc)


def test_a_server_uploads_only_what_it_has_built(lab: Lab) -> None:
    lab.send(200)
    state = lab.until(lambda s: settled(s, 200))
    consuming = state.segments[0]
    at = admin_url(state, consuming)
    with pytest.raises(PinotError, match="500"):
        lab.pinot.server_uploads(at, lab.table, consuming.name, seconds=30)
    with pytest.raises(PinotNotFound):
        lab.pinot.server_uploads(at, lab.table, unknown(consuming), seconds=30)
    with pytest.raises(PinotNotFound):
        lab.pinot.server_crc(at, lab.table, unknown(consuming))
    with pytest.raises(PinotNotFound):
        lab.pinot.server_uploads(at, "nowhere_REALTIME", consuming.name, seconds=30)


def test_a_node_is_written_only_at_the_version_that_was_read(lab: Lab) -> None:
    done = filled(lab, 1000).segments[0]
    node = lab.pinot.segment_node(lab.table, done.name)
    lab.pinot.write_segment(lab.table, node.with_fields(note="first"))
    with pytest.raises(PinotError, match="500"):
        lab.pinot.write_segment(lab.table, node.with_fields(note="second"))
    again = lab.pinot.segment_node(lab.table, done.name)
    assert (again.simple["note"], again.version) == ("first", node.version + 1)
    assert lab.pinot.segment_stats(lab.table)[done.name].version == again.version
    assert again.simple.items() >= node.simple.items()
    with pytest.raises(PinotNotFound):
        lab.pinot.segment_node(lab.table, unknown(done))


def test_a_replica_is_reset_alone_and_comes_back(lab: Lab) -> None:
    state = filled(lab, 1200)
    done, consuming = state.segments[0], state.segments[1]
    for segment in (done, consuming):
        lab.pinot.reset_replica(lab.table, segment.name, segment.replicas[0].server)
    after = lab.until(lambda s: settled(s, 1200))
    assert offsets(after) == offsets(state)
    # Nothing happens to a copy that is not there; a segment that is not there is an error.
    lab.pinot.reset_replica(lab.table, done.name, "Server_nowhere_1")
    with pytest.raises(PinotNotFound):
        lab.pinot.reset_replica(lab.table, unknown(done), done.replicas[0].server)


def test_a_deleted_segment_is_gone_and_its_offsets_are_not_read_again(lab: Lab) -> None:
    state = filled(lab, 1200)
    done = state.segments[0]
    lab.pinot.delete_realtime_segments(lab.table, [done.name, unknown(done)])
    after = lab.until(lambda s: named(s, done.name) is None and settled(s, 700))
    assert offsets(after) == offsets(replace(state, segments=state.segments[1:]))


def test_a_newest_segment_that_is_deleted_begins_again_when_the_table_is_resumed(lab: Lab) -> None:
    newest = filled(lab, 1200).latest()[0]
    lab.pinot.delete_realtime_segments(lab.table, [newest.name])
    # From the ideal state it is gone first; resumed before its node is, the table would go on without it.
    lab.until(lambda s: named(s, newest.name) is None and settled(s, 1100))
    lab.pinot.resume(lab.table)
    again = lab.until(lambda s: settled(s, 1200)).latest()[0]
    assert (again.status, again.start_offset) == (SegmentStatus.IN_PROGRESS, "500")


# --- config and rebalance ------------------------------------------------------------------------------


def test_a_config_is_read_as_it_was_written(lab: Lab) -> None:
    config = lab.pinot.table_config(lab.table)
    assert config["tableName"] == lab.table
    config["segmentsConfig"] |= {"retentionTimeUnit": "DAYS", "retentionTimeValue": "3"}
    lab.pinot.update_realtime_config(config)
    assert lab.pinot.table_config(lab.table)["segmentsConfig"] == config["segmentsConfig"]
    assert lab.look().settings.retention_ms == 3 * 86_400_000


def test_a_balanced_table_has_nothing_to_move(lab: Lab) -> None:
    state = filled(lab, 1200)
    old = release(state.cluster.version) < Version("1.0")
    request = Request.of()
    shown = Preview.from_json(lab.pinot.preview_rebalance(lab.table, request.options))
    # Before 1.0 a request to reassign instances is always something to do.
    assert shown.status == ("DONE" if old else "NO_OP")
    assert shown.target == {s.name: frozenset(r.server for r in s.replicas) for s in state.segments}
    assert bool(shown.checks) == (release(state.cluster.version) >= Version("1.4"))
    # A controller that has just started has not looked at the disks yet, and says so.
    objections = judge(request, state, shown).objections
    assert [one for one in objections if not one.name.startswith("diskUtilization")] == []
    begun = lab.pinot.rebalance(lab.table, {**request.options, "reassignInstances": "false"})
    assert begun["status"] == "NO_OP"
    assert ("jobId" in begun) == (not old)
    assert offsets(lab.until(lambda s: settled(s, 1200))) == offsets(state)


# --- what is not there -----------------------------------------------------------------------------------

NOWHERE = "nowhere_REALTIME"


def test_a_table_that_is_not_there_is_not_changed(lab: Lab) -> None:
    pinot: OperatorClient = lab.pinot
    segment = "nowhere__0__0__20260101T0000Z"
    for call in (
        lambda: pinot.pause(NOWHERE),
        lambda: pinot.resume(NOWHERE),
        lambda: pinot.force_commit(NOWHERE),
        lambda: pinot.run_validation(NOWHERE),
        lambda: pinot.preview_rebalance(NOWHERE, {}),
        lambda: pinot.rebalance(NOWHERE, {}),
        lambda: pinot.reset_replica(NOWHERE, segment, "Server_nowhere_1"),
        lambda: pinot.delete_realtime_segments(NOWHERE, [segment]),
    ):
        with pytest.raises(PinotNotFound):
            call()


def test_a_table_that_is_not_there_has_nothing(lab: Lab) -> None:
    pinot: OperatorClient = lab.pinot
    assert (pinot.table_config(NOWHERE), pinot.ideal_state(NOWHERE)) == (None, None)
    assert (pinot.external_view(NOWHERE), pinot.segment_nodes(NOWHERE)) == ({}, {})
    assert (pinot.segment_stats(NOWHERE), pinot.committing_listed(NOWHERE)) == ({}, frozenset())
    with pytest.raises(PinotError, match="no broker"):
        pinot.brokers_of(NOWHERE)
    with pytest.raises(PinotError):
        pinot.consuming_segments(NOWHERE)
    assert lab.table in pinot.realtime_tables()


def test_an_old_release_refuses_what_came_later(old_lab: Lab) -> None:
    pinot, table = old_lab.pinot, old_lab.table
    state = old_lab.until(lambda s: settled(s, 0))
    one, at = state.segments[0].name, admin_url(state, state.segments[0])
    for call in (
        lambda: pinot.rebalance_status("nosuch"),
        lambda: pinot.force_commit_pending("nosuch"),
        lambda: pinot.delete_from(table, [one]),
        lambda: pinot.preview_delete_from(table, [one]),
        lambda: pinot.reingest(at, one),
        lambda: pinot.reingesting(at),
        lambda: pinot.server_uploads_committed(at, table, one, 30),
        lambda: pinot.pause_topics(table, [0]),
        lambda: pinot.resume_topics(table, [0]),
    ):
        with pytest.raises(PinotNotFound):
            call()
    for call in (
        lambda: pinot.run_validation_with(table, SEGMENT_LEVEL),
        lambda: pinot.upload_to_deep_store(table, [one]),
        lambda: pinot.force_upload_to_deep_store(table, [one]),
    ):
        with pytest.raises(PinotError, match="405"):
            call()
    assert offsets(old_lab.look()) == offsets(state)
