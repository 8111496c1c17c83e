"""The switch itself: W5 of docs/design/session.md#the-switch-w1-to-w6."""

from __future__ import annotations

from dataclasses import replace

from pinot_assets.errors import SnapshotIncomplete, SwitchConflict, SwitchStateUnknown
from pinot_assets.session.checks.capacity import generation_before
from pinot_assets.session.commit.gate import require_open_gate, require_spec, require_staged
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.recover.finalize import finalize, load_switch
from pinot_assets.session.recover.resolve_interrupted import renewed
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.state import Mode, Session
from pinot_assets.snapshot.manifest import Snapshot


def publish(context: TriggerContext, session: Session) -> Snapshot:
    """W5 and W6: end the replacement, see it everywhere, record the snapshot.

    The gate is enforced here again, from the session's own audit receipt, whatever was run before.

    :raises SnapshotIncomplete: nothing is staged, or the audit has not passed for exactly this switch and
        the table spec of now.
    :raises SwitchConflict: a segment that is to be replaced has gone; the next trigger makes a new switch.
    :raises SwitchStateUnknown: it cannot be told yet; the next trigger looks and finishes.
    """
    require_staged(context, session)
    if session.mode is Mode.ROLLBACK:
        raise SnapshotIncomplete(
            f"what is staged of {context.spec.name} is a rollback",
            why=f"session {session.id} was left half way",
            hint="the next trigger finishes it; `clear` gives it up",
        )
    if session.gate_open and not session.end_sent:
        require_spec(context, session)
    return finalize(context, end_switch(context, session))


def end_switch(context: TriggerContext, session: Session) -> Session:
    """W5: the gate, then the end of the replacement, unless it was ended before.

    :raises SnapshotIncomplete: the audit has not passed for exactly this switch.
    """
    require_open_gate(context, session)
    switch = load_switch(context, session)
    if not context.switcher.is_published(switch, session.lineage_entry_id, session.end_issued):
        _refuse_changed_sources(context, switch)
        _require_its_entry(context, session, switch)
        if not context.switcher.is_usable(session.lineage_entry_id) or generation_before(context, switch):
            session = renewed(context, session)
        session = replace(session, end_issued=session.lineage_entry_id)
        context.lease.write(session=session)
        try:
            context.switcher.end(session.lineage_entry_id)
        except (SwitchConflict, SwitchStateUnknown):
            context.lease.write(session=replace(session, stalls=session.stalls + 1))  # R10
            raise
    return session


def _require_its_entry(context: TriggerContext, session: Session, switch: Switch) -> None:
    """The session's entry is open, is to stay so until it is ended, and is this switch's: a driver that died
    between W1 and W2 left the one of the switch before.

    :raises SwitchConflict: it is not.
    """
    entry = context.switcher.require_open(session.lineage_entry_id)
    if session.revert_sent or not entry.has_names(switch.segments_from, switch.names_to):
        raise SwitchConflict(
            f"lineage entry {session.lineage_entry_id} of {context.spec.name} is not the one to end",
            why="a revert of it was sent, and may still arrive"
            if session.revert_sent
            else f"it is not the one of switch {switch.number}, for which none was opened yet",
            hint="the next trigger opens another one; nothing is rebuilt",
        )


def _refuse_changed_sources(context: TriggerContext, switch: Switch) -> None:
    gone = set(switch.segments_from) - context.clients.pinot.visible_segments(context.spec.name)
    if gone:
        raise SwitchConflict(
            f"segments of {context.spec.name} that were to be replaced have gone",
            why=f"{len(gone)} of {len(switch.segments_from)}, first {min(gone)}",
            hint="the next trigger makes a new switch from what is visible then",
        )
