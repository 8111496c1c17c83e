"""A table's state as it is read: every part once, and one that is away spoils no other."""

from __future__ import annotations

from collections import Counter

import pytest
from fakes.realtime.memory import MINUTE_MS, NOW_MS, S1, S2, TABLE, FakeRealtime

from pinot_assets.errors import PinotNotFound, PinotUnreachable, StreamUnreadable
from pinot_assets.realtime.model.state import Copy, PauseReason, Replica, SegmentStatus
from pinot_assets.realtime.read.reading import consumption_of, read_state


def table(version: str = "1.5.1") -> FakeRealtime:
    fake = FakeRealtime(version)
    fake.segment(0, 0)
    fake.segment(0, 1, url="", states={S1: "ONLINE", S2: "ERROR"})
    fake.segment(0, 2, "COMMITTING", start=100, end=150)
    fake.segment(0, 3, "IN_PROGRESS", start=150, end=180)
    return fake


@pytest.mark.parametrize("version", ["1.5.1", "0.11.0"])
def test_the_whole_state(version: str) -> None:
    fake = table(version)
    committing = next(name for name in fake.nodes if "__2__" in name)
    fake.committing = [committing]
    fake.servers[S2].messages = [committing]
    state = fake.look()
    assert (state.table, state.read_ms, state.cluster.version) == (TABLE, NOW_MS, version)
    assert [s.sequence for s in state.segments] == [0, 1, 2, 3]
    done, peers, middle, consuming = state.segments
    assert (done.status, done.copy, done.total_docs, done.end_offset) == (
        SegmentStatus.DONE, Copy.DEEP_STORE, 100, "100",
    )  # fmt: skip
    assert (peers.copy, state.live_copies(peers)) == (Copy.PEERS_ONLY, (S1,))
    assert (middle.copy, middle.status) == (Copy.NEVER_SET, SegmentStatus.COMMITTING)
    assert middle.replicas[1] == Replica(S2, "ONLINE", "ONLINE", pending=True)
    assert (consuming.end_offset, consuming.total_docs) == (None, None)
    assert state.age_ms(done) == 10 * MINUTE_MS
    assert state.committing_listed == (frozenset() if version == "0.11.0" else {committing})
    assert {c.server: c.offset for c in state.consumption} == {S1: 180, S2: 180}
    assert state.stream[0].latest == 200
    assert state.servers[S1].admin_url == "http://host1:8097"
    assert state.cluster.segment_store == {S1: "s3://b/d", S2: "s3://b/d"}
    assert state.queryable == {"http://broker1:8099": 280, "http://broker2:8099": 280}
    assert state.unread == {"tmp_uploads": "no address of the deep store was given"}


def test_nothing_is_asked_twice() -> None:
    fake = table()
    fake.look()
    # Nodes are told by their query, which `asked` leaves out.
    calls = Counter(call for call in fake.asked if "/zk/" not in call)
    assert [call for call, times in calls.items() if times > 1] == []


def test_a_dead_server_is_not_asked_and_is_told_since_when() -> None:
    fake = table()
    fake.kill(S2, ago_ms=9000)
    state = fake.look()
    assert (state.servers[S2].alive, state.servers[S2].since_ms) == (False, NOW_MS - 9000)
    assert not state.servers[S2].serves
    assert [call for call in fake.asked if call.startswith("GET host2")] == []
    assert "ready" not in state.unread
    assert state.cluster.unread["segment_store"] == f"{S2}: it is not alive"


def test_one_that_is_starting_does_not_serve_and_a_silent_one_is_not_known() -> None:
    fake = table()
    fake.servers[S1].ready = False
    fake.servers[S2].ready = None
    state = fake.look()
    assert (state.servers[S1].ready, state.servers[S2].ready) == (False, None)
    assert state.unread["ready"].startswith(f"{S2}: ")


