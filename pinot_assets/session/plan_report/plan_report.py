"""A planned run beside what is published: each file, each mode, the retries, the way back from now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow.compute as pc

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import plural, size
from pinot_assets.errors import PinotAssetsError
from pinot_assets.pinot import versions
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.decide.next_plan import new_plan, work_of
from pinot_assets.session.decide.run_decision import NEW_SESSION, Decision, PlannedAction
from pinot_assets.session.plan_report.planned_packs import PlannedPacks, planned_packs
from pinot_assets.session.plan_report.planned_run import PlannedRun, plan_run
from pinot_assets.session.plan_report.switch_cost import Estimate, Sums, SwitchCost, switch_cost_of
from pinot_assets.session.plan_report.unknown_recipes import UnknownRecipes, unknown_recipes
from pinot_assets.session.plan_report.worker_memory import BuildEstimate, estimate_build
from pinot_assets.session.rollback.retention import foreseen
from pinot_assets.session.rollback.rollback_plan import revert_until_ms
from pinot_assets.session.stores.stored_snapshots import SnapshotHeader
from pinot_assets.session.values.outdated import (
    RebuildNeed,
    Request,
    change_values,
    outdated_values,
    spec_changes_since,
)
from pinot_assets.session.values.plan import Changes, Row, as_built, segments_from
from pinot_assets.session.values.report import small_files, small_published
from pinot_assets.session.values.state import Mode, Owner, utc_iso
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.source.file_table import columns_of
from pinot_assets.source.readiness import Unready
from pinot_assets.table_spec.changes.spec_changes import SpecChange

_KINDS = ("new", "rewritten", "deleted", "touched")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of the source beside the ledger.

    :ivar kind: `new`, `rewritten`, `deleted`, or `touched` (another fingerprint, the same content).
    :ivar before: the version that is published, None where none is.
    :ivar after: the version that is listed, None where none is.
    :ivar held: whether a rollback holds it back.
    """

    kind: str
    uri: str
    before: Fingerprint | None
    after: Fingerprint | None
    held: bool = False


@dataclass(frozen=True, slots=True)
class ModeReport:
    """What a session of one mode would do with the same source.

    :ivar builds: files.
    :ivar build_bytes: their size.
    :ivar removes: segments.
    :ivar why_not: why the table cannot have that mode as it is; "" where it can.
    """

    mode: Mode
    builds: int
    build_bytes: int
    removes: int
    why_not: str


@dataclass(frozen=True, slots=True)
class PlanReport:
    """See the module docstring.

    :ivar source: URI of the input directory.
    :ivar listed: files that match, ready or not.
    :ivar switching: None where nothing would be switched.
    :ivar expiring: snapshots that are deleted after the switch, newest first.
    :ivar retries: how many retries the open session has had, and how many it may have.
    :ivar holder: who has the lease now: a run would be refused until that lets go.
    :ivar revert_until_ms: until when a revert leads back from the present snapshot to the one before.
    :ivar spec_changes: what was changed in the table spec since published files were built.
    :ivar request: what the run is asked to do with published files, None if it is not asked.
    :ivar unknown: the published segments of which no recipe is known.
    :ivar expected: segments and memory of the build; None if nothing would be built. Files whose rows go into
        packs are not in it.
    :ivar packs: what becomes of those, and of published packs that change.
    """

    planned: PlannedRun
    source: str
    listed: int
    files: tuple[FileChange, ...]
    modes: tuple[ModeReport, ...]
    switching: SwitchCost | None
    expiring: tuple[SnapshotHeader, ...]
    retries: tuple[int, int]
    holder: Owner | None
    revert_until_ms: int | None
    now_ms: int
    spec_changes: tuple[SpecChange, ...] = ()
    request: Request | None = None
    unknown: UnknownRecipes = field(default_factory=UnknownRecipes)
    expected: BuildEstimate | None = None
    packs: PlannedPacks = field(default_factory=PlannedPacks)

    @property
    def decision(self) -> Decision:
        """What a run does."""
        return self.planned.decision

    @property
    def build(self) -> tuple[Row, ...]:
        """Files that would be built."""
        return self.planned.to_build

    @property
    def build_bytes(self) -> int:
        """Their size."""
        return sum(row.planned.size for row in self.build)

    @property
    def small(self) -> str | None:
        """What it costs that many of these files are small; None if they are not."""
        current = self.decision.current
        published = small_published(current.files) if current is not None else 0
        return small_files((row.planned.size for row in self.build if not row.is_small), published)

    @property
    def kept(self) -> int:
        """How many files are built already."""
        return len(self.decision.plan.done) if self.decision.plan is not None else 0

    def of_kind(self, kind: str) -> list[FileChange]:
        """The changes of that kind that count: what is held back does not."""
        return [change for change in self.files if change.kind == kind and not change.held]

    @property
    def need(self) -> RebuildNeed:
        """The published files that the table spec would build otherwise."""
        return self.decision.looked.need if self.decision.looked is not None else RebuildNeed()

    @property
    def rebuilds(self) -> frozenset[str]:
        """URIs of the published files that the run builds again."""
        free = self.decision.free
        return frozenset(file.uri for file in free.rebuilds) if free is not None else frozenset()

    @property
    def compacts(self) -> bool:
        """Whether the run merges segments because it is asked to."""
        return self.decision.plan is not None and self.decision.plan.compacts

    @property
    def held(self) -> list[FileChange]:
        """What a rollback holds back."""
        return [change for change in self.files if change.held]


