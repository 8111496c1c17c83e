"""How large the two ZNodes are that grow with a switch: a table's whole lineage, and Helix's ideal state.

ZooKeeper refuses a node of more than 1 MiB, and Pinot then answers a start with a 500 that says nothing
(docs/design/lineage.md#node-size). Above 1,000 segments Pinot has Helix pack the ideal state
(`HelixHelper`, later `IdealStateGroupCommit`: NUM_PARTITIONS_THRESHOLD_TO_ENABLE_COMPRESSION).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pinot_assets.core.text import counted, plural_are
from pinot_assets.errors import PushRefused
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.session.values.plan import Plan, Row

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
            why=f"the lineage would take {size / 1024:,.0f} KiB of {LINEAGE_BYTES // 1024} KiB, "
            f"{znode_bytes(table, kept) / 1024:,.0f} KiB of it for "
            f"{counted(len(kept), 'entry that stands', 'entries that stand')}",
            hint=f"{_WAY_OUT}; Pinot forgets finished entries about a day after their switch",
        )


def beside(
    lineage: Lineage, segments_from: Collection[str], segments_to: Collection[str]
) -> tuple[list[LineageEntry], LineageEntry]:
    """The entries that a start leaves, and its own: it replaces open ones of the same outputs."""
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
    names = names_at_least(table, plan, (*plan.done, *plan.to_build))
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
    # A file of no bytes has no segment; any other may turn out to have none, which is not counted on.
    return [
        segment_name(table, plan.session, plan.attempt, row.ordinal, 0) for row in rows if row.planned.size
    ]


def _entry(segments_from: Collection[str], segments_to: Collection[str]) -> LineageEntry:
    names = frozenset(segments_from), frozenset(segments_to)
    return LineageEntry(_ID, *names, LineageState.IN_PROGRESS, 10**12)


PACKED_ABOVE = 1000
IDEAL_STATE_BYTES = 1024 * 1024 - 1
"""ZooKeeper's `jute.maxbuffer`, where nobody set another one."""

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
