"""Which open packs a session merges, so that many small arrivals become few segments. No I/O here.

A published pack never gets new files: a session makes packs of its own, and merges packs that are far below
the target, level by level, as a log-structured merge tree does (O'Neil et al. 1996). The bytes of two packs
of one level differ by a factor of four at most, so a byte is written again a few times per level, whatever
the number of sessions. Source: docs/design/layout.md#merges.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from pinot_assets.session.values.packs import Accepted

_BASE = 4
_LEVELS = 7


@dataclass(frozen=True, slots=True)
class OpenPack:
    """A pack that may be merged.

    :ivar name: of a published pack; "" for one that the session is about to build.
    :ivar bytes: of its segments, unpacked.
    :ivar read: digest of the read recipe of its members.
    :ivar cell: their partition and time slice; "" without cells.
    """

    name: str
    bytes: int
    read: str
    members: tuple[Accepted, ...]
    cell: str = ""

    @property
    def kind(self) -> tuple[str, str]:
        """Return what packs have in common that may be merged."""
        return self.read, self.cell


Group = tuple[OpenPack, ...]
"""Packs that become one, in the order of their rows."""
_Place = tuple[int, tuple[str, str]]
"""The level of a pack, and its kind."""


@dataclass(frozen=True, slots=True)
class MergeBudget:
    """What a session may spend on merges alone.

    :ivar bytes: of published packs that are written again.
    :ivar names: how many published segments it may replace.
    """

    bytes: int
    names: int


def is_open(size: int, target: int) -> bool:
    """Whether a pack is small enough to be merged: below three quarters of the target."""
    return 4 * size < 3 * target


def level_of(size: int, target: int) -> int:
    """Return the level of a pack: 0 below 4 × target ÷ 4^7, one more for each four times of that."""
    level = 0
    while size * _BASE**_LEVELS >= target * _BASE ** (level + 1):
        level += 1
    return level


def merges_of(packs: Iterable[OpenPack], target: int, budget: MergeBudget) -> list[Group]:
    """Return the packs that become one: two open ones of one level, read recipe and cell, again and again.

    :param packs: oldest first.
    :param target: bytes of a segment.
    :returns: groups of two or more.
    """
    left, places, whole = budget, dict[_Place, list[tuple[int, Group]]](), list[tuple[int, Group]]()
    for number, pack in enumerate(packs):
        if is_open(pack.bytes, target):
            places.setdefault(_place((pack,), target), []).append((number, (pack,)))
    waiting = [place for place, groups in places.items() if len(groups) > 1]
    heapify(waiting)
    while waiting:
        place = heappop(waiting)
        while len(groups := places[place]) > 1:
            (number, first), (_, second) = groups[:2]
            cost = _cost((first, second))
            if cost.bytes > left.bytes or cost.names > left.names:
                break  # and nothing more is merged on this level
            del groups[:2]
            left = MergeBudget(left.bytes - cost.bytes, left.names - cost.names)
            one = (*first, *second)
            if not is_open(size_of(one), target):
                whole.append((number, one))
                continue
            insort(others := places.setdefault(_place(one, target), []), (number, one), key=_oldest)
            if others is not groups and len(others) > 1:
                heappush(waiting, _place(one, target))
    merged = (one for groups in (whole, *places.values()) for one in groups if len(one[1]) > 1)
    return [group for _, group in sorted(merged, key=_oldest)]


def _oldest(one: tuple[int, Group]) -> int:
    return one[0]


def compaction_of(packs: Iterable[OpenPack], target: int, budget: MergeBudget) -> list[Group]:
    """Return the packs that become one when all open ones may: neighbours of one read recipe and cell.

    :param packs: oldest first.
    :returns: groups of two or more.
    """
    left, growing, groups = budget, dict[tuple[str, str], Group](), list[Group]()
    for pack in (pack for pack in packs if is_open(pack.bytes, target)):
        group = growing.get(pack.kind, ())
        cost = _cost([group, (pack,)] if group else [])
        if size_of((*group, pack)) > target or cost.bytes > left.bytes or cost.names > left.names:
            groups.append(group)
            group, cost = (), MergeBudget(0, 0)
        left = MergeBudget(left.bytes - cost.bytes, left.names - cost.names)
        growing[pack.kind] = (*group, pack)
    return [group for group in (*groups, *growing.values()) if len(group) > 1]


def _place(group: Group, target: int) -> _Place:
    return level_of(size_of(group), target), group[0].kind


def size_of(group: Group) -> int:
    """Return the bytes of the pack that a group becomes."""
    return sum(pack.bytes for pack in group)


def _cost(groups: Iterable[Group]) -> MergeBudget:
    """Return what joining groups costs: published packs that are in no other merge yet."""
    alone = [group[0] for group in groups if len(group) == 1 and group[0].name]
    return MergeBudget(sum(pack.bytes for pack in alone), len(alone))
