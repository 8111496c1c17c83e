"""The writing calls on Pinot's own controller and data managers of 1.5.1, judged by what the table shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fakes.pauseless.servers import PauselessCluster
from fakes.pauseless.table import Rows, rows_table
from fakes.realtime.operator_client import OperatorClient

from pinot_assets.errors import PinotError
from pinot_assets.pinot.realtime import SEGMENT_LEVEL
from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.model.state import Copy, PauseReason, RealtimeState, SegmentStatus, upload_of

pytestmark = pytest.mark.integration

ROWS = {"realtime.segment.flush.threshold.rows": "1000"}
"""500 a segment."""


@pytest.fixture
def rows(whole: PauselessCluster) -> Iterator[Rows]:
    with rows_table(whole, **ROWS) as rows:
        yield rows


@pytest.fixture
def pinot(whole: PauselessCluster) -> Iterator[OperatorClient]:
    with whole.pinot() as pinot:
        yield pinot


@contextmanager
def store_away(rows: Rows) -> Iterator[None]:
    folder = rows.cluster.deep_store / rows.name
    assert not folder.exists()
    folder.write_text("in the way")
    try:
        yield
    finally:
        folder.unlink()


def count(state: RealtimeState, status: SegmentStatus) -> int:
    return sum(segment.status is status for segment in state.segments)


def settled(state: RealtimeState) -> bool:
    return all(replica.ideal == replica.external for s in state.segments for replica in s.replicas)


def test_paused_with_its_reason_and_resumed(rows: Rows, pinot: OperatorClient) -> None:
    rows.send(100)
    rows.until_all_found()
    pinot.pause(rows.table, "new disks")
    state = rows.until(
        lambda s: (count(s, SegmentStatus.DONE), count(s, SegmentStatus.IN_PROGRESS)) == (2, 0)
    )
    assert (state.pause.reason, state.pause.comment) == (PauseReason.ADMINISTRATIVE, "new disks")
    by_name = {answer.name: answer for answer in examine_state(state)}
    assert by_name["consumption"].message == "an operator paused the table (new disks)"
    pinot.resume(rows.table)
    state = rows.until(lambda s: count(s, SegmentStatus.IN_PROGRESS) == 2 and settled(s))
    assert not state.pause.whole


def test_a_topic_is_paused_on_its_own(rows: Rows, pinot: OperatorClient) -> None:
    rows.send(100)
    rows.until_all_found()
    pinot.pause_topics(rows.table, [0])
    state = rows.until(
        lambda s: count(s, SegmentStatus.IN_PROGRESS) == 0 and count(s, SegmentStatus.COMMITTING) == 0
    )
    assert (state.pause.whole, state.pause.topics) == (False, {0})
    by_name = {answer.name: answer for answer in examine_state(state)}
    assert by_name["consumption"].message == "0 partitions are consumed; topics 0 are paused"
    assert by_name["next_segment"].passed
    pinot.resume_topics(rows.table, [0])
    state = rows.until(lambda s: count(s, SegmentStatus.IN_PROGRESS) == 2)
    assert state.pause.topics == frozenset()


def test_commits_are_forced_and_their_job_tells(rows: Rows, pinot: OperatorClient) -> None:
    rows.send(100)
    rows.until_all_found()
    first = rows.look().segments[0].name
    job = pinot.force_commit_segments(rows.table, [first])
    assert job is not None
    state = rows.until(lambda s: count(s, SegmentStatus.DONE) == 1)
    assert [s.name for s in state.segments if s.status is SegmentStatus.DONE] == [first]
    assert pinot.force_commit_pending(job) == frozenset()
    assert pinot.force_commit(rows.table) not in (None, job)
    rows.until(lambda s: count(s, SegmentStatus.DONE) >= 2)


def test_a_young_segment_is_uploaded_only_by_force(rows: Rows, pinot: OperatorClient) -> None:
    with store_away(rows):
        rows.send(1000)
        state = rows.until(lambda s: count(s, SegmentStatus.DONE) == 2 and settled(s))
    names = [s.name for s in state.segments if s.status is SegmentStatus.DONE]
    assert {s.copy for s in state.segments if s.status is SegmentStatus.DONE} == {Copy.PEERS_ONLY}
    pinot.upload_to_deep_store(rows.table, names)
    pinot.run_validation(rows.table)
    pinot.run_validation_with(rows.table, SEGMENT_LEVEL)
    assert {s.copy for s in rows.look().segments if s.status is SegmentStatus.DONE} == {Copy.PEERS_ONLY}
    pinot.force_upload_to_deep_store(rows.table, names)
    rows.until(lambda s: all(one.copy is Copy.DEEP_STORE for one in s.segments if one.name in names))


def test_what_a_server_does_itself(rows: Rows, pinot: OperatorClient) -> None:
    rows.send(1000)
    state = rows.until(lambda s: count(s, SegmentStatus.DONE) == 2 and settled(s))
    segment = state.segments[0]
    url = state.servers[segment.replicas[0].server].admin_url
    assert url is not None
    uploaded = pinot.server_uploads(url, rows.table, segment.name, seconds=30)
    assert upload_of(uploaded.rpartition("/")[2]) == segment.name
    committed = pinot.server_uploads_committed(url, rows.table, segment.name, seconds=30)
    assert (committed["segment.realtime.status"], committed["segment.crc"]) == ("DONE", segment.crc)
    with pytest.raises(PinotError, match="400"):  # it has a URL
        pinot.reingest(url, segment.name)
    assert pinot.reingesting(url) == frozenset()
    pinot.reset_replica(rows.table, segment.name, segment.replicas[0].server)
    rows.until(settled)
    node = pinot.segment_node(rows.table, segment.name)
    pinot.write_segment(rows.table, node.with_fields(**{"segment.download.url": ""}))
    assert rows.look().segments[0].copy is Copy.PEERS_ONLY
    with pytest.raises(PinotError, match="500"):  # its version is another one now
        pinot.write_segment(rows.table, node)


def test_everything_from_a_segment_on_is_deleted(rows: Rows, pinot: OperatorClient) -> None:
    rows.send(2000)
    state = rows.until(lambda s: count(s, SegmentStatus.DONE) == 4 and settled(s))
    first, second = (s.name for s in state.segments if s.partition == 0 and s.sequence < 2)
    for call in (pinot.preview_delete_from, pinot.delete_from):
        with pytest.raises(PinotError, match="should be paused"):
            call(rows.table, [second])
    pinot.pause(rows.table)
    rows.until(lambda s: count(s, SegmentStatus.IN_PROGRESS) == 0 and count(s, SegmentStatus.COMMITTING) == 0)
    shown = json.dumps(pinot.preview_delete_from(rows.table, [second]))
    assert second in shown
    assert first not in shown
    pinot.delete_from(rows.table, [second])
    state = rows.until(lambda s: [one.name for one in s.segments if one.partition == 0] == [first])
    pinot.delete_realtime_segments(rows.table, [first])
    rows.until(lambda s: first not in {one.name for one in s.segments})


def test_a_config_is_replaced_and_a_rebalance_shown_first(rows: Rows, pinot: OperatorClient) -> None:
    config = pinot.table_config(rows.table)
    assert config is not None
    config["segmentsConfig"] |= {"retentionTimeUnit": "DAYS", "retentionTimeValue": "3"}
    pinot.update_realtime_config(config)
    assert rows.look().settings.retention_ms == 3 * 86_400_000
    shown = pinot.preview_rebalance(rows.table, {"minAvailableReplicas": "1"})
    assert shown["status"] in ("NO_OP", "DONE")
    assert shown["rebalanceSummaryResult"]
    begun = pinot.rebalance(rows.table, {"minAvailableReplicas": "1"})
    assert begun["status"] in ("NO_OP", "DONE", "IN_PROGRESS")
