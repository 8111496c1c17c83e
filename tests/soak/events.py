"""What happens in a soak, and when: made of a seed and a length, nothing else."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pinot_assets.settings.local_stack import BROKERS
from pinot_assets.settings.local_stack import SERVERS as PINOT_SERVERS


class Kind(StrEnum):
    """What an event is about."""

    CHANGE = "change"
    KILL = "kill"
    TROUBLE = "trouble"


CHANGES: Final = {"new": 30, "rewrite": 34, "delete": 16, "rename": 12, "empty": 8}
"""Changes of files, and how often each comes. `restore` follows `empty` by itself."""

SERVERS: Final = ("controller", *BROKERS, *PINOT_SERVERS, "zookeeper", "s3")
"""Processes of the local stack, by their names in it."""

VICTIMS: Final = ("watch", "jvm", "worker", *SERVERS)
"""Processes that are killed: the watch, its Spark's JVM, a Python worker of that, and each of the stack."""

OLD_POINTER: Final = "old pointer"
TROUBLES: Final = ("507", "503", "full disk", OLD_POINTER)


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    :ivar at_s: when it is due, in seconds from the start.
    :ivar what: one of `CHANGES`, `restore`, one of `VICTIMS`, or one of `TROUBLES`.
    :ivar into_run_s: kills and troubles wait for a run of the watch, and then so long.
    :ivar lasts_s: how long a server stays away, or a trouble stays.
    """

    at_s: float
    kind: Kind
    what: str
    into_run_s: float = 0.0
    lasts_s: float = 0.0

    @property
    def needs_run(self) -> bool:
        """Whether it means nothing without a run that meets it.

        An old pointer is put back while the watch is stopped; what dies between runs, the next one misses.
        """
        return self.kind is Kind.TROUBLE and self.what != OLD_POINTER


@dataclass(frozen=True, slots=True)
class Least:
    """What a soak must have done to count.

    :ivar of_each: kills of each of `VICTIMS`.
    """

    changes: int
    kills: int
    of_each: int


def least(minutes: float) -> Least:
    """60 changes and 20 kills in 20 minutes, 100 and 40 in 90; less in proportion below that."""
    if minutes < 20:
        part = minutes / 20
        return Least(int(60 * part), int(20 * part), int(3 * part))
    more = (minutes - 20) / 70
    return Least(round(60 + 40 * more), round(20 + 20 * more), 3)


def events(seed: int, minutes: float) -> list[Event]:
    """All events of a soak, in their order. Changes go on to the end; kills and troubles stop before it."""
    chance = random.Random(seed)
    length_s, at_least = minutes * 60, least(minutes)
    changes = _changes(chance, math.ceil(max(1.2 * at_least.changes, 3.6 * minutes)), length_s)
    kills = max(math.ceil(1.2 * max(at_least.kills, minutes)), len(VICTIMS) * at_least.of_each)
    troubles = len(TROUBLES) * max(1, round(minutes / 15))
    return sorted(
        [
            *changes,
            *_disturbances(chance, Kind.KILL, VICTIMS, kills, length_s),
            *_disturbances(chance, Kind.TROUBLE, TROUBLES, troubles, length_s),
        ],
        key=lambda event: event.at_s,
    )


def _changes(chance: random.Random, number: int, length_s: float) -> Iterator[Event]:
    restored_s = 0.0
    for at_s in _spread(chance, number, 0.0, length_s):
        what = chance.choices([*CHANGES], [*CHANGES.values()])[0]
        if what == "empty":
            if at_s < restored_s:
                what = "rewrite"  # no more than one file is empty at a time
            else:
                restored_s = at_s + chance.uniform(20, 60)
                yield Event(restored_s, Kind.CHANGE, "restore")
        yield Event(at_s, Kind.CHANGE, what)


def _disturbances(
    chance: random.Random, kind: Kind, names: tuple[str, ...], number: int, length_s: float
) -> Iterator[Event]:
    """Each name as often as any other, in rounds of a random order."""
    rounds = [chance.sample(names, len(names)) for _ in range(math.ceil(number / len(names)))]
    order = [name for round_ in rounds for name in round_][:number]
    for at_s, name in zip(_spread(chance, number, 0.05, 0.9 * length_s), order, strict=True):
        yield Event(at_s, kind, name, into_run_s=chance.uniform(0, 5), lasts_s=chance.uniform(5, 20))


def _spread(chance: random.Random, number: int, start: float, end_s: float) -> list[float]:
    """One moment in each of so many equal parts of the time."""
    first_s = start * end_s
    part_s = (end_s - first_s) / max(number, 1)
    return [first_s + part_s * (place + chance.random()) for place in range(number)]
