"""The next attempt of a table's session: a new one, or the open one reconciled with the source
(docs/design/session.md#a-new-session and #continuing-an-open-session)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pinot_assets.core.stored_format import NEWEST
from pinot_assets.core.text import plural
from pinot_assets.session.attempt.rename import renamed, spent_names
from pinot_assets.session.checks.staging_probe import require_staging_reachable
from pinot_assets.session.context.context import TriggerContext, is_fresh, next_seq
from pinot_assets.session.decide.decision import Next, Opened, Receipts
from pinot_assets.session.decide.next_plan import returned, revoked, with_spent_names
from pinot_assets.session.lineage.node_size import require_plan_fits
from pinot_assets.session.recover.finalize import load_switch
from pinot_assets.session.recover.resolve_interrupted import is_lost
from pinot_assets.session.stores.stored_snapshots import write_cluster_marker
from pinot_assets.session.values import plan as planning
from pinot_assets.session.values.plan import Changes, Plan
from pinot_assets.session.values.state import Mode, PushKind, Session, State, new_session_id
from pinot_assets.session.values.trouble import STALLS
from pinot_assets.snapshot.manifest import Snapshot

_NO_WORD: Final = (
    f"{STALLS} runs in a row ended before a file was built, without a reason: "
    "they were killed, or ran out of memory"
)

# --- a new session ---------------------------------------------------------------------------------


def begin(
    context: TriggerContext, plan: Plan, changes: Changes, current: Snapshot | None
) -> tuple[Session, Plan]:
    """A new session in INIT with its first plan.

    :param plan: as it was decided on, without the name of a session.
    """
    seq, pointer = next_seq(context), context.lease.pointer
    # A new table begins in the newest format; `state upgrade` alone says so for another one.
    number = NEWEST if is_fresh(pointer) else pointer.format
    plan = replace(plan, session=new_session_id(seq), format=number)
    refuse_too_many(context, plan, current)
    if current is None:
        # Before the first session, while nothing stands anywhere (R28).
        require_staging_reachable(
            context.clients.staging,
            context.spec.ingestion.output_props,
            context.spec.policy,
            context.clients.builder,
        )
    write_cluster_marker(context.clients)
    now = context.clients.now_ms()
    session = Session(
        id=plan.session,
        seq=seq,
        mode=context.mode,
        config_fingerprint=context.fingerprint,
        created_ms=now,
        attempt_started_ms=now,
        plan=context.clients.staging.put_plan(plan),
        counts=plan.counts(),
        push=context.push,
        format=plan.format,
    )
    pointer = replace(
        pointer,
        active_session=session.node,
        next_seq=seq + 1,
        history=(*pointer.history, session.node)[-2:],
        format=plan.format,
    )
    context.lease.write(pointer=pointer, session=session)
    context.lease.prune()
    context.note(f"session {session.id} ({session.mode.lower()}): {plural(len(plan.rows), 'file')} to build")
    if context.mode is Mode.APPEND and changes.rewritten:
        context.note(
            f"{len(changes.rewritten)} rewritten files are added beside their older versions (append)"
        )
    return session, plan


def refuse_too_many(context: TriggerContext, plan: Plan, current: Snapshot | None) -> None:
    """Look before anything is built whether one switch can show it all.

    :raises PushRefused: it cannot, however it is built.
    """
    if context.push is not PushKind.PLAIN:
        visible = context.clients.pinot.visible_segments(context.spec.name)
        require_plan_fits(context.spec.name, plan, planning.segments_from(plan, current, visible))


# --- an open session -------------------------------------------------------------------------------


def go_on(
    context: TriggerContext,
    session: Session,
    opened: Opened,
    plan: Plan,
    receipts: Receipts,
    current: Snapshot | None,
) -> tuple[Session, Plan]:
    """The open session's next attempt."""
    is_retry, now_ms = opened.next is Next.RETRY, context.clients.now_ms()
    trouble_since_ms = session.trouble_since_ms or (now_ms if opened.keeps_dying else 0)
    refuse_too_many(context, plan, current)
    taken = with_spent_names(plan, receipts, _spent(context, session))
    taken |= returned(opened.plan, plan, receipts)
    plan = revoked(plan, taken)
    session = replace(
        session,
        plan=context.clients.staging.put_plan(plan),
        attempt=plan.attempt,
        attempt_started_ms=now_ms,
        retry_count=session.retry_count + is_retry,
        stalls=0 if is_retry else opened.stalls,
        failures=None,
        audit=session.audit if _still_audited(context, session, opened.plan, plan) else None,
        counts=plan.counts(),
        trouble_since_ms=trouble_since_ms,
        last_error=(session.last_error or _NO_WORD) if trouble_since_ms else "",
    )
    context.lease.write(session=session)
    if taken:
        # After the write: nobody else has this attempt's names any more.
        plan = renamed(context.clients.staging, context.spec.name, plan, taken)
        context.note(f"{len(taken)} built files go on under new names; their files are not read again")
    what = f"retry {session.retry_count} of" if is_retry else "going on with"
    context.note(
        f"{what} session {session.id}: {plural(len(plan.done), 'file')} kept, {len(plan.to_build):,} to build"
    )
    return session, plan


def _still_audited(context: TriggerContext, session: Session, audited: Plan, plan: Plan) -> bool:
    """Whether the gate stays open: bound to the switch (R8), for what is asked by now, of the same files.
    One that gives no segment changes no switch, and was looked at by nobody."""
    same = (audited.rows, audited.removals) == (plan.rows, plan.removals)
    return same and session.gate_open_by(context.spec.audit.digest)


def _spent(context: TriggerContext, session: Session) -> frozenset[str]:
    """Names that Pinot must not see again (rule R16).

    A lost entry stays on the session until another one is opened for it, so a driver that dies on the way
    is followed by one that still knows.
    """
    spent = spent_names(context.switcher.fetch())
    if session.state is State.SWITCH and is_lost(context, session):
        context.note(f"the lineage entry of {session.id} was reverted, or Pinot gave it up")
        spent |= frozenset(load_switch(context, session).names_to)
    return spent
