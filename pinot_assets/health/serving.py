"""Checks that Pinot serves exactly what was published, hides none of it, and can still revert it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pinot_assets.core.check_result import (
    HOUR_MS,
    CheckProblem,
    CheckResult,
    Severity,
    hours,
    problem_if,
    result_of,
    some,
)
from pinot_assets.core.text import plural, plural_are
from pinot_assets.health.check import check
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState, why_not_revert
from pinot_assets.session.rollback.rollback_plan import before_switch
from pinot_assets.session.values.state import Mode, Session, is_ours, utc_text


@check("Every replica of every published segment is ONLINE as it was built.")
def replicas_and_crc(probe: TableProbe) -> CheckResult:
    """Every replica of every published segment is ONLINE and has the CRC that was built."""
    built = {name: output.crc for name, output in probe.served().items()}
    table, replicas, registered, loaded = (
        probe.spec.name,
        probe.replicas(),
        probe.registered_crcs(),
        probe.loaded(),
    )
    expected = good = 0
    lost: list[str] = []
    down: list[str] = []
    wrong: list[str] = []
    for segment, crc in sorted(built.items()):
        states = replicas.get(segment) or {}
        expected += max(1, len(states))
        serving = 0
        if segment in registered and registered[segment] != crc:
            wrong.append(f"{segment} has CRC {registered[segment]} in Pinot instead of {crc}")
        for server, state in sorted(states.items()):
            there = loaded.crcs.get(server, {}).get(segment)
            if state != "ONLINE":
                down.append(f"{segment} is {state} on {server}")
            elif there is not None and there != crc:
                wrong.append(f"{segment} has CRC {there} on {server} instead of {crc}")
            elif there is None and server in loaded.crcs:
                down.append(f"{segment} is not loaded on {server}")
            else:
                serving += 1
        good += serving
        if serving == 0:
            lost.append(segment)
    gone = [segment for segment in lost if not replicas.get(segment)]
    silent = [f"{server} does not answer: {why}" for server, why in sorted(loaded.silent.items())]
    return result_of(
        [
            *problem_if(
                lost,
                f"no replica serves {plural(len(lost), 'published segment')} ({some(lost)})",
                (
                    f"upload segments/{gone[0]}.tar.gz and the others from the staging area again: POST "
                    f"/v2/segments?tableName={table}&tableType=OFFLINE"
                )
                if gone
                else (
                    f"read the servers' logs; POST /segments/{table}_OFFLINE/reset loads broken segments "
                    "again"
                ),
                Severity.ERROR,
            ),
            *problem_if(
                wrong,
                some(wrong),
                f"POST /segments/{table}_OFFLINE/reload?forceDownload=true on the controller",
                Severity.ERROR,
            ),
            *problem_if(
                down,
                f"{plural_are(len(down), 'replica')} down: {some(down)}",
                f"POST /segments/{table}_OFFLINE/reset, then the server's log",
            ),
            *problem_if(
                silent, "; ".join(silent), "is that server up, and its admin port reachable from here?"
            ),
        ],
        expected=expected,
        found=good,
        good=f"ONLINE as built: {good:,} of {plural(expected, 'replica')} of {plural(len(built), 'segment')}",
        numbers={
            "segments": len(built),
            "segments_lost": len(lost),
            "replicas_down": len(down),
            "crc_wrong": len(wrong),
            "servers_silent": len(silent),
        },
    )


@check("Only the open session has an open lineage entry, and no entry hides the snapshot.")
def lineage_clean(probe: TableProbe) -> CheckResult:
    """Only the open session's entry is open, and no entry hides what is published."""
    table, now_ms = probe.spec.name, probe.now_ms
    lineage, segments, published, session = probe.lineage(), probe.segments(), probe.served(), probe.session()
    renewed_ms = probe.entry_renewed_ms()
    open_entries = lineage.in_state(LineageState.IN_PROGRESS)
    foreign = [e for e in open_entries if not owned(table, e)]
    of_open_session = [e for e in open_entries if belongs_to_session(table, e, session)]
    stray = [e for e in open_entries if e not in foreign and e not in of_open_session]
    old = [e for e in open_entries if now_ms - e.timestamp_ms > renewed_ms]
    kept_too_long = [e for e in old if e not in foreign and e not in stray]
    waits_h = hours(now_ms - kept_too_long[0].timestamp_ms) if kept_too_long else 0.0
    self_completing = [*lineage.open_and_self_completing()]
    hidden = sorted(set(published) & set(segments) - lineage.visible(segments))
    hiding = [e for e in lineage if not e.hidden.isdisjoint(hidden)]
    return result_of(
        [
            *problem_if(
                hidden,
                f"{len(hidden):,} published segments are hidden from queries ({some(hidden)}) "
                f"by {_tell(table, hiding, now_ms)}",
                (
                    "does a merge or rollup task run on this table? Turn it off, then run the table "
                    "once as a swap"
                )
                if any(e.state is LineageState.COMPLETED for e in hiding)
                else f"run {table}: the next trigger ends the entry again without deleting them",
                Severity.ERROR,
            ),
            *problem_if(
                self_completing,
                f"{len(self_completing):,} open entries that complete themselves (autoCompleteLineageEntry): "
                f"{_tell(table, self_completing, now_ms)}",
                f"no session of {table} switches until they are completed, or their owner reverts them",
            ),
            *problem_if(
                foreign,
                f"{len(foreign):,} open entries that pinot-assets did not start: "
                f"{_tell(table, foreign, now_ms)}",
                "ask their owner to end or revert them; pinot-assets never does",
            ),
            *problem_if(
                stray,
                f"{len(stray):,} open entries of no open session: {_tell(table, stray, now_ms)}",
                f"the next switch of {table} reverts them; at once: POST /segments/{table}"
                "/revertReplaceSegments?type=OFFLINE&forceRevert=true&segmentLineageEntryId="
                + (stray[0].id if stray else ""),
            ),
            *problem_if(
                kept_too_long,
                f"the switch of the open session has waited for {waits_h} h",
                f"run {table}: it opens the entry again before Pinot deletes its segments",
            ),
        ],
        expected=0,
        found=len({e.id for e in (*self_completing, *foreign, *stray, *kept_too_long)}) + len(hidden),
        good=f"{len(lineage.entries):,} entries, {len(open_entries):,} of them open for the open session",
        numbers={
            "entries": len(lineage.entries),
            "entries_open": len(open_entries),
            "entries_foreign": sum(not owned(table, e) for e in lineage),
            "entries_too_old": len(old),
            "oldest_open_hours": _oldest_h(open_entries, now_ms),
            "segments_hidden": len(hidden),
        },
    )


