"""What the preflight reads, of a table that is there and of one that is to be made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from fakes.realtime.memory import MINUTE_MS, S1, S2, FakeRealtime
from fakes.realtime.unmade_table import UnmadeTable

from pinot_assets.errors import StreamUnreadable
from pinot_assets.realtime.model.state import LlcSegment, SegmentStatus
from pinot_assets.realtime.preflight.facts import Aim, Facts
from pinot_assets.realtime.preflight.gather import blocking_times, commit_start_s, gather, pauseless_times
from pinot_assets.realtime.preflight.judge import run_rules, verdict
from pinot_assets.realtime.read.stream import StreamRetention

WEEK = StreamRetention(7 * 86_400_000)


def week(_: Mapping[str, str]) -> StreamRetention:
    return WEEK


def facts(fake: FakeRealtime, aim: Aim | None = None, **config) -> Facts:
    with fake.pinot() as pinot:
        return gather(pinot, "clicks", {**fake.config, **config}, aim, week)


def test_a_table_that_is_there():
    fake = FakeRealtime()
    fake.segment(sequence=0, url="")
    fake.segment(sequence=1, status="COMMITTING")
    fake.segment(sequence=2, status="IN_PROGRESS")
    found = facts(fake)
    assert found.table == "clicks_REALTIME"
    assert found.aims == {Aim.BYPASS, Aim.PAUSELESS}
    assert found.held == found.target
    assert (found.committing, found.peers_only) == (1, 1)
    assert found.admin_ports == {S1: None, S2: None}
    assert found.cluster.version == "1.5.1"
    assert found.cluster.segment_store == {S1: "s3://b/d", S2: "s3://b/d"}
    assert found.retention == WEEK
    assert found.commit_start is not None
    assert found.commit_start.seconds < 2
    assert found.commit_times is not None
    assert found.commit_times.largest_bytes == 1000
    assert found.unread == {}


def test_an_aim_is_laid_over_the_config():
    fake = FakeRealtime()
    streams = fake.config["ingestionConfig"]["streamIngestionConfig"]["streamConfigMaps"]
    plain = {"ingestionConfig": {"streamIngestionConfig": {"streamConfigMaps": streams}}}
    assert facts(fake, **plain).aims == {Aim.BYPASS}
    pauseless = facts(fake, Aim.PAUSELESS, **plain)
    assert pauseless.aims == {Aim.BYPASS, Aim.PAUSELESS}
    assert pauseless.target.pauseless
    nothing = facts(fake, Aim.BYPASS, segmentsConfig={"replication": "2"}, **plain)
    assert nothing.aims == {Aim.BYPASS}
    assert nothing.target.peer_scheme is None


def test_a_table_to_be_made():
    found = facts(UnmadeTable())
    assert found.held is None
    assert found.admin_ports == {S1: None, S2: None}
    assert found.cluster.segment_store == {S1: "s3://b/d", S2: "s3://b/d"}
    assert found.commit_times is None
    assert found.unread == {}


def test_a_table_to_be_made_for_a_tenant_without_servers():
    found = facts(UnmadeTable(), tenants={"server": "other"})
    assert found.admin_ports == {}


def test_a_server_that_starts_is_reached_and_one_that_is_dead_is_not_asked():
    fake = FakeRealtime()
    fake.servers[S1].ready = False
    fake.kill(S2)
    assert facts(fake).admin_ports == {S1: None}


def test_a_server_that_does_not_answer():
    fake = FakeRealtime()
    fake.servers[S1].ready = None
    found = facts(fake)
    assert found.admin_ports[S2] is None
    assert "refused" in (found.admin_ports[S1] or "")
    assert "segment_store" in found.cluster.unread


def test_https_wants_its_own_port():
    fake = FakeRealtime()
    found = facts(fake, segmentsConfig={"replication": "2", "peerSegmentDownloadScheme": "https"})
    assert found.admin_ports[S1] == "its instance config names no adminHttpsPort"
    for server in fake.servers.values():
        server.ports["adminHttpsPort"] = 7443
    found = facts(fake, segmentsConfig={"replication": "2", "peerSegmentDownloadScheme": "https"})
    assert found.admin_ports == {S1: None, S2: None}


@pytest.mark.parametrize(
    ("away", "part"), [("controller/zk/getChildren", "peers_only"), ("controller/zk/lsl", "admin_ports")]
)
def test_what_does_not_answer_is_told_by_name(away, part):
    fake = FakeRealtime()
    fake.away.add(away)
    assert part in facts(fake).unread


def test_a_stream_that_cannot_be_read():
    def silent(_: Mapping[str, str]) -> StreamRetention:
        raise StreamUnreadable("the stream does not answer", why="KafkaConnectionError")

    fake = FakeRealtime()
    with fake.pinot() as pinot:
        found = gather(pinot, "clicks_REALTIME", fake.config, None, silent)
    assert found.unread == {"retention": "the stream does not answer: KafkaConnectionError"}
    (answer,) = [one for one in run_rules(found) if one.name == "stream_retention"]
    assert verdict(answer) == "warn"
    assert answer.message == "not known: the stream does not answer: KafkaConnectionError"


def test_each_of_several_streams_may_be_the_one_that_forgets():
    kept = {
        "week": StreamRetention(7 * 86_400_000),
        "compacted": StreamRetention(None, compacted=True),
        "small": StreamRetention(8 * 86_400_000, bytes_per_partition=10**9),
    }
    fake = FakeRealtime()
    streams = [{"streamType": "kafka", "stream.kafka.topic.name": topic} for topic in kept]
    fake.config["ingestionConfig"]["streamIngestionConfig"]["streamConfigMaps"] = streams
    with fake.pinot() as pinot:
        read = lambda stream: kept[stream["stream.kafka.topic.name"]]  # noqa: E731
        found = gather(pinot, "clicks_REALTIME", fake.config, None, read)
    assert found.retention == StreamRetention(7 * 86_400_000, 10**9, compacted=True)
    (answer,) = [one for one in run_rules(found) if one.name == "stream_retention"]
    assert "compacted" in answer.message


def segment(
    sequence: int, made_s: int, modified_s: int, status: SegmentStatus = SegmentStatus.DONE
) -> LlcSegment:
    name = f"clicks__0__{sequence}__x"
    made = LlcSegment(name, 0, sequence, 0, status, modified_ms=modified_s * 1000, size_bytes=sequence)
    return replace(made, made_ms=made_s * 1000)


def test_times_of_pauseless_commits():
    # Each was finished so long after its successor was made; the last one by a repair.
    done = [segment(0, 0, 140), segment(1, 100, 230), segment(2, 200, 900), segment(3, 300, 300)]
    times = pauseless_times(done)
    assert times is not None
    assert (times.seconds, times.late, times.largest_bytes) == (40.0, 1, 3)
    assert pauseless_times([segment(0, 0, 1, SegmentStatus.IN_PROGRESS)]) is None


def test_what_a_table_did_long_ago_is_not_judged():
    old = segment(0, 0, 900)
    newer = [segment(n, 1000 * n, 1000 * n + 1010) for n in range(1, 22)]
    times = pauseless_times([replace(old, size_bytes=10**9), *newer])
    assert times is not None
    assert (times.seconds, times.late, times.largest_bytes) == (10.0, 0, 21)
    slow = [segment(0, 0, 1), segment(1, 50, 60), *newer[1:]]
    assert commit_start_s(slow, 0.01, 0.2).seconds == pytest.approx(0.44)


def test_blocking_commits_show_their_sizes_alone():
    times = blocking_times([segment(4, 0, 99)])
    assert times is not None
    assert (times.seconds, times.late, times.largest_bytes) == (None, 0, 4)
    assert blocking_times([]) is None


def test_how_long_a_commit_start_takes():
    assert commit_start_s([], 0.01, 0.2).seconds == pytest.approx(0.44)
    slow = commit_start_s([segment(0, 0, 100), segment(1, 103, 104), segment(2, 404, 405)], 0.01, 0.2)
    assert slow.seconds == pytest.approx(3.42)
    assert "3.00 s between" in slow.how


def test_a_good_cluster_passes_what_can_be_measured():
    fake = FakeRealtime()
    fake.segment(sequence=0, age_ms=10 * MINUTE_MS)
    refused = [one for one in run_rules(replace(facts(fake))) if one.blocks]
    assert refused == []