def make_plan_report(context: TriggerContext) -> PlanReport:
    """Read, decide and add up; writes nothing.

    :param context: one that only reads.
    :raises PinotAssetsError: as `plan_run`.
    """
    planned = plan_run(context)
    decision, packs = planned.decision, planned_packs(context, planned)
    return PlanReport(
        planned=planned,
        source=context.clients.source.uri,
        listed=len(decision.looked.readiness.listed.files) if decision.looked is not None else 0,
        files=tuple(_files(decision)),
        modes=tuple(_modes(context, planned)),
        switching=switch_cost_of(context, planned, packs) if planned.switches else None,
        expiring=foreseen(context) if planned.switches else (),
        retries=(decision.session.retry_count if decision.session else 0, context.spec.ingestion.retries),
        holder=context.clients.store.holder(),
        revert_until_ms=_revert_until_ms(context, decision.current),
        now_ms=context.clients.now_ms(),
        spec_changes=spec_changes_since(context.spec, decision.current),
        request=context.request,
        unknown=unknown_recipes(context, decision.current),
        expected=estimate_build(
            context.spec.ingestion,
            ((row.uri, row.planned.size) for row in planned.to_build if not row.is_small),
        ),
        packs=packs,
    )


def _files(decision: Decision) -> Iterator[FileChange]:
    if decision.looked is None or (changes := decision.looked.changes) is None or not changes.any:
        return
    hold, ledger = decision.looked.hold, decision.current.ledger if decision.current is not None else {}

    def published(uri: str) -> Fingerprint | None:
        return ledger[uri].fingerprint if uri in ledger else None

    for kind, files in (("new", changes.new), ("rewritten", changes.rewritten)):
        for file in files:
            yield FileChange(kind, file.uri, published(file.uri), file.fingerprint, hold.holds(file))
    for uri in changes.deleted:
        yield FileChange("deleted", uri, published(uri), None, uri in hold.removals)
    for uri, now in changes.touched.items():
        yield FileChange("touched", uri, published(uri), now)


def _modes(context: TriggerContext, planned: PlannedRun) -> Iterator[ModeReport]:
    decision = planned.decision
    if decision.free is None:
        return
    for_good = versions.replaces_for_good(context.read_pinot_version(), context.read_table_config())
    for mode in (Mode.APPEND, Mode.SYNC, Mode.SWAP):
        needs = mode is not Mode.APPEND and for_good
        why_not = "needs segmentIngestionType: REFRESH" if needs else ""
        yield ModeReport(mode, *_work(mode, decision.free, decision.current, planned.visible), why_not)


