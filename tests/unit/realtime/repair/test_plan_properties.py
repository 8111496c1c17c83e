"""What the planner keeps to, whatever a table looks like."""

from __future__ import annotations

from collections import Counter

from fakes.realtime.hurt_tables import hurt_tables, tried_tables
from hypothesis import given, settings

from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS, reingests
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, SegmentStatus
from pinot_assets.realtime.repair.facts import validation_resets
from pinot_assets.realtime.repair.model import (
    VALIDATIONS,
    Means,
    Memory,
    RepairLimits,
    RepairPlan,
    Step,
    StepKind,
)
from pinot_assets.realtime.repair.plan import plan

LIMITS = RepairLimits(steps=3, upload_bytes=6_000)

thorough = settings(max_examples=2000, deadline=None)


def by_name(state: RealtimeState) -> dict[str, LlcSegment]:
    return {segment.name: segment for segment in state.segments}


def taken_down(state: RealtimeState, step: Step) -> set[tuple[str, str]]:
    """Replicas (segment, server) that a step takes down for a while, or that would not survive it."""
    if step.kind is StepKind.RESET:
        return {(step.segments[0], step.server or "")}
    if step.kind is StepKind.RESTART:
        return {(s.name, r.server) for s in state.segments for r in s.replicas if r.server == step.server}
    if step.means in VALIDATIONS and validation_resets(state):
        return {
            (s.name, r.server)
            for s in state.segments
            if any(r.external == "ERROR" for r in s.replicas)
            for r in s.replicas
        }
    return set()


@thorough
@given(tried_tables())
def test_no_plan_takes_down_the_only_copy(given_: tuple[RealtimeState, Memory]) -> None:
    state, memory = given_
    found = plan(state, LIMITS, memory)
    down = set().union(*(taken_down(state, step) for step in found.steps))
    for advice in ([], *([step] for step in found.advice)):
        gone = down.union(*(taken_down(state, step) for step in advice))
        for segment in state.segments:
            live = state.live_copies(segment)
            if (
                live
                and segment.copy is not Copy.DEEP_STORE
                and segment.status is not SegmentStatus.IN_PROGRESS
            ):
                left = {(segment.name, server) for server in live} - gone
                assert left, f"{segment.name} would be nowhere: {found}"


@thorough
@given(tried_tables())
def test_no_restart_gives_up_rows_that_only_a_memory_has(given_: tuple[RealtimeState, Memory]) -> None:
    state, memory = given_
    for advice in plan(state, LIMITS, memory).advice:
        for segment in state.segments:
            here = {replica.server: replica for replica in segment.replicas}.get(advice.server or "")
            if here is None or segment.copy is Copy.DEEP_STORE or state.live_copies(segment):
                continue
            if segment.status is SegmentStatus.COMMITTING:
                assert here.external != "CONSUMING"
            if segment.name in advice.segments and here.external == "ERROR":
                # With DOWNLOAD and a peer scheme nothing is built from memory any more.
                assert state.settings.completion_mode == "DOWNLOAD"
                assert state.settings.peer_scheme is not None


@thorough
@given(tried_tables())
def test_no_segment_is_repaired_twice_at_once(given_: tuple[RealtimeState, Memory]) -> None:
    state, memory = given_
    found = plan(state, LIMITS, memory)
    touched = Counter(name for step in found.steps for name in step.segments)
    assert all(times == 1 for times in touched.values())
    for tried in (tried for tried in memory.tried.values() if tried.until_ms > state.read_ms):
        assert touched.keys().isdisjoint(tried.segments)
    over_all = [step for step in found.steps if step.means in VALIDATIONS]
    assert len(over_all) <= 1
    if over_all and validation_resets(state):
        others = [step for step in found.steps if step not in over_all]
        assert not [step for step in others if step.kind in (StepKind.RESET, StepKind.REINGEST)]


