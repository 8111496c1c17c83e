"""Check, before the first byte is pushed (W1), that a switch fits into the table's storage quota and on its
servers' disks.

Pinot counts hidden segments too (docs/design/lineage.md#storage-quota). A swap needs room for two
generations; for three while the one before the present is kept until the switch
(`rollbackWindow: keepUntilSwitch`).

And whether it fits into the two ZNodes that grow with a switch: a table's whole lineage, and Helix's ideal
state. ZooKeeper refuses a node of more than 1 MiB, and Pinot then answers a start with a 500 that says
nothing (docs/design/lineage.md#node-size). Above 1,000 segments Pinot has Helix pack the ideal state
(`HelixHelper`, later `IdealStateGroupCommit`: NUM_PARTITIONS_THRESHOLD_TO_ENABLE_COMPRESSION).
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.text import counted, plural, plural_are
from pinot_assets.errors import PushRefused
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.pinot.api import ServerDisk
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.pinot.table_config import is_refresh, setting
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Switch
from pinot_assets.session.stores.stored_snapshots import before
from pinot_assets.session.values.plan import Plan, Row
from pinot_assets.snapshot.receipt import Output

LOADS = 40
"""Segments that a server loads at a time, at the most: Helix's threads for it."""

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGTP]?)B?\s*", re.IGNORECASE)
_UNITS = {unit: 1024**power for power, unit in enumerate(("", "K", "M", "G", "T", "P"))}


def quota_bytes(table_json: JsonMapping) -> int | None:
    """`quota.storage` of a table config in bytes, for one replica; None where there is none.

    Source: Pinot's `QuotaConfig` (`100G`, `500M`, `1.5T`).
    """
    text = (table_json.get("quota") or {}).get("storage")
    match = _SIZE.fullmatch(str(text)) if text is not None else None
    return int(float(match[1]) * _UNITS[match[2].upper()]) if match else None


def replication_of(table_json: JsonMapping) -> int:
    """Return the replicas of each segment that a table config asks for.

    1 if Pinot holds what is no number, such as `${REPLICAS}`: a push that does not fit may then be tried.
    """
    asked = str(setting(table_json, "segmentsConfig", "replication") or "").strip()
    return int(asked) if asked.isascii() and asked.isdigit() else 1


def require_capacity(context: TriggerContext, switch: Switch) -> None:
    """Refuse a switch whose push would fail halfway: because of Pinot's quota, or of the disks of its
    servers.

    Sizes are those of unpacked segments without the indexes that a server adds (or of tars, if an older
    release built the segment and did not store its size). So what is refused here would really not fit.

    :raises PushRefused: not enough room is left; nothing was pushed.
    """
    if not switch.segments_to:
        return
    replication = replication_of(context.read_table_config())
    pushed = context.pinot.all_segments(context.table)
    coming = [o for o in switch.segments_to if o.segment not in pushed]
    needed = sum(o.loaded_bytes for o in coming) * replication
    older = bytes_before(context, switch) * replication
    freed = older if context.switcher().starts_forced else 0
    way_out = "; rollbackWindow: pinotDefault keeps one generation less" if older > freed else ""
    _require_quota(context, needed, freed, replication, way_out)
    _require_disks(context, coming, needed - freed, replication, way_out)


def _require_quota(context: TriggerContext, needed: int, freed: int, replication: int, way_out: str) -> None:
    if (quota := quota_bytes(context.read_table_config())) is None:
        return
    present = context.pinot.table_bytes(context.table)
    if present - freed + needed > quota * replication:
        raise PushRefused(
            f"the switch of {context.table} does not fit into its storage quota",
            why=f"{_mb(present)} are present, {_mb(needed)} would be added, "
            f"{_mb(quota * replication)} are allowed, over {plural(replication, 'replica')}",
            hint="raise quota.storage: during a switch the table has the old and the new segments at "
            f"once{way_out}",
        )


