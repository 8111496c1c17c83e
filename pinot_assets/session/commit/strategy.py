"""How the built files of a session become visible: one strategy with three implementations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pinot_assets.audit.checks import Finding
from pinot_assets.session.commit import gate, one_switch, per_file_push
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.recover.interrupted import resolve_interrupted
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.state import Outcome, PushKind, Session
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Receipt


@dataclass(frozen=True, slots=True)
class CommitStrategy:
    """The steps from built files to a snapshot.

    :ivar stage: writes the switch of a plan and its receipts (by ordinal), and pushes its segments hidden
        (W1 to W3). Returns the session: in SWITCH; or, if there is nothing to switch, DONE, or IN_PROGRESS
        with a failed audit.
    :ivar resolve_interrupted: finds out what became of a session that was left in SWITCH. Returns None when
        it was published after all and is now recorded.
    :ivar audit: checks what is staged and stores the receipt that opens the gate or keeps it shut (W4).
    :ivar publish: makes it visible and records the snapshot (W5, W6). Raises `SnapshotIncomplete` if the
        gate is shut.
    """

    stage: Callable[[TriggerContext, Session, Plan, Mapping[int, Receipt]], Session]
    resolve_interrupted: Callable[[TriggerContext, Session], Session | None]
    audit: Callable[[TriggerContext, Session], tuple[Session, tuple[Finding, ...]]]
    publish: Callable[[TriggerContext, Session], Snapshot]


ONE_SWITCH = CommitStrategy(one_switch.stage, resolve_interrupted, gate.audit, one_switch.publish)
"""All files at one instant, under one lineage entry."""
PER_FILE = CommitStrategy(
    per_file_push.stage, per_file_push.resolve_interrupted, per_file_push.audit, per_file_push.publish
)
"""Every file on its own, even if other files fail."""
NO_SEGMENT_CHANGE = CommitStrategy(
    one_switch.stage,  # checks again for segments to switch: files may have changed
    lambda _, session: session,  # it is never in SWITCH
    gate.audit_without_switch,
    gate.refuse_without_switch,
)
"""No segment is added or removed: only the files that were read are audited."""


def strategy_of(session: Session) -> CommitStrategy:
    """Return the strategy that continues this session.

    `ONE_SWITCH.stage` finds out itself that no segment is added or removed. At the gate, `ONE_SWITCH` refuses
    a session that was given up because files failed.
    """
    if session.outcome is not Outcome.OPEN:
        return ONE_SWITCH
    if session.push is PushKind.PLAIN:
        return PER_FILE
    return NO_SEGMENT_CHANGE if session.refused_without_switch else ONE_SWITCH