def _work(
    mode: Mode, changes: Changes, current: Snapshot | None, visible: frozenset[str]
) -> tuple[int, int, int]:
    """Files to build, their bytes, and segments that go: of a new session."""
    work = work_of(mode, changes)
    if mode is Mode.SWAP:  # every file and every segment: no plan of a million rows for three numbers
        return len(work), pc.sum(columns_of(work).column("size")).as_py() or 0, len(visible)
    plan = as_built(new_plan(NEW_SESSION, mode, changes))
    size = sum(row.planned.size for row in plan.rows)
    return len(plan.rows), size, len(segments_from(plan, current, visible))


def _revert_until_ms(context: TriggerContext, current: Snapshot | None) -> int | None:
    if current is None or current.parent is None:
        return None
    try:
        before = context.staging.snapshot(current.parent)
    except PinotAssetsError:
        return None
    return revert_until_ms(context.spec, context.pinot, current, before, context.clients.now_ms())


def headline(plan: PlanReport) -> str:
    """What a run would do, in one sentence."""
    decision, work = plan.decision, _work_text(plan)
    session = decision.session.id if decision.session is not None else ""
    used, most = plan.retries
    match decision.step:
        case PlannedAction.NOTHING:
            those = "all that are ready are" if decision.looked and decision.looked.readiness.later else "all"
            return f"nothing to do: {plural(plan.listed, 'file')} listed, {those} published"
        case PlannedAction.HELD:
            return "nothing to do: a rollback holds back the differences, until `resume` or another change"
        case PlannedAction.WAITING:
            return "waits: a file that is published is being rewritten"
        case PlannedAction.FINISH:
            return f"finishes what was interrupted, and nothing else: {decision.why}"
        case PlannedAction.END:
            return f"continues the switch of {session}, whose end got no answer"
        case PlannedAction.BEGIN:
            return f"a new session {work}" + (f"; {decision.why}" if decision.why else "")
        case PlannedAction.CONTINUE:
            return f"continues session {session}: {work}; no retry is spent"
        case PlannedAction.RETRY:
            return f"retry {used + 1} of {most} of session {session}: {work}"
        case PlannedAction.RESTART if decision.plan is None:
            return f"session {session} is given up ({decision.why}), and nothing is left to do"
        case PlannedAction.RESTART:
            return f"session {session} is given up ({decision.why}); a new one {work}"


def _work_text(plan: PlanReport) -> str:
    """Say what a session does with files, and that it will be refused, if that is known."""
    removed = len(plan.decision.plan.removals) if plan.decision.plan is not None else 0
    parts = [f"builds {plural(len(plan.build), 'file')} of {size(plan.build_bytes)}"]
    if again := sum(row.uri in plan.rebuilds for row in plan.build):
        parts[0] += f" ({again:,} of them again)"
    if removed or plan.packs.merged.packs:
        parts = parts if plan.build else []
    if removed:
        parts.append(f"removes {plural(removed, 'file')}")
    if plan.packs.merged.packs:
        parts.append(f"merges {plural(plan.packs.merged.packs, 'pack')}")
    if plan.kept:
        parts.append(f"keeps {plan.kept}")
    end = ", and will be refused (see below)" if plan.planned.refused is not None else ""
    return ", ".join(parts) + end


