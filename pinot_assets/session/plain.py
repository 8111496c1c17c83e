"""Plain push: every file is published on its own, whatever becomes of the others (spec/session.md section 2).

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
from dataclasses import dataclass, replace

from pinot_assets.audit import Finding, files_built, tars_in_place
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
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.pinot.port import PushMode
from pinot_assets.session import plan as planning
from pinot_assets.session import put_aside
from pinot_assets.session.abandon import abandon
from pinot_assets.session.model import Mode, Outcome, Session, State
from pinot_assets.session.plan import Plan, Status
from pinot_assets.session.publish import require_open_gate, store_audit
from pinot_assets.session.receipt import Failure, Output, Receipt
from pinot_assets.session.record import close_published, read_switch, snapshot_of
from pinot_assets.session.run import Run
from pinot_assets.session.stage import finish_without_switch, refuse_hidden_sources
from pinot_assets.session.staging import Switch
from pinot_assets.snapshot.manifest import Snapshot

REFUSED = "NOT_PUBLISHED"
"""Code of a file that was built, and that Pinot did not take."""
_NOT_SERVED = "no server could load it"
_LIVE = (LineageState.IN_PROGRESS, LineageState.COMPLETED)


@dataclass(frozen=True, slots=True)
class Step:
    """What publishing one file does to the table.

    :ivar replaces: segments of its published version, those that were visible when the switch was written.
    :ivar outputs: its new segments; none where it was removed, or has no rows any more.
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


def without(plan: Plan, uris: frozenset[str]) -> Plan:
    """The plan less the files that failed: the next session plans them anew."""
    rows = tuple(replace(r, status=Status.GONE, receipt="") if r.uri in uris else r for r in plan.rows)
    return replace(plan, rows=rows, removals=tuple(u for u in plan.removals if u not in uris))


def steps_of(
    plan: Plan, receipts: Mapping[int, Receipt], current: Snapshot | None, sources: Sequence[str]
) -> tuple[Step, ...]:
    """The files in the order in which they are published: built ones by ordinal, then removed ones.

    :param sources: `segments_from` of the session's switch.
    """
    old: dict[str, list[str]] = {}
    there = set(sources)
    for file in current.files if current is not None and plan.mode is Mode.SYNC else ():
        old.setdefault(file.uri, []).extend(o.segment for o in file.outputs if o.segment in there)
    built = ((row.uri, receipts[row.ordinal].outputs) for row in plan.done)
    removed: Sequence[tuple[str, tuple[Output, ...]]] = [(uri, ()) for uri in plan.removals]
    return tuple(Step(uri, tuple(old.get(uri, ())), outputs) for uri, outputs in (*built, *removed))


def stage(run: Run, session: Session, plan: Plan, receipts: Mapping[int, Receipt]) -> Session:
    """W1: write down what is to be published. Nothing is in Pinot yet.

    :param plan: without the files that failed.
    :returns: the session, in SWITCH; or DONE with outcome NOOP when no segment comes or goes.
    """
    current = run.current_snapshot()
    visible = run.edges.pinot.visible_segments(run.spec.name)
    refuse_hidden_sources(run, plan, current, visible)
    session = replace(session, plan=run.edges.staging.put_plan(plan))
    switch = Switch(
        session.switch + 1,
        planning.segments_from(plan, current, visible),
        planning.segments_to(plan, receipts),
    )
    if not switch.segments_from and not switch.segments_to:
        return finish_without_switch(run, session)
    session = replace(
        session,
        state=State.SWITCH,
        switch=switch.number,
        switch_object=run.edges.staging.put_switch(session.id, switch),
        switch_attempt=plan.attempt,
        switch_ms=run.edges.now_ms(),
        audit=None,
    )
    run.lease.write(session=session)
    return session


def audit(run: Run, session: Session) -> tuple[Session, tuple[Finding, ...]]:
    """W4, as far as it goes before anything is pushed: files that failed, tars that have gone.

    Each keeps back its own file, so none keeps the gate shut.
    """
    staging = run.edges.staging
    outputs = read_switch(run, session).segments_to
    stats = {o.tar_uri: staging.store.stat(staging.key_of(o.tar_uri)) for o in outputs}
    sizes = {uri: stat.size if stat is not None else None for uri, stat in stats.items()}
    found = (files_built(session.counts["files"], _failures(run, session)), tars_in_place(outputs, sizes))
    findings = tuple(replace(f, warns=True) for f in (*found, *put_aside.finding(run, session)))
    return store_audit(run, session, findings), findings


