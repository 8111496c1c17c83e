"""Decide which packs a session builds of the small files that it has read, and build them.

Packs are decided late: when all files are read, or left out. The decision is the next plan object, and is
made anew at each attempt; a pack whose files are all still wanted keeps its number and what was built of it
(docs/design/layout.md#session).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from pinot_assets.core.stored_format import WITH_PACKS
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import BuildError, SessionError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, PackSettings, TaskKind
from pinot_assets.session.checks.pack_segments import expired_packs, packs_in_part
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staged_files import THREADS
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.packs import (
    Accepted,
    accepted_members,
    cut_at,
    in_old_places,
    read_digest,
    standing_packs,
)
from pinot_assets.session.values.plan import Plan, Receipts, Row, RowStatus, dirty_packs, with_receipts
from pinot_assets.session.values.state import Session
from pinot_assets.snapshot.batch_receipt import rows_key
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import MemberList, members_key
from pinot_assets.snapshot.receipt import Failure, Fingerprint, Receipt, SourceFile
from pinot_assets.snapshot.recipes import StoredRecipe, revision_of

PACK_BYTES: Final = 512 << 20
"""Bytes of memory that the rows of a pack's segment may need, if the table spec does not say."""


def pack_settings(context: TriggerContext, plan: Plan, current: Snapshot | None) -> PackSettings | None:
    """Return what tasks need for packs; None if the plan neither has a small file nor changes a pack."""
    if not _has_packs(plan, current):
        return None
    per_row = _bytes_per_row(current, plan.recipe)
    return PackSettings(context.staging.store.uri, context.spec.layout.target_bytes, per_row)


def _has_packs(plan: Plan, current: Snapshot | None) -> bool:
    return bool(plan.packs or any(row.is_small for row in plan.rows) or dirty_packs(plan, current))


def _bytes_per_row(current: Snapshot | None, recipe: StoredRecipe | None) -> float:
    """Return how many bytes a row needs in published packs of this recipe; 0 if there are none."""
    if current is None or recipe is None:
        return 0.0
    revision = revision_of(current.recipes, recipe)
    same = [pack for pack in current.packs if pack.revision == revision]
    rows = sum(pack.rows for pack in same)
    return sum(output.loaded_bytes for pack in same for output in pack.outputs) / rows if rows else 0.0


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
    plan = _decided(context, plan, {ordinal: one for ordinal, (_, one) in receipts.items()})
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


def _decided(context: TriggerContext, plan: Plan, receipts: Mapping[int, Receipt]) -> Plan:
    """Return the plan with the packs of all small files that it accepted, and of what stays of dirty packs;
    store their member lists."""
    staging, current = context.staging, context.current_snapshot()
    accepted = accepted_members(plan, receipts)
    read = read_digest(plan.recipe)
    wanted: dict[str, tuple[Accepted, ...]] = {}
    if current is not None and (dirty := _dirty_lists(context, plan, current)):
        for members, read_with in in_old_places(dirty, plan, current, accepted, read):
            wanted[_put_list(staging, members, read_with, plan.format)] = members
    placed = {one.member for members in wanted.values() for one in members}
    waiting = [one for one in accepted if one.member not in placed]

    live = [row.uri for row in plan.packs if row.status is not RowStatus.GONE]
    lists = {key: staging.members(key) for key in live}
    packs = [*standing_packs(plan.packs, lists, wanted.keys(), waiting)]
    standing = {row.uri for row in packs if row.status is not RowStatus.GONE}
    packed = {member for key in standing for member in lists[key].members}
    waiting = [one for one in waiting if one.member not in packed]

    new = {key: members for key, members in wanted.items() if key not in standing}
    for members in cut_at(context.spec.layout.target_bytes, waiting):
        new[_put_list(staging, members, read, plan.format)] = members
    for ordinal, (key, members) in enumerate(new.items(), start=plan.next_ordinal):
        size = sum(one.bytes for one in members)
        packs.append(Row(key, ordinal, Fingerprint(size, 0), RowStatus.BUILD))
    return replace(plan, packs=tuple(packs))


def _put_list(staging: Staging, accepted: tuple[Accepted, ...], read: str, number: int) -> str:
    return staging.put_members(MemberList(tuple(one.member for one in accepted), read, format=number))


def _dirty_lists(context: TriggerContext, plan: Plan, current: Snapshot) -> dict[str, MemberList]:
    """Return the member lists of dirty packs that are to be built again, by the packs' names.

    :raises SwitchConflict: queries do not see the whole of one, and its rows would come back.
    """
    dirty = packs_in_part(plan, current)
    expired = expired_packs(context, dirty)
    keys = {pack.name: members_key(pack.members) for pack in dirty if pack.name not in expired}
    lists = in_threads(context.staging.members, keys.values(), THREADS, "member lists")
    return dict(zip(keys, lists, strict=True))


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
    files = sum(row.is_small for row in plan.done)
    context.progress.note(f"building {plural(len(tasks), 'pack')} of {plural(files, 'small file')}")
    # Rows objects have the rows that the query made. The target decides how large a pack is, unless the table
    # spec itself limits the memory or the rows of a segment.
    limit = context.spec.ingestion.desired_segment_bytes or PACK_BYTES
    build_spec = replace(build_spec, query=None, desired_segment_bytes=limit)
    context.clients.builder.build(build_spec, tasks, on_done, lambda _: context.progress.moving(0))
    if failures:
        _delete_damaged(context, [failure.uri for failure in failures])
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
