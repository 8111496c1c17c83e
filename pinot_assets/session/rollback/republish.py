"""Publishing a kept snapshot again: its staged tars under new names, as a switch like any other (rule R22).

No Spark. Segments that both snapshots have stay untouched. A new name is made of the attempt and of the
segment's place in the target, so that every driver, whenever it comes, finds the same one.
"""

from __future__ import annotations

from dataclasses import replace

from pinot_assets.core.threads import in_threads
from pinot_assets.errors import BuildError, RollbackRefused, SnapshotCorrupt, SourceError
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.pinot import versions
from pinot_assets.session.commit.audit import audit
from pinot_assets.session.commit.publish import end_switch
from pinot_assets.session.commit.stage import stage_switch
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.recover.finalize import confirm, load_switch
from pinot_assets.session.recover.resolve_interrupted import (
    is_lost,
    stop_ending,
    with_open_entry,
    without_entry,
)
from pinot_assets.session.rollback.rollback_options import coming, going
from pinot_assets.session.stores.staged_objects import THREADS
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.state import Mode, Session, State
from pinot_assets.snapshot.manifest import PublishedFile, Snapshot
from pinot_assets.snapshot.receipt import Output


def republish(
    context: TriggerContext, session: Session, target: Snapshot
) -> tuple[Session, tuple[PublishedFile, ...]]:
    """From wherever an earlier driver came to: rename, start, push hidden, audit, end, see it everywhere.

    :returns: the session, published and not yet closed, and the target's files as they stand now.
    :raises RollbackRefused: the tars or the audit do not allow it; the session is to be given up.
    """
    left = unpublished(context, session)
    if left is not None:
        left = _switched(context, _with_names_left(context, left), target)
    done = left or session
    if done.switch_object is None:
        return done, tuple(target.files)
    confirm(context, done)
    return done, _files(context, done, target)


def unpublished(context: TriggerContext, session: Session) -> Session | None:
    """The session with the entry that is open for it, None when its switch has happened."""
    if session.switch_object is None:
        return session
    switch = load_switch(context, session)
    if context.switcher.is_published(switch, session.lineage_entry_id, session.end_issued):
        return None
    return with_open_entry(context, session, switch)


def _with_names_left(context: TriggerContext, session: Session) -> Session:
    """Names that stand in an entry that was reverted or reaped are spent for ever (rule R16)."""
    if session.end_sent:
        sources = set(load_switch(context, session).segments_from)
        if not context.clients.pinot.visible_segments(context.spec.name).issuperset(sources):
            session = stop_ending(context, session)  # what has gone cannot be replaced
    if not is_lost(context, session):
        return session
    session = without_entry(context, session)
    context.switcher.delete(load_switch(context, session).names_to)
    session = replace(
        session,
        state=State.IN_PROGRESS,
        attempt=session.attempt + 1,
        switch_object=None,
        lineage_entry_id="",
        end_issued="",
        audit=None,
    )
    context.lease.write(session=session)
    return session


def _switched(context: TriggerContext, session: Session, target: Snapshot) -> Session:
    """W1 to W5; the session as it was where nothing comes or goes."""
    if not session.end_sent:
        switch = _switch(context, session, target)
        if not switch.segments_from and not switch.segments_to:
            return session
        session = stage_switch(context, session, switch)
    session, findings = audit(context, session)
    if failed := [f for f in findings if f.blocks]:
        raise RollbackRefused(
            f"{context.spec.name} is not brought back to {target.session}: "
            "its segments did not pass the audit",
            why="; ".join(f"{f.name}: {f.message}" for f in failed),
            hint="queries see what they saw before; repair what it names and roll back again",
        )
    return end_switch(context, session)


def _switch(context: TriggerContext, session: Session, target: Snapshot) -> Switch:
    visible = context.clients.pinot.visible_segments(context.spec.name)
    sources = going(context.spec.name, context.mode is Mode.SWAP, visible, target)
    pushed = coming(visible, target)
    if sources and not pushed and not versions.takes_empty_outputs(context.pinot_version):
        # A Pinot before 1.0 refuses a replacement by nothing: one segment that stays goes along (see
        # `placeholder_segment`).
        kept = [o for name, o in target.segments.items() if name in visible]
        if not kept:
            raise RollbackRefused(
                f"{context.spec.name} cannot be emptied by a switch",
                why="this Pinot is older than 1.0 and refuses a replacement by nothing",
            )
        smallest = min(kept, key=lambda o: (o.tar_bytes, o.segment))
        sources, pushed = tuple(sorted((*sources, smallest.segment))), (smallest,)
    names = _names(context, session, target)
    outputs = in_threads(
        lambda output: _renamed(context, output, names[output.segment]), pushed, THREADS, "rename"
    )
    return Switch(session.switch + 1, sources, tuple(outputs), format=session.format)


def _renamed(context: TriggerContext, output: Output, name: str) -> Output:
    try:
        return context.clients.staging.put_renamed(output, name)
    except (SourceError, BuildError, SnapshotCorrupt) as error:
        raise RollbackRefused(
            f"the tar of {output.segment} cannot be published again",
            why=str(error),
            hint="restore it, or put the former files back into the source and run the table",
        ) from error


def _names(context: TriggerContext, session: Session, target: Snapshot) -> dict[str, str]:
    """New name of every segment of the target, whether or not it needs one."""
    return {
        old: segment_name(context.spec.name, session.id, session.attempt, ordinal, 0)
        for ordinal, old in enumerate(target.segments)
    }


def _files(context: TriggerContext, session: Session, target: Snapshot) -> tuple[PublishedFile, ...]:
    """The target's files with the names that the switch gave them."""
    pushed = {o.segment: o for o in load_switch(context, session).segments_to}
    names = _names(context, session, target)
    return tuple(
        replace(f, outputs=tuple(pushed.get(names[o.segment], o) for o in f.outputs)) for f in target.files
    )
