"""Check, before a pack is built again from its kept rows, that queries still see what it replaces.

Otherwise rows would come back that somebody deleted, or that Pinot's retention removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.text import plural
from pinot_assets.errors import SwitchConflict
from pinot_assets.pinot.table_config import retention_ms
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.values.plan import Plan, carried_files, dirty_packs
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import Member, PublishedPack, members_key


def packs_in_part(plan: Plan, current: Snapshot | None) -> list[PublishedPack]:
    """Return the dirty packs of which files stay; a swap has none."""
    if plan.mode is Mode.SWAP:
        return []
    carried = {name for file in carried_files(plan, current) for name in file.packs}
    return [pack for pack in dirty_packs(plan, current) if pack.name in carried]


def expired_packs(context: TriggerContext, packs: Iterable[PublishedPack]) -> frozenset[str]:
    """Return the names of packs that Pinot's retention has removed.

    :raises SwitchConflict: a segment of another one is missing.
    """
    there = context.pinot.all_segments(context.table)
    short = [pack for pack in packs if any(one.segment not in there for one in pack.outputs)]
    if not short:
        return frozenset()
    config, now_ms = context.read_table_config(), context.clients.now_ms()
    expired = {pack.name for pack in short if _is_expired(pack, config, now_ms)}
    lost = [one.segment for pack in short if pack.name not in expired for one in pack.outputs]
    if missing := sorted(name for name in lost if name not in there):
        context.lease.assert_held()  # without its lease, a run sees what the next one replaced (R2)
        raise SwitchConflict(
            f"{context.table} is paused: segments of changed packs are missing",
            why=f"{plural(len(missing), 'segment')} that this project published, first "
            f"{missing[0]}: built again, their other files' rows would come back",
            hint="find out what deleted them; then a swap (`consistentPushSwapEnabled`) publishes what the "
            "source has, or `pinot-assets rollback` brings back a kept snapshot",
        )
    return frozenset(expired)


def _is_expired(pack: PublishedPack, config: JsonMapping, now_ms: int) -> bool:
    kept_ms = retention_ms(config)
    ends_ms = [output.end_ms for output in pack.outputs]
    return kept_ms is not None and all(end is not None and end < now_ms - kept_ms for end in ends_ms)


def refuse_expired_rows(context: TriggerContext, plan: Plan, current: Snapshot | None) -> None:
    """Check again just before the switch: a pack may have expired since its rows were planned.

    :raises SwitchConflict: it did, or a segment of another one is missing.
    """
    in_part = packs_in_part(plan, current)
    expired = expired_packs(context, in_part)
    if not expired:
        return
    gone = {
        m for pack in in_part if pack.name in expired for m in _members(context, [members_key(pack.members)])
    }
    if back := len({m.file for m in _members(context, [row.uri for row in plan.packs_done]) if m in gone}):
        raise SwitchConflict(
            f"packs of {context.table} were removed by Pinot's retention after this run had planned them",
            why=f"{plural(back, 'file')} would come back",
            hint="the next trigger leaves their rows out; no file is read again",
        )


def _members(context: TriggerContext, lists: Iterable[str]) -> Iterator[Member]:
    yield from (member for key in lists for member in context.staging.members(key).members)
