"""The deep store, and the two ways in which it fails: it refuses, or it hangs."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Final

import simpy

from pinot_assets.sizing.load import Outage
from simulator.rows import Built
from simulator.timing import Hardware
from simulator.zookeeper import Steps

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
