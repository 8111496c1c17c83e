"""What a run of a table would do now, decided by what decides in the run itself; nothing is written.

`forecast` walks the way of `trigger`: what is left half way, the open session, the source, the next attempt.
It takes the looks and decisions that are taken there, and leaves out their effects.
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
from pinot_assets.session.context.context import Run
from pinot_assets.session.context.naming import is_fresh
from pinot_assets.session.detect.former_table import of_former_table
from pinot_assets.session.detect.plan_hash import Basis
from pinot_assets.session.detect.preconditions import refuse_absent, refuse_unfit, waits_for_resume
from pinot_assets.session.detect.source_state import Looked, look
from pinot_assets.session.recover.abandon import beside_first, refuse_undone, strays_of
from pinot_assets.session.recover.catch_up import adopted
from pinot_assets.session.recover.finalize import read_switch
from pinot_assets.session.recover.placeholder_segment import with_carry
from pinot_assets.session.recover.resolve_interrupted import beside_open_entry, is_lost, may_end_again
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values import plan as planning
from pinot_assets.session.values.plan import NO_HOLD, Changes, Hold, Next, Plan, Row
from pinot_assets.session.values.state import Mode, PushKind, Session, State, is_ours
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef
from pinot_assets.snapshot.receipt import Output, Receipt

NEW_SESSION = "cp0-000000"
"""Stands for the session that a run would open: its number and nonce are given when it begins."""


class Step(StrEnum):
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
class Forecast:
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
    step: Step
    basis: Basis
    why: str = ""
    session: Session | None = None
    ref: SnapshotRef | None = None
    current: Snapshot | None = None
    hold: Hold = NO_HOLD
    visible: frozenset[str] = frozenset()
    strays: tuple[str, ...] = ()
    shadow: str = ""
    beside: tuple[str, ...] = ()
    looked: Looked | None = None
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


def forecast(run: Run) -> Forecast:
    """Read and decide.

    :param run: one that only reads.
    :raises PinotAssetsError: what a run would refuse before it decides anything: Pinot is not what the table
        spec says, or the listing did not complete.
    """
    refuse_absent(run)
    stored = run.active_session()
    if first := unfinished(run):
        return _told(run, stored, Step.FINISH, why=first)
    refuse_unfit(run)
    refuse_unaskable(run)
    session, current = _as_settled(run, stored), run.current_snapshot()
    visible = run.edges.pinot.visible_segments(run.spec.name)
    if strays := strays_of(run, session, current, visible):
        refuse_undone(run, strays, current)
    told: dict[str, Any] = {
        "current": current,
        "hold": run.hold(),
        "visible": visible,
        "strays": tuple(sorted(strays)),
        "shadow": left_shadow(run.edges.pinot, run.spec.name),
        "beside": beside_first(run, current, visible),
    }
    if session is not None and _is_cleared(run):
        told["why"] = f"{session.id} is dropped first (clearConsistentPushState)"
        session = None
    told["session"] = session
    if waits_for_resume(run, session):
        return _told(run, stored, Step.HELD, **told)
    if session is not None and session.ending and not is_lost(run, session) and may_end_again(run, session):
        switch = read_switch(run, session)
        told |= {"segments_from": switch.segments_from, "outputs": switch.segments_to}
        return _told(run, stored, Step.END, **told)
    looked = told["looked"] = look(run, session, current)
    told["hold"] = looked.hold
    if looked.changes is None:
        return _told(run, stored, Step.WAITING, **told)
    free = told["free"] = planning.without_held(looked.changes, told["hold"])
    return _told(run, stored, **told | _next(run, looked, free, current, visible - strays))


def unfinished(run: Run) -> str:
    """What a trigger finishes before it looks at anything else, as a sentence; "" where there is nothing."""
    names, pointer = run.edges.pinot.all_segments(run.spec.name), run.lease.pointer
    if adopted(run.spec.name, run.edges, pointer) != pointer.current_snapshot:
        return "the pointer in ZooKeeper is older than what queries see: they decide what is the ledger"
    if pointer.active_session and run.active_session() is None:
        return f"session {pointer.active_session} is over, and the pointer takes it for open"
    if (former := of_former_table(run)) is not None:
        return (
            f"{run.spec.name} was made anew after {former.session} had been published: its ledger is dropped"
        )
    if is_fresh(run.lease.pointer) and any(is_ours(run.spec.name, name) for name in names):
        return "ZooKeeper has lost the pointer: the ledger is made anew from what queries see"
    return _half_way(run) or _hidden(run)


def _half_way(run: Run) -> str:
    session = run.active_session()
    if session is None:
        return ""
    if session.mode is Mode.ROLLBACK:
        return f"the rollback {session.id} was left half way, and is finished"
    if session.state is not State.SWITCH or session.switch_object is None:
        return ""
    if session.push is PushKind.PLAIN:
        return f"{session.id} had begun to publish, and is finished" if session.gate_open else ""
    switch = read_switch(run, session)
    if run.switcher.is_published(switch, session.lineage_entry_id, session.end_issued):
        return f"{session.id} was switched and not recorded, which is made up for"
    return ""


def _hidden(run: Run) -> str:
    current = run.current_snapshot()
    hidden = run.switcher.hidden_by_delayed_starts(current.segments) if current is not None else ()
    if not hidden:
        return ""
    return f"published segments are hidden by a delayed start of ours, and shown again: {len(hidden)}"


def _as_settled(run: Run, session: Session | None) -> Session | None:
    if session is None or session.state is not State.SWITCH or session.push is PushKind.PLAIN:
        return session
    if session.switch_object is None:
        return session
    return beside_open_entry(run, session, read_switch(run, session))


def _is_cleared(run: Run) -> bool:
    return run.spec.ingestion.clear_state and run.clear_token != run.lease.pointer.clear_token


def _next(
    run: Run, looked: Looked, free: Changes, current: Snapshot | None, visible: frozenset[str]
) -> dict[str, Any]:
    """Which step it is, with the plan of the next attempt."""
    opened, receipts = looked.opened, dict[int, tuple[str, Receipt]]()
    given_up = why_given_up(opened) if opened is not None else None
    told: dict[str, Any] = {"why": given_up[1]} if given_up is not None else {}
    if opened is None or given_up is not None:
        plan = first_plan(run, NEW_SESSION, free, current)
        step = Step.BEGIN if opened is None else Step.RESTART
        if plan is None:
            step = step if opened is not None else Step.NOTHING if free == looked.changes else Step.HELD
            return told | {"step": step}
    else:
        plan, found = next_plan(opened, free)
        receipts = dict(found)
        step = Step.RETRY if opened.next is Next.RETRY else Step.CONTINUE
    replaced = planning.segments_from(planning.as_built(plan), current, visible)
    switch = Switch(0, replaced, tuple(o for row in plan.done for o in receipts[row.ordinal][1].outputs))
    refused = _refusal(run, plan, current, visible)
    if refused is None:
        try:
            switch = with_carry(run, plan, current, switch, visible)
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
    run: Run, plan: Plan, current: Snapshot | None, visible: frozenset[str]
) -> PinotAssetsError | None:
    try:
        refuse_too_many(run, plan, current)
    except PushRefused as error:
        return error
    return why_paused(run, plan, current, visible)


# --- what it rests on ------------------------------------------------------------------------------


def _told(run: Run, stored: Session | None, step: Step, **told: Any) -> Forecast:
    """The forecast with its basis.

    :param stored: the open session as ZooKeeper has it.
    """
    seen = Forecast(
        table=run.spec.name,
        mode=run.mode,
        push=run.push,
        step=step,
        basis=Basis({}),
        ref=run.lease.pointer.current_snapshot,
        **told,
    )
    found = seen.looked.found if seen.looked is not None else None
    pointer, ingestion = run.lease.pointer, run.spec.ingestion
    basis = Basis.of(
        files=[found.counted.digest, [u.uri for u in found.waiting]] if found is not None else [],
        published=[pointer.current_snapshot.sha256 if pointer.current_snapshot else "", bool(seen.current)],
        session=_session_values(stored, seen) if stored or seen.why else [],
        spec=[
            run.spec.name_with_type,
            run.fingerprint,
            [ingestion.retries, ingestion.clear_state, ingestion.empty_source_action],
            [ingestion.rollback_window, ingestion.push_mode],
            [ingestion.snapshots_to_keep, ingestion.snapshot_days_to_keep],
            run.spec.audit.digest,
            run.table_config,
            [run.edges.staging.store.uri, run.edges.store.owner()],
        ],
        segments=[seen.segments_from, seen.strays, str(seen.refused or "")],
        hold=[pointer.hold.sha256 if pointer.hold else ""],
    )
    return replace(seen, basis=basis)


def _session_values(session: Session | None, seen: Forecast) -> list[Any]:
    # Where something is only finished, the reason alone tells what.
    finished = seen.why if seen.step is Step.FINISH else ""
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
