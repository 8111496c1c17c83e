"""Decide which packs a session builds: of the small files that it has read, of what stays of packs that
change, and of open packs that are merged.

The decision is made when all files are read, or left out, and again at each attempt. It follows from ledger,
accepted receipts, table spec and former plan; a pack that is still wanted keeps its number and what was built
of it (docs/design/layout.md#session).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pinot_assets.core.text import plural, size
from pinot_assets.core.waiting import in_threads
from pinot_assets.session.checks.pack_segments import expired_packs, packs_in_part
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.decide.open_packs import chosen_merges, readable_lists
from pinot_assets.session.stores.staged_files import THREADS
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.merges import Group, OpenPack
from pinot_assets.session.values.packs import (
    Accepted,
    Content,
    accepted_members,
    cut_at,
    in_old_places,
    read_digest,
    with_kept_packs,
)
from pinot_assets.session.values.plan import Plan, Row, RowStatus, dirty_packs
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import MemberList, members_key
from pinot_assets.snapshot.receipt import Fingerprint, Receipt


def with_decided_packs(context: TriggerContext, plan: Plan, receipts: Mapping[int, Receipt]) -> Plan:
    """Return the plan with its packs; store their member lists.

    :param plan: every file of it is read or left out.
    :param receipts: its valid receipts, by ordinal.
    :raises SwitchConflict: queries do not see the whole of a pack that changes.
    """
    staging, current, read = context.staging, context.current_snapshot(), read_digest(plan.recipe)
    plan = replace(plan, merged=())
    accepted = accepted_members(plan, receipts)
    rebuilt = [*_rebuilt(context, plan, current, accepted, read)]
    placed = {one.member for pack in rebuilt for one in pack.members}
    waiting = {one.member: one for one in accepted if one.member not in placed}

    keys = [row.uri for row in plan.packs if row.status is not RowStatus.GONE]
    lists = dict(zip(keys, in_threads(staging.members, keys, THREADS, "member lists"), strict=True))
    whole = {key: one for key, one in lists.items() if waiting.keys() >= {*one.members}}
    packed = {member for one in whole.values() for member in one.members}
    fresh = [
        OpenPack("", sum(one.bytes for one in members), read, members, members[0].cell)
        for members in cut_at(
            context.spec.layout.target_bytes, (one for one in waiting.values() if one.member not in packed)
        )
    ]
    groups = chosen_merges(context, plan, current, fresh) if current is not None else []
    if old := [pack for group in groups for pack in group if pack.name]:
        amount = size(sum(pack.bytes for pack in old))
        context.note(f"merging {plural(len(old), 'small pack')} of earlier runs, {amount}")
    together = {id(pack) for group in groups for pack in group}
    groups += [(pack,) for pack in fresh if id(pack) not in together]
    wanted = {
        _put_list(staging, content, plan.format): content.members
        for content in (*rebuilt, *map(_as_one, groups))
    }
    packs = with_kept_packs(plan.packs, {*whole, *wanted})
    there = {row.uri for row in packs if row.status is not RowStatus.GONE}
    new = ((key, members) for key, members in wanted.items() if key not in there)
    packs += [
        Row(key, ordinal, Fingerprint(sum(one.bytes for one in members), 0), RowStatus.BUILD)
        for ordinal, (key, members) in enumerate(new, start=plan.next_ordinal)
    ]
    merged = tuple(pack.name for group in groups for pack in group if pack.name)
    return replace(plan, packs=tuple(packs), merged=merged)


def _put_list(staging: Staging, content: Content, number: int) -> str:
    members = tuple(one.member for one in content.members)
    return staging.put_members(MemberList(members, content.read, content.cell, format=number))


def _as_one(group: Group) -> Content:
    return Content(tuple(one for pack in group for one in pack.members), *group[0].kind)


# --- packs that change -------------------------------------------------------------------------------


def _rebuilt(
    context: TriggerContext, plan: Plan, current: Snapshot | None, accepted: Sequence[Accepted], read: str
) -> Iterator[Content]:
    """Yield what becomes of dirty packs."""
    if current is None or plan.mode is Mode.SWAP:
        return
    in_part = packs_in_part(plan, current)
    expired = expired_packs(context, in_part)
    in_part = [pack for pack in in_part if pack.name not in expired]
    keys = [members_key(pack.members) for pack in in_part]
    read_back = in_threads(context.staging.members, keys, THREADS, "member lists")
    lists = dict(zip((pack.name for pack in in_part), read_back, strict=True))
    # A pack of which nothing stays has only places to give, and may have lost its list.
    whole = [pack for pack in dirty_packs(plan, current) if pack.name not in lists.keys() | expired]
    lists |= readable_lists(context, whole)
    target = context.spec.layout.target_bytes
    yield from in_old_places(lists, plan, current, accepted, read, target)
