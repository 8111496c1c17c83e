"""What the cluster remembers: segments' nodes with versions and times, the ideal state, who is paused.

A write takes time, and nothing of it happens where the writer dies before. Source:
docs/design/realtime.md#s4, #s5 and #s8.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

import simpy

from pinot_assets.realtime.model.state import NOT_PAUSED, Pause, SegmentStatus

T = TypeVar("T")
Steps = Generator[simpy.Event, object, T]
"""What a simulated process does, step by step."""

Placement = dict[str, dict[str, str]]
"""Segment → server → state."""


class Refused(Exception):
    """The controller's code refuses: wrong status, other version, too late, duplicate."""


@dataclass(frozen=True, slots=True)
class SegmentName:
    """`table__partition__sequence__time`."""

    table: str
    partition: int
    sequence: int
    created_ms: int

    def __str__(self) -> str:
        stamp = datetime.fromtimestamp(self.created_ms / 1000, UTC).strftime("%Y%m%dT%H%MZ")
        return f"{self.number}{stamp}"

    @property
    def number(self) -> str:
        """The name without its time: no two segments may have the same."""
        return f"{self.table}__{self.partition}__{self.sequence}__"


@dataclass(frozen=True, slots=True)
class Node:
    """Metadata of a segment.

    :ivar limit: `segment.flush.threshold.size`: rows after which it is full.
    :ivar url: None never set, empty peers only.
    """

    name: SegmentName
    start: int
    limit: int
    status: SegmentStatus = SegmentStatus.IN_PROGRESS
    end: int | None = None
    url: str | None = None
    crc: str | None = None
    size_bytes: int | None = None
    docs: int | None = None
    version: int = 0
    modified_ms: int = 0


@dataclass
class ZooKeeper:
    """The table's part of ZooKeeper.

    :ivar write_ms: how long a write takes now; a fault may raise it.
    :ivar history: every write of a node: when, which, its status then.
    :ivar changed: called with the segments whose ideal state has changed.
    """

    env: simpy.Environment
    write_ms: int
    nodes: dict[str, Node] = field(default_factory=dict)
    ideal: Placement = field(default_factory=dict)
    committing: set[str] = field(default_factory=set)
    pause: Pause = NOT_PAUSED
    history: list[tuple[int, SegmentName, SegmentStatus]] = field(default_factory=list)
    changed: Callable[[Iterable[str]], None] = lambda _names: None

    def create(self, node: Node) -> Steps[None]:
        """Write a new node, or over an old one of that name."""
        yield self.env.timeout(self.write_ms)
        self._keep(node, 0)

    def write(self, node: Node, version: int | None) -> Steps[None]:
        """Write a node.

        :param version: the version that was read; None writes whatever there is, as Pinot's -1 does.
        :raises Refused: when it is another one by now, or the node is gone.
        """
        yield self.env.timeout(self.write_ms)
        found = self.nodes.get(str(node.name))
        if found is None or (version is not None and found.version != version):
            raise Refused(f"{node.name} has changed meanwhile")
        self._keep(node, found.version + 1)

    def _keep(self, node: Node, version: int) -> None:
        now = int(self.env.now)
        self.nodes[str(node.name)] = replace(node, version=version, modified_ms=now)
        self.history.append((now, node.name, node.status))

    def remove(self, name: str) -> Steps[None]:
        """Remove a node."""
        yield self.env.timeout(self.write_ms)
        self.nodes.pop(name, None)

    def update_ideal(self, change: Callable[[Placement], None]) -> Steps[None]:
        """Change the ideal state as a whole, or not at all.

        :param change: puts other states in the place of a segment's, and changes none in place.
        :raises Refused: what `change` raises.
        """
        yield self.env.timeout(self.write_ms)
        former, copy = self.ideal, dict(self.ideal)
        change(copy)
        self.ideal = copy
        self.changed(name for name in {**former, **copy} if former.get(name) is not copy.get(name))

    def list_committing(self, change: Callable[[set[str]], None]) -> Steps[None]:
        """Change the list of committing segments, `/PAUSELESS_DEBUG_METADATA/<table>`."""
        yield self.env.timeout(self.write_ms)
        change(self.committing)

    def age_ms(self, name: str) -> float:
        """How long ago the segment's node was written.

        :raises Refused: when it is gone.
        """
        if name not in self.nodes:
            raise Refused(f"{name} has no metadata")
        return self.env.now - self.nodes[name].modified_ms

    def latest(self) -> dict[int, Node]:
        """The newest segment's node of every partition."""
        newest: dict[int, Node] = {}
        for node in self.nodes.values():
            partition = node.name.partition
            if partition not in newest or newest[partition].name.sequence < node.name.sequence:
                newest[partition] = node
        return newest
