"""Pinot as one process sees it, with trouble on the way, and a look at what queries see after each call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fakes.pinot.memory import FakePinot
from model.world.process import Kind, Process

from pinot_assets.errors import PinotError, SwitchStateUnknown

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


class WatchedPinot:
    """Passes every call on.

    :param look: called after each call.
    :param late: takes a call that will arrive later.
    :param wrote: called when a write arrives, with its name and arguments.
    """

    def __init__(
        self,
        pinot: FakePinot,
        process: Process,
        look: Callable[[], None],
        wrote: Callable[[str, tuple[Any, ...]], None],
        late: Callable[[str, Callable[[], Any]], None],
    ) -> None:
        self._pinot = pinot
        self._process = process
        self._look = look
        self._wrote = wrote
        self._late = late

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._pinot, name)
        return self._write(name, method) if name in WRITES else self._read(name, method)

    def _read(self, name: str, method: Callable[..., Any]) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            self._process.alive()
            answer = method(*args, **options)
            self._look()  # asking moves what waits in the fake
            return answer

        return call

    def _write(self, name: str, method: Callable[..., Any]) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            def arrive() -> Any:
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
