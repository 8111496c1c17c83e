"""What can be told alike of a real cluster's commits and of simulated ones: who says what, what is when."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat
from kazoo.recipe.watchers import ChildrenWatch, DataWatch
from simulator.world import SimulatedWorld
from simulator.zookeeper import Placement

from pinot_assets.settings.local_stack import StackState

Number = tuple[int, int]
"""Partition and sequence: a segment's name without what differs from run to run."""

_ANSWER = re.compile(r'Controller response \{.*"status":"(\w+)".*\} for \S+/(segment\w+)\?(\S+)')
_STAMP = 23
"""Characters of a log line that are its time, to the millisecond."""


def number(name: str) -> Number:
    """Of a segment."""
    _, partition, sequence, _ = name.rsplit("__", 3)
    return int(partition), int(sequence)


# --- who says what -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Said:
    """A server's message to the controller, and its answer."""

    at_s: float
    server: str
    message: str
    answer: str

    @property
    def words(self) -> tuple[str, str]:
        """Message and answer."""
        return self.message, self.answer


def answered(line: str, segment: str) -> tuple[str, str] | None:
    """Message and answer, where a line of a server's log tells of one about that segment.

    By the request's own words: 0.11.0 may log it under another segment's name.
    """
    match = _ANSWER.search(line)
    return (match[2], match[1]) if match is not None and f"name={segment}" in match[3].split("&") else None


def real_talk(logs: Mapping[str, Path], segment: str) -> list[Said]:
    """What servers said of a segment, by their logs."""
    return sorted(
        (
            Said(datetime.fromisoformat(line[:_STAMP]).timestamp(), server, *words)
            for server, log in logs.items()
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
            if (words := answered(line, segment))
        ),
        key=lambda said: said.at_s,
    )


def simulated_talk(world: SimulatedWorld, segment: str) -> list[Said]:
    """What simulated servers said of a segment."""
    return [
        Said(at_ms / 1000, m.server, str(m.kind), str(reply.answer))
        for at_ms, m, reply in world.network.carried
        if m.segment == segment
    ]


def without_repeats(talk: Sequence[Said], server: str) -> list[tuple[str, str]]:
    """One server's words; how often it asks while it waits is left out."""
    words = [said.words for said in talk if said.server == server]
    return [here for nth, here in enumerate(words) if nth == 0 or words[nth - 1] != here]


# --- what is written when ------------------------------------------------------------------------------

_MARKS = (
    "DONE on servers only",
    "DONE and stored",
    "next made",
    "to be ONLINE",
    "ONLINE on one",
    "ONLINE on all",
)
"""In the order in which they are reached, where nobody looked between."""


@dataclass
class Order:
    """In which order a table's segments reach their marks.

    :ivar stamps: of each segment, when each mark was reached: ZooKeeper's transaction, or milliseconds.
    """

    replicas: int = 2
    stamps: dict[Number, dict[str, int]] = field(default_factory=dict)

    @property
    def reached(self) -> dict[Number, list[str]]:
        """Of each segment, its marks in order."""
        return {
            of: sorted(marks, key=lambda mark: (marks[mark], _MARKS.index(mark)))
            for of, marks in self.stamps.items()
        }

    def made(self, name: str, stamp: int) -> None:
        """A segment's node is there."""
        partition, sequence = number(name)
        self.stamps.setdefault((partition, sequence), {})
        if sequence:
            self._note((partition, sequence - 1), "next made", stamp)

    def written(self, name: str, status: str, url: str | None, stamp: int) -> None:
        """It says so."""
        if status == "DONE":
            self._note(number(name), "DONE and stored" if url else "DONE on servers only", stamp)

    def assigned(self, ideal: Placement, stamp: int) -> None:
        """The ideal state says so."""
        for name, states in ideal.items():
            if set(states.values()) == {"ONLINE"}:
                self._note(number(name), "to be ONLINE", stamp)

    def shown(self, view: Placement, stamp: int) -> None:
        """The external view says so."""
        for name, states in view.items():
            online = sum(state == "ONLINE" for state in states.values())
            if online:
                self._note(number(name), "ONLINE on one", stamp)
            if online == self.replicas:
                self._note(number(name), "ONLINE on all", stamp)

    def _note(self, of: Number, mark: str, stamp: int) -> None:
        self.stamps.setdefault(of, {}).setdefault(mark, stamp)


LOOK_MS = 5
"""Less than anything takes that is looked for."""


def simulated_until(
    world: SimulatedWorld, order: Order, holds: Callable[[], bool], longest_ms: int = 300_000
) -> None:
    """Let time pass until that holds, and note what is reached meanwhile."""
    end = world.env.now + longest_ms
    while not holds():
        assert world.env.now < end, f"it did not come to that: {world.story[-20:]}"
        world.run(LOOK_MS)
        for name, node in world.zookeeper.nodes.items():
            order.made(name, world.elapsed_ms)
            order.written(name, node.status.value, node.url, world.elapsed_ms)
        order.assigned(world.zookeeper.ideal, world.elapsed_ms)
        order.shown(world.helix.external, world.elapsed_ms)


@contextmanager
def real_order(stack: StackState, table: str) -> Iterator[Order]:
    """Watch a table in the real ZooKeeper: its nodes, ideal state and external view.

    :param table: with `_REALTIME`.
    """
    order, root = Order(), f"/{stack.cluster}"
    segments = f"{root}/PROPERTYSTORE/SEGMENTS/{table}"
    watched: set[str] = set()

    def node(name: str, data: bytes | None, stat: ZnodeStat) -> None:
        if data is not None:
            fields = json.loads(data)["simpleFields"]
            status, url = fields["segment.realtime.status"], fields.get("segment.download.url")
            order.made(name, stat.czxid)
            order.written(name, status, url, stat.mzxid)

    def placement(note: Callable[[Placement, int], None], data: bytes | None, stat: ZnodeStat) -> None:
        if data is not None:
            note(json.loads(data)["mapFields"], stat.mzxid)

    def children(names: list[str]) -> None:
        for name in set(names) - watched:
            watched.add(name)
            DataWatch(client, f"{segments}/{name}", partial(node, name))

    client = KazooClient(stack.zookeeper)
    client.start(timeout=15)
    try:
        ChildrenWatch(client, segments, children)
        DataWatch(client, f"{root}/IDEALSTATES/{table}", partial(placement, order.assigned))
        DataWatch(client, f"{root}/EXTERNALVIEW/{table}", partial(placement, order.shown))
        yield order
    finally:
        client.stop()
        client.close()
