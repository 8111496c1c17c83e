"""Whether a switch fits into the one ZNode that holds a table's whole lineage.

Source: docs/design/lineage.md#node-size.

ZooKeeper refuses a node of more than 1 MiB, and Pinot then answers a start with a 500 that says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from pinot_assets.core.text import counted, plural_are
from pinot_assets.errors import PushRefused
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.pinot.lineage import Lineage, LineageEntry, LineageState
from pinot_assets.session.values.plan import Plan, Row

LIMIT_BYTES = 900 * 1024
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
    if size > LIMIT_BYTES:
        raise PushRefused(
            f"the switch of {table} does not fit into its lineage",
            why=f"the lineage would take {size / 1024:,.0f} KiB of {LIMIT_BYTES // 1024} KiB, "
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
    if size > LIMIT_BYTES:
        raise PushRefused(
            f"{plural_are(len(names), 'file')} too many for one switch of {table}",
            why=f"their names alone take {size / 1024:,.0f} KiB of the lineage, which may have "
            f"{LIMIT_BYTES // 1024} KiB",
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
