"""The gate: whether what is staged may be published, enforced again at W5 whatever was run before."""

from __future__ import annotations

from pinot_assets.errors import SnapshotIncomplete
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.values.state import AuditReceipt, Session, State, given_up


def session_to_gate(context: TriggerContext) -> Session:
    """The open session; where none is, one of another push that was given up when its run had failed.

    :raises SnapshotIncomplete: there is neither.
    """
    session = context.active_session() or given_up(context.clients.store.newest_session())
    if session is None:
        raise _nothing_staged(context, "no session is open")
    return session


def require_staged(context: TriggerContext, session: Session) -> None:
    """Go on only when the session's newest plan is staged, in SWITCH.

    :raises SnapshotIncomplete: it is not; says why.
    """
    refuse_failed_files(context, session)
    if session.passed_without_switch:
        raise SnapshotIncomplete(
            f"nothing of {context.spec.name} has to be switched",
            why=f"the audit of session {session.id} passes by now, and no segment comes or goes",
            hint="run the table again: it takes note of the files, and builds none",
        )
    require_switch(context, session)
    if session.switch_attempt != session.attempt:
        raise SnapshotIncomplete(
            f"what is staged of {context.spec.name} is not what its newest plan says",
            why=session.last_error or f"attempt {session.attempt} of {session.id} has not been staged",
            hint="materialize `segments` again: it goes on from what is built",
        )


def refuse_failed_files(context: TriggerContext, session: Session) -> None:
    """Files that could not be built keep back all the others, except in a plain push.

    :raises SnapshotIncomplete: there are some.
    """
    if session.has_blocking_failures:
        raise SnapshotIncomplete(
            f"files of {context.spec.name} could not be built",
            why=session.last_error,
            hint="repair or remove them, then run the table again: only they are built again",
        )


def require_switch(context: TriggerContext, session: Session) -> None:
    """Go on only when the session has a switch to make.

    :raises SnapshotIncomplete: it has none.
    """
    if session.state is not State.SWITCH or session.switch_object is None:
        state = f"session {session.id} is {session.state}"
        raise _nothing_staged(context, f"{state}; {session.last_error}" if session.last_error else state)


def _nothing_staged(context: TriggerContext, why: str) -> SnapshotIncomplete:
    return SnapshotIncomplete(
        f"nothing of {context.spec.name} is staged for a switch",
        why=why,
        hint="materialize `segments` first: it builds and stages what the source holds",
    )


def require_spec(context: TriggerContext, session: Session) -> None:
    """The table spec is still the one by which it was built and audited.

    :raises SnapshotIncomplete: what is staged is not what the table wants by now; only a trigger gives it up.
    """
    if session.config_fingerprint != context.fingerprint:
        why = f"its table spec was changed after {session.id} had been planned"
    elif not session.gate_open_by(context.spec.audit.digest):
        why = "its table spec asks for something else than the audit that passed did"
    else:
        return
    raise shut(context, session, why)


def require_open_gate(context: TriggerContext, session: Session) -> None:
    """Go on only when the stored audit passed for exactly the switch that stands.

    :raises SnapshotIncomplete: it did not, or there was none.
    """
    if not session.gate_open:
        passed = session.audit is not None and session.audit.passed
        why = session.last_error or f"switch {session.switch} of {session.id} has not been audited"
        raise shut(context, session, "the audit that passed was for another switch" if passed else why)


def shut(context: TriggerContext, session: Session, why: str) -> SnapshotIncomplete:
    """The error that says why nothing is published, and what would open the gate."""
    return SnapshotIncomplete(
        f"the gate of {context.spec.name} is shut", why=why, hint=_way_on(session.audit)
    )


def _way_on(audit: AuditReceipt | None) -> str:
    """What opens a gate that is shut."""
    if audit is None or audit.passed:
        return "run the whole job: segments → consistent_push → snapshot"
    if audit.of_data:
        return "repair the files that it is about, or change the assertion, and run the table again"
    if audit.waits:
        by_itself = "sensors and `watch` do it by themselves"
        return f"see to what it names and run the table again ({by_itself}): nothing is built again"
    return "run the table again: the files that it names are built again"
