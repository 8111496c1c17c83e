"""Pinot as one process sees it, with trouble on the way, and a look at what queries see after each call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import cast

from fakes.pinot.memory import FakePinot
from model.world.process import Kind, Process

from pinot_assets.errors import PinotError, SwitchStateUnknown
from pinot_assets.pinot import PinotClient

WRITES = frozenset(
    {
        "push",
        "delete_segments",
        "start_replace_segments",
        "force_start_replace_segments",
        "end_replace_segments",
        "revert_replace_segments",
        "force_revert_replace_segments",
        "rebuild_routing",
    }
)


Wrote = Callable[[str, tuple[object, ...]], None]
Late = Callable[[str, Callable[[], object]], None]


def watched(
    pinot: FakePinot, process: Process, look: Callable[[], None], wrote: Wrote, late: Late
) -> PinotClient:
    """Passes every call on.

    :param look: called after each call.
    :param late: takes a call that will arrive later.
    :param wrote: called when a write arrives, with its name and arguments.
    """
    return cast(PinotClient, _WatchedPinot(pinot, process, look, wrote, late))


class _WatchedPinot:
    """It has the methods of `PinotClient` by passing on whatever it is asked for."""

    def __init__(
        self, pinot: FakePinot, process: Process, look: Callable[[], None], wrote: Wrote, late: Late
    ) -> None:
        self._pinot = pinot
        self._process = process
        self._look = look
        self._wrote = wrote
        self._late = late

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._pinot, name)
        return self._write(name, method) if name in WRITES else self._read(name, method)

    def _read(self, name: str, method: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **options: object) -> object:
            self._process.alive()
            answer = method(*args, **options)
            self._look()  # asking moves what waits in the fake
            return answer

        return call

    def _write(self, name: str, method: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **options: object) -> object:
            def arrive() -> object:
                self._wrote(name, args)
                try:
                    return method(*args, **options)
                finally:
                    self._look()

            with self._process.effect(name, lambda: SwitchStateUnknown("no answer came")) as kind:
                if kind is Kind.LATE:
                    self._late(name, arrive)
                    raise SwitchStateUnknown("no answer came")
                if kind is Kind.HALF and name == "push":
                    self._pinot.halve_push()
                answer = arrive()
                if kind is Kind.TWICE:
                    with suppress(PinotError):
                        arrive()
            return answer

        return call