@thorough
@given(hurt_tables())
def test_young_segments_are_left_to_pinot(state: RealtimeState) -> None:
    found = plan(state, LIMITS)
    for step in found.steps:
        for name in step.segments:
            segment = by_name(state)[name]
            age = state.age_ms(segment)
            if age is not None and age >= COMPLETION_WINDOW_MS:
                continue
            if step.kind is StepKind.UPLOAD:
                # Pinot uploads those at any age (`shouldSkipForNonPauselessMode`).
                assert not state.settings.pauseless
                assert all(replica.ideal != "CONSUMING" for replica in segment.replicas)
                continue
            # Pinot resets those at any age (`repairSegmentsInErrorState`).
            assert step.kind is StepKind.RESET
            assert segment.status in (SegmentStatus.DONE, SegmentStatus.UPLOADED) or all(
                replica.external == "ERROR" for replica in segment.replicas if replica.ideal is not None
            )


@thorough
@given(tried_tables())
def test_limits_hold(given_: tuple[RealtimeState, Memory]) -> None:
    state, memory = given_
    found = plan(state, LIMITS, memory)
    uploads = [step for step in found.steps if step.kind in (StepKind.UPLOAD, StepKind.FINISH)]
    assert len(found.steps) <= LIMITS.steps
    assert len(uploads) <= 1 or sum(step.size_bytes for step in uploads) <= LIMITS.upload_bytes


@thorough
@given(hurt_tables())
def test_only_lost_segments_are_read_again_and_only_whole(state: RealtimeState) -> None:
    for step in plan(state, LIMITS).steps:
        if step.kind is not StepKind.REINGEST:
            continue
        segment = by_name(state)[step.segments[0]]
        assert segment.status is SegmentStatus.COMMITTING
        assert segment.url is None
        assert not state.live_copies(segment)
        assert reingests(state.settings, state.cluster)
        held = state.stream[segment.partition]
        assert held.earliest <= int(segment.start_offset or "-1")
        assert held.latest >= int(segment.end_offset or "-1")
        assert step.server is None or state.servers[step.server].alive


@thorough
@given(hurt_tables())
def test_only_what_is_stored_elsewhere_is_swept(state: RealtimeState) -> None:
    for step in plan(state, LIMITS).steps:
        for name in step.names if step.kind is StepKind.SWEEP else ():
            assert by_name(state)[name.partition(".tmp.")[0]].copy is Copy.DEEP_STORE
            assert not any((segment.url or "").endswith(name) for segment in state.segments)


@thorough
@given(hurt_tables())
def test_a_step_without_effect_is_not_repeated_at_once(state: RealtimeState) -> None:
    first = plan(state, LIMITS)
    memory = begun(first, state)
    again = plan(state, LIMITS, memory)
    assert {step.key for step in first.steps}.isdisjoint(step.key for step in again.steps)


@thorough
@given(hurt_tables())
def test_a_step_without_effect_is_repeated_later(state: RealtimeState) -> None:
    first = plan(state, LIMITS)
    memory = begun(first, state)
    waited = {step.key: memory.again_at_ms(step, LIMITS) or 0 for step in first.steps}
    assert all(at >= state.read_ms + LIMITS.backoff_ms for at in waited.values())
    for step in first.steps:
        later = begun(first, state)
        assert later.begun(step, waited[step.key]).times(step) == 2


@thorough
@given(hurt_tables())
def test_nothing_is_advised_that_this_could_do_by_itself(state: RealtimeState) -> None:
    found = plan(state, LIMITS)
    assert all(step.means is Means.PERSON for step in found.advice)
    assert all(step.means is not Means.PERSON for step in found.steps)
    assert len(found.advice) <= 1


@given(hurt_tables())
def test_a_paused_table_is_not_set_going(state: RealtimeState) -> None:
    if state.pause.whole:
        assert not [step for step in plan(state, LIMITS).steps if step.kind is StepKind.VALIDATE]


def begun(found: RepairPlan, state: RealtimeState) -> Memory:
    memory = Memory()
    for step in found.steps:
        memory = memory.begun(step, state.read_ms)
    return memory
