"""What small files cost: every file with rows is a segment of its own, however few rows it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pinot_assets.snapshot.receipt import Receipt

SMALL_BYTES: Final = 8 << 20
"""Below that a segment's tar costs more to keep track of than its rows cost to scan. Pinot's own advice is
segments of some hundred megabytes."""

MANY: Final = 20
"""Fewer are no matter."""


def small(receipts: Iterable[Receipt]) -> list[Receipt]:
    """Those whose only segment is small."""
    return [r for r in receipts if len(r.outputs) == 1 and r.outputs[0].tar_bytes < SMALL_BYTES]


def notes(receipts: Iterable[Receipt]) -> tuple[str, ...]:
    """One line for people, none where that is no matter."""
    found = small(receipts)
    if len(found) < MANY:
        return ()
    size = sum(r.outputs[0].tar_bytes for r in found)
    whole = -(-size // SMALL_BYTES)
    return (
        f"{len(found)} files are small: they cost {len(found)} segments of "
        f"{size / len(found) / 1024:,.0f} KiB on average, where {whole} would do; each is an upload, "
        "a record in ZooKeeper, a folder on every replica and work in every query. Merge them upstream: "
        "a file per day, say, not one per minute",
    )
