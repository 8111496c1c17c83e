"""What is sent to a Pinot to change a REALTIME table, and what a lost answer means."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest
from fakes.realtime.memory import MINUTE_MS, S1, S2, TABLE, FakeRealtime
from fakes.realtime.operator_client import OperatorClient

from pinot_assets.core.connections import PinotConnection
from pinot_assets.errors import PinotError, PinotNotFound, SwitchStateUnknown
from pinot_assets.pinot.realtime import NAMES_A_CALL, SEGMENT_LEVEL

HOST1 = "http://host1:8097"
BOTH = {S1: "ERROR", S2: "ERROR"}


@pytest.fixture
def fake() -> FakeRealtime:
    return FakeRealtime()


@pytest.fixture
def pinot(fake: FakeRealtime) -> Iterator[OperatorClient]:
    with fake.pinot() as pinot:
        yield pinot


def sent(write: Callable[[OperatorClient], object]) -> httpx.Request:
    """The only request that this makes."""
    requests: list[httpx.Request] = []

    def keep(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={})

    with OperatorClient(PinotConnection("http://c:1"), httpx.MockTransport(keep)) as pinot:
        write(pinot)
    (request,) = requests
    return request


def test_pause_and_resume(fake: FakeRealtime, pinot: OperatorClient) -> None:
    fake.segment(status="IN_PROGRESS", end=50)
    pinot.pause(TABLE, "new disks")
    assert (fake.look().pause.whole, fake.look().pause.comment) == (True, "new disks")
    assert {s.status for s in fake.look().segments} == {"DONE"}
    pinot.resume(TABLE)
    state = fake.look()
    assert (state.pause.whole, state.latest()[0].status) == (False, "IN_PROGRESS")


def test_topics(fake: FakeRealtime, pinot: OperatorClient) -> None:
    pinot.pause_topics(TABLE, [1, 0])
    assert fake.look().pause.topics == {0, 1}
    pinot.resume_topics(TABLE, [0])
    assert (fake.look().pause.topics, fake.look().pause.whole) == ({1}, False)


def test_force_commit_tells_its_job_from_1_0_on() -> None:
    new, old = FakeRealtime(), FakeRealtime("0.11.0")
    for fake in (new, old):
        fake.segment(status="IN_PROGRESS", end=50)
    with new.pinot() as pinot:
        assert pinot.force_commit(TABLE) == "job0"
    with old.pinot() as pinot:
        assert pinot.force_commit(TABLE) is None
    assert len(old.look().segments) == 2


def test_some_segments_only(fake: FakeRealtime, pinot: OperatorClient) -> None:
    first = fake.segment(0, 0, "IN_PROGRESS", end=50)
    fake.segment(1, 0, "IN_PROGRESS", end=50)
    pinot.force_commit_segments(TABLE, [first])
    assert [s.name for s in fake.look().segments if s.status == "DONE"] == [first]


@pytest.mark.parametrize(
    "write",
    [
        lambda p: p.upload_to_deep_store(TABLE, []),
        lambda p: p.force_upload_to_deep_store(TABLE, []),
        lambda p: p.delete_from(TABLE, []),
        lambda p: p.preview_delete_from(TABLE, []),
    ],
)
def test_no_names_are_never_sent(write: Callable[[OperatorClient], object], pinot: OperatorClient) -> None:
    with pytest.raises(ValueError, match="no segments are named"):
        write(pinot)


def test_validation_is_a_get_and_with_properties_a_post(fake: FakeRealtime, pinot: OperatorClient) -> None:
    name = fake.segment(url="")
    pinot.run_validation(TABLE)
    assert fake.nodes[name].fields["segment.download.url"] == ""
    pinot.run_validation_with(TABLE, SEGMENT_LEVEL)
    assert fake.nodes[name].fields["segment.download.url"]
    request = sent(lambda p: p.run_validation(TABLE))
    assert (request.method, request.url.params["tableName"]) == ("GET", "clicks")


def test_an_old_pinot_takes_no_properties() -> None:
    with FakeRealtime("1.3.0").pinot() as pinot, pytest.raises(PinotError, match="405"):
        pinot.run_validation_with(TABLE, SEGMENT_LEVEL)


def test_uploads_name_their_segments_some_at_a_time(fake: FakeRealtime, pinot: OperatorClient) -> None:
    names = [fake.segment(0, number, url="") for number in range(NAMES_A_CALL + 1)]
    pinot.upload_to_deep_store(TABLE, names)
    assert all(node.fields["segment.download.url"] for node in fake.nodes.values())
    assert len([call for call in fake.asked if "uploadFromServerToDeepstore" in call]) == 2


def test_a_young_segment_is_uploaded_only_by_force(fake: FakeRealtime, pinot: OperatorClient) -> None:
    name = fake.segment(url="", age_ms=MINUTE_MS)
    pinot.upload_to_deep_store(TABLE, [name])
    assert fake.nodes[name].fields["segment.download.url"] == ""
    pinot.force_upload_to_deep_store(TABLE, [name])
    assert fake.nodes[name].fields["segment.download.url"] != ""


def test_one_replica_is_reset_and_no_other(fake: FakeRealtime, pinot: OperatorClient) -> None:
    name = fake.segment(states=BOTH)
    pinot.reset_replica(TABLE, name, S1)
    assert fake.external[name] == {S1: "ONLINE", S2: "ERROR"}


def test_a_server_uploads_and_the_node_is_written_after(fake: FakeRealtime, pinot: OperatorClient) -> None:
    name = fake.segment(url="")
    node = pinot.segment_node(TABLE, name)
    url = pinot.server_uploads(HOST1, TABLE, name, seconds=30)
    pinot.write_segment(TABLE, node.with_fields(**{"segment.download.url": url}))
    assert fake.nodes[name].fields["segment.download.url"] == url
    with pytest.raises(PinotError, match="500"):  # somebody wrote it since
        pinot.write_segment(TABLE, node)


def test_a_node_read_without_its_version_is_not_written(fake: FakeRealtime, pinot: OperatorClient) -> None:
    fake.segment()
    (node,) = pinot.children(f"PROPERTYSTORE/SEGMENTS/{TABLE}")
    with pytest.raises(PinotError, match="without its version"):
        pinot.write_segment(TABLE, node)


def test_a_committed_upload_tells_the_whole_node(fake: FakeRealtime, pinot: OperatorClient) -> None:
    name = fake.segment(status="COMMITTING")
    told = pinot.server_uploads_committed(HOST1, TABLE, name, seconds=30)
    assert told["segment.realtime.status"] == "DONE"
    fake.external[name] = {S1: "OFFLINE"}
    with pytest.raises(PinotNotFound):
        pinot.server_uploads_committed(HOST1, TABLE, name, seconds=30)


def test_reingestion(fake: FakeRealtime, pinot: OperatorClient) -> None:
    name = fake.segment(status="COMMITTING", states=BOTH)
    assert pinot.reingest(HOST1, name) == "j1"
    assert fake.nodes[name].fields["segment.realtime.status"] == "DONE"
    with pytest.raises(PinotError, match="already present"):
        pinot.reingest(HOST1, name)


def test_deleting(fake: FakeRealtime, pinot: OperatorClient) -> None:
    names = [fake.segment(0, number) for number in range(4)]
    pinot.delete_realtime_segments(TABLE, names[:1])
    for call in (pinot.preview_delete_from, pinot.delete_from):
        with pytest.raises(PinotError, match="should be paused"):
            call(TABLE, [names[2]])
    pinot.pause(TABLE)
    preview = pinot.preview_delete_from(TABLE, [names[2]])
    assert preview["partitions"]["0"]["segmentsToDelete"] == names[2:]
    pinot.delete_from(TABLE, [names[2]])
    assert [s.name for s in fake.look().segments] == names[1:2]


def test_config_and_rebalance(fake: FakeRealtime, pinot: OperatorClient) -> None:
    config = pinot.table_config(TABLE)
    assert config is not None
    pinot.update_realtime_config(config | {"segmentsConfig": {"replication": "1"}})
    assert fake.look().settings.replication == 1
    assert pinot.preview_rebalance(TABLE, {})["preChecksResult"]
    assert pinot.rebalance(TABLE, {})["jobId"] == "r1"


def test_a_rebalance_is_shown_first_with_pinots_pre_checks() -> None:
    shown = sent(lambda p: p.preview_rebalance(TABLE, {"downtime": "false"})).url.params
    assert (shown["dryRun"], shown["preChecks"], shown["downtime"]) == ("true", "true", "false")
    done = sent(lambda p: p.rebalance(TABLE, {"downtime": "false"})).url.params
    assert (done["dryRun"], done["downtime"], done["type"]) == ("false", "false", "REALTIME")
    assert "preChecks" not in done


def test_a_lost_answer_is_not_sent_again_and_unknown(fake: FakeRealtime, pinot: OperatorClient) -> None:
    name = fake.segment(states=BOTH)
    fake.lost.add("/segments/")
    with pytest.raises(SwitchStateUnknown):
        pinot.reset_replica(TABLE, name, S1)
    assert fake.external[name][S1] == "ONLINE"  # it happened
    assert len([call for call in fake.asked if "reset" in call]) == 1
