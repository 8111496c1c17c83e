"""Whether queries see every row. Pure.

From 1.0 on, a broker leaves out, without an exception and without `partialResult`, a segment that it takes
for new and routes to a server that is dead: for 300 s as a rule, sometimes until the server is back (measured
on 1.5.1; 0.11.0 answers in full).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.version import Version

from pinot_assets.core.check_result import CheckProblem, CheckResult, Severity, check_result_of, some, unknown
from pinot_assets.core.text import counted, plural
from pinot_assets.pinot.versions import release
from pinot_assets.realtime.health.age import SETTLED_MS, routed
from pinot_assets.realtime.health.recovery import ERROR, offset
from pinot_assets.realtime.model.state import LlcSegment, RealtimeState, Replica, SegmentStatus

ANSWERS = "answers"
DEAD_ROUTES = "new_segments_on_dead_servers"

_LEAVES_OUT = Version("1.0")


def answers(state: RealtimeState) -> CheckResult:
    """Every broker finds every row that was committed, and those that were consumed."""
    silent = state.unread.get("answered")
    if not state.answered:
        return unknown(ANSWERS, silent or "the table has no broker", "are its brokers up?", Severity.WARN)
    wanted = dict(_wanted(state))
    problems = []
    worst = 0
    for broker, rows in sorted(state.answered.items()):
        short = {n: rows_wanted - rows.get(n, 0) for n, rows_wanted in wanted.items()}
        short = {name: missing for name, missing in short.items() if missing > 0}
        missing = sum(short.values())
        worst = max(worst, missing)
        if short:
            percent = 100 * missing / max(1, sum(wanted.values()))
            problems.append(
                CheckProblem(
                    f"{broker} leaves out {plural(missing, 'row')} ({percent:.1f} %) of "
                    f"{some(sorted(short))}, without an error",
                    _next_step(state),
                    Severity.ERROR,
                )
            )
    if silent:
        problems.append(CheckProblem(f"not known of {silent}", "is that broker up? What does it say?"))
    total, least = sum(wanted.values()), min(state.queryable.values())
    return check_result_of(
        ANSWERS,
        problems,
        expected=total,
        found=total - worst,
        good=f"{counted(len(state.answered), 'broker finds', 'brokers find')} {plural(least, 'row')}; "
        f"at least {total:,} must be there",
        numbers={"rows_expected": total, "rows_left_out": worst, "brokers_asked": len(state.answered)},
    )


def _next_step(state: RealtimeState) -> str:
    dead = sorted(name for name, server in state.servers.items() if not server.alive)
    wait = f"wait {state.cluster.new_segment_expiration_s} s (pinot.broker.new.segment.expiration.seconds)"
    return f"bring {some(dead)} back, or {wait}" if dead else f"{wait}; then rebuild that broker's routing"


def _wanted(state: RealtimeState) -> Iterator[tuple[str, int]]:
    """Rows that a query must find, by segment: never more than there are."""
    whole = dense(state)
    consumed = _least_consumed(state)
    for segment in state.segments:
        if not segment.in_ideal_state or segment.status is None or not routed(state, segment):
            continue
        start, end = offset(segment.start_offset), offset(segment.end_offset)
        if segment.status.completed:
            rows = segment.total_docs
        elif start is None:
            rows = None
        elif segment.status is SegmentStatus.COMMITTING:
            rows = end - start if end is not None else None
        else:
            rows = consumed[segment.name] - start if segment.name in consumed else None
        if rows is None or rows <= 0:
            continue
        # Not every offset is a row: transactions, compaction, filters. One row there is, if there are any.
        if segment.status.completed:
            yield segment.name, rows
        elif not state.settings.drops_rows:
            yield segment.name, rows if segment.partition in whole else 1
        elif any(found.get(segment.name) for found in state.answered.values()):
            # The table itself may have dropped every one of them; but what one broker finds, all must.
            yield segment.name, 1


def _least_consumed(state: RealtimeState) -> Mapping[str, int]:
    """The next offset of whichever replica is farthest behind: a broker may ask that one."""
    least: dict[str, int] = {}
    for one in state.consumption:
        if one.offset is not None:
            least[one.segment] = min(one.offset, least.get(one.segment, one.offset))
    return least


def dense(state: RealtimeState) -> frozenset[int]:
    """Partitions in which every committed offset became a row."""
    found: dict[int, bool] = {}
    for segment in state.segments:
        start, end = offset(segment.start_offset), offset(segment.end_offset)
        if segment.status is SegmentStatus.DONE and start is not None and end is not None:
            whole = segment.total_docs == end - start
            found[segment.partition] = found.get(segment.partition, True) and whole
    return frozenset(partition for partition, whole in found.items() if whole)


def new_segments_on_dead_servers(state: RealtimeState) -> CheckResult:
    """No segment that brokers may take for new is assigned to a server that does not serve."""
    has_gap = release(state.cluster.version) >= _LEAVES_OUT
    found = [
        (segment, replica.server)
        for segment in (state.segments if has_gap else ())
        for replica in segment.replicas
        if _may_be_left_out(state, segment, replica)
    ]
    servers = sorted({server for _, server in found})
    names = sorted({segment.name for segment, _ in found})
    problem = CheckProblem(
        f"{counted(len(names), 'segment was', 'segments were')} made while or just before {some(servers)} "
        f"went: queries may leave them out without an error ({some(names)})",
        _next_step(state),
        Severity.ERROR,
    )
    return check_result_of(
        DEAD_ROUTES,
        [problem] if found else [],
        expected=0,
        found=len(names),
        good="no new segment is assigned to a dead server" if has_gap else "this Pinot leaves out none",
        numbers={"new_segments_on_dead_servers": len(names)},
    )


def _may_be_left_out(state: RealtimeState, segment: LlcSegment, replica: Replica) -> bool:
    """As brokers decide it (`BaseInstanceSelector`): new until every replica was served once, one is in
    ERROR, or, at the next change of the table's states, its time is over."""
    server = state.servers.get(replica.server)
    if (
        server is None
        or server.serves
        or replica.ideal is None
        or replica.external in ("ONLINE", "CONSUMING")
    ):
        return False
    if segment.in_state(ERROR):
        return False
    if not server.alive and server.since_ms is not None:
        return segment.created_ms >= server.since_ms - SETTLED_MS
    return state.read_ms - segment.created_ms < state.cluster.new_segment_expiration_s * 1000
