"""How what a session built becomes visible: one strategy with three implementations."""

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

    :ivar stage: what the plan comes to, with receipts by ordinal, is written down and, hidden, pushed
        (W1 to W3); returns the session: in SWITCH, or, where nothing is to be switched, DONE, or IN_PROGRESS
        with a failed audit.
    :ivar resolve_interrupted: finds out what became of a session that was left in SWITCH; None when it was
        published after all, and is recorded now.
    :ivar audit: looks at what is staged and stores the receipt that opens the gate, or keeps it shut (W4).
    :ivar publish: shows it and records the snapshot (W5, W6); raises `SnapshotIncomplete` where the gate is
        shut.
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
"""Every file on its own, whatever becomes of the others."""
NO_SEGMENT_CHANGE = CommitStrategy(
    one_switch.stage,  # looks anew whether any segment comes or goes: files may have changed since
    lambda _, session: session,  # it is never in SWITCH
    gate.audit_without_switch,
    gate.refuse_without_switch,
)
"""No segment comes or goes: only what was read is audited."""


def strategy_of(session: Session) -> CommitStrategy:
    """The one that goes on with this session.

    When staging, `ONE_SWITCH` finds out itself that no segment comes or goes. At the gate, it refuses a
    session that was given up: files of it failed.
    """
    if session.outcome is not Outcome.OPEN:
        return ONE_SWITCH
    if session.push is PushKind.PLAIN:
        return PER_FILE
    return NO_SEGMENT_CHANGE if session.refused_without_switch else ONE_SWITCH
