"""Plain push: publish every file on its own, even if other files fail.

Source: docs/design/session.md#plain-push.

A new file of one segment is pushed and visible at once. A file that replaces something, or that gives several
segments, gets its own lineage entry. A removed file gets an entry without new segments. The session's switch
stores all of this. If a driver dies halfway, the next one compares the switch with the visible segments and
does what is missing. Only published files get into the ledger, so the next trigger tries the failed ones
again, in a new session.

No check keeps the gate shut. The audit reports what can be checked before a file is visible, and W6 reports
what the servers loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from pinot_assets.audit.checks import Finding, files_built, tars_in_place
from pinot_assets.core.check_result import Severity
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import Deadline, poll_until
from pinot_assets.errors import (
    PinotError,
    PinotUnreachable,
    PushRefused,
    SnapshotIncomplete,
    SourceError,
    SwitchConflict,
    SwitchStateUnknown,
)
from pinot_assets.pinot import versions
from pinot_assets.pinot.api import PushMode
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.checks.capacity import require_capacity
from pinot_assets.session.checks.receipt_checks import cut_findings, loss_findings
from pinot_assets.session.checks.server_checks import server_findings
from pinot_assets.session.close import abandon, close_published, load_switch, snapshot_of
from pinot_assets.session.commit.gate import (
    checked,
    finish_without_switch,
    require_open_gate,
    require_switch,
    store_audit,
)
from pinot_assets.session.commit.one_switch import refuse_hidden_sources
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.lineage.switch import MOST, BatchSizer
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.values.plan import Plan, segments_from, segments_to, superseded, without_files
from pinot_assets.session.values.report import rows_put_aside
from pinot_assets.session.values.state import Outcome, Session, State
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure, Output, Receipt

REFUSED = "NOT_PUBLISHED"
"""Error code of a file that was built and that Pinot did not accept."""
_NOT_SERVED = "no server could load it"
_LIVE = (LineageState.IN_PROGRESS, LineageState.COMPLETED)


def stage(context: TriggerContext, session: Session, plan: Plan, receipts: Mapping[int, Receipt]) -> Session:
    """W1: store what is to be published. Nothing is in Pinot yet.

    :param plan: without the files that failed.
    :returns: the session, in SWITCH; or DONE with outcome NOOP when no segment is added or removed.
    :raises PushRefused: the quota or the servers' disks have no room for all of it.
    """
    current = context.current_snapshot()
    visible = context.pinot.visible_segments(context.table)
    refuse_hidden_sources(context, plan, current, visible)
    session = replace(session, plan=context.staging.put_plan(plan))
    switch = Switch(
        session.switch + 1,
        segments_from(plan, current, visible),
        segments_to(plan, receipts),
        format=session.format,
    )
    if not switch.segments_from and not switch.segments_to:
        return finish_without_switch(context, session)
    require_capacity(context, switch)
    session = replace(
        session,
        state=State.SWITCH,
        switch=switch.number,
        switch_object=context.staging.put_switch(session.id, switch),
        switch_attempt=plan.attempt,
        switch_ms=context.clients.now_ms(),
        audit=None,
    )
    return context.write_session(session)


def audit(context: TriggerContext, session: Session) -> tuple[Session, tuple[Finding, ...]]:
    """W4 before anything is pushed: report failed files, missing tars, bad rows, cut values, lost rows.

    Every finding is a warning, so none keeps the gate shut.

    :raises SnapshotIncomplete: nothing is staged.
    """
    require_switch(context, session)
    outputs = load_switch(context, session).segments_to
    stats = {o.tar_uri: context.staging.store.stat(context.staging.key_of(o.tar_uri)) for o in outputs}
    sizes = {uri: stat.size if stat is not None else None for uri, stat in stats.items()}
    receipts = context.staging.accepted_receipts(context.staging.plan(session.plan)).values()
    judged = (
        files_built(session.counts["files"], failures_of(context, session)),
        tars_in_place(outputs, sizes),
        *rows_put_aside(context.spec, receipts),
        *cut_findings(context, session, receipts),
        *loss_findings(context, session, receipts),
    )
    findings = tuple(replace(f, severity=Severity.WARN) for f in judged)
    return store_audit(context, session, findings), findings


def publish(context: TriggerContext, session: Session) -> Snapshot:
    """W5 and W6: publish, one by one, the files that are not published yet; record those that are.

    :raises SnapshotIncomplete: the session has not been audited; or Pinot accepts none of its files, then
        the session is given up.
    :raises SwitchStateUnknown: Pinot's answer is missing; the next trigger finds out and finishes.
    """
    require_switch(context, session)
    require_open_gate(context, session)
    staging, switch = context.staging, load_switch(context, session)
    plan = staging.plan(session.plan)
    steps = steps_of(plan, staging.accepted_receipts(plan), context.current_snapshot(), switch.segments_from)
    publisher = PerFilePublisher(context, session, plan)
    context.before_pinot_write()  # by then, calls of a former owner have landed or are known
    publisher.publish(steps)
    publisher.take_back_what_nobody_serves(steps)
    session, refused = publisher.session, publisher.refused
    if len(refused) == len(steps):
        abandon(context, session, Outcome.ABANDONED_RETRIES, "Pinot accepted none of its files")
        raise SnapshotIncomplete(
            f"no file of {context.table} could be published",
            why=session.last_error,
            hint="queries see what they saw before; the next run builds and pushes them again",
        )
    plan = without_files(plan, frozenset(refused))
    session = replace(session, plan=staging.put_plan(plan))
    return _record(context, session, plan, [step for step in steps if step.uri not in refused])


def resolve_interrupted(context: TriggerContext, session: Session) -> Session | None:
    """Finish publishing for a driver that died.

    :returns: None when the session is over; the session when its gate is not open, so nothing was published.
    """
    if not session.gate_open:
        return session
    try:
        publish(context, session)
    except SnapshotIncomplete as error:
        context.note(str(error))
    else:
        context.note(f"session {session.id} had begun to publish when its driver died; it is finished now")
    return None


def _record(context: TriggerContext, session: Session, plan: Plan, done: Sequence[FileStep]) -> Snapshot:
    """W6: see every published file at every broker, note what the servers loaded, write the snapshot."""
    there = context.pinot.all_segments(context.table)
    outputs = tuple(o for step in done for o in step.outputs if o.segment in there)
    gone = tuple(name for step in done for name in step.replaces)
    names = tuple(o.segment for o in outputs)
    context.switcher().undo_delayed_starts(names)
    context.switcher().confirm_visible(names, gone)
    findings = server_findings(context, Switch(session.switch, (), outputs)) if outputs else ()
    bad = [f"{f.name}: {f.message}" for f in findings if not f.passed]
    for text in bad:
        context.note(f"published, but the check of it failed: {text}")
    if session.audit is not None and findings:
        text = "; ".join(bad or [f"{f.name}: {f.message}" for f in findings])
        checks = (*session.audit.checks, *checked(findings))
        session = replace(session, audit=replace(session.audit, summary=text[:2000], checks=checks))
    # Each file had its own push or entry, so no single lineage entry can be reverted.
    snapshot = snapshot_of(context, session, plan, "", context.lease.pointer.current_snapshot)
    close_published(context, session, Outcome.PUBLISHED, snapshot)
    context.note(f"published {plural(len(done), 'file')} one by one")
    return snapshot


@dataclass(frozen=True, slots=True)
class FileStep:
    """What publishing one file does to the table.

    :ivar replaces: segments of its published version that were visible when the switch was written.
    :ivar outputs: its new segments; empty if the file was removed or has no rows any more.
    """

    uri: str
    replaces: tuple[str, ...]
    outputs: tuple[Output, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Segment names of `outputs`."""
        return tuple(o.segment for o in self.outputs)

    def is_done(self, visible: frozenset[str]) -> bool:
        """Whether queries see the new segments and none of the old ones."""
        return visible.issuperset(self.names) and visible.isdisjoint(self.replaces)

    @property
    def is_simple(self) -> bool:
        """Whether a push without lineage entry is enough: a new file of one segment."""
        return len(self.outputs) == 1 and not self.replaces


