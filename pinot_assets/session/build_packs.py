"""Build the packs of a session, once all of its files are read or left out.

The decision which packs these are (`pack_decision.py`) is the next plan object. Source:
docs/design/layout.md#session.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from pinot_assets.core.stored_format import WITH_PACKS
from pinot_assets.core.text import plural, size
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import BuildError, SessionError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, PackSettings, TaskKind
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.pack_decision import with_decided_packs
from pinot_assets.session.stores.staged_files import THREADS
from pinot_assets.session.values.plan import Plan, Receipts, dirty_packs, with_receipts
from pinot_assets.session.values.state import Session
from pinot_assets.snapshot.batch_receipt import rows_key
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure, Receipt, SourceFile, is_of_machine
from pinot_assets.snapshot.recipes import StoredRecipe, revision_of

PACK_BYTES: Final = 512 << 20
"""Bytes of memory that the rows of a pack's segment may need, if the table spec does not say."""


def pack_settings(context: TriggerContext, plan: Plan, current: Snapshot | None) -> PackSettings | None:
    """Return what tasks need for packs; None if the plan neither has a small file nor changes a pack."""
    if not _has_packs(plan, current):
        return None
    per_row = _bytes_per_row(current, plan.recipe)
    layout = context.spec.layout
    return PackSettings(context.staging.store.uri, layout.target_bytes, per_row, layout.cells)


def _has_packs(plan: Plan, current: Snapshot | None) -> bool:
    return bool(plan.packs or any(row.is_small for row in plan.rows) or dirty_packs(plan, current))


def _bytes_per_row(current: Snapshot | None, recipe: StoredRecipe | None) -> float:
    """Return how many bytes a row needs in published packs of this recipe; 0 if there are none."""
    if current is None or recipe is None:
        return 0.0
    revision = revision_of(current.recipes, recipe)
    same = [pack for pack in current.packs if pack.revision == revision]
    rows = sum(pack.rows for pack in same)
    return sum(pack.bytes for pack in same) / rows if rows else 0.0


def refuse_older_format(context: TriggerContext, number: int) -> None:
    """Refuse packs for a table whose stored state has none.

    :param number: the format of the session that would begin.
    :raises SessionError: it is such a table.
    """
    if context.spec.layout.pack and number < WITH_PACKS:
        raise SessionError(
            f"files of {context.table} cannot be packed",
            why=f"its stored state is of format {number}, and packs need {WITH_PACKS}",
            hint=f"`pinot-assets state upgrade {context.table}`",
        )


def with_packs(
    context: TriggerContext, session: Session, plan: Plan, receipts: Receipts, build_spec: BuildSpec
) -> tuple[Session, Plan, Receipts]:
    """Decide and build the packs of a plan whose files are all read or left out; reads no source file.

    :param plan: with the receipts that it accepted.
    :param receipts: its valid receipts.
    :param build_spec: with which its files were read.
    :returns: the session and the plan as stored, and the valid receipts.
    :raises BuildError: a pack could not be built. That is no file's fault: no retry is spent.
    """
    if not _has_packs(plan, context.current_snapshot()):
        return session, plan, receipts
    plan = with_decided_packs(context, plan, {ordinal: one for ordinal, (_, one) in receipts.items()})
    session = context.write_session(
        replace(session, plan=context.staging.put_plan(plan), counts=plan.counts())
    )
    if plan.packs_to_build:
        _build(context, plan, build_spec)
        receipts = context.staging.receipts(plan)
        plan = with_receipts(plan, receipts)
    if lacking := plan.packs_to_build:
        raise SessionError(
            f"{plural(len(lacking), 'pack')} of {session.id} without a valid receipt after the build",
            why=f"first: {lacking[0].uri}",
            hint="check that the staging area keeps what is written; the next trigger builds them again",
        )
    return session, plan, receipts


def _build(context: TriggerContext, plan: Plan, build_spec: BuildSpec) -> None:
    rows = plan.packs_to_build
    tasks = [FileTask(SourceFile(row.uri, row.planned), row.ordinal, TaskKind.PACK) for row in rows]
    failures: list[Failure] = []

    def on_done(outcome: Receipt | Failure) -> None:
        # Progress counts files and the rows that are read, and both are through; but the step lives.
        context.progress.moving(0)
        if isinstance(outcome, Failure):
            failures.append(outcome)

    context.lease.assert_held()
    amount = size(sum(row.planned.size for row in rows))
    context.progress.note(f"building {plural(len(tasks), 'pack')} of about {amount}")
    # Rows objects have the rows that the query made. The target decides how large a pack is, unless the table
    # spec itself limits the memory or the rows of a segment.
    limit = context.spec.ingestion.desired_segment_bytes or PACK_BYTES
    build_spec = replace(build_spec, query=None, desired_segment_bytes=limit)
    context.clients.builder.build(build_spec, tasks, on_done, lambda _: context.progress.moving(0))
    if failures:
        # Where a machine or its memory failed, nothing says that kept rows are damaged.
        _delete_damaged(context, [one.uri for one in failures if not is_of_machine(one.code)])
        first = min(failures, key=lambda one: one.ordinal)
        raise BuildError(
            f"{len(failures):,} of {plural(len(tasks), 'pack')} could not be built",
            why=f"pack {first.ordinal}: {first.code}: {first.reason}",
            hint="its files were read and are kept; the next run builds the pack again, without a retry",
        )


def _delete_damaged(context: TriggerContext, lists: Iterable[str]) -> None:
    """Delete rows objects with another content than their name says: the next trigger finds them lost, and
    reads their files again (`decide/lost_rows.py`)."""
    staging = context.staging
    digests = sorted({digest for key in lists for digest in staging.members(key).rows_objects})
    whole = in_threads(staging.ask_if_rows_whole, digests, THREADS, "kept rows")
    for digest, is_whole in zip(digests, whole, strict=True):
        if not is_whole:
            context.lease.assert_held()
            staging.store.delete(rows_key(digest))
            context.note(
                f"the kept rows {rows_key(digest)} were damaged or lost; their files will be read again"
            )
