"""Whether the published snapshot can still be taken back, and until when (rule R22)."""

from __future__ import annotations

from collections.abc import Collection

from pinot_assets.core.check_result import HOUR_MS, CheckProblem, CheckResult, check_result_of, hours
from pinot_assets.core.text import plural
from pinot_assets.health.lineage import of_session
from pinot_assets.pinot.lineage import Lineage, why_not_revert
from pinot_assets.session.rollback.rollback_plan import before_switch
from pinot_assets.session.values.state import Mode, Session, utc_text
from pinot_assets.snapshot.manifest import Snapshot

NAME = "rollback_window"


def rollback_window(
    table: str,
    current: Snapshot | None,
    before: Snapshot | None,
    lineage: Lineage,
    segments: Collection[str],
    session: Session | None,
    now_ms: int,
    window_ms: int,
) -> CheckResult:
    """Within the window after a switch there is a way back; that it closes in time is no fault.

    :param before: the snapshot that a rollback leads to.
    :param segments: all names in the table.
    :param session: the open one; its entry builds on the switch, and is no hindrance once it has ended.
    :param window_ms: how long after a switch this Pinot lets it be reverted.
    """
    window = window_ms / HOUR_MS
    if current is None or before is None:
        good = "nothing is published yet" if current is None else "there is no snapshot before this one"
        return _answer([], window, 0.0, f"{good}: there is nothing to go back to")
    if session is not None and session.mode is Mode.ROLLBACK:
        return _answer([], window, 0.0, f"{current.session} is being taken back by {session.id}")
    if session is not None and session.gate_open:
        # Right before its end, what the former switch replaced makes room (`rollbackWindow`).
        return _answer([], window, 0.0, f"{session.id} is being switched to: then a way leads back from it")
    again = f"by the tars of kept snapshots (`pinot-assets snapshots {table}`)"
    entry = lineage.get(current.lineage_entry_id)
    age_ms = now_ms - (entry.timestamp_ms if entry else current.published_ms)
    left = hours(window_ms - age_ms)
    if age_ms > window_ms:
        good = f"the switch is {hours(age_ms)} h old: no way back but {again}"
        return _answer([], window, 0.0, good)
    if entry is None and set(before.segments) <= set(current.segments):
        good = f"Pinot forgets a switch that replaced nothing early: no way back but {again}"
        return _answer([], window, 0.0, good)
    if entry is not None and before_switch(table, current, entry) != set(before.segments):
        return _answer([], window, 0.0, f"the newest switch was a way back itself: another one goes {again}")
    others = Lineage(tuple(e for e in lineage if not of_session(table, e, session)))
    reasons = why_not_revert(others, segments, current.lineage_entry_id)
    if reasons:
        lost = CheckProblem(
            f"the switch of {current.session} cannot be reverted though it is only {hours(age_ms)} h old: "
            + "; ".join(reasons),
            f"the way back goes {again}, as long as they lie there",
        )
        return _answer([lost], window, 0.0, "")
    until = utc_text(now_ms - age_ms + window_ms)
    taken = plural(len(set(current.segments) - set(before.segments)), "segment")
    good = f"`pinot-assets rollback {table}` takes back {current.session} ({taken}) until {until}"
    if session is not None:
        good += f", when session {session.id} has ended"
    return _answer([], window, left, good)


def _answer(problems: list[CheckProblem], expected: float, left: float, good: str) -> CheckResult:
    return check_result_of(
        NAME, problems, expected=expected, found=left, good=good, numbers={"rollback_hours_left": left}
    )