def owned(table: str, entry: LineageEntry) -> bool:
    """Return whether this project made the entry: its outputs, or what it deletes, have our names."""
    return all(is_ours(table, name) for name in entry.segments_to or entry.segments_from)


def belongs_to_session(table: str, entry: LineageEntry, session: Session | None) -> bool:
    """Return whether the entry is the open session's: by its id or, while that is not stored, its outputs."""
    if session is None:
        return False
    prefix = f"{table}__{session.id}_"
    return entry.id == session.lineage_entry_id or any(n.startswith(prefix) for n in entry.segments_to)


def _oldest_h(entries: Sequence[LineageEntry], now_ms: int) -> float:
    return max((hours(now_ms - e.timestamp_ms) for e in entries), default=0.0)


def _tell(table: str, entries: list[LineageEntry], now_ms: int) -> str:
    return some(
        [
            f"{e.id} ({e.state.value}, {'ours' if owned(table, e) else 'foreign'}, "
            f"{hours(now_ms - e.timestamp_ms)} h) → {some(sorted(e.segments_to), 1) or 'nothing'}"
            for e in entries
        ]
    )


@check("The newest switch can be reverted while Pinot keeps what it replaced.")
def rollback_window(probe: TableProbe) -> CheckResult:
    """Within the window after a switch it can be reverted; that the window ends is no failure (rule R22).

    The open session's entry builds on the switch, and does not hinder a revert once it has ended.
    """
    table, current, before = probe.spec.name, probe.snapshot(), probe.before()
    lineage, segments, session = probe.lineage(), probe.segments(), probe.session()
    answer = partial(_way_back, probe.revert_window_ms())
    if current is None or before is None:
        good = "nothing is published yet" if current is None else "there is no snapshot before this one"
        return answer(f"{good}: there is nothing to go back to")
    if session is not None and session.mode is Mode.ROLLBACK:
        return answer(f"{session.id} is rolling {current.session} back")
    if session is not None and session.gate_open:
        # Right before its end, it deletes what the former switch replaced (`rollbackWindow`).
        return answer(f"{session.id} is switching: a revert is possible after it")
    again = f"by publishing the tars of kept snapshots again (`pinot-assets snapshots {table}`)"
    entry = lineage.get(current.lineage_entry_id)
    switched_ms = entry.timestamp_ms if entry else current.published_ms
    until_ms = switched_ms + probe.revert_window_ms()
    age = hours(probe.now_ms - switched_ms)
    if probe.now_ms > until_ms:
        return answer(f"the switch is {age} h old: a rollback is only possible {again}")
    if entry is None and set(before.segments) <= set(current.segments):
        return answer(
            f"Pinot forgets a switch that replaced nothing early: a rollback is only possible {again}"
        )
    if entry is not None and before_switch(table, current, entry) != set(before.segments):
        return answer(f"the newest switch was a rollback itself: another one is possible {again}")
    others = Lineage(tuple(e for e in lineage if not belongs_to_session(table, e, session)))
    if reasons := why_not_revert(others, segments, current.lineage_entry_id):
        lost = CheckProblem(
            f"the switch of {current.session} cannot be reverted, although it is only {age} h old: "
            + "; ".join(reasons),
            f"a rollback is possible {again}, while the tars are staged",
        )
        return answer("", problems=[lost])
    taken = plural(len(set(current.segments) - set(before.segments)), "segment")
    ended = f", after session {session.id} has ended" if session is not None else ""
    return answer(
        f"`pinot-assets rollback {table}` reverts {current.session} ({taken}) until "
        f"{utc_text(until_ms)}{ended}",
        left=hours(until_ms - probe.now_ms),
    )


def _way_back(
    window_ms: int, good: str, left: float = 0.0, problems: Sequence[CheckProblem] = ()
) -> CheckResult:
    return result_of(
        problems, expected=window_ms / HOUR_MS, found=left, good=good, numbers={"rollback_hours_left": left}
    )
