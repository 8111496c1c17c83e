"""The writing calls that every release has, on a real one: each judged by what the table shows then."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.realtime.kafka_table import Clicks

from pinot_assets.errors import PinotError, PinotNotFound
from pinot_assets.realtime.health.consuming import next_segment
from pinot_assets.realtime.model.state import Copy, RealtimeState, SegmentStatus, upload_of

pytestmark = pytest.mark.integration


def committed(state: RealtimeState) -> int:
    return sum(segment.status is SegmentStatus.DONE for segment in state.segments)


def test_a_server_uploads_its_copy_and_the_node_is_written(clicks: Clicks) -> None:
    with clicks.store_away():
        clicks.send(1000)
        # A replica that still builds is asked in vain, with the same 500.
        state = clicks.until(lambda s: committed(s) == 2 and len(s.live_copies(s.segments[0])) == 2)
        segment = state.segments[0]
        assert segment.copy is Copy.PEERS_ONLY
        url = state.servers[segment.replicas[0].server].admin_url
        assert url is not None
        with pytest.raises(PinotError, match="status 500"):
            clicks.pinot.server_uploads(url, clicks.table, segment.name, seconds=30)
    node = clicks.pinot.segment_node(clicks.table, segment.name)
    uploaded = clicks.pinot.server_uploads(url, clicks.table, segment.name, seconds=30)
    assert upload_of(uploaded.rpartition("/")[2]) == segment.name
    clicks.pinot.write_segment(clicks.table, node.with_fields(**{"segment.download.url": uploaded}))
    state = clicks.look()
    assert (state.segments[0].copy, state.segments[0].url) == (Copy.DEEP_STORE, uploaded)
    with pytest.raises(PinotError, match="500"):  # its version is another one now
        clicks.pinot.write_segment(clicks.table, node)
    with pytest.raises(PinotNotFound):
        clicks.pinot.server_uploads(url, clicks.table, segment.name.replace("__0__0", "__0__9"), seconds=30)


def test_what_was_deleted_is_gone(clicks: Clicks) -> None:
    clicks.send(1000)
    # Deleted while a replica still builds, it stays CONSUMING there.
    state = clicks.until(lambda s: committed(s) == 2 and len(s.live_copies(s.segments[0])) == 2)
    clicks.pinot.delete_realtime_segments(clicks.table, [state.segments[0].name])
    clicks.until(lambda s: state.segments[0].name not in {segment.name for segment in s.segments})


def test_a_config_is_replaced_and_a_rebalance_shown_first(clicks: Clicks) -> None:
    config = clicks.pinot.table_config(clicks.table)
    assert config is not None
    config["segmentsConfig"] |= {"retentionTimeUnit": "DAYS", "retentionTimeValue": "3"}
    clicks.pinot.update_realtime_config(config)
    assert clicks.look().settings.retention_ms == 3 * 86_400_000
    shown = clicks.pinot.preview_rebalance(clicks.table, {"minAvailableReplicas": "1"})
    assert shown["status"] in ("NO_OP", "DONE")
    assert clicks.pinot.rebalance(clicks.table, {"minAvailableReplicas": "1"})["status"] in (
        "NO_OP", "IN_PROGRESS",
    )  # fmt: skip


def test_a_newest_segment_that_pinot_never_mends_is_deleted_and_read_again(clicks: Clicks) -> None:
    def arrived(state: RealtimeState, *there: str) -> bool:
        return [replica.external for replica in state.latest()[0].replicas] == list(there)

    clicks.send(1100)
    state = clicks.until(
        lambda s: (
            committed(s) == 2
            and s.latest()[0].sequence == 1  # it is made a moment after the one before is DONE
            and set(s.queryable.values()) == {1100}
            and arrived(s, "CONSUMING", "CONSUMING")
        )
    )
    newest = state.latest()[0]
    path = f"IDEALSTATES/{clicks.table}"
    node = clicks.pinot.versioned_node(path)
    mixed = dict(zip((r.server for r in newest.replicas), ("ONLINE", "OFFLINE"), strict=True))
    clicks.pinot.put_node(path, replace(node, maps={**node.maps, newest.name: mixed}))

    def broken(state: RealtimeState) -> bool:
        return "which Pinot never repairs" in next_segment(state).message

    # Deleted while a server is still on the way there, it may stay CONSUMING on it.
    clicks.until(lambda s: broken(s) and arrived(s, "ERROR", "OFFLINE"))
    clicks.pinot.run_validation(clicks.table)
    clicks.pinot.delete_realtime_segments(clicks.table, [newest.name])
    clicks.until(lambda s: newest.name not in {segment.name for segment in s.segments})
    clicks.pinot.resume(clicks.table)  # before 1.3 no validation alone makes what is missing

    def read_again(state: RealtimeState) -> bool:
        again = state.latest()[0]
        return (again.status, again.start_offset) == (SegmentStatus.IN_PROGRESS, newest.start_offset)

    state = clicks.until(lambda s: read_again(s) and set(s.queryable.values()) == {1100})
    assert next_segment(state).passed
