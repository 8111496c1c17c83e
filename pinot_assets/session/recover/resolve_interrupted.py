"""What became of a switch that an earlier driver left half way, and what is done about it: W5's table.

Whether it happened is read by `Switcher.is_published` (`session/lineage/switch.py`).

Source: docs/design/session.md#what-became-of-a-switch.
"""

from __future__ import annotations

from dataclasses import replace

from pinot_assets.errors import SwitchConflict
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.recover.finalize import finalize, load_switch
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.state import Session
from pinot_assets.session.values.trouble import STALLS


def resolve_interrupted(context: TriggerContext, session: Session) -> Session | None:
    """Find out what became of a session that was left in SWITCH.

    :returns: None when it was published after all (and is recorded now), else the session, still open.
    """
    if session.switch_object is None:
        return session
    switch = load_switch(context, session)
    if context.switcher.is_published(switch, session.lineage_entry_id, session.end_issued):
        finalize(context, session)
        context.note(f"session {session.id} had been switched before its driver died; recorded now")
        return None
    session = with_open_entry(context, session, switch)
    if is_lost(context, session):
        # Nothing hides them any more: what was pushed is visible now, or may be in a moment.
        context.switcher.delete(switch.names_to)
    return session


def with_open_entry(context: TriggerContext, session: Session, switch: Switch) -> Session:
    """The session with the entry that is open for its switch, where its driver died between the start and
    the write of the entry's id; else as it is."""
    found = beside_open_entry(context, session, switch)
    if found != session:
        context.lease.write(session=found)
    return found


def beside_open_entry(context: TriggerContext, session: Session, switch: Switch) -> Session:
    """The same, only looked at."""
    if is_open(context, session) or (twin := context.switcher.open_twin(switch)) is None:
        return session
    return replace(session, lineage_entry_id=twin.id)


def is_open(context: TriggerContext, session: Session) -> bool:
    """Whether the session's lineage entry waits for its end.

    :raises SwitchConflict: it does not any more: an end that gave no answer completed it, after this driver
        had looked whether it did. What is visible now must not be taken for lost.
    """
    entry = context.clients.pinot.lineage(context.spec.name).get(session.lineage_entry_id)
    # A rollback by reverting has no switch of its own: the entry is that of the snapshot it leaves.
    if entry is not None and entry.state is LineageState.COMPLETED and session.switch_object is not None:
        raise SwitchConflict(
            f"{context.spec.name} was switched just now",
            why=f"the end of lineage entry {entry.id}, which had given no answer, completed it",
            hint="the next trigger records it",
        )
    return entry is not None and entry.state is LineageState.IN_PROGRESS


def is_lost(context: TriggerContext, session: Session) -> bool:
    """Whether the entry of an unpublished switch was reverted or reaped, or may be reverted at any moment:
    its names are spent (R16)."""
    opened = session.switch_object is not None and session.lineage_entry_id != ""
    return opened and (session.revert_sent or not is_open(context, session))


def may_end_again(context: TriggerContext, session: Session) -> bool:
    """Whether a switch whose end gave no answer is best ended once more."""
    switch = load_switch(context, session)
    staged = context.clients.pinot.all_segments(context.spec.name).issuperset(switch.names_to)
    # What has gone cannot be replaced (E20): the gate would refuse it for as long as the entry lives.
    staged &= context.clients.pinot.visible_segments(context.spec.name).issuperset(switch.segments_from)
    usable = staged and context.switcher.is_usable(session.lineage_entry_id)
    return usable and session.gate_open and session.stalls < STALLS


def must_stop_ending(context: TriggerContext, session: Session) -> bool:
    """Whether the end of an open entry was sent, gave no answer, and is not to be sent once more."""
    return session.end_sent and not is_lost(context, session) and not may_end_again(context, session)


def renewed(context: TriggerContext, session: Session) -> Session:
    """The session under a young entry with the same names: its audit stands, an end under way does not.

    :raises SwitchConflict: the entry was ended or lost meanwhile, or a source has gone.
    """
    entry_id = context.switcher.renew(load_switch(context, session), session.lineage_entry_id)
    session = replace(session, lineage_entry_id=entry_id)
    context.lease.write(session=session)
    return session


def stop_ending(context: TriggerContext, session: Session) -> Session:
    """Take the entry away from an end under way that is not to be relied on any more.

    :returns: the session, under a young entry; or with its entry lost, where that cannot be.
    """
    try:
        return renewed(context, session)
    except SwitchConflict:
        if not is_open(context, session):
            raise
        return _reverted(context, session)


def without_entry(context: TriggerContext, session: Session) -> Session:
    """Take the open entry of an unpublished switch back; nothing where none is open (rules R4, R19).

    :returns: the session; its entry, if it still names one, is closed.
    :raises SwitchConflict: the entry was ended meanwhile, or it cannot be told whether it was reverted.
    """
    if session.end_sent and not session.revert_sent and is_open(context, session):
        session = stop_ending(context, session)  # an end that comes first would be followed by the revert
    return _reverted(context, session) if is_open(context, session) else session


def _reverted(context: TriggerContext, session: Session) -> Session:
    """Written before it is sent: a revert that is given up for lost may arrive when the entry has been ended,
    and take back what that published."""
    if not session.revert_sent:
        session = replace(session, revert_issued=session.lineage_entry_id)
        context.lease.write(session=session)
    context.switcher.revert_entry(session.lineage_entry_id)
    return session