def publish(run: Run, session: Session) -> Snapshot:
    """W5 and W6: publish file by file what is not published yet, record those that are.

    :raises SnapshotIncomplete: the session has not been audited, or Pinot takes none of its files; in that
        case it is given up.
    :raises SwitchStateUnknown: it cannot be told yet; the next trigger looks and finishes.
    """
    require_open_gate(run, session)
    staging, switch = run.edges.staging, read_switch(run, session)
    plan = staging.plan(session.plan)
    steps = steps_of(plan, staging.accepted_receipts(plan), run.current_snapshot(), switch.segments_from)
    publisher = _Publisher(run, session, plan)
    for step in steps:
        publisher.publish(step)
    publisher.take_back_what_nobody_serves(steps)
    session, refused = publisher.session, publisher.refused
    if len(refused) == len(steps):
        abandon(run, session, Outcome.ABANDONED_RETRIES, "Pinot took none of its files")
        raise SnapshotIncomplete(
            f"no file of {run.spec.name} could be published",
            why=session.last_error,
            hint="queries see what they saw before; the next run builds and pushes them again",
        )
    done = [step for step in steps if step.uri not in refused]
    plan = without(plan, frozenset(refused))
    session = replace(session, plan=staging.put_plan(plan))
    return _record(run, session, plan, done)


def settle(run: Run, session: Session) -> Session | None:
    """Finish what a driver that died may have begun to publish.

    :returns: None when nothing is open any more; the session, if nothing of it was published yet.
    """
    if not session.gate_open:
        return session
    try:
        publish(run, session)
    except SnapshotIncomplete as error:
        run.note(str(error))
    else:
        run.note(f"session {session.id} had begun to publish before its driver died; finished now")
    return None


def told(failures: Sequence[Failure]) -> str:
    """One line for the session's node."""
    return f"{len(failures)} files failed; {failures[0].uri}: {failures[0].reason}"[:1000]


