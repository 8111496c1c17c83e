"""The deep store, which refuses or hangs when it fails; and how a server gets a committed segment.

It comes from the store, else from peers. Source: `BaseTableDataManager.downloadSegment`,
`RealtimeTableDataManager.downloadSegment`, `PeerServerSegmentFinder` of release-1.5.1;
docs/design/realtime.md#s6-download.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final

import simpy

from pinot_assets.realtime.model.state import SegmentStatus
from pinot_assets.sizing.load import Outage
from simulator.stream import Built
from simulator.tables import Hardware
from simulator.zookeeper import ONLINE, Steps, T

if TYPE_CHECKING:
    from simulator.server import Server


TMP: Final = ".tmp."
"""Between a segment's name and a number: an upload that nobody has moved yet."""


class StoreFailed(Exception):
    """The store refused."""


@dataclass
class DeepStore:
    """Tars by location. A location is `<segment>.tmp.<n>` until the controller moves it to `<segment>`."""

    env: simpy.Environment
    hardware: Hardware
    files: dict[str, tuple[Built, int]] = field(default_factory=dict)
    """Location → tar and when it came."""
    outage: Outage | None = None
    _back: simpy.Event | None = None
    _numbers: count[int] = field(default_factory=count)

    def fail(self, outage: Outage) -> None:
        """Go down."""
        self.outage = outage
        self._back = self._back or self.env.event()

    def restore(self) -> None:
        """Come back; calls that hung go on."""
        self.outage = None
        if self._back is not None:
            self._back.succeed()
            self._back = None

    def upload(self, tar: Built) -> Steps[str]:
        """Write a tar to a temporary place.

        :returns: its location.
        :raises StoreFailed: when the store refuses.
        """
        location = f"{tar.name}{TMP}{next(self._numbers)}"
        yield from self._reach(tar.size_bytes)
        self.files[location] = (tar, int(self.env.now))
        return location

    def move(self, location: str, name: str) -> Steps[str]:
        """Move a tar to its final place, over what lies there."""
        yield from self._reach(0)
        if location not in self.files:
            raise StoreFailed(f"{location} is not there")
        self.files[name] = (self.files.pop(location)[0], int(self.env.now))
        return name

    def remove_strays(self, name: str) -> None:
        """Remove a segment's uploads that nobody moved."""
        for stray in [other for other in self.files if other.startswith(f"{name}{TMP}")]:
            del self.files[stray]

    def download(self, name: str) -> Steps[Built]:
        """Read a tar.

        :raises StoreFailed: when the store refuses or has no such tar.
        """
        if name not in self.files:
            raise StoreFailed(f"{name} is not there")
        tar = self.files[name][0]
        yield from self._reach(tar.size_bytes)
        return tar

    def _reach(self, size_bytes: int) -> Steps[None]:
        while self._back is not None:
            if self.outage is Outage.REFUSES:
                yield self.env.timeout(self.hardware.refusal_ms)
                raise StoreFailed("the deep store refuses")
            yield self._back
        yield self.env.timeout(10 + size_bytes * 1000 // self.hardware.store_bytes_per_s)


FIND_TRIES: Final = 5
FIND_WAIT_MS: Final = 500
FETCH_TRIES: Final = 3
FETCH_WAIT_MS: Final = 100
FETCH_FACTOR: Final = 5
STORE_TIMEOUT_MS: Final = 300_000
"""What a fetcher gives a store that hangs: HTTP's and object stores' clients have time-outs of this order."""

POLL_MS: Final = 30_000
"""`SLEEP_INTERVAL_MS` of the wait for a segment that is being committed."""


class DownloadFailed(Exception):
    """Neither store nor peers gave the segment."""


def download(server: Server, name: str) -> Steps[Built]:
    """Get a segment that is committed, or being committed.

    :raises DownloadFailed: then the replica goes to ERROR.
    """
    world = server.world
    deadline = world.env.now + world.table.settings.download_timeout_s * 1000
    while (node := world.zookeeper.nodes.get(name)) is not None:
        if node.status is SegmentStatus.IN_PROGRESS:
            break
        if node.status.completed:
            return (yield from _committed(server, name, node.url))
        if world.table.settings.bypasses and _online(server, name):
            try:
                return (yield from _from_peers(server, name))
            except DownloadFailed:
                pass
        left = deadline - world.env.now
        if left <= 0:
            break
        yield world.env.timeout(min(POLL_MS, left))
    raise DownloadFailed(f"{name} was not committed in time")


def _committed(server: Server, name: str, url: str | None) -> Steps[Built]:
    if url is None:
        raise DownloadFailed(f"{name} has no download URL")
    if url:
        try:
            return (yield from _from_store(server, name))
        except StoreFailed as error:
            if not server.world.table.settings.bypasses:
                raise DownloadFailed(str(error)) from error
    if not server.world.table.settings.bypasses:
        raise DownloadFailed(f"only peers have {name}, and the table has no peer scheme")
    return (yield from _from_peers(server, name))


def _from_store(server: Server, name: str) -> Steps[Built]:
    env = server.world.env
    for attempt in range(FETCH_TRIES):
        fetched = server.spawn(or_none(server.world.store.download(name)))
        yield fetched | env.timeout(STORE_TIMEOUT_MS)
        if fetched.processed and fetched.value is not None:
            tar: Built = fetched.value
            return tar
        yield env.timeout(FETCH_WAIT_MS * FETCH_FACTOR**attempt)
    raise StoreFailed(f"the deep store did not give {name}")


def or_none(steps: Steps[T]) -> Steps[T | None]:
    """What a call of the store gives, None where it refuses."""
    try:
        return (yield from steps)
    except StoreFailed:
        return None


def _online(server: Server, name: str) -> list[str]:
    states = server.world.helix.external.get(name, {})
    return [peer for peer, state in states.items() if state == ONLINE]


def _from_peers(server: Server, name: str) -> Steps[Built]:
    """Rounds over all ONLINE replicas in random order; each round looks the external view up again."""
    world = server.world
    for attempt in range(FETCH_TRIES):
        peers: list[str] = []
        for search in range(FIND_TRIES):
            peers = _online(server, name)
            if peers:
                break
            yield world.env.timeout(FIND_WAIT_MS * 2**search)
        world.chance.shuffle(peers)
        for peer in peers:
            yield world.env.timeout(world.table.hardware.network_ms)
            other = world.servers[peer]
            # Its own copy, where the view still has it ONLINE, answers 404 as any other that is not loaded.
            tar = other.loaded.get(name) if other.alive else None
            if tar is None:
                continue
            yield world.env.timeout(tar.size_bytes * 1000 // world.table.hardware.store_bytes_per_s)
            if other.alive:
                world.peer_bytes += tar.size_bytes
                world.trace(server.name, f"{name} fetched from {peer}")
                return tar
        yield world.env.timeout(FETCH_WAIT_MS * FETCH_FACTOR**attempt)
    raise DownloadFailed(f"no peer gave {name}")
