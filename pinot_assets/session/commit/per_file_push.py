"""Plain push: every file is published on its own, whatever becomes of the others.

Source: docs/design/session.md#plain-push.

A new file is simply pushed, and seen at once; one that replaces something, or that is several segments, goes
under a lineage entry of its own; one that was removed is taken away under an entry with nothing to show. The
session's switch says what all of that is, so that a driver that dies on the way is followed by one that does
what is missing: a look at what is visible tells. Only files that are published get into the ledger, so those
that failed are tried again by the next trigger, in a session of its own.

Nothing keeps the gate shut: what can be looked at before a file is visible is told, and so is what the
servers loaded afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pinot_assets.audit.checks import Finding, files_built, tars_in_place
from pinot_assets.core.check_result import Severity
from pinot_assets.core.text import plural
from pinot_assets.errors import SnapshotIncomplete
from pinot_assets.session.checks.capacity import require_capacity
from pinot_assets.session.checks.losses import loss_findings
from pinot_assets.session.checks.receipt_checks import cut_findings
from pinot_assets.session.checks.server_checks import server_findings
from pinot_assets.session.commit.audit import checked, store_audit
from pinot_assets.session.commit.gate import require_open_gate, require_switch
from pinot_assets.session.commit.no_segment_change import finish_without_switch
from pinot_assets.session.commit.per_file_steps import FileStep, PerFilePublisher, failures_of, steps_of
from pinot_assets.session.commit.stage import refuse_hidden_sources
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.recover.abandon import abandon
from pinot_assets.session.recover.finalize import close_published, load_switch, snapshot_of
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values import plan as planning
from pinot_assets.session.values import quarantined_rows
from pinot_assets.session.values.plan import Plan, RowStatus
from pinot_assets.session.values.state import Outcome, Session, State
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Receipt


def without(plan: Plan, uris: frozenset[str]) -> Plan:
    """The plan less the files that failed: the next session plans them anew."""
    rows = tuple(replace(r, status=RowStatus.GONE, receipt="") if r.uri in uris else r for r in plan.rows)
    return replace(plan, rows=rows, removals=tuple(u for u in plan.removals if u not in uris))


def stage(context: TriggerContext, session: Session, plan: Plan, receipts: Mapping[int, Receipt]) -> Session:
    """W1: write down what is to be published. Nothing is in Pinot yet.

    :param plan: without the files that failed.
    :returns: the session, in SWITCH; or DONE with outcome NOOP when no segment comes or goes.
    :raises PushRefused: the quota or the servers' disks have no room for all of it.
    """
    current = context.current_snapshot()
    visible = context.clients.pinot.visible_segments(context.spec.name)
    refuse_hidden_sources(context, plan, current, visible)
    session = replace(session, plan=context.clients.staging.put_plan(plan))
    switch = Switch(
        session.switch + 1,
        planning.segments_from(plan, current, visible),
        planning.segments_to(plan, receipts),
        format=session.format,
    )
    if not switch.segments_from and not switch.segments_to:
        return finish_without_switch(context, session)
    require_capacity(context, switch)
    session = replace(
        session,
        state=State.SWITCH,
        switch=switch.number,
        switch_object=context.clients.staging.put_switch(session.id, switch),
        switch_attempt=plan.attempt,
        switch_ms=context.clients.now_ms(),
        audit=None,
    )
    context.lease.write(session=session)
    return session


def audit(context: TriggerContext, session: Session) -> tuple[Session, tuple[Finding, ...]]:
    """W4, as far as it goes before anything is pushed: files that failed, tars that have gone.

    Each keeps back its own file, so none keeps the gate shut.

    :raises SnapshotIncomplete: nothing is staged.
    """
    require_switch(context, session)
    staging = context.clients.staging
    outputs = load_switch(context, session).segments_to
    stats = {o.tar_uri: staging.store.stat(staging.key_of(o.tar_uri)) for o in outputs}
    sizes = {uri: stat.size if stat is not None else None for uri, stat in stats.items()}
    receipts = staging.accepted_receipts(staging.plan(session.plan)).values()
    found = (
        files_built(session.counts["files"], failures_of(context, session)),
        tars_in_place(outputs, sizes),
        *quarantined_rows.finding(context.spec, receipts),
        *cut_findings(context, session, receipts),
        *loss_findings(context, session, receipts),
    )
    findings = tuple(replace(f, severity=Severity.WARN) for f in found)
    return store_audit(context, session, findings), findings


def publish(context: TriggerContext, session: Session) -> Snapshot:
    """W5 and W6: publish file by file what is not published yet, record those that are.

    :raises SnapshotIncomplete: the session has not been audited, or Pinot takes none of its files; in that
        case it is given up.
    :raises SwitchStateUnknown: it cannot be told yet; the next trigger looks and finishes.
    """
    require_switch(context, session)
    require_open_gate(context, session)
    staging, switch = context.clients.staging, load_switch(context, session)
    plan = staging.plan(session.plan)
    steps = steps_of(plan, staging.accepted_receipts(plan), context.current_snapshot(), switch.segments_from)
    publisher = PerFilePublisher(context, session, plan)
    context.before_pinot_write()  # what a former owner sent has landed by then, or is seen to be under way
    publisher.publish(steps)
    publisher.take_back_what_nobody_serves(steps)
    session, refused = publisher.session, publisher.refused
    if len(refused) == len(steps):
        abandon(context, session, Outcome.ABANDONED_RETRIES, "Pinot took none of its files")
        raise SnapshotIncomplete(
            f"no file of {context.spec.name} could be published",
            why=session.last_error,
            hint="queries see what they saw before; the next run builds and pushes them again",
        )
    done = [step for step in steps if step.uri not in refused]
    plan = without(plan, frozenset(refused))
    session = replace(session, plan=staging.put_plan(plan))
    return _record(context, session, plan, done)


def resolve_interrupted(context: TriggerContext, session: Session) -> Session | None:
    """Finish what a driver that died may have begun to publish.

    :returns: None when nothing is open any more; the session, if nothing of it was published yet.
    """
    if not session.gate_open:
        return session
    try:
        publish(context, session)
    except SnapshotIncomplete as error:
        context.note(str(error))
    else:
        context.note(f"session {session.id} had begun to publish before its driver died; finished now")
    return None


def _record(context: TriggerContext, session: Session, plan: Plan, done: Sequence[FileStep]) -> Snapshot:
    """W6: see every published file at every broker, tell what the servers loaded, write the ledger."""
    there = context.clients.pinot.all_segments(context.spec.name)
    outputs = tuple(o for step in done for o in step.outputs if o.segment in there)
    gone = tuple(name for step in done for name in step.replaces)
    names = tuple(o.segment for o in outputs)
    context.switcher.undo_delayed_starts(names)
    context.switcher.confirm_visible(names, gone)
    findings = server_findings(context, Switch(session.switch, (), outputs)) if outputs else ()
    bad = [f"{f.name}: {f.message}" for f in findings if not f.passed]
    for text in bad:
        context.note(f"published, but not as it should be: {text}")
    if session.audit is not None and findings:
        text = "; ".join(bad or [f"{f.name}: {f.message}" for f in findings])
        checks = (*session.audit.checks, *checked(findings))
        session = replace(session, audit=replace(session.audit, summary=text[:2000], checks=checks))
    # No one entry leads back from here.
    snapshot = snapshot_of(context, session, plan, "", context.lease.pointer.current_snapshot)
    close_published(context, session, Outcome.PUBLISHED, snapshot)
    context.note(f"published {plural(len(done), 'file')} one by one")
    return snapshot
