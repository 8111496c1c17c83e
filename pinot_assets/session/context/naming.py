"""The number of the next session: greater than every one that was ever seen (rule R17)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.stores.staging import Staging, staged
from pinot_assets.session.values.state import Pointer, seq_of

_NODE = re.compile(r"cp([0-9]+)")
_STAGED = re.compile(r"(?:sessions/cp|snapshots/)([0-9]+)-.*")


def is_fresh(pointer: Pointer) -> bool:
    """Whether the pointer was never set: a new table, a dropped and re-created one, or a lost node."""
    return pointer.current_snapshot is None and pointer.next_seq == 1 and not pointer.history


def next_seq(context: TriggerContext) -> int:
    """A number that no session of this table had, whatever became of its nodes.

    The staging area is read through only while the pointer is fresh: afterwards the pointer is beyond it.
    """
    pointer, pinot, table = context.lease.pointer, context.clients.pinot, context.spec.name
    names = set(pinot.all_segments(table))
    for entry in pinot.lineage(table):
        names |= entry.segments_from | entry.segments_to
    seen = {seq for name in names if (seq := seq_of(name)) is not None}
    if is_fresh(pointer):
        seen.update(_numbers(_NODE, context.clients.store.session_nodes()))
        seen.update(_staged(context.clients.staging))
    return max(pointer.next_seq, 1 + max(seen, default=0))


def beyond_all(context: TriggerContext) -> int:
    """The same, with the staging area read through: for a pointer that may be behind it."""
    seen = {*_numbers(_NODE, context.clients.store.session_nodes()), *_staged(context.clients.staging)}
    return max(next_seq(context), 1 + max(seen, default=0))


def _staged(staging: Staging) -> Iterator[int]:
    for folder in ("sessions", "snapshots"):
        yield from _numbers(_STAGED, (info.key for info in staged(staging, folder)))


def _numbers(pattern: re.Pattern[str], texts: Iterable[str]) -> Iterator[int]:
    return (int(match[1]) for text in texts if (match := pattern.fullmatch(text)))
