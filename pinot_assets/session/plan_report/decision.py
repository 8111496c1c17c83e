"""What a run of a table would do now, decided by what decides in the run itself; nothing is written.

`decide_run` walks the way of `trigger`: what is left half way, the open session, the source, the next
attempt. It takes the looks and decisions that are taken there, and leaves out their effects.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from pinot_assets.errors import PinotAssetsError, PushRefused, SwitchConflict
from pinot_assets.pinot.shadow_table import left_shadow
from pinot_assets.session.attempt.attempt import first_plan, next_plan, refuse_too_many, why_given_up
from pinot_assets.session.checks.assertions import refuse_unaskable
from pinot_assets.session.commit.stage import why_paused
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.context.naming import is_fresh
from pinot_assets.session.detect.former_table import of_former_table
from pinot_assets.session.detect.plan_hash import PlanBasis
from pinot_assets.session.detect.preconditions import refuse_absent, refuse_unfit, waits_for_resume
from pinot_assets.session.detect.source_state import SourceState, read_source_state
from pinot_assets.session.recover.abandon import beside_first, refuse_undone, strays_of
from pinot_assets.session.recover.catch_up import adopted
from pinot_assets.session.recover.finalize import load_switch
from pinot_assets.session.recover.placeholder_segment import with_placeholder
from pinot_assets.session.recover.resolve_interrupted import beside_open_entry, is_lost, may_end_again
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values import plan as planning
from pinot_assets.session.values.plan import NO_HOLD, Changes, Hold, Next, Plan, Row
from pinot_assets.session.values.state import Mode, PushKind, Session, State, is_ours
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.receipt import Output, Receipt

NEW_SESSION = "cp0-000000"
"""Stands for the session that a run would open: its number and nonce are given when it begins."""


class PlannedAction(StrEnum):
    """What a run would do, in one word."""

    NOTHING = "NOTHING"
    HELD = "HELD"
    """A rollback holds back all that is different."""
    WAITING = "WAITING"
    """A file that the table knows is being rewritten."""
    FINISH = "FINISH"
    """Something was left half way. What comes then depends on how it ends: a planned run stops there."""
    END = "END"
    """The open switch, whose end gave no answer, is ended again."""
    BEGIN = "BEGIN"
    CONTINUE = "CONTINUE"
    RETRY = "RETRY"
    RESTART = "RESTART"
    """The open session is given up, and another one begins."""


@dataclass(frozen=True, slots=True)
class Decision:
    """See the module docstring.

    :ivar why: of FINISH, what is finished; of RESTART, why the session is given up.
    :ivar session: the open one, None without one or where it is cleared first.
    :ivar ref: of the ledger, `current`.
    :ivar visible: names that queries see now.
    :ivar strays: visible segments of ours that nobody knows, which are deleted first.
    :ivar shadow: name of a shadow table that an audit left, which is deleted first; "" for none.
    :ivar beside: visible segments of somebody else that stay, while nothing was published from here.
    :ivar looked: what was seen of the source; None where a run would not look at it.
    :ivar free: the changes less what a rollback holds back; None while waiting, too.
    :ivar plan: of the next attempt, None where there is none.
    :ivar outputs: segments that are built: of the plan's files, or of the open switch that is ended again.
    :ivar segments_from: what would be replaced, once all is built.
    :ivar refused: what a run would come to nothing with; None where nothing is known against it.
    """

    table: str
    mode: Mode
    push: PushKind
    step: PlannedAction
    plan_basis: PlanBasis
    why: str = ""
    session: Session | None = None
    ref: SnapshotRef | None = None
    current: Snapshot | None = None
    hold: Hold = NO_HOLD
    visible: frozenset[str] = frozenset()
    strays: tuple[str, ...] = ()
    shadow: str = ""
    beside: tuple[str, ...] = ()
    looked: SourceState | None = None
    free: Changes | None = None
    plan: Plan | None = None
    outputs: tuple[Output, ...] = ()
    segments_from: tuple[str, ...] = ()
    refused: PinotAssetsError | None = None

    @property
    def to_build(self) -> tuple[Row, ...]:
        """Files that would be built."""
        return self.plan.to_build if self.plan is not None else ()

    @property
    def switches(self) -> bool:
        """Whether it leads up to a switch; a plan that brings and takes no segment ends without one."""
        return bool(self.outputs or self.segments_from or any(row.planned.size for row in self.to_build))


def decide_run(context: TriggerContext) -> Decision:
    """Read and decide.

    :param context: one that only reads.
    :raises PinotAssetsError: what a run would refuse before it decides anything: Pinot is not what the table
        spec says, or the listing did not complete.
    """
    refuse_absent(context)
    stored = context.active_session()
    if first := unfinished(context):
        return _told(context, stored, PlannedAction.FINISH, why=first)
    refuse_unfit(context)
    refuse_unaskable(context)
    session, current = _as_settled(context, stored), context.current_snapshot()
    visible = context.clients.pinot.visible_segments(context.spec.name)
    if strays := strays_of(context, session, current, visible):
        refuse_undone(context, strays, current)
    told: dict[str, Any] = {
        "current": current,
        "hold": context.hold(),
        "visible": visible,
        "strays": tuple(sorted(strays)),
        "shadow": left_shadow(context.clients.pinot, context.spec.name),
        "beside": beside_first(context, current, visible),
    }
    if session is not None and _is_cleared(context):
        told["why"] = f"{session.id} is dropped first (clearConsistentPushState)"
        session = None
    told["session"] = session
    if waits_for_resume(context, session):
        return _told(context, stored, PlannedAction.HELD, **told)
    if (
        session is not None
        and session.end_sent
        and not is_lost(context, session)
        and may_end_again(context, session)
    ):
        switch = load_switch(context, session)
        told |= {"segments_from": switch.segments_from, "outputs": switch.segments_to}
        return _told(context, stored, PlannedAction.END, **told)
    looked = told["looked"] = read_source_state(context, session, current)
    told["hold"] = looked.hold
    if looked.changes is None:
        return _told(context, stored, PlannedAction.WAITING, **told)
    free = told["free"] = planning.without_held(looked.changes, told["hold"])
    return _told(context, stored, **told | _next(context, looked, free, current, visible - strays))


def unfinished(context: TriggerContext) -> str:
    """What a trigger finishes before it looks at anything else, as a sentence; "" where there is nothing."""
    names, pointer = context.clients.pinot.all_segments(context.spec.name), context.lease.pointer
    if adopted(context.spec.name, context.clients, pointer) != pointer.current_snapshot:
        return "the pointer in ZooKeeper is older than what queries see: they decide what is the ledger"
    if pointer.active_session and context.active_session() is None:
        return f"session {pointer.active_session} is over, and the pointer takes it for open"
    if (former := of_former_table(context)) is not None:
        return (
            f"{context.spec.name} was made anew after {former.session} had been published: "
            "its ledger is dropped"
        )
    if is_fresh(context.lease.pointer) and any(is_ours(context.spec.name, name) for name in names):
        return "ZooKeeper has lost the pointer: the ledger is made anew from what queries see"
    return _half_way(context) or _hidden(context)


def _half_way(context: TriggerContext) -> str:
    session = context.active_session()
    if session is None:
        return ""
    if session.mode is Mode.ROLLBACK:
        return f"the rollback {session.id} was left half way, and is finished"
    if session.state is not State.SWITCH or session.switch_object is None:
        return ""
    if session.push is PushKind.PLAIN:
        return f"{session.id} had begun to publish, and is finished" if session.gate_open else ""
    switch = load_switch(context, session)
    if context.switcher.is_published(switch, session.lineage_entry_id, session.end_issued):
        return f"{session.id} was switched and not recorded, which is made up for"
    return ""


def _hidden(context: TriggerContext) -> str:
    current = context.current_snapshot()
    hidden = context.switcher.hidden_by_delayed_starts(current.segments) if current is not None else ()
    if not hidden:
        return ""
    return f"published segments are hidden by a delayed start of ours, and shown again: {len(hidden)}"


def _as_settled(context: TriggerContext, session: Session | None) -> Session | None:
    if session is None or session.state is not State.SWITCH or session.push is PushKind.PLAIN:
        return session
    if session.switch_object is None:
        return session
    return beside_open_entry(context, session, load_switch(context, session))


def _is_cleared(context: TriggerContext) -> bool:
    return context.spec.ingestion.clear_state and context.clear_token != context.lease.pointer.clear_token


def _next(
    context: TriggerContext,
    looked: SourceState,
    free: Changes,
    current: Snapshot | None,
    visible: frozenset[str],
) -> dict[str, Any]:
    """Which step it is, with the plan of the next attempt."""
    opened, receipts = looked.opened, dict[int, tuple[str, Receipt]]()
    given_up = why_given_up(opened) if opened is not None else None
    told: dict[str, Any] = {"why": given_up[1]} if given_up is not None else {}
    if opened is None or given_up is not None:
        plan = first_plan(context, NEW_SESSION, free, current)
        step = PlannedAction.BEGIN if opened is None else PlannedAction.RESTART
        if plan is None:
            step = (
                step
                if opened is not None
                else PlannedAction.NOTHING
                if free == looked.changes
                else PlannedAction.HELD
            )
            return told | {"step": step}
    else:
        plan, found = next_plan(opened, free)
        receipts = dict(found)
        step = PlannedAction.RETRY if opened.next is Next.RETRY else PlannedAction.CONTINUE
    replaced = planning.segments_from(planning.as_built(plan), current, visible)
    switch = Switch(0, replaced, tuple(o for row in plan.done for o in receipts[row.ordinal][1].outputs))
    refused = _refusal(context, plan, current, visible)
    if refused is None:
        try:
            switch = with_placeholder(context, plan, current, switch, visible)
        except SwitchConflict as error:
            refused = error
    return told | {
        "step": step,
        "plan": plan,
        "outputs": switch.segments_to,
        "segments_from": switch.segments_from,
        "refused": refused,
    }


def _refusal(
    context: TriggerContext, plan: Plan, current: Snapshot | None, visible: frozenset[str]
) -> PinotAssetsError | None:
    try:
        refuse_too_many(context, plan, current)
    except PushRefused as error:
        return error
    return why_paused(context, plan, current, visible)


# --- what it rests on ------------------------------------------------------------------------------


def _told(context: TriggerContext, stored: Session | None, step: PlannedAction, **told: Any) -> Decision:
    """The forecast with its basis.

    :param stored: the open session as ZooKeeper has it.
    """
    seen = Decision(
        table=context.spec.name,
        mode=context.mode,
        push=context.push,
        step=step,
        plan_basis=PlanBasis({}),
        ref=context.lease.pointer.current_snapshot,
        **told,
    )
    found = seen.looked.found if seen.looked is not None else None
    pointer, ingestion = context.lease.pointer, context.spec.ingestion
    basis = PlanBasis.of(
        files=[found.counted.digest, [u.uri for u in found.waiting]] if found is not None else [],
        published=[pointer.current_snapshot.sha256 if pointer.current_snapshot else "", bool(seen.current)],
        session=_session_values(stored, seen) if stored or seen.why else [],
        spec=[
            context.spec.name_with_type,
            context.fingerprint,
            [ingestion.retries, ingestion.clear_state, ingestion.empty_source_action],
            [ingestion.rollback_window, ingestion.push_mode],
            [ingestion.snapshots_to_keep, ingestion.snapshot_days_to_keep],
            context.spec.audit.digest,
            context.table_config,
            [context.clients.staging.store.uri, context.clients.store.owner()],
        ],
        segments=[seen.segments_from, seen.strays, str(seen.refused or "")],
        hold=[pointer.hold.sha256 if pointer.hold else ""],
    )
    return replace(seen, plan_basis=basis)


def _session_values(session: Session | None, seen: Decision) -> list[Any]:
    # Where something is only finished, the reason alone tells what.
    finished = seen.why if seen.step is PlannedAction.FINISH else ""
    values = [seen.step, finished, _rows_digest(seen.plan)]
    return values if session is None else values + _stored_values(session)


def _stored_values(session: Session) -> list[Any]:
    switch = session.switch_object.sha256 if session.switch_object else ""
    failures = session.failures.sha256 if session.failures else ""
    return [
        [session.id, session.state, session.attempt, session.retry_count, session.stalls],
        [session.plan.sha256, failures, session.gate_open],
        [switch, session.lineage_entry_id, session.end_issued, session.revert_issued],
    ]


def _rows_digest(plan: Plan | None) -> str:
    """Of what would be built and what is kept: a builder of a run that has died may still finish a file."""
    digest = hashlib.sha256()
    for row in plan.rows if plan is not None else ():
        digest.update(f"{row.uri}\n{row.planned.token} {row.status} {row.receipt}\n".encode())
    for uri in plan.removals if plan is not None else ():
        digest.update(f"{uri}\n".encode())
    return digest.hexdigest()
