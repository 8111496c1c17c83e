"""A planned run beside what is published: each file, each mode, the retries, the way back from now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.compute as pc

from pinot_assets.errors import PinotAssetsError
from pinot_assets.pinot.table_config import is_refresh
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.decide.decision import NEW_SESSION, Decision
from pinot_assets.session.plan_report.planned_run import PlannedRun, plan_run
from pinot_assets.session.plan_report.switch_cost import SwitchCost, switch_cost_of
from pinot_assets.session.rollback.retention import foreseen
from pinot_assets.session.rollback.rollback_plan import revert_until_ms
from pinot_assets.session.stores.stored_snapshots import SnapshotHeader
from pinot_assets.session.values import plan as planning
from pinot_assets.session.values.plan import Changes, Row
from pinot_assets.session.values.state import Mode, Owner
from pinot_assets.snapshot.fingerprint import Fingerprint
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.source.file_table import columns_of


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
    def kept(self) -> int:
        """How many files are built already."""
        return len(self.decision.plan.done) if self.decision.plan is not None else 0

    def of_kind(self, kind: str) -> list[FileChange]:
        """The changes of that kind that count: what is held back does not."""
        return [change for change in self.files if change.kind == kind and not change.held]

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
    seen = planned.decision
    return PlanReport(
        planned=planned,
        source=context.clients.source.uri,
        listed=len(seen.looked.found.listed.files) if seen.looked is not None else 0,
        files=tuple(_files(seen)),
        modes=tuple(_modes(context, planned)),
        switching=switch_cost_of(context, planned) if planned.switches else None,
        expiring=foreseen(context) if planned.switches else (),
        retries=(seen.session.retry_count if seen.session else 0, context.spec.ingestion.retries),
        holder=context.clients.store.holder(),
        revert_until_ms=_revert_until_ms(context, seen.current),
        now_ms=context.clients.now_ms(),
    )


def _files(seen: Decision) -> Iterator[FileChange]:
    if seen.looked is None or (changes := seen.looked.changes) is None or not changes.any:
        return
    hold, ledger = seen.looked.hold, seen.current.ledger if seen.current is not None else {}

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
    seen = planned.decision
    if seen.free is None:
        return
    refresh = is_refresh(context.table_config)
    for mode in (Mode.APPEND, Mode.SYNC, Mode.SWAP):
        needs = mode is not Mode.APPEND and not refresh
        why_not = "needs segmentIngestionType: REFRESH" if needs else ""
        yield ModeReport(mode, *_work(mode, seen.free, seen.current, planned.visible), why_not)


def _work(
    mode: Mode, changes: Changes, current: Snapshot | None, visible: frozenset[str]
) -> tuple[int, int, int]:
    """Files to build, their bytes, and segments that go: of a new session."""
    work = planning.work_of(mode, changes)
    if mode is Mode.SWAP:  # every file and every segment: no plan of a million rows for three numbers
        return len(work), pc.sum(columns_of(work).column("size")).as_py() or 0, len(visible)
    plan = planning.as_built(planning.new_plan(NEW_SESSION, mode, changes))
    size = sum(row.planned.size for row in plan.rows)
    return len(plan.rows), size, len(planning.segments_from(plan, current, visible))


def _revert_until_ms(context: TriggerContext, current: Snapshot | None) -> int | None:
    if current is None or current.parent is None:
        return None
    try:
        before = context.clients.staging.snapshot(current.parent)
    except PinotAssetsError:
        return None
    return revert_until_ms(context.spec, context.clients.pinot, current, before, context.clients.now_ms())
