"""Whether the table's segment lineage holds anything that it should not."""

from __future__ import annotations

from collections.abc import Collection

from pinot_assets.core.check_result import CheckProblem, CheckResult, Severity, check_result_of, hours, some
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.session.values.state import Session, is_ours

NAME = "lineage_clean"


def lineage_clean(
    table: str,
    lineage: Lineage,
    segments: Collection[str],
    published: Collection[str],
    session: Session | None,
    now_ms: int,
    max_age_ms: int,
) -> CheckResult:
    """No entry is open but that of the open session, and none hides what is published.

    :param segments: all names in the table.
    :param published: names that queries should see.
    :param session: the open one.
    :param max_age_ms: at which a trigger opens an entry anew.
    """
    problems: list[CheckProblem] = []
    open_entries = lineage.in_state(LineageState.IN_PROGRESS)
    foreign = [e for e in open_entries if not owned(table, e)]
    stray = [e for e in open_entries if owned(table, e) and not of_session(table, e, session)]
    old = [e for e in open_entries if now_ms - e.timestamp_ms > max_age_ms]
    hidden = sorted(set(published) & set(segments) - lineage.visible(segments))
    if hidden:
        hiding = [e for e in lineage if not e.hidden.isdisjoint(hidden)]
        problems.append(
            CheckProblem(
                f"{len(hidden)} published segments are hidden from queries ({some(hidden)}) "
                f"by {_tell(table, hiding, now_ms)}",
                "a merge or rollup task on this table? Turn it off, then run the table once as a swap"
                if any(e.state is LineageState.COMPLETED for e in hiding)
                else f"run {table}: the next trigger ends it again without deleting them",
                Severity.ERROR,
            )
        )
    if foreign:
        problems.append(
            CheckProblem(
                f"{len(foreign)} open entries of somebody else: {_tell(table, foreign, now_ms)}",
                "let their owner end or revert them; they are never forced away from here",
            )
        )
    if stray:
        problems.append(
            CheckProblem(
                f"{len(stray)} open entries of no open session: {_tell(table, stray, now_ms)}",
                f"the next switch of {table} reverts them; at once: POST /segments/{table}"
                f"/revertReplaceSegments?type=OFFLINE&forceRevert=true&segmentLineageEntryId={stray[0].id}",
            )
        )
    if kept_too_long := [e for e in old if e not in foreign and e not in stray]:
        problems.append(
            CheckProblem(
                f"the switch of the open session waits for {_age(kept_too_long[0], now_ms)} h",
                f"run {table}: it opens the entry anew before Pinot gives it up",
            )
        )
    return check_result_of(
        NAME,
        problems,
        expected=0,
        found=len({e.id for e in (*foreign, *stray, *kept_too_long)}) + len(hidden),
        good=f"{len(lineage.entries)} entries, {len(open_entries)} of them open for the open session",
        numbers={
            "entries": len(lineage.entries),
            "entries_open": len(open_entries),
            "entries_foreign": sum(not owned(table, e) for e in lineage),
            "entries_too_old": len(old),
            "oldest_open_hours": max((_age(e, now_ms) for e in open_entries), default=0.0),
            "segments_hidden": len(hidden),
        },
    )


def owned(table: str, entry: LineageEntry) -> bool:
    """Whether the entry is of this project's making: its outputs, or what it deletes, have our names."""
    return all(is_ours(table, name) for name in entry.segments_to or entry.segments_from)


def of_session(table: str, entry: LineageEntry, session: Session | None) -> bool:
    """Whether the entry is the open session's; its id may not be stored yet, but its outputs tell."""
    if session is None:
        return False
    prefix = f"{table}__{session.id}_"
    return entry.id == session.lineage_entry_id or any(n.startswith(prefix) for n in entry.segments_to)


def _age(entry: LineageEntry, now_ms: int) -> float:
    return hours(now_ms - entry.timestamp_ms)


def _tell(table: str, entries: list[LineageEntry], now_ms: int) -> str:
    return some(
        [
            f"{e.id} ({e.state.value}, {'ours' if owned(table, e) else 'foreign'}, {_age(e, now_ms)} h) "
            f"→ {some(sorted(e.segments_to), 1) or 'nothing'}"
            for e in entries
        ]
    )
