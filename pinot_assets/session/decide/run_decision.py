"""Decide what a run of a table does after interrupted work is finished. This module only reads.

The trigger executes the `Decision` (`session/trigger.py`), and a plan report shows it
(`session/plan_report/planned_run.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from pinot_assets.core.text import plural
from pinot_assets.errors import SpecError
from pinot_assets.pinot import versions
from pinot_assets.pinot.table_config import setting
from pinot_assets.session.close import ask_if_lost
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.decide.lost_rows import with_lost_rows
from pinot_assets.session.decide.next_plan import is_empty, new_plan, reconcile, unchanged
from pinot_assets.session.decide.open_packs import with_compaction
from pinot_assets.session.decide.rebuilds import find_rebuilds
from pinot_assets.session.decide.retries import Next, Opened, after_attempt
from pinot_assets.session.detect.listing import changes_of, list_ready, with_folders
from pinot_assets.session.values.hold import Hold, as_listed, without_held
from pinot_assets.session.values.outdated import NO_NEED, RebuildNeed
from pinot_assets.session.values.plan import Changes, Plan, Receipts, without_files
from pinot_assets.session.values.state import Mode, Outcome, PushKind, Session
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.source import Readiness
from pinot_assets.table_spec.blocks.pinot_settings import TASKS, refuse_settings
from pinot_assets.table_spec.tables.drift import refuse_drift

NEW_SESSION: Final = "cp0-000000"
"""Placeholder id of the session that a run would open: it gets number and nonce when it begins."""


_GIVEN_UP: Final = {
    Next.ABANDON_CONFIG: (Outcome.ABANDONED_CONFIG, "the table spec changed"),
    Next.ABANDON_RETRIES: (Outcome.ABANDONED_RETRIES, "no retry left after {retries}"),
    Next.ABANDON_AUDIT: (Outcome.ABANDONED_AUDIT, "its audit failed and named none of its files"),
}
"""Outcome and reason for an open session that is given up."""


class PlannedAction(StrEnum):
    """What a run would do, in one word."""

    NOTHING = "NOTHING"
    HELD = "HELD"
    """A rollback holds back all that is different."""
    WAITING = "WAITING"
    """A file that the table knows is being rewritten."""
    FINISH = "FINISH"
    """Something was left half way. What comes then depends on how it ends: a planned run stops there."""
    END = "END"
    """The open switch, whose end gave no answer, is ended again."""
    BEGIN = "BEGIN"
    CONTINUE = "CONTINUE"
    RETRY = "RETRY"
    RESTART = "RESTART"
    """The open session is given up, and another one begins."""


@dataclass(frozen=True, slots=True)
class SourceState:
    """What a run reads for its decision.

    :ivar readiness: the listing, with the ready files.
    :ivar changes: listing against ledger; None while the table waits for a file that is being rewritten.
    :ivar opened: the open session as its last attempt left it; None without one, and while waiting.
    :ivar hold: what a rollback holds back of it, with the tokens that held files have now.
    :ivar need: published files that another revision of the table spec built, and that need a rebuild.
    """

    readiness: Readiness
    changes: Changes | None
    opened: Opened | None
    hold: Hold
    need: RebuildNeed = NO_NEED


@dataclass(frozen=True, slots=True)
class Decision:
    """See the module docstring.

    :ivar why: of FINISH, what is finished; of RESTART, why the session is given up.
    :ivar outcome: of RESTART, how that session ends.
    :ivar session: the open one, None without one or where it is cleared first.
    :ivar current: the ledger.
    :ivar looked: what was seen of the source; None where a run would not look at it.
    :ivar free: the changes less what a rollback holds back; None while waiting, too.
    :ivar plan: of the next attempt, None where there is none. That of a session that does not exist yet bears
        the name `NEW_SESSION`.
    :ivar receipts: what counts of the open session's for that plan.
    :ivar is_held: whether a rollback holds changes back.
    :ivar notes: what people should know of lost rows, as sentences.
    """

    step: PlannedAction
    why: str = ""
    outcome: Outcome = Outcome.OPEN
    session: Session | None = None
    current: Snapshot | None = None
    looked: SourceState | None = None
    free: Changes | None = None
    plan: Plan | None = None
    receipts: Receipts = field(default_factory=dict)
    is_held: bool = False
    notes: tuple[str, ...] = ()

    @property
    def opened(self) -> Opened | None:
        """The open session as its last attempt left it; None without one, and while waiting."""
        return self.looked.opened if self.looked is not None else None

    @property
    def without_plan(self) -> PlannedAction:
        """The action of a run that needs no session: HELD if a rollback holds anything, else NOTHING."""
        held = self.looked is not None and (self.is_held or self.looked.hold.rebuilds)
        return PlannedAction.HELD if held else PlannedAction.NOTHING


def decide_run(context: TriggerContext, session: Session | None, current: Snapshot | None) -> Decision:
    """Read and decide; writes nothing.

    :param session: the open one, as it is once what was left half way is finished.
    :raises ListingFailed: the listing did not complete, or an empty one is not to be believed.
    :raises RebuildRefused: the run is asked for a rebuild, and the table cannot have one.
    """
    if waits_for_resume(context, session):
        return Decision(PlannedAction.HELD, current=current)
    if ask_if_ends_again(context, session):
        return Decision(PlannedAction.END, session=session, current=current)
    _refuse_plain(context, current)
    looked = read_source_state(context, session, current)
    decision = Decision(PlannedAction.WAITING, session=session, current=current, looked=looked)
    if looked.changes is None:
        return decision
    not_held = without_held(looked.changes, looked.hold)
    lost = with_lost_rows(context, not_held, current, looked.opened.plan if looked.opened else None)
    free, is_held = lost.changes, not_held != looked.changes
    decision = replace(decision, free=free, is_held=is_held, notes=lost.notes)
    if session is None or looked.opened is None:
        plan = _first_plan(context, free, current)
        step = decision.without_plan if plan is None else PlannedAction.BEGIN
        return replace(decision, step=step, plan=plan)
    if looked.opened.next in _GIVEN_UP:
        outcome, why = _GIVEN_UP[looked.opened.next]
        why, plan = why.format(retries=session.retry_count), _first_plan(context, free, current)
        return replace(decision, step=PlannedAction.RESTART, outcome=outcome, why=why, plan=plan)
    plan, receipts = _next_plan(context, session, looked.opened, free)
    plan = without_files(plan, lost.stuck)
    plan = with_compaction(context, plan, current)
    step = PlannedAction.RETRY if looked.opened.next is Next.RETRY else PlannedAction.CONTINUE
    return replace(decision, step=step, plan=plan, receipts=receipts)


def _refuse_plain(context: TriggerContext, current: Snapshot | None) -> None:
    """Refuse to push file by file into a table that has packs, which no single file can replace.

    :raises SpecError: it has some.
    """
    if context.push is PushKind.PLAIN and context.mode is Mode.SYNC and current is not None and current.packs:
        files = plural(sum(pack.files for pack in current.packs), "file")
        raise SpecError(
            f"{context.table} has packs, which a plain push cannot change",
            why=f"{files} share segments; the rows of one that is rewritten or deleted would stay there",
            hint="write consistentPushEnabled: true again",
        )


def ask_if_ends_again(context: TriggerContext, session: Session | None) -> bool:
    """Whether the open session's switch may complete at any moment. Then a run only ends it again, and the
    next run lists the source."""
    return session is not None and session.end_sent and not ask_if_lost(context, session)


def _first_plan(context: TriggerContext, changes: Changes, current: Snapshot | None) -> Plan | None:
    """What a new session would begin with; None where there is nothing to do."""
    plan = new_plan(NEW_SESSION, context.mode, changes, context.spec.layout.small_below)
    plan = with_compaction(context, plan, current)
    if _is_swapped_in(context, changes, current):
        plan = replace(plan, rows=())  # touched files are remembered, and not built (E3)
    elif context.mode is Mode.SWAP and current is not None and current.files:
        return plan  # without rows as well: that empties the table
    return None if is_empty(plan) else plan


def _is_swapped_in(context: TriggerContext, changes: Changes, current: Snapshot | None) -> bool:
    """Whether a swap would replace the table by the same content."""
    # Beside the ledger, not beside the listing that the snapshot was made from: a file that was rewritten
    # after it had been built is in that listing and not in the snapshot (scene 4).
    return (
        context.mode is Mode.SWAP
        and current is not None
        and bool(current.files)
        and not changes.any_content
        and current.mode == Mode.SWAP
        and current.config_fingerprint == context.fingerprint
    )


def _next_plan(
    context: TriggerContext, session: Session, opened: Opened, changes: Changes
) -> tuple[Plan, Receipts]:
    """Return the next plan of an open session that continues, and the receipts that count for it."""
    receipts = opened.receipts
    if session.audit is not None and session.audit.of_data and not session.audit.passed:
        receipts = unchanged(opened.plan, changes, receipts)
    before = replace(opened.plan, attempt=opened.newest)
    return reconcile(before, changes, receipts, context.spec.layout.small_below), receipts


# --- what it is decided from ---------------------------------------------------------------------


def read_source_state(
    context: TriggerContext, session: Session | None, current: Snapshot | None
) -> SourceState:
    """List the source and compare; writes nothing.

    :raises ListingFailed: the listing did not complete, or an empty one is not to be believed.
    """
    readiness, hold = list_ready(context, session, current), context.hold()
    if readiness.waiting:
        return SourceState(readiness, None, None, hold)
    source = context.clients.source
    changes = changes_of(source, readiness.counted, current)
    if context.mode is not Mode.SWAP:  # which is held as a whole, by a hold that may be empty
        hold = as_listed(hold, changes, lambda file: source.sha256(source.key_of(file.uri)))
    if context.mode is not Mode.APPEND:  # which takes no rows away
        changes = with_folders(source, changes, current, hold.removals)
    opened = after_attempt(context, session) if session is not None else None
    # A session that is given up leaves no rebuild to the next one: its files may be what failed.
    goes_on = opened if opened is not None and opened.next not in _GIVEN_UP else None
    rebuilds = find_rebuilds(context, changes, hold, current, goes_on.plan if goes_on is not None else None)
    if hold.rebuilds and not rebuilds.need.is_any:
        hold = replace(hold, rebuilds=False)
    changes = replace(changes, rebuilds=rebuilds.chosen)
    return SourceState(readiness, changes, opened, hold, rebuilds.need)


# --- what stops a trigger before it decides ----------------------------------------------------------

_MOVER = "RealtimeToOfflineSegmentsTask"


def refuse_absent(context: TriggerContext) -> None:
    """Before anything else of Pinot is asked for.

    :raises SpecDrift: Pinot has no such table; says how it is made.
    """
    if context.pinot.get_table_config(context.table) is None:
        refuse_drift(context.spec, context.pinot)


def refuse_unfit(context: TriggerContext) -> None:
    """Once what was left half way is finished, which no table config may keep from it.

    :raises SpecDrift: Pinot's schema or table config is not what the spec says.
    :raises SpecError: the table, or the REALTIME one of its name, has a setting that no session can live
        with.
    """
    _refuse_for_good(context)  # first: such a Pinot drops the setting, which would look like drift
    refuse_drift(context.spec, context.pinot)
    refuse_settings(context.table, context.read_table_config())
    stream = context.pinot.get_realtime_config(context.table)
    if context.mode is Mode.SWAP and stream is not None and setting(stream, *TASKS, _MOVER) is not None:
        table = context.table
        raise SpecError(
            f"{table} is a swap table, and {_MOVER} of {table}_REALTIME writes into it",
            why="a swap replaces every visible segment, also those that the task moved here",
            hint=f"use append or sync, or remove {_MOVER} from the REALTIME table",
        )


def _refuse_for_good(context: TriggerContext) -> None:
    version = context.read_pinot_version()
    replaces = context.mode is not Mode.APPEND or context.spec.ingestion.on_spec_change == "rebuild"
    if not replaces or not versions.replaces_for_good(version, context.spec.table_json):
        return
    raise SpecError(
        f"{context.table} replaces segments and is no REFRESH table, so there would be no way back",
        why=f"Pinot {versions.release(version)} deletes at once what is replaced there; newer ones keep it",
        hint="write segmentIngestionType: REFRESH in batchIngestionConfig, and apply it; or use append mode "
        "with onSpecChange: ask",
    )


def waits_for_resume(context: TriggerContext, session: Session | None) -> bool:
    """Whether a rollback holds a swap table, and no session is open: a swap is held as a whole."""
    return session is None and context.mode is Mode.SWAP and context.lease.pointer.hold is not None


def wants_clear(context: TriggerContext) -> bool:
    """Whether `clearConsistentPushState` acts: once per change of the spec, not at every run.

    Source: docs/design/session.md#clear.
    """
    return context.spec.ingestion.clear_state and context.clear_token != context.lease.pointer.clear_token