def steps_of(
    plan: Plan, receipts: Mapping[int, Receipt], current: Snapshot | None, sources: Sequence[str]
) -> tuple[FileStep, ...]:
    """Return the files in the order of publication: built ones by ordinal, then removed ones.

    :param sources: `segments_from` of the session's switch.
    """
    old: dict[str, list[str]] = {}
    there = set(sources)
    for file in superseded(plan, current):
        old.setdefault(file.uri, []).extend(o.segment for o in file.outputs if o.segment in there)
    built = ((row.uri, receipts[row.ordinal].outputs) for row in plan.done)
    removed: Sequence[tuple[str, tuple[Output, ...]]] = [(uri, ()) for uri in plan.removals]
    return tuple(FileStep(uri, tuple(old.get(uri, ())), outputs) for uri, outputs in (*built, *removed))


class PerFilePublisher:
    """Publishes one step after the other. It pushes new files of one segment together, as many as fit into
    the time limit of a call. It remembers the push mode that works.

    :ivar session: with the failures of the files that were refused.
    :ivar refused: why Pinot does not accept a file, by URI; none of its segments stays in Pinot. The session
        stores it before the segments are deleted: that call may arrive late, so no later driver may publish
        the file under the same names.
    """

    def __init__(self, context: TriggerContext, session: Session, plan: Plan) -> None:
        failures = failures_of(context, session)
        self.session = session
        self.refused = {f.uri: f.reason for f in failures if f.code == REFUSED}
        self._built = tuple(f for f in failures if f.code != REFUSED)
        self._plan = plan
        self._context = context
        self._switcher = context.switcher()
        self._sizer = BatchSizer()
        if failures:
            self._remember()

    def publish(self, steps: Sequence[FileStep]) -> None:
        """Publish the files that are not published yet, in the given order."""
        visible = self._visible()
        left = [step for step in steps if step.uri in self.refused or not step.is_done(visible)]
        while left:
            together = self._together(left)
            if len(together) > 1:
                self._publish_together(together)
            else:
                self._publish_alone(together[0])
            left = left[len(together) :]

    def _together(self, steps: Sequence[FileStep]) -> Sequence[FileStep]:
        """Return the first of these steps and those after it that go into the same push."""
        simple = takewhile(lambda step: step.is_simple and step.uri not in self.refused, steps)
        outputs = [step.outputs[0] for step in islice(simple, 2 * MOST)]  # for two even last batches
        return steps[: max(1, len(self._sizer.next_of(outputs)))]

    def _publish_together(self, steps: Sequence[FileStep]) -> None:
        """Push the files together. If Pinot does not accept all, publish each alone to find the bad ones."""
        try:
            self._push(tuple(step.outputs[0] for step in steps))
        except (PinotUnreachable, SwitchStateUnknown):
            raise
        except (PinotError, SourceError):
            for step in steps:
                self._publish_alone(step)

    def _publish_alone(self, step: FileStep) -> None:
        """Publish one file unless it is published; delete the segments of a refused one."""
        visible = self._visible()
        part = Switch(self.session.switch, tuple(s for s in step.replaces if s in visible), step.outputs)
        if step.uri in self.refused:
            self._delete(part)
            return
        if step.is_done(visible):
            return
        try:
            lost = set(step.replaces) - visible
            if hidden := lost & self._context.pinot.all_segments(self._context.table):
                raise SwitchConflict("another program replaced its published version", why=min(hidden))
            self._publish(part)
        except (PinotUnreachable, SwitchStateUnknown):
            raise  # not a fault of this file: the next trigger finds out
        except (PinotError, SourceError) as error:
            if not step.is_done(self._visible()):
                self._take_back(step.uri, part, error.reason)

    def take_back_what_nobody_serves(self, steps: Sequence[FileStep]) -> None:
        """Take back the simply pushed files that no server loads; others were checked while hidden."""
        pushed = [s for s in steps if s.is_simple and s.uri not in self.refused]
        unserved = self._unserved([s.names[0] for s in pushed])
        for step in pushed:
            if step.names[0] in unserved:
                self._take_back(step.uri, Switch(self.session.switch, (), step.outputs), _NOT_SERVED)

    def _publish(self, part: Switch) -> None:
        if not part.segments_to and not versions.takes_empty_outputs(self._context.read_pinot_version()):
            self._switcher.delete(part.segments_from)
        elif part.segments_from or len(part.segments_to) > 1:
            entry_id = self._switcher.open_entry(part, "")
            self._keep(self._switcher.push(part, entry_id).mode)
            if unserved := self._unserved(part.names_to):
                raise PushRefused(_NOT_SERVED, why=min(unserved))
            self._switcher.end(entry_id)
        else:
            self._push(part.segments_to)

    def _push(self, outputs: Sequence[Output]) -> None:
        report = self._context.pinot.push(
            self._context.table,
            outputs,
            staged=self._context.staging,
            mode=self._switcher.push_mode,
            before_upload=self._context.before_pinot_write,
        )
        self._keep(report.mode)
        self._sizer = self._sizer.after(outputs, report, self._context.clients.waits.pinot_write)

    def _keep(self, mode: PushMode | None) -> None:
        # The first file finds the push mode that works; the others use it.
        if mode is not None:
            self._switcher = replace(self._switcher, push_mode=mode)

    def _unserved(self, names: Sequence[str]) -> Set[str]:
        """Return the segments that no server has loaded within the time limit. One replica is enough."""
        clients = self._context.clients

        def missing() -> dict[str, set[str]]:
            replicas = clients.pinot.online_replicas(self._context.table, names)
            return {n: set(replicas[n].values()) for n in names if "ONLINE" not in replicas[n].values()}

        return poll_until(
            Deadline(clients, clients.waits.online),
            0.5,
            missing,
            lambda missing: all(states == {"ERROR"} for states in missing.values()),
        ).keys()

    def _take_back(self, uri: str, part: Switch, why: str) -> None:
        self.refused[uri] = why
        self._remember()
        self._context.lease.write(session=self.session)
        self._delete(part)
        self._context.note(f"{uri} is not published: {why}")

    def _remember(self) -> None:
        session, plan, staging = self.session, self._plan, self._context.staging
        ordinals = {row.uri: row.ordinal for row in plan.done}
        failures = self._built + tuple(
            Failure(uri, ordinals.get(uri, -1), plan.attempt, REFUSED, why)
            for uri, why in self.refused.items()
        )
        counts = {"done": len(plan.done) - len(self.refused), "failed": len(failures)}
        self.session = replace(
            session,
            failures=staging.put_failures(session.id, session.attempt, failures, session.format),
            last_error=failures_in_words(failures),
            counts={**session.counts, **counts},
        )

    def _delete(self, part: Switch) -> None:
        """Revert the file's entries, then delete its segments. An end without an answer may have completed an
        entry; its revert, too, shows again what the entry replaced."""
        names = part.names_to
        lineage = self._switcher.fetch()
        entries = {e.id for state in _LIVE for e in lineage.naming(names, state)}
        if (twin := self._switcher.open_twin(part)) is not None:
            entries.add(twin.id)
        for entry_id in sorted(entries):
            self._switcher.revert_entry(entry_id)
        self._switcher.delete(names)

    def _visible(self) -> frozenset[str]:
        return self._context.pinot.visible_segments(self._context.table)


def failures_of(context: TriggerContext, session: Session) -> tuple[Failure, ...]:
    """Return the failures of the session's last attempt; empty if there are none."""
    return context.staging.failures(session.failures) if session.failures is not None else ()


def failures_in_words(failures: Sequence[Failure]) -> str:
    """Return one line for `last_error` of the session."""
    return f"{plural(len(failures), 'file')} failed; {failures[0].uri}: {failures[0].reason}"[:1000]
