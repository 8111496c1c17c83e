"""What a run of a table would do now: the trigger's own decision, with the segments that it would switch.

What a run finishes, deletes and clears before it decides is foreseen here. Nothing is written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pinot_assets.errors import PinotAssetsError, PlanOutdated, PushRefused, SwitchConflict
from pinot_assets.pinot.shadow_table import left_shadow
from pinot_assets.session.begin_and_build import refuse_too_many
from pinot_assets.session.checks.assertions import refuse_unaskable
from pinot_assets.session.checks.pack_segments import expired_packs, packs_in_part
from pinot_assets.session.close import ask_if_end_must_stop, load_switch
from pinot_assets.session.commit.one_switch import why_paused, with_placeholder
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.decide.run_decision import (
    Decision,
    PlannedAction,
    decide_run,
    refuse_absent,
    refuse_unfit,
    wants_clear,
)
from pinot_assets.session.recover.interrupted import (
    beside_first,
    of_former_table,
    refuse_undone,
    strays_of,
    with_open_entry,
)
from pinot_assets.session.recover.lost_pointer import adopted
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.plan import Plan, Row, as_built, segments_from, segments_to
from pinot_assets.session.values.state import Mode, PushKind, Session, State, is_fresh, is_ours
from pinot_assets.snapshot.manifest import SnapshotRef, sha256_hex
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec.yaml.document import canonical_json

SHORTEST = 8
"""Digits of a hash that are enough to name it: two plans of one table that share them are one in 2^32."""
_WHOLE, _PART = 16, 4

PARTS = {
    "files": "the files in the source, or which of them are ready",
    "published": "what is published",
    "session": "the open session",
    "spec": "the table spec, Pinot's table config, or which cluster it is",
    "segments": "the segments that would be replaced or deleted",
    "hold": "what a rollback holds back",
}
"""Every part, in the order of its digits, as the end of "changed since then: "."""


@dataclass(frozen=True, slots=True)
class PlanBasis:
    """The basis of one plan, as a hash: it stays the same as long as a run would do the same.

    It has nothing that changes by itself: no time, no free disk, no lease. It has forty digits: sixteen for
    everything, then four for each part, so a caller that passes the full hash learns which part changed.

    :ivar digests: sha256 of each of `PARTS`, in hex.
    """

    digests: Mapping[str, str]

    @classmethod
    def of(cls, **parts: object) -> PlanBasis:
        """From plain values, one for each of `PARTS`."""
        assert parts.keys() == PARTS.keys()
        return cls({name: sha256_hex(canonical_json(parts[name]).encode()) for name in PARTS})

    @property
    def hash(self) -> str:
        """Forty hex digits."""
        whole = sha256_hex("".join(self.digests[name] for name in PARTS).encode())[:_WHOLE]
        return whole + "".join(self.digests[name][:_PART] for name in PARTS)

    def require(self, table: str, plan_hash: str) -> None:
        """Require that a plan still has this basis.

        :param plan_hash: the plan hash, or its first digits.
        :raises PlanOutdated: the basis has changed, or `plan_hash` is no hash.
        """
        plan_hash = plan_hash.strip().lower()
        if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST},{len(self.hash)}}}", plan_hash):
            raise PlanOutdated(
                f"{plan_hash!r} is not the hash of a plan",
                why=f"a hash has {len(self.hash)} hex digits, of which at least the first {SHORTEST} "
                "are needed",
                hint=f"`pinot-assets plan {table}` shows the current plan",
            )
        if self.hash.startswith(plan_hash):
            return
        raise PlanOutdated(
            f"{table} has changed since plan {plan_hash[:SHORTEST]} was made; nothing was done",
            why=self._changed_since(plan_hash),
            hint=f"`pinot-assets plan {table}` shows what a run would do now",
        )

    def _changed_since(self, plan_hash: str) -> str:
        given = {
            name: plan_hash[start : start + _PART]
            for start, name in zip(range(_WHOLE, len(self.hash), _PART), PARTS, strict=True)
        }
        if any(len(digits) < _PART for digits in given.values()):
            return f"something of it changed; all {len(self.hash)} digits of the hash would show what"
        changed = [text for name, text in PARTS.items() if not self.digests[name].startswith(given[name])]
        if len(changed) in (0, len(PARTS)):
            return "nothing of that plan is true here: was it another table's, or mistyped?"
        return f"changed since then: {'; '.join(changed)}"


_NO_BASIS = PlanBasis({})


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """See the module docstring.

    :ivar ref: of the ledger.
    :ivar visible: names that queries see now.
    :ivar strays: strays, visible segments of ours that a run deletes first.
    :ivar shadow: name of a shadow table that an audit left, which is deleted first; "" for none.
    :ivar beside: visible segments of somebody else that stay, while nothing was published from here.
    :ivar outputs: segments that are built: of the plan's files, or of the open switch that is ended again.
    :ivar segments_from: what would be replaced, once all is built.
    :ivar refused: the error with which the run would fail, as far as known; None if there is none.
    """

    table: str
    mode: Mode
    push: PushKind
    decision: Decision
    ref: SnapshotRef | None
    plan_basis: PlanBasis = _NO_BASIS
    visible: frozenset[str] = frozenset()
    strays: tuple[str, ...] = ()
    shadow: str = ""
    beside: tuple[str, ...] = ()
    outputs: tuple[Output, ...] = ()
    segments_from: tuple[str, ...] = ()
    refused: PinotAssetsError | None = None

    @property
    def to_build(self) -> tuple[Row, ...]:
        """Files that would be built."""
        return self.decision.plan.to_build if self.decision.plan is not None else ()

    @property
    def switches(self) -> bool:
        """Whether it leads up to a switch; a plan that brings and takes no segment ends without one."""
        return bool(self.outputs or self.segments_from or any(row.planned.size for row in self.to_build))


def plan_run(context: TriggerContext) -> PlannedRun:
    """Read and decide.

    :param context: one that only reads.
    :raises PinotAssetsError: what a run would refuse before it decides anything: Pinot is not what the table
        spec says, or the listing did not complete.
    """
    refuse_absent(context)
    stored = context.active_session()
    if first := unfinished(context, stored):
        return _with_basis(context, stored, _planned(context, Decision(PlannedAction.FINISH, why=first)))
    refuse_unfit(context)
    refuse_unaskable(context)
    session, current = _as_resolved(context, stored), context.current_snapshot()
    visible = context.pinot.visible_segments(context.table)
    if strays := strays_of(context, session, current, visible):
        refuse_undone(context, strays, current)
    shadow = left_shadow(context.pinot, context.table)
    why = ""
    if session is not None and wants_clear(context):
        why = f"{session.id} is dropped first (clearConsistentPushState)"
        session = None
    decision = decide_run(context, session, current)
    planned = replace(
        _planned(context, replace(decision, why=why or decision.why)),
        visible=visible,
        strays=tuple(sorted(strays)),
        shadow=shadow,
        beside=beside_first(context, current, visible),
    )
    return _with_basis(context, stored, _with_segments(context, planned, visible - strays))


def _planned(context: TriggerContext, decision: Decision) -> PlannedRun:
    pointer = context.lease.pointer
    return PlannedRun(context.table, context.mode, context.push, decision, pointer.current_snapshot)


def unfinished(context: TriggerContext, session: Session | None) -> str:
    """What a trigger finishes before it looks at anything else, as a sentence; "" where there is nothing.

    :param session: the open one.
    """
    names, pointer = context.pinot.all_segments(context.table), context.lease.pointer
    if adopted(context.table, context.clients, pointer, session) != pointer.current_snapshot:
        return "the pointer in ZooKeeper is older than what queries see, so they decide what the ledger is"
    if pointer.active_session and session is None:
        return f"session {pointer.active_session} has ended, and the pointer still names it as open"
    if (former := of_former_table(context)) is not None:
        return (
            f"{context.table} was deleted and created again after {former.session} was published: "
            "its ledger is dropped"
        )
    if is_fresh(pointer) and any(is_ours(context.table, name) for name in names):
        return "ZooKeeper has lost the pointer: the ledger is made again from what queries see"
    if session is not None and (half_way := _half_way(context, session)):
        return half_way
    current = context.current_snapshot()
    hidden = context.switcher().hidden_by_delayed_starts(current.segments) if current is not None else ()
    if not hidden:
        return ""
    return (
        "published segments are hidden by a delayed start of pinot-assets, and are made visible "
        f"again: {len(hidden):,}"
    )


def _half_way(context: TriggerContext, session: Session) -> str:
    if session.mode is Mode.ROLLBACK:
        return f"the rollback {session.id} was interrupted, and is finished"
    if session.state is not State.SWITCH or session.switch_object is None:
        return ""
    if session.push is PushKind.PLAIN:
        return f"{session.id} had begun to publish, and is finished" if session.gate_open else ""
    switch = load_switch(context, session)
    if context.switcher().ask_if_published(switch, session.lineage_entry_id, session.end_issued):
        return f"{session.id} was switched and not recorded; it is recorded now"
    return ""


def _as_resolved(context: TriggerContext, session: Session | None) -> Session | None:
    """The open session once a run has found out what became of its switch, which was not published."""
    if session is None or session.state is not State.SWITCH or session.switch_object is None:
        return session
    if session.push is PushKind.PLAIN:
        return session
    session = with_open_entry(context, session, load_switch(context, session))
    return replace(session, end_issued="") if ask_if_end_must_stop(context, session) else session


def _with_segments(context: TriggerContext, planned: PlannedRun, visible: frozenset[str]) -> PlannedRun:
    """The same with what would be switched.

    :param visible: what is left once the strays are gone.
    """
    decision = planned.decision
    if decision.step is PlannedAction.END and decision.session is not None:
        switch = load_switch(context, decision.session)
        return replace(planned, segments_from=switch.segments_from, outputs=switch.segments_to)
    if (plan := decision.plan) is None:
        return planned
    outputs = segments_to(plan, {o: receipt for o, (_, receipt) in decision.receipts.items()})
    switch = Switch(0, segments_from(as_built(plan), decision.current, visible), outputs)
    refused: PinotAssetsError | None
    try:
        refuse_too_many(context, plan, decision.current)
        expired_packs(context, packs_in_part(as_built(plan), decision.current))
        if (refused := why_paused(context, plan, decision.current, visible)) is None:
            switch = with_placeholder(context, plan, decision.current, switch, visible)
    except (PushRefused, SwitchConflict) as error:
        refused = error
    return replace(planned, outputs=switch.segments_to, segments_from=switch.segments_from, refused=refused)


# --- what it rests on ------------------------------------------------------------------------------


def _with_basis(context: TriggerContext, stored: Session | None, planned: PlannedRun) -> PlannedRun:
    """The same with its basis.

    :param stored: the open session as ZooKeeper has it.
    """
    decision, pointer, ingestion = planned.decision, context.lease.pointer, context.spec.ingestion
    readiness = decision.looked.readiness if decision.looked is not None else None
    basis = PlanBasis.of(
        files=[readiness.counted.digest, [u.uri for u in readiness.waiting]] if readiness is not None else [],
        published=[planned.ref.sha256 if planned.ref else "", bool(decision.current)],
        session=_session_values(stored, decision) if stored or decision.why else [],
        spec=[
            context.spec.name_with_type,
            context.fingerprint,
            [ingestion.retries, ingestion.clear_state, ingestion.empty_source_action],
            [ingestion.rollback_window, ingestion.push_mode],
            [ingestion.snapshots_to_keep, ingestion.snapshot_days_to_keep],
            context.spec.audit.digest,
            context.read_table_config(),
            [context.staging.store.uri, context.clients.store.owner()],
        ],
        segments=[planned.segments_from, planned.strays, str(planned.refused or ""), *_rebuilds(decision)],
        hold=[pointer.hold.sha256 if pointer.hold else ""],
    )
    return replace(planned, plan_basis=basis)


def _rebuilds(decision: Decision) -> list[str]:
    """URIs of published files that are built again; a file without rows replaces no segment."""
    return [file.uri for file in decision.free.rebuilds] if decision.free is not None else []


def _session_values(session: Session | None, decision: Decision) -> list[object]:
    # Where something is only finished, the reason alone tells what.
    finished = decision.why if decision.step is PlannedAction.FINISH else ""
    values: list[object] = [decision.step, finished, _rows_digest(decision.plan)]
    if session is None:
        return values
    switch = session.switch_object.sha256 if session.switch_object else ""
    failures = session.failures.sha256 if session.failures else ""
    return [
        *values,
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
