"""Whether segments are committed and followed by the next one. Pure.

Source: docs/design/realtime.md#s4, #s5 and #v2.
"""

from __future__ import annotations

from collections.abc import Iterator

from pinot_assets.core.check_result import CheckProblem, CheckResult, Severity, check_result_of, some
from pinot_assets.core.text import plural, plural_are
from pinot_assets.realtime.health.advice import BY_HAND, next_one, repair_plan, validation
from pinot_assets.realtime.health.age import past_window
from pinot_assets.realtime.health.recovery import all_in_error
from pinot_assets.realtime.model.names import PARTITIONS_A_STREAM
from pinot_assets.realtime.model.settings import reingests
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState, SegmentStatus

STATUS = "segment_status"
NEXT = "next_segment"
LISTED = "committing_list"


def segment_status(state: RealtimeState) -> CheckResult:
    """Every segment has a status, and no commit is older than Pinot's 300 s."""
    by_status = {status: [s for s in state.segments if s.status is status] for status in SegmentStatus}
    without = [s.name for s in state.segments if s.in_ideal_state and s.status is None]
    stuck = [s for s in by_status[SegmentStatus.COMMITTING] if past_window(state, s)]
    ages = [age for s in by_status[SegmentStatus.COMMITTING] if (age := state.age_ms(s)) is not None]
    repair = repair_plan(state)
    problems = []
    if without:
        problems.append(
            CheckProblem(
                f"{plural(len(without), 'segment')} of the ideal state without a node or without a status "
                f"({some(without)}), which Pinot never mends",
                BY_HAND,
                Severity.ERROR,
            )
        )
    if stuck:
        broken = [s for s in stuck if all_in_error(s) and s.copy is Copy.NEVER_SET]
        told = some([s.name for s in stuck])
        text = f"{plural_are(len(stuck), 'segment')} COMMITTING for more than 300 s ({told})"
        if broken:
            text += f"; {len(broken)} of them in ERROR on all replicas, without a URL"
        text += "; " + _who_ends_it(state, broken)
        problems.append(CheckProblem(text, repair, Severity.ERROR if broken else Severity.WARN))
    counts = {status.value.lower(): float(len(found)) for status, found in by_status.items()}
    return check_result_of(
        STATUS,
        problems,
        expected=0,
        found=len(stuck) + len(without),
        good=", ".join(f"{int(count)} {name.upper()}" for name, count in counts.items()),
        numbers={
            **counts,
            "stuck_committing": len(stuck),
            "oldest_committing_s": max(ages, default=0) / 1000,
        },
    )


def _who_ends_it(state: RealtimeState, broken: list[LlcSegment]) -> str:
    if not state.settings.pauseless:
        return "the table is no longer pauseless: Pinot mends none of them"
    if broken and not reingests(state.settings, state.cluster):
        return "Pinot does not re-ingest segments of this table, and resets none of it"
    hours = state.cluster.segment_level_period_s / 3600
    return f"Pinot looks for them every {hours:g} h"


def next_segment(state: RealtimeState) -> CheckResult:
    """Every partition has its consuming segment, as far as the table is not paused."""
    problems = list(_broken_chains(state))
    partitions = {*state.latest(), *state.stream}
    return check_result_of(
        NEXT,
        problems,
        expected=len(partitions),
        found=len(partitions) - len(problems),
        good=f"newest segment where it should be: {plural(len(partitions), 'partition')}",
        numbers={"partitions": len(partitions), "partitions_broken": len(problems)},
    )


def _broken_chains(state: RealtimeState) -> Iterator[CheckProblem]:
    latest = state.latest()
    for partition, segment in sorted(latest.items()):
        # As the validation manager goes through them, 2a to 2d.
        found = (
            _consuming(state, segment)
            if any(r.ideal == "CONSUMING" for r in segment.replicas)
            else _left(state, segment)
            if segment.in_ideal_state
            else _not_in_ideal_state(state, segment)
        )
        if found is not None:
            yield CheckProblem(f"partition {partition}: {segment.name} {found[0]}", found[1], Severity.ERROR)
    for partition in sorted(state.stream.keys() - latest.keys()):
        if not paused(state, partition):
            yield CheckProblem(f"partition {partition} of the stream has no segment", validation(state))


def _consuming(state: RealtimeState, segment: LlcSegment) -> tuple[str, str] | None:
    offline = [r.server for r in segment.replicas if r.ideal == "OFFLINE"]
    if segment.status is SegmentStatus.IN_PROGRESS:
        if not offline:
            return None
        return (
            f"is no longer consumed by {some(offline)}",
            "set controller.realtime.segment.partialOfflineReplicaRepairEnabled, or force a commit",
        )
    if segment.status is None or not past_window(state, segment):
        return None
    after = SegmentStatus.COMMITTING if state.settings.pauseless else SegmentStatus.DONE
    text = f"is {segment.status}, and no next segment was made"
    if segment.status is after:
        return text, validation(state)
    # Pinot looks for the status of the table's present way of committing only.
    return f"{text}; Pinot mends this only for {after}", repair_plan(state)


def _left(state: RealtimeState, segment: LlcSegment) -> tuple[str, str] | None:
    wanted = {r.ideal for r in segment.replicas if r.ideal is not None}
    if wanted == {"OFFLINE"}:
        if paused(state, segment.partition):
            return None
        return "was given up by all its servers", validation(state)
    if wanted == {"ONLINE"} and segment.status is not SegmentStatus.IN_PROGRESS:
        if paused(state, segment.partition) or not past_window(state, segment):
            return None
        return "is closed, and no next segment was made", next_one(state)
    states = " and ".join(sorted(wanted))
    return f"is {segment.status} and {states} in the ideal state, which Pinot never mends", BY_HAND


def _not_in_ideal_state(state: RealtimeState, segment: LlcSegment) -> tuple[str, str] | None:
    if not segment.stored or not past_window(state, segment):
        return None
    text = "is not in the ideal state"
    if segment.status is SegmentStatus.IN_PROGRESS:
        return text, validation(state)
    return f"{text} and {segment.status}, which Pinot only logs", BY_HAND


def paused(state: RealtimeState, partition: int) -> bool:
    """Whether this partition is meant to stand still."""
    return state.pause.whole or partition // PARTITIONS_A_STREAM in state.pause.topics


def committing_list(state: RealtimeState) -> CheckResult:
    """The list of committing segments that Pinot keeps is that of the segments that are COMMITTING."""
    by_name = {segment.name: segment for segment in state.segments}
    committing = {name for name, s in by_name.items() if s.status is SegmentStatus.COMMITTING}
    # A commit that runs writes one before the other.
    settled = {name for name, s in by_name.items() if past_window(state, s)}
    extra = sorted(n for n in state.committing_listed - committing if n in settled or n not in by_name)
    missing = sorted((committing - state.committing_listed) & settled)
    again = "Pinot puts its list right in its daily pass: POST /periodictask/run, runSegmentLevelValidation"
    problems = []
    if extra:
        problems.append(
            CheckProblem(f"in it, but not COMMITTING: {plural(len(extra), 'name')} ({some(extra)})", again)
        )
    if missing:
        problems.append(
            CheckProblem(f"not in it: {plural(len(missing), 'COMMITTING segment')} ({some(missing)})", again)
        )
    return check_result_of(
        LISTED,
        problems,
        expected=len(committing),
        found=len(state.committing_listed),
        good=f"{plural_are(len(committing), 'segment')} COMMITTING, and listed",
        numbers={"listed_not_committing": len(extra), "committing_not_listed": len(missing)},
    )