class _Publisher:
    """Publishes one step after the other; remembers how a tar gets into Pinot.

    :ivar session: with the failures of the files that were refused.
    :ivar refused: why Pinot does not take a file, by URI; nothing of it is left in Pinot then. Stored before
        it is taken back: what was sent for that may arrive late, so no later driver may publish the file
        under these names.
    """

    def __init__(self, run: Run, session: Session, plan: Plan) -> None:
        failures = _failures(run, session)
        self.session = session
        self.refused = {f.uri: f.reason for f in failures if f.code == REFUSED}
        self._built = tuple(f for f in failures if f.code != REFUSED)
        self._plan = plan
        self._run = run
        self._number = session.switch
        self._switcher = run.switcher
        if failures:
            self._remember()

    def publish(self, step: Step) -> None:
        """Publish one file, unless it is."""
        visible = self._visible()
        part = Switch(self._number, tuple(s for s in step.replaces if s in visible), step.outputs)
        if step.uri in self.refused:
            self._delete(part)
            return
        if step.is_done(visible):
            return
        try:
            self._refuse_hidden(set(step.replaces) - visible)
            self._publish(part)
        except (PinotUnreachable, SwitchStateUnknown):
            raise  # says nothing of this file: the next trigger looks
        except (PinotError, SourceError) as error:
            if not step.is_done(self._visible()):
                self._take_back(step.uri, part, f"{error.what}: {error.why}" if error.why else error.what)

    def take_back_what_nobody_serves(self, steps: Sequence[Step]) -> None:
        """Of the files that were simply pushed; the others were looked at before they were shown."""
        pushed = [s for s in steps if len(s.outputs) == 1 and not s.replaces and s.uri not in self.refused]
        unserved = self._unserved([s.names[0] for s in pushed])
        for step in pushed:
            if step.names[0] in unserved:
                self._take_back(step.uri, Switch(self._number, (), step.outputs), _NOT_SERVED)

    def _publish(self, part: Switch) -> None:
        if not part.segments_to and not versions.takes_empty_outputs(self._run.pinot_version):
            self._switcher.delete(part.segments_from)
        elif part.segments_from or len(part.segments_to) > 1:
            entry_id = self._switcher.open_entry(part, "")
            self._keep(self._switcher.push(part, entry_id).mode)
            if unserved := self._unserved(part.names_to):
                raise PushRefused(_NOT_SERVED, why=min(unserved))
            self._switcher.end(entry_id)
        else:
            report = self._run.edges.pinot.push(
                self._run.spec.name,
                part.segments_to,
                staged=self._run.edges.staging,
                mode=self._switcher.push_mode,
                before_upload=self._run.before_pinot_write,
            )
            self._keep(report.mode)

    def _keep(self, mode: PushMode | None) -> None:
        # The first file finds the mode that works; the others are told.
        if mode is not None:
            self._switcher = replace(self._switcher, push_mode=mode)

    def _unserved(self, names: Sequence[str]) -> set[str]:
        """Those that no server has loaded, once each has had its time. Not every replica is waited for."""
        left, edges = self._run.edges.waits.online, self._run.edges
        while True:
            replicas = edges.pinot.online_replicas(self._run.spec.name, names)
            missing = {n: set(replicas[n].values()) for n in names if "ONLINE" not in replicas[n].values()}
            if left <= 0 or all(states == {"ERROR"} for states in missing.values()):
                return set(missing)
            edges.sleep(0.5)
            left -= 0.5

    def _take_back(self, uri: str, part: Switch, why: str) -> None:
        self.refused[uri] = why
        self._remember()
        self._run.lease.write(session=self.session)
        self._delete(part)
        self._run.note(f"{uri} is not published: {why}")

    def _remember(self) -> None:
        failures, session = (*self._built, *_refusals(self._plan, self.refused)), self.session
        self.session = replace(
            session,
            failures=self._run.edges.staging.put_failures(session.id, session.attempt, failures),
            last_error=told(failures),
            counts={
                **session.counts,
                "done": len(self._plan.done) - len(self.refused),
                "failed": len(failures),
            },
        )

    def _delete(self, part: Switch) -> None:
        """Its entry may have been completed by an end that gave no answer: reverted, too, it brings back what
        it replaced."""
        names = part.names_to
        lineage = self._switcher.lineage
        entries = {e.id for state in _LIVE for e in lineage.naming(names, state)}
        if (twin := self._switcher.open_twin(part)) is not None:
            entries.add(twin.id)
        for entry_id in sorted(entries):
            self._switcher.revert_entry(entry_id)
        self._switcher.delete(names)

    def _refuse_hidden(self, lost: set[str]) -> None:
        if hidden := lost & self._run.edges.pinot.all_segments(self._run.spec.name):
            raise SwitchConflict("somebody else replaced its published version", why=min(hidden))

    def _visible(self) -> frozenset[str]:
        return self._run.edges.pinot.visible_segments(self._run.spec.name)


def _record(run: Run, session: Session, plan: Plan, done: Sequence[Step]) -> Snapshot:
    """W6: see every published file at every broker, tell what the servers loaded, write the ledger."""
    there = run.edges.pinot.all_segments(run.spec.name)
    outputs = tuple(o for step in done for o in step.outputs if o.segment in there)
    gone = tuple(name for step in done for name in step.replaces)
    names = tuple(o.segment for o in outputs)
    run.switcher.undo_delayed_starts(names)
    run.switcher.confirm_visible(names, gone)
    findings = run.switcher.audit(Switch(session.switch, (), outputs)) if outputs else ()
    bad = [f"{f.name}: {f.message}" for f in findings if not f.passed]
    for text in bad:
        run.note(f"published, but not as it should be: {text}")
    if session.audit is not None and findings:
        text = "; ".join(bad or [f"{f.name}: {f.message}" for f in findings])
        session = replace(session, audit=replace(session.audit, summary=text[:2000]))
    # No one entry leads back from here.
    snapshot = snapshot_of(run, session, plan, "", run.lease.pointer.current_snapshot)
    close_published(run, session, Outcome.PUBLISHED, snapshot)
    run.note(f"published {len(done)} files one by one")
    return snapshot


def _failures(run: Run, session: Session) -> tuple[Failure, ...]:
    return run.edges.staging.failures(session.failures) if session.failures is not None else ()


def _refusals(plan: Plan, refused: Mapping[str, str]) -> list[Failure]:
    ordinals = {row.uri: row.ordinal for row in plan.done}
    return [Failure(uri, ordinals.get(uri, -1), plan.attempt, REFUSED, why) for uri, why in refused.items()]