def plan_values(plan: PlanReport) -> JsonObject:
    """A plan as plain values, everything of it, for `--json`: times in UTC, sizes in bytes.

    null is not known.
    """
    planned, decision, session = plan.planned, plan.decision, plan.decision.session
    used, most = plan.retries
    readiness = decision.looked.readiness if decision.looked is not None else None
    return {
        "table": f"{planned.table}_OFFLINE",
        "mode": planned.mode.lower(),
        "push": planned.push.lower(),
        "plan": planned.plan_basis.hash,
        "restsOn": dict(planned.plan_basis.digests),
        "step": decision.step,
        "summary": headline(plan),
        "why": decision.why or None,
        "refused": planned.refused.reason if planned.refused else None,
        "hint": planned.refused.hint if planned.refused else None,
        "session": None
        if session is None
        else {"id": session.id, "state": session.state, "attempt": session.attempt},
        "retries": {"used": used, "max": most, "spent": decision.step == "RETRY"},
        "leaseHolder": str(plan.holder) if plan.holder else None,
        "files": {
            "source": plan.source,
            "listed": plan.listed,
            **{kind: [_change(c) for c in plan.of_kind(kind)] for kind in _KINDS},
            "heldBack": [_change(c) for c in plan.held],
            "notReady": [_unready(u) for u in readiness.later] if readiness else [],
            "waiting": [_unready(u) for u in readiness.waiting] if readiness else [],
        },
        "build": {
            "files": [row.uri for row in plan.build],
            "bytes": plan.build_bytes,
            "kept": plan.kept,
            "small": plan.small,
            "segmentsEstimated": plan.expected.segments if plan.expected else None,
            "workerBytesEstimated": plan.expected.worker_bytes if plan.expected else None,
            "smallFiles": plan.packs.new.files if plan.packs.new else 0,
            "packsEstimated": plan.packs.new.packs if plan.packs.new else 0,
            "packsRebuilt": plan.packs.changed.rebuilt,
            "packsDropped": plan.packs.changed.dropped,
            "packFilesKept": plan.packs.changed.files,
            "packBytesKept": plan.packs.changed.bytes,
            "packsMerged": plan.packs.merged.packs,
        },
        "tableSpec": {
            "changes": [change_values(change) for change in plan.spec_changes],
            "outdated": outdated_values(plan.need.possible),
            "sourceGone": outdated_values(plan.need.gone)
            | {"uris": [file.uri for file in plan.need.gone.files]},
            "unknown": {
                "segments": plan.unknown.segments,
                "compared": plan.unknown.compared,
                "differ": plan.unknown.differ,
            },
            "rebuilds": sorted(plan.rebuilds),
        },
        "segments": {
            "visible": len(planned.visible),
            "replaced": planned.segments_from,
            "strays": planned.strays,
            "beside": planned.beside,
        },
        "shadowTable": planned.shadow or None,
        "modes": [
            {
                "mode": m.mode.lower(),
                "builds": m.builds,
                "bytes": m.build_bytes,
                "removes": m.removes,
                "whyNot": m.why_not or None,
            }
            for m in plan.modes
        ],
        "switch": _switch(plan.switching) if plan.switching is not None else None,
        "deletesSnapshots": [{"seq": h.seq, "sha256": h.ref.sha256} for h in plan.expiring],
        "revertUntil": utc_iso(plan.revert_until_ms),
    }


def _switch(switch: SwitchCost) -> JsonObject:
    room = switch.room
    return {
        "segmentsAtLeast": switch.added,
        "rows": _sums(switch.rows),
        "bytes": _sums(switch.bytes),
        "storage": {
            "replication": room.replication,
            "present": room.present,
            "atSwitch": room.at_peak.total if room.at_peak else None,
            "later": room.later.total if room.later else None,
            "quota": room.quota,
            "fits": room.fits,
            "estimated": not room.coming.exact,
        },
        "disks": [
            {
                "server": d.server,
                "free": d.free,
                "whileLoading": d.loading,
                "after": d.after,
                "whyNot": d.why_not or None,
            }
            for d in room.disks
        ],
        "lineage": {"bytes": switch.lineage_bytes, "entryBytes": switch.entry_bytes},
        "idealState": {
            "segments": switch.ideal_state.segments,
            "bytes": switch.ideal_state.text_bytes,
            "storedBytes": switch.ideal_state.stored_bytes,
        },
        "forcedStart": {
            "deletes": switch.force_cleanup_loss.segments,
            "bytes": switch.force_cleanup_loss.bytes,
            "beforePush": switch.force_cleanup_loss.at_start,
        },
        "revertForMs": switch.revert_ms,
    }


def _sums(sums: Sums) -> JsonObject:
    return {
        "now": sums.now,
        "removed": _amount(sums.removed),
        "added": _amount(sums.added),
        "after": _amount(sums.after),
    }


def _amount(amount: Estimate) -> dict[str, int | None]:
    return {"total": amount.total, "known": amount.known, "estimated": amount.guess, "exact": amount.exact}


def _change(change: FileChange) -> JsonObject:
    return {"uri": change.uri, "old": _version(change.before), "new": _version(change.after)}


def _version(fingerprint: Fingerprint | None) -> JsonObject | None:
    return None if fingerprint is None else {"version": fingerprint.token, **fingerprint.to_json()}


def _unready(file: Unready) -> str:
    return f"{file.uri} {file.why}"