@pytest.mark.parametrize(
    ("away", "part"),
    [
        ("/tables/clicks_REALTIME/consumingSegmentsInfo", "consumption"),
        ("/v2/brokers", "answered"),
        ("broker2/query", "answered"),
        ("/tables/clicks_REALTIME/instances", "servers"),
    ],
)
def test_a_part_that_does_not_answer_is_told(away: str, part: str) -> None:
    fake = table()
    fake.away.add(away)
    state = fake.look()
    assert "refused" in state.unread[part]
    assert len(state.segments) == 4


def test_a_zookeeper_that_may_not_be_read_leaves_nothing_to_look_at() -> None:
    fake = table()
    fake.refused["/zk/"] = 403
    state = fake.look()
    assert {"segments", "modified_ms", "external", "servers", "pause", "committing_listed"} <= set(
        state.unread
    )
    assert (state.segments, state.servers, state.pause.whole) == ((), {}, False)


def test_a_stream_that_cannot_be_read() -> None:
    def unreadable(streams: object) -> dict[int, object]:
        raise StreamUnreadable("the stream is kinesis", why="pinot-assets reads only Kafka")

    with table().pinot() as pinot:
        state = read_state(pinot, "clicks", read_stream=unreadable)  # type: ignore[arg-type]
    assert (state.stream, state.unread["stream"]) == ({}, "pinot-assets reads only Kafka")


def test_no_such_table_and_no_controller() -> None:
    fake = table()
    with fake.pinot() as pinot:
        with pytest.raises(PinotNotFound, match="there is no table other_REALTIME"):
            read_state(pinot, "other")
        fake.away.add("/")
        with pytest.raises(PinotUnreachable):
            read_state(pinot, "clicks")


def test_what_only_one_of_the_three_places_knows() -> None:
    fake = FakeRealtime()
    orphan = fake.segment(0, 0)
    lost = fake.segment(0, 1)
    gone = fake.segment(0, 2)
    del fake.ideal[orphan], fake.nodes[lost], fake.nodes[gone], fake.ideal[gone]
    fake.ideal["uploaded_by_hand"] = {S1: "ONLINE"}
    found = {s.name: s for s in fake.look().segments}
    assert set(found) == {orphan, lost, gone}
    assert (found[orphan].in_ideal_state, found[orphan].stored) == (False, True)
    assert (found[lost].stored, found[lost].status, found[lost].created_ms) == (False, None, NOW_MS)
    assert found[gone].replicas == (Replica(S1, None, "ONLINE"), Replica(S2, None, "ONLINE"))


@pytest.mark.parametrize(
    ("fields", "reason", "topics"),
    [
        ({"isTablePaused": "true"}, PauseReason.ADMINISTRATIVE, set()),
        ({"isTablePaused": "false"}, None, set()),
        ({"pauseState": "{not json"}, PauseReason.OTHER, set()),
        ({"pauseState": '{"paused": false, "indexOfInactiveTopics": [0, 2]}'}, None, {0, 2}),
        (
            {"pauseState": '{"paused": true, "reasonCode": "STORAGE_QUOTA_EXCEEDED"}'},
            PauseReason.QUOTA,
            set(),
        ),
    ],
)
def test_pauses(fields: dict[str, str], reason: PauseReason | None, topics: set[int]) -> None:
    fake = table()
    fake.ideal_fields = fields
    state = fake.look()
    assert (state.pause.reason, state.pause.topics) == (reason, topics)


def test_a_segments_newest_time_in_milliseconds() -> None:
    fake = FakeRealtime()
    fake.nodes[fake.segment()].fields |= {"segment.end.time": "20000", "segment.time.unit": "DAYS"}
    assert fake.look().segments[0].end_time_ms == 20_000 * 86_400_000


@pytest.mark.parametrize(("said", "got"), [(-1, 0), (0, 0), (NOW_MS, NOW_MS), (None, None)])
def test_a_consumer_that_never_got_a_row_is_not_one_that_does_not_say(
    said: int | None, got: int | None
) -> None:
    """From 0.12 on a server that came back says -1, before 0."""
    info: dict[str, object] = {"serverName": "s", "consumerState": "CONSUMING"}
    info |= {} if said is None else {"lastConsumedTimestamp": said}
    (one,) = consumption_of({"clicks__0__0__x": [info]})
    assert one.consumed_ms == got
