"""Whether the table is consumed: paused, and by whom, or stuck; how far behind it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pinot_assets.core.check_result import CheckProblem, CheckResult, Severity, check_result_of, some
from pinot_assets.core.text import plural_are
from pinot_assets.realtime.health.advice import repair_plan
from pinot_assets.realtime.health.age import settled
from pinot_assets.realtime.health.answers import dense
from pinot_assets.realtime.health.progress import paused
from pinot_assets.realtime.model.state import Consumption, LlcSegment, PauseReason, RealtimeState

CONSUMPTION = "consumption"
LAG = "consumption_lag"

STILL_MS = 60_000
"""A consumer that has got nothing for so long, while the stream holds more, stands still."""
LATE_MS = 300_000
"""Rows that are older than this when they can be queried are late; and so long may a consumer stand still
that builds and uploads a segment before it goes on."""

_WHY = {
    PauseReason.RESOURCE: "the servers' disks or memory are over their limit",
    PauseReason.QUOTA: "its storage quota is used up",
    PauseReason.OTHER: "for a reason that is not known here",
}


def consumption(state: RealtimeState) -> CheckResult:
    """The table is consumed, or paused by an operator. Paused by Pinot, or stuck, it fails."""
    latest = state.latest()
    partitions = {*latest, *state.stream}
    meant = {p for p in partitions if not paused(state, p)}
    by_partition = farthest(state)
    waiting = _waiting(state, by_partition)
    still = sorted(
        p for p in meant if _stands_still(state, latest.get(p), by_partition.get(p), waiting.get(p, 0))
    )
    without = sorted(p for p in meant - set(still) if not _consumed(state, latest.get(p)))
    problems = []
    pause = state.pause
    if pause.reason in _WHY:
        problems.append(
            CheckProblem(
                f"Pinot paused the table: {_WHY[pause.reason]}"
                + (f" ({pause.comment})" if pause.comment else ""),
                f"make room; Pinot resumes by itself within {state.cluster.validation_period_s // 60} min",
                Severity.ERROR,
            )
        )
    if not partitions and not pause.whole:
        problems.append(
            CheckProblem(
                "no partition of the stream was ever consumed",
                "look at the controller's log: does it reach the stream?",
                Severity.ERROR,
            )
        )
    if without:
        problems.append(
            CheckProblem(
                f"no server consumes partitions {_numbers(without)}, and nobody paused them",
                repair_plan(state),
                Severity.ERROR,
            )
        )
    if still:
        problems.append(
            CheckProblem(
                f"partitions {_numbers(still)} stand still while the stream holds more",
                "look at the servers' logs: is the stream reachable from them, is a commit held up?",
                Severity.ERROR,
            )
        )
    return check_result_of(
        CONSUMPTION,
        problems,
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
        comment = f" ({state.pause.comment})" if state.pause.comment else ""
        return f"an operator paused the table{comment}"
    topics = f"; topics {_numbers(sorted(state.pause.topics))} are paused" if state.pause.topics else ""
    return f"{plural_are(partitions, 'partition')} consumed{topics}"


def _consumed(state: RealtimeState, newest: LlcSegment | None) -> bool:
    if newest is None:
        return False
    return not settled(state, newest) or any(
        replica.external == "CONSUMING"
        and ((server := state.servers.get(replica.server)) is None or server.alive)
        for replica in newest.replicas
    )


def _waiting(state: RealtimeState, consumers: Mapping[int, Consumption]) -> Mapping[int, int]:
    """Messages that wait in each partition for its consumer. One alone is none where not every offset is a
    row: a transaction ends with an offset that nobody consumes.
    """
    rows = {
        partition: held.latest - offset
        for partition, held in state.stream.items()
        if partition in consumers and (offset := consumers[partition].offset) is not None
    }
    whole = dense(state)
    return {p: max(0, count) for p, count in rows.items() if p in whole or count != 1}


def _stands_still(
    state: RealtimeState, newest: LlcSegment | None, found: Consumption | None, waiting: int
) -> bool:
    if newest is None or found is None:
        return False
    if found.state == "NOT_CONSUMING":
        return True
    if found.consumed_ms is None:
        return False
    allowed = STILL_MS if state.settings.pauseless else LATE_MS
    return waiting > 0 and _silent_ms(state, newest, found.server, found.consumed_ms) > allowed


def _silent_ms(state: RealtimeState, newest: LlcSegment, server: str, consumed_ms: int) -> int:
    """For how long a server's consumer has got nothing. One that has just begun, with the segment or when its
    server came back, says that it never got anything.
    """
    known = state.servers.get(server)
    alive_ms = known.since_ms if known is not None and known.alive else None
    return state.read_ms - max(consumed_ms, newest.created_ms, alive_ms or 0)


def farthest(state: RealtimeState) -> Mapping[int, Consumption]:
    """Of each partition's newest segment, the replica that has come farthest."""
    partition_of = {segment.name: partition for partition, segment in state.latest().items()}
    best: dict[int, Consumption] = {}
    for one in state.consumption:
        partition = partition_of.get(one.segment)
        if partition is None:
            continue
        if partition not in best or _place(best[partition]) < _place(one):
            best[partition] = one
    return best


def by_server(state: RealtimeState) -> Mapping[str, Mapping[int, Consumption]]:
    """Server → partition → its consumer of that partition's newest segment."""
    partition_of = {segment.name: partition for partition, segment in state.latest().items()}
    found: dict[str, dict[int, Consumption]] = {}
    for one in state.consumption:
        if one.segment in partition_of:
            found.setdefault(one.server, {})[partition_of[one.segment]] = one
    return found


def _place(one: Consumption) -> tuple[bool, int]:
    return one.state == "CONSUMING", -1 if one.offset is None else one.offset


def _rests(state: RealtimeState, newest: LlcSegment, one: Consumption, waiting: int) -> bool:
    """Whether the stream is known to hold no more, and has given nothing for a while."""
    if newest.partition not in state.stream or one.offset is None or one.consumed_ms is None:
        return False
    return not waiting and _silent_ms(state, newest, one.server, one.consumed_ms) > LATE_MS


def lags_ms(state: RealtimeState, consumers: Mapping[int, Consumption]) -> Mapping[int, int]:
    """How late each partition is by one consumer of its newest segment; none where nothing is known of it.

    Pinot tells how old the newest row was when it came, and says so for ever if no other one comes. So while
    messages wait, it is no less than the time that has passed since. And a row that came late is none that
    is late once nothing has come for a while and nothing waits: nobody writes to the stream.
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
    problems = []
    if lost:
        problems.append(
            CheckProblem(
                f"partitions {_numbers(lost)}: the stream has dropped messages that were never consumed",
                "raise the topic's retention; then see why consumption is slow",
                Severity.ERROR,
            )
        )
    if late:
        oldest = max(ages.values()) / 1000
        problems.append(
            CheckProblem(
                f"partitions {_numbers(late)} are behind, the oldest row by {oldest:,.0f} s",
                "more partitions, more servers, or fewer rows a segment; see the check `consumption`",
            )
        )
    return check_result_of(
        LAG,
        problems,
        expected=LATE_MS / 1000,
        found=max(ages.values(), default=0) / 1000,
        good=f"{sum(rows.values()):,} messages of the stream are not consumed yet",
        numbers={
            "lag_messages": sum(rows.values()),
            "lag_messages_max": max(rows.values(), default=0),
            "lag_s_max": max(ages.values(), default=0) / 1000,
        },
    )


def _numbers(partitions: list[int]) -> str:
    return some([str(partition) for partition in partitions], shown=5)