def _require_disks(
    context: TriggerContext, coming: Sequence[Output], needed: int, replication: int, way_out: str
) -> None:
    """Require that every server has room for its part of the new segments and for the tars that it loads at
    the same time. A server that does not report its disk is not checked."""
    if needed <= 0:
        return
    servers = context.pinot.table_servers(context.table)
    disks = context.pinot.server_disks(servers)
    part = needed // max(len(servers), 1)
    tars = tars_at_once([o.tar_bytes for o in coming], replication, len(servers))
    short = {
        server: disk
        for server, disk in disks.items()
        if isinstance(disk, ServerDisk) and part + tars > disk.total - disk.used
    }
    if short:
        server, fullest = min(short.items(), key=lambda item: item[1].total - item[1].used)
        raise PushRefused(
            f"the switch of {context.table} does not fit on the disks of its servers",
            why=f"{_mb(needed)} would be added on {plural(len(servers), 'server')}, {_mb(part)} each, "
            f"and {_mb(tars)} of tars while they load; {server} has "
            f"{_mb(fullest.total - fullest.used)} free of {_mb(fullest.total)}",
            hint="give the servers larger disks, or add servers and rebalance: during a switch the "
            f"table has the old and the new segments at once{way_out}",
        )


def tars_at_once(tars: Sequence[int], replication: int, servers: int) -> int:
    """Bytes of tars that a server holds beside its segments while it loads them, at the most.

    :param tars: bytes of each that comes.
    :param servers: how many share them.
    """
    at_once = min(LOADS, -(-len(tars) * replication // max(servers, 1)))
    return sum(sorted(tars, reverse=True)[:at_once])


def generation_before(context: TriggerContext, switch: Switch) -> frozenset[str]:
    """Hidden segments that a forced start of this switch deletes (docs/design/lineage.md#forced-start).

    These were replaced by exactly the segments that this switch replaces: so in a swap, or in a sync that
    replaces everything; and only on a REFRESH table.
    """
    sources = frozenset(switch.segments_from)
    if not sources or not is_refresh(context.read_table_config()):
        return frozenset()
    completed = context.switcher().fetch().in_state(LineageState.COMPLETED)
    older = (e.segments_from for e in completed if e.segments_to == sources)
    return frozenset[str]().union(*older) & context.pinot.all_segments(context.table)


def bytes_before(context: TriggerContext, switch: Switch) -> int:
    """Bytes of the generation before, as far as its snapshot knows them."""
    current = context.current_snapshot()
    names = generation_before(context, switch)
    former = before(context.staging, current) if names and current is not None else None
    if former is None:
        return 0
    known = former.snapshot.segments
    return sum(known[name].loaded_bytes for name in names if name in known)


def _mb(size: int) -> str:
    return f"{size / 1024**2:,.1f} MB"


# --- the two nodes in ZooKeeper ----------------------------------------------------------------------

LINEAGE_BYTES = 900 * 1024
_ID = "0" * 36
_WAY_OUT = "make fewer, bigger files, or split them over several tables"


def znode_bytes(table: str, entries: Iterable[LineageEntry]) -> int:
    """Size of the lineage node with these entries, as Helix writes it."""
    record = {
        "id": f"{table}_OFFLINE",
        "simpleFields": {},
        "mapFields": {},
        "listFields": {
            entry.id: [
                ",".join(sorted(entry.segments_from)),
                ",".join(sorted(entry.segments_to)),
                entry.state.value,
                str(entry.timestamp_ms),
            ]
            for entry in entries
        },
    }
    return len(json.dumps(record, indent=2).encode())


def require_lineage_capacity(
    table: str, lineage: Lineage, segments_from: Collection[str], segments_to: Collection[str]
) -> None:
    """Refuse a start that would make the lineage node too big.

    :raises PushRefused: nothing was started.
    """
    kept, ours = beside(lineage, segments_from, segments_to)
    size = znode_bytes(table, [*kept, ours])
    if size > LINEAGE_BYTES:
        raise PushRefused(
            f"the switch of {table} does not fit into its lineage",
            why=f"the lineage would have {size / 1024:,.0f} KiB of {LINEAGE_BYTES // 1024} KiB, "
            f"{znode_bytes(table, kept) / 1024:,.0f} KiB of it for "
            f"{counted(len(kept), 'entry that is kept', 'entries that are kept')}",
            hint=f"{_WAY_OUT}; Pinot forgets finished entries about a day after their switch",
        )


def names_with_room(table: str, lineage: Lineage, segments_from: Collection[str]) -> int:
    """Return how many more segments a switch may replace for merges alone: half of the lineage's free room.

    :param segments_from: what it replaces without them.
    """
    kept, ours = beside(lineage, segments_from, ())
    free = LINEAGE_BYTES - znode_bytes(table, [*kept, ours])
    longest = len(segment_name(table, f"cp{10**6}-000000", 10**3, 10**6, 10)) + 1
    return max(0, free // 2 // longest)


def beside(
    lineage: Lineage, segments_from: Collection[str], segments_to: Collection[str]
) -> tuple[list[LineageEntry], LineageEntry]:
    """Return the entries that a start keeps, and its new one; it replaces open ones that share an output."""
    ours = _entry(segments_from, segments_to)
    kept = [
        entry
        for entry in lineage
        if entry.state is not LineageState.IN_PROGRESS or entry.segments_to.isdisjoint(ours.segments_to)
    ]
    return kept, ours


def require_plan_fits(table: str, plan: Plan, segments_from: Collection[str]) -> None:
    """Refuse a session that could not be switched however it is built: at least one segment per file.

    :param segments_from: what it would replace now.
    :raises PushRefused: nothing was built.
    """
    rows = (*plan.done, *plan.to_build, *plan.packs_done, *plan.packs_to_build)
    names = names_at_least(table, plan, rows)
    size = znode_bytes(table, [_entry(segments_from, names)])
    if size > LINEAGE_BYTES:
        raise PushRefused(
            f"{plural_are(len(names), 'file')} too many for one switch of {table}",
            why=f"their names alone take {size / 1024:,.0f} KiB of the lineage, which may have "
            f"{LINEAGE_BYTES // 1024} KiB",
            hint=_WAY_OUT,
        )


def names_at_least(table: str, plan: Plan, rows: Iterable[Row]) -> list[str]:
    """One segment for each file of a plan: there may be more of them."""
    # A file of no bytes has no segment; any other may turn out to have none, which is not counted on. How
    # many packs there will be is known when the small files are read.
    own = (row for row in rows if row.planned.size and not row.is_small)
    return [segment_name(table, plan.session, plan.attempt, row.ordinal, 0) for row in own]


def _entry(segments_from: Collection[str], segments_to: Collection[str]) -> LineageEntry:
    names = frozenset(segments_from), frozenset(segments_to)
    return LineageEntry(_ID, *names, LineageState.IN_PROGRESS, 10**12)


PACKED_ABOVE = 1000
IDEAL_STATE_BYTES = 1024 * 1024 - 1
"""ZooKeeper's default for `jute.maxbuffer`."""

_SETTINGS = {
    "BATCH_MESSAGE_MODE": "false",
    "IDEAL_STATE_MODE": "CUSTOMIZED",
    "INSTANCE_GROUP_TAG": "DefaultTenant_OFFLINE",
    "MAX_PARTITIONS_PER_INSTANCE": "2147483647",
    "NUM_PARTITIONS": "100000",
    "REBALANCE_MODE": "CUSTOMIZED",
    "REPLICAS": "3",
    "STATE_MODEL_DEF_REF": "SegmentOnlineOfflineStateModel",
    "STATE_MODEL_FACTORY_NAME": "DEFAULT",
}


@dataclass(frozen=True, slots=True)
class IdealState:
    """Its size, by the names that it would hold.

    :ivar text_bytes: as JSON.
    :ivar stored_bytes: as it lies in ZooKeeper: packed, where Pinot packs it.
    """

    segments: int
    text_bytes: int
    stored_bytes: int

    @property
    def packed(self) -> bool:
        """Whether Pinot has it packed."""
        return self.segments > PACKED_ABOVE


def ideal_state(table: str, segments: Collection[str], servers: Sequence[str], replicas: int) -> IdealState:
    """The ideal state with these segments, each on as many servers as it has replicas.

    :param servers: of the table. Which of them has a segment makes no difference to speak of.
    """
    states = dict.fromkeys(servers[:replicas], "ONLINE")
    record = {
        "id": f"{table}_OFFLINE",
        "simpleFields": _SETTINGS,
        "mapFields": dict.fromkeys(sorted(segments), states),
        "listFields": {},
    }
    text = json.dumps(record, indent=2).encode()
    stored = gzip.compress(text) if len(segments) > PACKED_ABOVE else text
    return IdealState(len(segments), len(text), len(stored))
