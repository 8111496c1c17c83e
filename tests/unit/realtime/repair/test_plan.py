"""What the planner makes of each trouble, one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.realtime.hurt_tables import (
    BYPASS,
    NOW,
    OLD,
    PAUSELESS,
    consuming,
    replicas,
    segment,
    server,
    table,
)

from pinot_assets.realtime.model.settings import ClusterSettings
from pinot_assets.realtime.model.state import (
    NOT_PAUSED,
    LlcSegment,
    Pause,
    PauseReason,
    RealtimeState,
    SegmentStatus,
    StreamPartition,
    TmpUpload,
)
from pinot_assets.realtime.repair.model import Means, Memory, RepairLimits, RepairPlan, Step, StepKind
from pinot_assets.realtime.repair.plan import plan

PEERS_ONLY = segment(SegmentStatus.DONE, replicas(a="ONLINE", b="ONLINE"), "")
STORED = segment(SegmentStatus.DONE, replicas(a="ONLINE", b="ONLINE"), "s3://d/t/0")
COMMITTING = segment(SegmentStatus.COMMITTING, replicas(a="ONLINE", b="ONLINE"))
LOST = segment(SegmentStatus.COMMITTING, replicas(a="ONLINE>ERROR", b="ONLINE>ERROR"))
LIVING = (server("a"), server("b"))


def the_step(state: RealtimeState, memory: Memory | None = None) -> Step:
    found = plan(state, memory=memory or Memory())
    assert len(found.steps) == 1, found
    return found.steps[0]


def why_not(found: RepairPlan) -> str:
    assert not found.steps, found
    return " ".join(one.why for one in (*found.refusals, *found.waiting))


def on(version: str, **differs: bool) -> ClusterSettings:
    return replace(ClusterSettings(version), **differs)


# --- nothing to do -------------------------------------------------------------------------------------


def test_a_healthy_table_needs_nothing() -> None:
    assert plan(table(STORED, consuming())).all_well


def test_a_paused_table_needs_nothing() -> None:
    assert plan(table(STORED, pause=Pause(PauseReason.ADMINISTRATIVE))).all_well


def test_a_paused_topic_needs_nothing() -> None:
    assert plan(table(STORED, pause=Pause(topics=frozenset({0})))).all_well
    assert plan(table(STORED, pause=NOT_PAUSED)).steps


@pytest.mark.parametrize("part", ["segments", "external", "pending", "servers", "pause", "version"])
def test_nothing_is_decided_from_half_a_state(part: str) -> None:
    assert "no answer" in why_not(plan(table(PEERS_ONLY, LOST, unread={part: "no answer"})))


# --- no tar ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "means", "asked"),
    [
        ("1.5.1", Means.CONTROLLER, None),
        ("1.4.0", Means.SEGMENT_VALIDATION, None),
        ("1.3.0", Means.SERVER, "a"),
        ("0.11.0", Means.SERVER, "a"),
    ],
)
def test_peers_only_segments_are_uploaded(version: str, means: Means, asked: str | None) -> None:
    step = the_step(table(PEERS_ONLY, consuming(), cluster=on(version)))
    assert (step.kind, step.means, step.server) == (StepKind.UPLOAD, means, asked)
    assert step.segments == (PEERS_ONLY.name,)
    assert step.size_bytes == 1_000


def test_a_server_that_is_ready_is_asked_first() -> None:
    starting = (replace(server("a"), ready=None), server("b"))
    state = table(PEERS_ONLY, consuming(), servers=starting, cluster=on("0.11.0"))
    assert the_step(state).server == "b"


def test_the_validation_of_1_4_uploads_nothing_of_other_tables_unless_told_to() -> None:
    state = table(PEERS_ONLY, consuming(), settings=BYPASS, cluster=on("1.4.0"))
    assert the_step(state).means is Means.SERVER
    told = replace(state, cluster=on("1.4.0", deep_store_upload_retry=True))
    assert the_step(told).means is Means.SEGMENT_VALIDATION


def test_one_validation_uploads_all() -> None:
    second = segment(SegmentStatus.DONE, replicas(a="ONLINE", b="ONLINE"), "", partition=1)
    state = table(PEERS_ONLY, second, consuming(), consuming(1), cluster=on("1.4.0"))
    step = the_step(state)
    assert step.segments == (PEERS_ONLY.name, second.name)
    assert step.size_bytes == 2_000
    many = [segment(SegmentStatus.DONE, replicas(a="ONLINE"), "", sequence=n) for n in range(50)]
    long = the_step(table(*many, consuming(sequence=50), cluster=on("1.4.0")))
    assert (len(long.segments), long.deadline_s) == (50, 3600)


def test_young_segments_wait_for_pinots_own_commit() -> None:
    young = replace(PEERS_ONLY, modified_ms=NOW - 299_999)
    found = plan(table(young, consuming()))
    assert "300 s" in why_not(found)
    assert found.waiting[0].until_ms == NOW + 1


def test_a_blocking_commit_that_is_over_need_not_wait() -> None:
    young = replace(PEERS_ONLY, modified_ms=NOW - 1000)
    state = table(young, consuming(), settings=BYPASS, cluster=on("0.11.0"))
    assert the_step(state).segments == (young.name,)
    under_way = replace(young, replicas=replicas(a="CONSUMING>ONLINE", b="CONSUMING"))
    assert "300 s" in why_not(plan(table(under_way, settings=BYPASS, cluster=on("0.11.0"))))


def test_what_retention_deletes_soon_is_not_uploaded() -> None:
    ends = replace(PEERS_ONLY, end_time_ms=NOW - 6_500_000)
    expiring = table(ends, consuming(), settings=replace(PAUSELESS, retention_ms=10_000_000))
    assert "retention" in why_not(plan(expiring))


def test_a_completed_segment_without_any_url_needs_force() -> None:
    assert the_step(table(replace(PEERS_ONLY, url=None), consuming())).means is Means.FORCED
    uploaded = replace(PEERS_ONLY, status=SegmentStatus.UPLOADED)
    assert the_step(table(uploaded, consuming())).means is Means.FORCED
    assert the_step(table(uploaded, consuming(), cluster=on("1.4.0"))).means is Means.SERVER


def test_the_only_copy_goes_first() -> None:
    alone = segment(SegmentStatus.DONE, replicas(a="ONLINE", b="ONLINE>OFFLINE+"), "", partition=1)
    state = table(PEERS_ONLY, alone, consuming(), consuming(1))
    assert plan(state).steps[0].segments == (alone.name,)


def test_only_copies_on_a_dead_server_are_told() -> None:
    dead = (server("a", alive=False), server("b", alive=False))
    gone = segment(SegmentStatus.DONE, replicas(a="ONLINE>OFFLINE", b="ONLINE>OFFLINE"), "")
    found = plan(table(gone, consuming(), servers=dead))
    assert "down: a, b" in why_not(found)
    assert "start one" in found.refusals[0].remedy


def test_without_an_admin_address_an_old_pinot_cannot_upload() -> None:
    nameless = (server("a", admin_url=None), server("b", admin_url=None))
    found = plan(table(PEERS_ONLY, consuming(), servers=nameless, cluster=on("0.11.0")))
    assert "admin address" in why_not(found)


# --- COMMITTING ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "pauseless", "means"),
    [
        ("1.5.1", True, Means.CONTROLLER),
        ("1.5.1", False, Means.FORCED),
        ("1.4.0", True, Means.SEGMENT_VALIDATION),
        ("1.4.0", False, Means.SERVER),
    ],
)
def test_a_stuck_commit_is_finished_from_a_replica(version: str, pauseless: bool, means: Means) -> None:
    settings = PAUSELESS if pauseless else BYPASS
    step = the_step(table(COMMITTING, consuming(), settings=settings, cluster=on(version)))
    assert (step.kind, step.means) == (StepKind.FINISH, means)


@pytest.mark.parametrize("one", [PEERS_ONLY, COMMITTING])
def test_what_no_server_can_store_is_told(one: LlcSegment) -> None:
    cluster = replace(ClusterSettings("1.5.1"), segment_store={"a": None, "b": None})
    found = plan(table(one, consuming(), cluster=cluster))
    assert "has a segment store" in why_not(found)
    assert "segment.store.uri" in found.refusals[0].remedy


def test_a_lost_commit_is_read_again_by_a_live_server() -> None:
    servers = (server("a", alive=False), server("b"))
    step = the_step(table(LOST, consuming(), servers=servers))
    assert (step.kind, step.means, step.server) == (StepKind.REINGEST, Means.SERVER, "b")


def test_a_lost_commit_is_read_again_although_its_servers_still_wait_for_it() -> None:
    # Both were killed and restarted: STARTING, OFFLINE, a message each, for 600 s. No validation helps there.
    waiting = replace(LOST, replicas=replicas(a="ONLINE>OFFLINE+", b="ONLINE>OFFLINE+"))
    starting = (server("a", ready=False), server("b", ready=False))
    found = plan(table(waiting, consuming(), servers=starting))
    assert [step.kind for step in found.steps] == [StepKind.REINGEST]
    assert [one.subject for one in found.waiting] == ["a", "b"]


def test_a_server_that_has_just_come_back_may_have_it() -> None:
    waiting = replace(LOST, replicas=replicas(a="ONLINE>OFFLINE+", b="ONLINE>ERROR"))
    servers = (server("a", since_ms=NOW - 20_000), server("b"))
    assert "just started" in why_not(plan(table(waiting, consuming(), servers=servers)))


def test_what_a_server_still_builds_is_left_to_it() -> None:
    building = replace(
        LOST, replicas=replicas(a="ONLINE>CONSUMING", b="ONLINE>ERROR"), modified_ms=NOW - 400_000
    )
    found = plan(table(building, consuming()))
    assert "still building" in why_not(found)
    assert found.waiting[0].until_ms == NOW + 1_400_000
    longer = plan(table(replace(building, modified_ms=NOW - 1_800_001), consuming()))
    assert "has not built" in why_not(longer)


@pytest.mark.parametrize(
    ("earliest", "latest", "reason"),
    [(1, 10_000, "1 message gone, from 0 on"), (0, 99, "before 100"), (None, None, "not known")],
)
def test_what_the_stream_no_longer_holds_is_not_read_again(
    earliest: int | None, latest: int | None, reason: str
) -> None:
    stream = {} if earliest is None or latest is None else {0: StreamPartition(0, earliest, latest)}
    found = plan(table(LOST, consuming(), stream=stream))
    assert reason in why_not(found)
    assert "delete the segment" in found.refusals[0].remedy


@pytest.mark.parametrize("mode", [{"dedup": True}, {"upsert": "PARTIAL"}])
def test_tables_that_must_be_read_in_order_are_refused(mode: dict[str, object]) -> None:
    settings = replace(PAUSELESS, **mode)
    found = plan(table(LOST, consuming(), settings=settings))
    assert "in order" in why_not(found)
    assert "restart-from" in found.refusals[0].remedy
    allowed = replace(settings, recovery_always=True)
    assert the_step(table(LOST, consuming(), settings=allowed)).kind is StepKind.REINGEST


def test_what_has_a_url_is_not_read_again() -> None:
    assert "has a URL all the same" in why_not(plan(table(replace(LOST, url=""), consuming())))


def test_a_server_without_a_segment_store_is_not_asked() -> None:
    cluster = replace(ClusterSettings("1.5.1"), segment_store={"a": None, "b": "s3://d"})
    assert the_step(table(LOST, consuming(), cluster=cluster)).server == "b"
    nowhere = replace(cluster, segment_store={"a": None, "b": None})
    assert "no segment store" in why_not(plan(table(LOST, consuming(), cluster=nowhere)))


def test_the_validation_reads_again_where_no_server_can_be_asked() -> None:
    nameless = (server("a", admin_url=None), server("b", admin_url=None))
    assert the_step(table(LOST, consuming(), servers=nameless)).means is Means.VALIDATION
    one_waits = replace(LOST, replicas=replicas(a="ONLINE>ERROR", b="ONLINE>OFFLINE+"))
    assert "every replica is in ERROR" in why_not(plan(table(one_waits, consuming(), servers=nameless)))


def test_a_commit_that_runs_is_no_trouble() -> None:
    running = replace(LOST, replicas=replicas(a="ONLINE>CONSUMING", b="ONLINE"), modified_ms=NOW - 2_000)
    assert plan(table(running, consuming())).all_well
    broken = replace(LOST, modified_ms=NOW - 2_000)
    assert "300 s" in why_not(plan(table(broken, consuming())))


# --- ERROR -----------------------------------------------------------------------------------------------


def test_only_the_broken_replica_is_reset() -> None:
    broken = replace(STORED, replicas=replicas(a="ONLINE", b="ONLINE>ERROR"), modified_ms=NOW)
    step = the_step(table(broken, consuming()))
    assert (step.kind, step.server) == (StepKind.RESET, "b")


def test_a_replica_with_a_message_pending_is_not_reset() -> None:
    broken = replace(STORED, replicas=replicas(a="ONLINE", b="ONLINE>ERROR+"))
    assert "message" in why_not(plan(table(broken, consuming())))


def test_without_a_peer_scheme_a_broken_replica_waits_for_the_upload() -> None:
    broken = replace(PEERS_ONLY, replicas=replicas(a="ONLINE", b="ONLINE>ERROR"))
    step = the_step(table(broken, consuming(), settings=replace(BYPASS, peer_scheme=None)))
    assert step.kind is StepKind.UPLOAD


def test_with_the_store_down_a_broken_replica_loads_from_its_peer() -> None:
    broken = replace(PEERS_ONLY, replicas=replicas(a="ONLINE", b="ONLINE>ERROR"))
    state = table(broken, consuming())
    upload = the_step(state)
    later = replace(state, read_ms=NOW + 400_000)
    assert the_step(later, Memory().begun(upload, NOW)).kind is StepKind.RESET


def test_a_broken_consumer_is_reset_while_the_stream_has_its_rows() -> None:
    broken = consuming(a="CONSUMING", b="CONSUMING>ERROR")
    assert the_step(table(STORED, broken)).server == "b"
    gone = plan(table(STORED, broken, stream={0: StreamPartition(0, 150, 900)}))
    assert "fewer rows" in why_not(gone)


def test_a_replica_that_stopped_comes_back_with_the_next_segment() -> None:
    found = plan(table(STORED, consuming(a="CONSUMING", b="OFFLINE")))
    assert "stopped consuming" in why_not(found)


# --- nobody consumes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("latest", "why"),
    [
        (segment(SegmentStatus.COMMITTING, replicas(a="CONSUMING", b="CONSUMING")), "without a next segment"),
        (segment(SegmentStatus.IN_PROGRESS, ()), "not in the ideal state"),
        (segment(SegmentStatus.IN_PROGRESS, replicas(a="OFFLINE", b="OFFLINE")), "all replicas stopped"),
        (STORED, "no segment after"),
    ],
)
def test_a_validation_makes_the_next_segment(latest: LlcSegment, why: str) -> None:
    step = the_step(table(latest))
    assert (step.kind, step.means, step.partitions) == (StepKind.VALIDATE, Means.VALIDATION, (0,))
    assert why in step.why


def test_a_commit_that_goes_on_is_not_disturbed() -> None:
    half = segment(SegmentStatus.COMMITTING, replicas(a="CONSUMING", b="CONSUMING"), modified_ms=NOW - 60_000)
    assert "300 s" in why_not(plan(table(half)))
    seen_between = replace(STORED, modified_ms=NOW - 1_000)
    assert "while the table was being read" in why_not(plan(table(seen_between)))


def test_before_1_3_only_resuming_recreates_a_segment() -> None:
    assert the_step(table(STORED, settings=BYPASS, cluster=on("0.11.0"))).means is Means.RESUME
    stopped = segment(SegmentStatus.IN_PROGRESS, replicas(a="OFFLINE", b="OFFLINE"))
    assert the_step(table(stopped, settings=BYPASS, cluster=on("0.11.0"))).means is Means.VALIDATION


def test_what_no_validation_mends_is_told() -> None:
    # Pauseless was switched on between the two: Pinot looks for COMMITTING now.
    blocking = segment(SegmentStatus.DONE, replicas(a="CONSUMING", b="CONSUMING"), "s3://d/t/0")
    assert "only for COMMITTING" in why_not(plan(table(blocking)))
    mixed = segment(SegmentStatus.DONE, replicas(a="ONLINE", b="OFFLINE"), "s3://d/t/0")
    assert "Pinot only reports" in why_not(plan(table(mixed)))
    orphan = segment(SegmentStatus.DONE, (), "s3://d/t/1")
    assert "not in the ideal state" in why_not(plan(table(orphan)))
    nodeless = replace(consuming(), stored=False)
    assert "node in the property store is gone" in why_not(plan(table(nodeless)))


def test_rows_that_are_gone_are_told_while_consumption_goes_on() -> None:
    found = plan(table(STORED, stream={0: StreamPartition(0, 700, 900)}))
    assert [step.kind for step in found.steps] == [StepKind.VALIDATE]
    assert "600 messages" in found.refusals[0].why


def test_a_new_partition_is_taken_up() -> None:
    stream = {0: StreamPartition(0, 0, 900), 1: StreamPartition(1, 0, 5)}
    assert the_step(table(STORED, consuming(), stream=stream)).partitions == (1,)


def test_a_new_partition_of_a_paused_topic_is_left_alone() -> None:
    stream = {0: StreamPartition(0, 0, 900), 10_001: StreamPartition(10_001, 0, 5)}
    state = table(STORED, consuming(), stream=stream)
    assert the_step(state).partitions == (10_001,)
    assert plan(replace(state, pause=Pause(topics=frozenset({1})))).all_well


def test_no_validation_while_it_would_take_down_the_only_copies() -> None:
    broken = replace(
        PEERS_ONLY, replicas=replicas(a="ONLINE", b="ONLINE>ERROR"), modified_ms=NOW - 1_000, partition=1
    )
    state = table(STORED, broken, consuming(1), settings=BYPASS)
    found = plan(state)
    assert [step.kind for step in found.steps] == [StepKind.UPLOAD]
    assert any("take down every replica" in one.why for one in found.waiting)
    harmless = replace(state, cluster=on("1.5.1", error_auto_reset=False))
    assert {step.kind for step in plan(harmless).steps} == {StepKind.VALIDATE, StepKind.UPLOAD}


# --- what is left behind ------------------------------------------------------------------------------------


def test_a_forgotten_replica_is_a_persons_business() -> None:
    forgotten = replace(STORED, replicas=replicas(a="ONLINE>OFFLINE", b="ONLINE>OFFLINE"))
    found = plan(table(forgotten, consuming()))
    assert [(step.kind, step.server) for step in found.advice] == [(StepKind.RESTART, "b")]
    assert not found.steps


def test_a_server_that_has_just_started_is_given_five_minutes_to_load() -> None:
    forgotten = replace(STORED, replicas=replicas(a="ONLINE", b="ONLINE>OFFLINE"))
    for ago_ms, advised in ((299_999, []), (300_000, ["b"])):
        found = plan(table(forgotten, consuming(), servers=(server("a"), server("b", since_ms=NOW - ago_ms))))
        assert [step.server for step in found.advice] == advised


def test_no_restart_of_a_server_that_has_the_only_copy() -> None:
    forgotten = replace(STORED, replicas=replicas(a="ONLINE", b="ONLINE>OFFLINE"))
    alone = segment(SegmentStatus.DONE, replicas(b="ONLINE"), "", partition=1)
    found = plan(table(forgotten, alone, consuming(), consuming(1)))
    assert not found.advice
    assert [step.kind for step in found.steps] == [StepKind.UPLOAD]
    assert alone.name in found.waiting[0].why


def test_no_restart_while_another_server_is_away() -> None:
    forgotten = replace(STORED, replicas=replicas(a="ONLINE>OFFLINE", b="ONLINE>OFFLINE"))
    servers = (server("a", alive=False), server("b"))
    found = plan(table(forgotten, consuming(), servers=servers))
    assert not found.advice
    assert "does not serve" in found.waiting[0].why


DOWNLOAD = replace(BYPASS, completion_mode="DOWNLOAD")
ON_A_DISK = replace(PEERS_ONLY, replicas=replicas(a="ONLINE>ERROR", b="ONLINE>ERROR"))
BEFORE = tuple(server(name, since_ms=OLD - 1) for name in "ab")


def after_resets(segment: LlcSegment, *servers: str, ago_ms: int = 3_600_000) -> Memory:
    """What is remembered once its replicas there were reset."""
    memory = Memory()
    for name in servers:
        reset = Step(StepKind.RESET, Means.CONTROLLER_RESET, "", (segment.name,), name, deadline_s=660)
        memory = memory.begun(reset, NOW - ago_ms)
    return memory


def test_what_a_disk_alone_has_needs_a_restart_once_resets_were_in_vain() -> None:
    state = table(ON_A_DISK, consuming(), settings=DOWNLOAD, servers=BEFORE)
    assert not plan(state).advice
    first = plan(state).steps[0]
    assert (first.kind, first.server) == (StepKind.RESET, "a")
    assert not plan(state, memory=after_resets(ON_A_DISK, "a")).advice
    memory = after_resets(ON_A_DISK, "a", "b")
    (advice,) = plan(state, memory=memory).advice
    assert (advice.kind, advice.server, advice.segments) == (StepKind.RESTART, "b", (ON_A_DISK.name,))
    assert "on its disk" in advice.why
    # It has started since, and has not got it: then the other one has.
    back = replace(state, servers={"a": BEFORE[0], "b": server("b", since_ms=OLD + 1)})
    assert [step.server for step in plan(back, memory=memory).advice] == ["a"]
    both = replace(state, servers={name: server(name, since_ms=OLD + 1) for name in "ab"})
    assert not plan(both, memory=memory).advice


def test_a_reset_under_way_is_waited_for_before_a_restart() -> None:
    state = table(ON_A_DISK, consuming(), settings=DOWNLOAD, servers=BEFORE)
    assert not plan(state, memory=after_resets(ON_A_DISK, "a", "b", ago_ms=1_000)).advice


def test_no_restart_where_rows_in_memory_may_still_be_built() -> None:
    for settings in (BYPASS, replace(DOWNLOAD, peer_scheme=None)):
        state = table(ON_A_DISK, consuming(), settings=settings, servers=BEFORE)
        assert not plan(state, memory=after_resets(ON_A_DISK, "a", "b")).advice


def test_no_restart_of_the_one_server_that_has_another_segment() -> None:
    alone = segment(SegmentStatus.DONE, replicas(a="ONLINE>OFFLINE+", b="ONLINE"), "", partition=1)
    state = table(ON_A_DISK, consuming(), consuming(1), settings=DOWNLOAD, servers=BEFORE)
    found = plan(replace(state, segments=(*state.segments, alone)), memory=after_resets(ON_A_DISK, "a", "b"))
    assert not found.advice
    assert any(one.subject == "b" and alone.name in one.why for one in found.waiting)


def test_what_was_left_behind_is_cleared() -> None:
    state = table(
        STORED,
        consuming(),
        committing_listed=frozenset({STORED.name, "t__0__9__gone"}),
        tmp_uploads=(
            TmpUpload(f"{STORED.name}.tmp.1", 5, OLD - 1),
            TmpUpload("t__0__9__gone.tmp.1", 5, OLD - 1),
        ),
    )
    # The one goes over the whole table, the other does not care.
    unlist, deletion = plan(state).steps
    assert (unlist.kind, unlist.names) == (StepKind.UNLIST, (STORED.name, "t__0__9__gone"))
    assert (deletion.kind, deletion.names) == (StepKind.SWEEP, (f"{STORED.name}.tmp.1",))


def test_nothing_is_cleared_that_is_used_or_not_known() -> None:
    used = replace(STORED, url=f"s3://d/t/{STORED.name}.tmp.1")
    state = table(used, consuming(), tmp_uploads=(TmpUpload(f"{STORED.name}.tmp.1", 5, OLD - 1),))
    assert plan(state).all_well


def test_a_file_is_not_swept_that_a_node_names_with_escapes() -> None:
    name = "café__0__0__20260101T0000Z"
    used = replace(STORED, name=name, url=f"s3://d/caf%C3%A9/{name.replace('é', '%C3%A9')}.tmp.1")
    assert plan(table(used, consuming(), tmp_uploads=(TmpUpload(f"{name}.tmp.1", 5, OLD - 1),))).all_well


def test_what_is_larger_than_its_segment_is_not_cleared() -> None:
    """A segment read again from a stream that had forgotten its rows is short: the upload may have them."""
    assert STORED.size_bytes is not None
    same, more = (
        TmpUpload(f"{STORED.name}.tmp.{size}", size, OLD - 1)
        for size in (STORED.size_bytes + 1, STORED.size_bytes * 2)
    )
    found = plan(table(STORED, consuming(), tmp_uploads=(same, more)))
    assert [step.names for step in found.steps] == [(same.name,)]
    (refusal,) = found.refusals
    assert refusal.subject == STORED.name
    assert more.name in refusal.why


# --- limits and memory ------------------------------------------------------------------------------


def test_limits() -> None:
    many = [segment(SegmentStatus.DONE, replicas(a="ONLINE", b="ONLINE"), "", sequence=n) for n in range(4)]
    state = table(*many, consuming(sequence=4))
    assert len(plan(state, RepairLimits(steps=2)).steps) == 2
    assert len(plan(state, RepairLimits(upload_bytes=3_500)).steps) == 3
    assert len(plan(state, RepairLimits(upload_bytes=1)).steps) == 1


def test_an_upload_behind_others_is_waited_for_longer() -> None:
    at = replicas(a="ONLINE", b="ONLINE")
    large = [segment(SegmentStatus.DONE, at, "", sequence=n, size_bytes=4_000_000_000) for n in range(3)]
    first, second, third = plan(table(*large, consuming(sequence=3))).steps
    assert first.deadline_s == 360
    assert third.deadline_s - second.deadline_s == second.deadline_s - first.deadline_s == 200


def test_what_one_validation_uploads_is_remembered_in_one_node_of_zookeeper() -> None:
    at = replicas(a="ONLINE", b="ONLINE")
    many = [segment(SegmentStatus.DONE, at, "", sequence=n) for n in range(20_000)]
    (step,) = plan(table(*many, consuming(sequence=20_000), cluster=on("1.4.0"))).steps
    assert step.means is Means.SEGMENT_VALIDATION
    assert len(Memory().begun(step, NOW).to_text()) < 200_000


def test_a_step_waits_for_its_deadline_then_for_its_pause_then_a_person_is_told() -> None:
    state = table(PEERS_ONLY, consuming())
    step = the_step(state)
    memory = Memory().begun(step, NOW)
    waits = plan(replace(state, read_ms=NOW + 359_000), memory=memory).waiting
    assert "in progress" in waits[0].why
    pause = plan(replace(state, read_ms=NOW + 361_000), memory=memory).waiting
    assert pause[0].until_ms == NOW + 600_000
    again = plan(replace(state, read_ms=NOW + 600_000), memory=memory)
    assert again.steps == (step,)
    often = memory.begun(step, NOW).begun(step, NOW)
    told = plan(replace(state, read_ms=NOW + 2_400_000), memory=often)
    assert told.steps == (step,)
    assert "3 times without effect" in told.refusals[0].why
    assert "deep store" in told.refusals[0].remedy


def test_what_is_verified_is_forgotten() -> None:
    step = the_step(table(PEERS_ONLY, consuming()))
    assert Memory().begun(step, NOW).ended(step) == Memory()
    assert Memory().begun(step, NOW).since(NOW + 1) == Memory()
