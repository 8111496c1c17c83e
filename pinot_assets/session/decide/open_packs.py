"""Published packs that may be merged, and what a wish for fewer segments adds to a plan. Only reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import RebuildRefused, SnapshotCorrupt
from pinot_assets.pinot import versions
from pinot_assets.session.checks.capacity import names_with_room
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staged_files import THREADS
from pinot_assets.session.values.hold import Hold
from pinot_assets.session.values.merges import Group, MergeBudget, OpenPack, compaction_of, is_open, merges_of
from pinot_assets.session.values.outdated import CompactRequest
from pinot_assets.session.values.packs import Accepted
from pinot_assets.session.values.plan import Plan, dirty_packs, segments_from
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import MemberList, PublishedPack, members_key


def open_packs(
    context: TriggerContext, plan: Plan, current: Snapshot, visible: frozenset[str]
) -> list[OpenPack]:
    """Return the published packs that may be merged: small, wholly visible, and without a change.

    None while a rollback holds something: then a person looks into what was published. None where Pinot would
    delete at once what is replaced, and none for a swap, which replaces all.

    :param visible: every visible segment of the table.
    """
    config = context.read_table_config()
    for_good = versions.replaces_for_good(context.read_pinot_version(), config)
    if plan.mode is Mode.SWAP or not context.hold().is_empty or for_good:
        return []
    if (current.segments.keys() - visible) & context.pinot.all_segments(context.table):
        return []  # another program replaced some: nothing of ours is replaced while it does (R5)
    dirty = {pack.name for pack in dirty_packs(plan, current)}
    chosen = [
        pack
        for pack in current.packs
        if pack.name not in dirty
        and visible.issuperset(output.segment for output in pack.outputs)
        and is_open(pack.bytes, context.spec.layout.target_bytes)
    ]
    lists, found = readable_lists(context, chosen), []
    for pack in (pack for pack in chosen if pack.name in lists):
        members, per_row = lists[pack.name], pack.bytes / max(pack.rows, 1)
        cell = members.cell
        accepted = tuple(Accepted(one, round(per_row * one.rows), cell) for one in members.members)
        found.append(OpenPack(pack.name, pack.bytes, members.read, accepted, cell))
    return found


def readable_lists(context: TriggerContext, packs: Sequence[PublishedPack]) -> dict[str, MemberList]:
    """Return the member lists of packs, by the packs' names, without those that are lost or damaged.

    :raises SourceError: the staging area does not answer.
    """

    def read(pack: PublishedPack) -> MemberList | None:
        with suppress(SnapshotCorrupt):
            return context.staging.members(members_key(pack.members))
        return None

    lists = zip(packs, in_threads(read, packs, THREADS, "member lists"), strict=True)
    return {pack.name: members for pack, members in lists if members is not None}


def chosen_merges(
    context: TriggerContext, plan: Plan, current: Snapshot, fresh: Sequence[OpenPack]
) -> list[Group]:
    """Return the packs that become one, published open ones among them.

    :param fresh: what the session is about to build of new files.
    """
    layout = context.spec.layout
    if not layout.merge_bytes or not current.packs:
        return []
    visible = context.pinot.visible_segments(context.table)
    published = open_packs(context, plan, current, visible)
    replaced = segments_from(plan, current, visible)
    names = names_with_room(context.table, context.switcher().fetch(), replaced)
    budget = MergeBudget(layout.merge_bytes, names)
    choose = compaction_of if plan.compacts else merges_of
    while groups := choose([*published, *fresh], layout.target_bytes, budget):
        if not (lost := _lost(context, groups)):
            return groups
        published = [pack for pack in published if pack.name not in lost]
    return []


def _lost(context: TriggerContext, groups: Iterable[Group]) -> Collection[str]:
    """Return the names of published packs that lack kept rows."""
    needed = {
        pack.name: {one.member.rows_object for one in pack.members}
        for group in groups
        for pack in group
        if pack.name
    }
    gone = context.staging.missing_rows(digest for objects in needed.values() for digest in objects)
    return {name for name, objects in needed.items() if not gone.isdisjoint(objects)}


def with_compaction(context: TriggerContext, plan: Plan, current: Snapshot | None) -> Plan:
    """Return the plan with the open packs that a person's wish merges, if the run has one."""
    if not isinstance(context.request, CompactRequest) or current is None:
        return plan
    groups = chosen_merges(context, replace(plan, merged=(), compacts=True), current, ())
    merged = tuple(pack.name for group in groups for pack in group)
    reads = any(row.is_small for row in plan.rows)
    return replace(plan, merged=merged, compacts=bool(merged) or reads)


def require_compactable(context: TriggerContext, hold: Hold) -> None:
    """Refuse a wish for fewer segments that the table cannot have.

    :raises RebuildRefused: says why.
    """
    table, layout = context.table, context.spec.layout
    if not layout.pack:
        raise RebuildRefused(
            f"segments of {table} are not merged",
            why="its table spec has no packs",
            hint="write `layout: {pack: true}` into it; the guide is docs/guides/many-small-files.md",
        )
    if context.mode is Mode.SWAP:
        raise RebuildRefused(
            f"{table} is a swap table, whose packs are not merged",
            why="each of its sessions packs all files anew",
            hint=f"`pinot-assets run {table}`",
        )
    if versions.replaces_for_good(context.read_pinot_version(), context.read_table_config()):
        raise RebuildRefused(
            f"segments of {table} are not merged",
            why="Pinot deletes at once what is replaced in an APPEND table, so there would be no way back",
            hint="write segmentIngestionType: REFRESH in batchIngestionConfig, and apply it; or let files "
            "wait for others with `layout.waitFor`",
        )
    if not hold.is_empty:
        raise RebuildRefused(
            f"segments of {table} are not merged",
            why="a rollback holds files back",
            hint=f"`pinot-assets resume {table}` ends the hold",
        )


def small_alone(context: TriggerContext, current: Snapshot, same: Collection[str]) -> set[str]:
    """Return the published small files with segments of their own that one run reads again into packs.

    :param same: URIs of files that the source has as they were published.
    """
    below, left = context.spec.layout.small_below, context.spec.layout.merge_bytes
    ledger, chosen = current.ledger, set[str]()
    for uri in sorted(same):
        file = ledger[uri]
        if file.outputs and 0 < file.fingerprint.size < below and file.fingerprint.size <= left:
            chosen.add(uri)
            left -= file.fingerprint.size
    has_cells = context.spec.layout.cells is not None
    return chosen if len(chosen) > 1 or current.packs or has_cells else set()
