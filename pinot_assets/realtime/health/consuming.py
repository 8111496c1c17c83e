"""Checks of consumption: whether the table is paused (and by whom) or stuck, how late it is, and whether
segments are committed and followed by the next one. Pure.

Source: docs/design/realtime.md#s4, #s5 and #v2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pinot_assets.core.check_result import CheckProblem, CheckResult, Severity, problem_if, result_of, some
from pinot_assets.core.text import plural, plural_are
from pinot_assets.realtime.health.check import BY_HAND, NODES, check, next_one, repair_plan, validation
from pinot_assets.realtime.health.recovery import all_in_error
from pinot_assets.realtime.health.serving import dense
from pinot_assets.realtime.model.settings import COMPLETION_WINDOW_MS, reingests
from pinot_assets.realtime.model.state import (
    SETTLED_MS,
    Consumption,
    Copy,
    LlcSegment,
    PauseReason,
    RealtimeState,
    SegmentStatus,
)

STILL_MS = 60_000
"""A consumer that gets nothing for longer than this makes no progress, if the stream has more."""
LATE_MS = 300_000
"""Rows that are older than this when they can be queried are late. A consumer that builds and uploads a
segment before it continues may make no progress for this long, too."""

_WHY = {
    PauseReason.RESOURCE: "the servers' disks or memory are over their limit",
    PauseReason.QUOTA: "its storage quota is used up",
    PauseReason.OTHER: "for a reason that pinot-assets does not know",
}


@check("Every segment has a status, and no commit is older than 300 s.", *NODES)
def segment_status(state: RealtimeState) -> CheckResult:
    """Every segment has a status, and no commit is older than Pinot's 300 s."""
    by_status = {status: [s for s in state.segments if s.status is status] for status in SegmentStatus}
    without = [s.name for s in state.segments if s.in_ideal_state and s.status is None]
    committing = by_status[SegmentStatus.COMMITTING]
    stuck = [s for s in committing if state.is_older(s, COMPLETION_WINDOW_MS)]
    broken = [s for s in stuck if all_in_error(s) and s.copy is Copy.NEVER_SET]
    in_error = f"; {len(broken):,} of them in ERROR on all replicas, without a URL" if broken else ""
    ages = [age for s in committing if (age := state.age_ms(s)) is not None]
    counts = {status.value.lower(): float(len(segments)) for status, segments in by_status.items()}
    return result_of(
        [
            *problem_if(
                without,
                f"{plural(len(without), 'segment')} of the ideal state without a node or without "
                f"a status ({some(without)}), which Pinot never repairs",
                BY_HAND,
                Severity.ERROR,
            ),
            *problem_if(
                stuck,
                f"{plural_are(len(stuck), 'segment')} COMMITTING for more than 300 s "
                f"({some([s.name for s in stuck])}){in_error}; {_who_ends_it(state, broken)}",
                repair_plan(state),
                Severity.ERROR if broken else Severity.WARN,
            ),
        ],
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
        return "the table is no longer pauseless: Pinot repairs none of them"
    if broken and not reingests(state.settings, state.cluster):
        return "Pinot does not re-ingest segments of this table, and resets none of them"
    return f"Pinot looks for them every {state.cluster.segment_level_period_s / 3600:g} h"


@check("Every partition has its consuming segment, unless it is paused.", *NODES, "pause")
def next_segment(state: RealtimeState) -> CheckResult:
    """Every partition that is not paused has its consuming segment."""
    problems = list(_broken_chains(state))
    partitions = {*state.latest(), *state.stream}
    return result_of(
        problems,
        expected=len(partitions),
        found=len(partitions) - len(problems),
        good=f"the newest segment is where it should be: {plural(len(partitions), 'partition')}",
        numbers={"partitions": len(partitions), "partitions_broken": len(problems)},
    )


def _broken_chains(state: RealtimeState) -> Iterator[CheckProblem]:
    latest = state.latest()
    for partition, segment in sorted(latest.items()):
        if (end := _broken_end(state, segment)) is not None:
            yield CheckProblem(f"partition {partition}: {segment.name} {end[0]}", end[1], Severity.ERROR)
    for partition in sorted(state.stream.keys() - latest.keys()):
        if not state.pause.holds(partition):
            yield CheckProblem(f"partition {partition} of the stream has no segment", validation(state))


def _broken_end(state: RealtimeState, segment: LlcSegment) -> tuple[str, str] | None:
    """Return what is wrong with a partition's newest segment and what repairs it, in the order of the
    validation manager's cases 2a to 2d; None if nothing is wrong.
    """
    ideal = {r.ideal for r in segment.replicas if r.ideal is not None}
    in_progress = segment.status is SegmentStatus.IN_PROGRESS
    is_old = state.is_older(segment, COMPLETION_WINDOW_MS)
    is_paused = state.pause.holds(segment.partition)
    if "CONSUMING" in ideal and in_progress:
        left = some([r.server for r in segment.replicas if r.ideal == "OFFLINE"])
        repair = "set controller.realtime.segment.partialOfflineReplicaRepairEnabled, or force a commit"
        return (f"is no longer consumed by {left}", repair) if left else None
    if "CONSUMING" in ideal:
        if segment.status is None or not is_old:
            return None
        after = SegmentStatus.COMMITTING if state.settings.pauseless else SegmentStatus.DONE
        text = f"is {segment.status}, and no next segment was made"
        if segment.status is after:
            return text, validation(state)
        # Pinot checks only for the status that the table's present way of committing gives.
        return f"{text}; Pinot repairs this only for {after}", repair_plan(state)
    if ideal == {"OFFLINE"}:
        return None if is_paused else ("was given up by all its servers", validation(state))
    if ideal == {"ONLINE"} and not in_progress:
        return (
            ("is closed, and no next segment was made", next_one(state)) if is_old and not is_paused else None
        )
    if ideal:
        states = " and ".join(sorted(ideal))
        return f"is {segment.status} and {states} in the ideal state, which Pinot never repairs", BY_HAND
    if not segment.stored or not is_old:
        return None
    if in_progress:
        return "is not in the ideal state", validation(state)
    return f"is not in the ideal state and is {segment.status}, which Pinot only logs", BY_HAND


@check("Pinot's list of committing segments is right.", *NODES, "committing_listed")
def committing_list(state: RealtimeState) -> CheckResult:
    """Pinot's list of committing segments names exactly the segments that are COMMITTING."""
    committing = {s.name for s in state.segments if s.status is SegmentStatus.COMMITTING}
    # A running commit writes one of the two before the other.
    settled = {s.name for s in state.segments if state.is_older(s, COMPLETION_WINDOW_MS)}
    listed = state.committing_listed
    extra = sorted(n for n in listed - committing if n in settled or n not in state.by_name)
    missing = sorted((committing - listed) & settled)
    again = "Pinot corrects its list in its daily pass: POST /periodictask/run, runSegmentLevelValidation"
    absent = plural(len(missing), "COMMITTING segment")
    return result_of(
        [
            *problem_if(
                extra, f"in it, but not COMMITTING: {plural(len(extra), 'name')} ({some(extra)})", again
            ),
            *problem_if(missing, f"not in it: {absent} ({some(missing)})", again),
        ],
        expected=len(committing),
        found=len(state.committing_listed),
        good=f"{plural_are(len(committing), 'segment')} COMMITTING, and listed",
        numbers={"listed_not_committing": len(extra), "committing_not_listed": len(missing)},
    )


@check("The table is consumed, or an operator paused it.", "segments", "external", "servers", "pause")
def consumption(state: RealtimeState) -> CheckResult:
    """The table is consumed, or an operator paused it. Fails if Pinot paused it, or if it is stuck."""
    latest = state.latest()
    partitions = {*latest, *state.stream}
    meant = {p for p in partitions if not state.pause.holds(p)}
    by_partition = farthest(state)
    waiting = _waiting(state, by_partition)
    still = sorted(
        p for p in meant if _stands_still(state, latest.get(p), by_partition.get(p), waiting.get(p, 0))
    )
    without = sorted(p for p in meant - set(still) if not _consumed(state, latest.get(p)))
    pause = state.pause
    by_pinot = _WHY.get(pause.reason) if pause.reason else None
    return result_of(
        [
            *problem_if(
                by_pinot,
                f"Pinot paused the table: {by_pinot}" + _in_brackets(pause.comment),
                f"free some space; Pinot then resumes within {state.cluster.validation_period_s // 60} min",
                Severity.ERROR,
            ),
            *problem_if(
                not partitions and not pause.whole,
                "no partition of the stream was ever consumed",
                "read the controller's log: can it connect to the stream?",
                Severity.ERROR,
            ),
            *problem_if(
                without,
                f"no server consumes partitions {_numbers(without)}, and no operator paused them",
                repair_plan(state),
                Severity.ERROR,
            ),
            *problem_if(
                still,
                f"partitions {_numbers(still)} make no progress, although the stream has more messages",
                "read the servers' logs: can they connect to the stream, does a commit block them?",
                Severity.ERROR,
            ),
        ],
        expected=len(meant),
        found=len(meant) - len(without) - len(still),
        good=_good(state, len(meant)),
        numbers={
            "partitions_consumed": len(meant) - len(without) - len(still),
            "partitions_without_consumer": len(without),
            "partitions_standing_still": len(still),
            "paused": float(pause.whole),
            "topics_paused": len(pause.topics),
        },
    )


def _good(state: RealtimeState, partitions: int) -> str:
    if state.pause.whole:
        return f"an operator paused the table{_in_brackets(state.pause.comment)}"
    topics = f"; topics {_numbers(sorted(state.pause.topics))} are paused" if state.pause.topics else ""
    return f"{plural_are(partitions, 'partition')} consumed{topics}"


def _in_brackets(comment: str) -> str:
    return f" ({comment})" if comment else ""


def _consumed(state: RealtimeState, newest: LlcSegment | None) -> bool:
    dead = {name for name, server in state.servers.items() if not server.alive}
    return newest is not None and (
        not state.is_older(newest, SETTLED_MS)
        or any(replica.server not in dead for replica in newest.in_state("CONSUMING"))
    )


def _waiting(state: RealtimeState, consumers: Mapping[int, Consumption]) -> Mapping[int, int]:
    """Return how many messages of each partition wait for its consumer. Where not every offset is a row, a
    single one does not count: a transaction ends with an offset that is never consumed.
    """
    rows = {
        partition: held.latest - offset
        for partition, held in state.stream.items()
        if partition in consumers and (offset := consumers[partition].offset) is not None
    }
    whole = dense(state)
    return {p: max(0, count) for p, count in rows.items() if p in whole or count != 1}


def _stands_still(
    state: RealtimeState, newest: LlcSegment | None, consumer: Consumption | None, waiting: int
) -> bool:
    if newest is None or consumer is None:
        return False
    if consumer.state == "NOT_CONSUMING":
        return True
    if consumer.consumed_ms is None:
        return False
    allowed = STILL_MS if state.settings.pauseless else LATE_MS
    return waiting > 0 and _silent_ms(state, newest, consumer.server, consumer.consumed_ms) > allowed


def _silent_ms(state: RealtimeState, newest: LlcSegment, server: str, consumed_ms: int) -> int:
    """Return for how long a server's consumer has got nothing. A consumer that has just begun reports that it
    never got anything, so the begin of the segment or of the server counts too.
    """
    known = state.servers.get(server)
    alive_ms = known.since_ms if known is not None and known.alive else None
    return state.read_ms - max(consumed_ms, newest.created_ms, alive_ms or 0)


def farthest(state: RealtimeState) -> Mapping[int, Consumption]:
    """Return, for the newest segment of each partition, the replica that has consumed furthest."""
    best: dict[int, Consumption] = {}
    for partition, one in _of_newest(state):
        if partition not in best or _place(best[partition]) < _place(one):
            best[partition] = one
    return best


def by_server(state: RealtimeState) -> Mapping[str, Mapping[int, Consumption]]:
    """Return server → partition → the server's consumer of that partition's newest segment."""
    consumers: dict[str, dict[int, Consumption]] = {}
    for partition, one in _of_newest(state):
        consumers.setdefault(one.server, {})[partition] = one
    return consumers


def _of_newest(state: RealtimeState) -> list[tuple[int, Consumption]]:
    partition_of = {segment.name: partition for partition, segment in state.latest().items()}
    return [(partition_of[one.segment], one) for one in state.consumption if one.segment in partition_of]


def _place(one: Consumption) -> tuple[bool, int]:
    return one.state == "CONSUMING", -1 if one.offset is None else one.offset


def _rests(state: RealtimeState, newest: LlcSegment, one: Consumption, waiting: int) -> bool:
    """Return whether the stream is known to hold nothing more, and has given nothing for a while."""
    return (
        newest.partition in state.stream
        and one.offset is not None
        and one.consumed_ms is not None
        and not waiting
        and _silent_ms(state, newest, one.server, one.consumed_ms) > LATE_MS
    )


def lags_ms(state: RealtimeState, consumers: Mapping[int, Consumption]) -> Mapping[int, int]:
    """Return how late each partition is, by one consumer of its newest segment; without those not known.

    Pinot reports how old the newest row was when it came, and keeps that value until the next row. So while
    messages wait, the lag is at least the time since the last row. And once nothing waits and nothing has
    come for a while, a row that came late no longer counts: no producer writes to the stream.
    """
    latest, waiting = state.latest(), _waiting(state, consumers)
    late = {
        p: one.lag_ms
        for p, one in consumers.items()
        if one.lag_ms is not None
        and not (one.lag_ms > LATE_MS and _rests(state, latest[p], one, waiting.get(p, 0)))
    }
    silent = {
        p: _silent_ms(state, latest[p], one.server, one.consumed_ms)
        for p, one in consumers.items()
        if one.consumed_ms is not None and waiting.get(p, 0) > 0
    }
    return {p: max(late.get(p, 0), silent.get(p, 0)) for p in {*late, *silent}}


@check(
    "What queries see is younger than five minutes, and no message leaves the stream unread.",
    "segments",
    "consumption",
    "stream",
)
def consumption_lag(state: RealtimeState) -> CheckResult:
    """No row waits for more than five minutes to be queried, and nothing leaves the stream unread."""
    best = farthest(state)
    rows = _waiting(state, best)
    ages = lags_ms(state, best)
    late = sorted(p for p, age in ages.items() if age > LATE_MS)
    lost = sorted(
        p
        for p, held in state.stream.items()
        if p in rows and (offset := best[p].offset) is not None and held.earliest > offset
    )
    oldest_s = max(ages.values(), default=0) / 1000
    return result_of(
        [
            *problem_if(
                lost,
                f"partitions {_numbers(lost)}: the stream has dropped messages that were never consumed",
                "raise the topic's retention; then find out why consumption is slow",
                Severity.ERROR,
            ),
            *problem_if(
                late,
                f"partitions {_numbers(late)} are behind, the oldest row by {oldest_s:,.0f} s",
                "use more partitions, more servers, or fewer rows a segment; see the check `consumption`",
            ),
        ],
        expected=LATE_MS / 1000,
        found=oldest_s,
        good=f"{sum(rows.values()):,} messages of the stream are not consumed yet",
        numbers={
            "lag_messages": sum(rows.values()),
            "lag_messages_max": max(rows.values(), default=0),
            "lag_s_max": oldest_s,
        },
    )


def _numbers(partitions: list[int]) -> str:
    return some([str(partition) for partition in partitions], shown=5)
