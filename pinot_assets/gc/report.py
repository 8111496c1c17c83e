"""What was found, and what became of it: as plain values, and in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import plural, size
from pinot_assets.gc.collect import Collected
from pinot_assets.gc.orphans import Orphan
from pinot_assets.gc.probe import Garbage
from pinot_assets.pinot.versions import HOUR_MS

SHOWN = 3
"""Names that a line shows."""


def values(garbage: Garbage, collected: Collected | None) -> JsonObject:
    """For JSON.

    :param collected: None for a plan.
    """
    return {
        "orphans": [_orphan_values(orphan) for orphan in garbage.old],
        "tooYoung": [_orphan_values(orphan) for orphan in garbage.young],
        "notes": list(garbage.notes),
        "removed": len(collected.removed) if collected else None,
        "notRemoved": collected.failed if collected else None,
    }


def _orphan_values(orphan: Orphan) -> JsonObject:
    return {
        "kind": orphan.kind,
        "name": orphan.name,
        "why": orphan.why,
        "bytes": orphan.size,
        "ageHours": None if orphan.age_ms is None else round(orphan.age_ms / HOUR_MS, 1),
    }


def lines(garbage: Garbage, collected: Collected | None) -> Iterator[str]:
    """For people.

    :param collected: None for a plan.
    """
    gone = garbage.old if collected is None else collected.removed
    failed = {} if collected is None else collected.failed
    if gone:
        yield f"{_sum(gone)} would go" if collected is None else f"gone: {_sum(gone)}"
        yield from _groups(gone)
    elif not failed:
        yield "nothing to take away"
    if garbage.young:
        yield f"too young to go yet: {_sum(garbage.young)}"
    if failed:
        yield f"{len(failed)} could not be taken away:"
    for name, why in [*failed.items()][:SHOWN]:
        yield f"  {name}: {why}"
    yield from garbage.notes


def _sum(some: Sequence[Orphan]) -> str:
    return f"{plural(len(some), 'thing')} ({size(sum(o.size or 0 for o in some))})"


def _groups(some: Sequence[Orphan]) -> Iterator[str]:
    for (kind, why), group in groupby(some, key=lambda o: (o.kind, o.why)):
        these = [*group]
        shown = ", ".join(o.name for o in these[:SHOWN])
        more = f" and {len(these) - SHOWN:,} more" if len(these) > SHOWN else ""
        yield f"  {len(these):,} × {kind}  {size(sum(o.size or 0 for o in these))}  {why}"
        yield f"    {shown}{more}"
