"""Take the tables of a location in turn: no table keeps a sensor from the others. From values alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import ClassVar

from pinot_assets.scheduling.stored_cursor import StoredCursor


@dataclass(frozen=True, slots=True)
class SessionsCursor(StoredCursor):
    """What the sensor of all sessions remembers between its ticks.

    :ivar after: the last table of the last tick; the next tick continues after it.
    :ivar tables: cursor of `decide_session` by table, for tables with an open session or a run under way.
    """

    what: ClassVar = "the cursor of the sensor of all sessions"

    after: str = ""
    tables: Mapping[str, str] = field(default_factory=dict)

    def with_table(self, name: str, cursor: str) -> SessionsCursor:
        """Return the cursor with that of one table; an empty one takes the table out."""
        others = {table: text for table, text in self.tables.items() if table != name}
        return replace(self, tables=others | ({name: cursor} if cursor else {}))

    def only(self, names: Collection[str]) -> SessionsCursor:
        """Return the cursor without tables that are gone."""
        return replace(self, tables={name: text for name, text in self.tables.items() if name in names})


def in_turn(names: Sequence[str], after: str) -> list[str]:
    """Return the names, beginning behind `after`, in a circle."""
    ordered = sorted(names)
    start = next((place for place, name in enumerate(ordered) if name > after), 0)
    return [*ordered[start:], *ordered[:start]]


def due(
    intervals: Mapping[str, float],
    looked_s: Mapping[str, float],
    changed: Collection[str],
    now_s: float,
    after: str = "",
) -> list[str]:
    """Return the tables to look at now, in their order: one that has changed, one whose time has come, and so
    on by turns. Of each kind, the one that was not looked at for the longest time comes first.

    :param intervals: seconds between two looks, by table.
    :param looked_s: when each table was looked at last; a table without an item never was.
    :param after: of tables that never were, those behind this name come first.
    """
    place = {name: number for number, name in enumerate(in_turn([*intervals], after))}
    ordered = sorted(intervals, key=lambda name: (looked_s.get(name, float("-inf")), place[name]))
    first = [name for name in ordered if name in changed]
    late = [
        name
        for name in ordered
        if name not in changed and now_s - looked_s.get(name, float("-inf")) >= intervals[name]
    ]
    return list(_by_turns(first, late))


def _by_turns(one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    for pair in zip_longest(one, other):
        yield from (name for name in pair if name is not None)
