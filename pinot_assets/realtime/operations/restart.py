"""Doing what `restart_plan` says, for somebody who asked for it by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pinot_assets.core.text import plural
from pinot_assets.core.untrusted import reading
from pinot_assets.errors import PinotError, SessionError, SwitchStateUnknown
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.operations.restart_plan import (
    SUBJECT,
    Mark,
    RestartMemory,
    goes_on,
    left_of,
    marks_of,
    restart_from,
)
from pinot_assets.realtime.operations.table_change import TableChange
from pinot_assets.realtime.repair.facts import not_known

POLL_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Restart(TableChange):
    """Deletes lost segments with all later ones, and has them read again.

    :ivar patience_s: how long each effect is waited for.
    """

    patience_s: float = 600.0

    def run(self, named: Sequence[str]) -> tuple[str, ...]:
        """Pause, delete, go on; returns what was deleted by this run.

        :param named: segments; once Pinot was asked to delete, that is gone on with whatever they are.
        :raises PinotError: it is refused, or an effect has not come in time. Run it again: it goes on.
        :raises LeaseLost: another run took the table over.
        """
        memory = recalled(self.lease.recall(SUBJECT), self.lease.table)
        if not memory.marks:
            self._judge(named, memory)
            memory = self._pause(memory)
            memory = replace(memory, marks=self._judge(named, memory))
        deleted: tuple[str, ...] = ()
        if not memory.deleted:
            deleted = self._delete(memory)
            memory = replace(memory, deleted=True)
            self._remember(memory)
        self._go_on(memory)
        self.lease.remember(SUBJECT, "")
        return deleted

    def _judge(self, named: Sequence[str], memory: RestartMemory) -> tuple[Mark, ...]:
        """What goes, as the table stands now."""
        found = restart_from(self._known(), named)
        if found.refusals or not found.going:
            raise PinotError(
                f"nothing of {self.lease.table} is deleted",
                why="; ".join(found.refusals) or "nothing is named",
                hint="it is paused: run it again, or resume the table" if memory.paused else None,
            )
        return marks_of(found.going)

    def _pause(self, memory: RestartMemory) -> RestartMemory:
        if not self._known().pause.whole:
            memory = replace(memory, paused=True)
            self._remember(memory)
            self._send(lambda: self.pinot.pause(self.lease.table, "segments are deleted and read again"))
        self._until(lambda state: state.pause.whole, "the table is not paused")
        self._until(
            lambda state: not any(r.ideal == "CONSUMING" for s in state.segments for r in s.replicas),
            "segments are still being consumed",
        )
        return memory

    def _delete(self, memory: RestartMemory) -> tuple[str, ...]:
        """Only if Pinot means the same segments."""
        left = left_of(self._known(), memory.marks)
        names = {segment.name for segment in left}
        if names:
            firsts = {segment.partition: segment.name for segment in reversed(left)}
            told = self.pinot.preview_delete_from(self.lease.table, tuple(firsts.values()))
            partitions = (told.get("partitions") or {}).values()
            meant = {name for one in partitions for name in one.get("segmentsToDelete") or ()}
            if meant != names:
                raise PinotError(
                    f"nothing of {self.lease.table} is deleted",
                    why=f"Pinot would delete other segments: {', '.join(sorted(meant ^ names)[:5])}",
                    hint="look at the table, then try again; it is paused",
                )
            self.tell(f"deleting {plural(len(names), 'segment')}")
            self._remember(memory)
            self._send(lambda: self.pinot.delete_from(self.lease.table, tuple(firsts.values())))
        self._until(lambda state: not left_of(state, memory.marks), "segments are still there")
        return tuple(sorted(names))

    def _go_on(self, memory: RestartMemory) -> None:
        if not memory.paused:
            self.tell("the table was paused before; resume it when you are ready")
            return
        if self._known().pause.whole:
            self._send(lambda: self.pinot.resume(self.lease.table))
        for partition in (mark.partition for mark in memory.marks):
            self._until(
                lambda state, wanted=partition: goes_on(state, wanted),  # type: ignore[misc]
                f"partition {partition} is not consumed yet",
            )

    def _send(self, call: Callable[[], None]) -> None:
        self.lease.assert_held()
        try:
            call()
        except SwitchStateUnknown as error:
            self.tell(f"{error.what}; looking whether it happened")

    def _until(self, holds: Callable[[RealtimeState], bool], otherwise: str) -> RealtimeState:
        """Wait for a state, read as a whole, of which that holds; return it."""
        until = self.clock() + self.patience_s
        while True:
            try:
                state = self.read()
                missing = not_known(state)
                why = otherwise if missing is None else f"the table could not be read as a whole: {missing}"
                if missing is None and holds(state):
                    return state
            except PinotError as error:
                why = f"the table could not be read: {error.what}"
            if self.clock() >= until:
                raise PinotError(
                    f"the restart of {self.lease.table} has come to no end",
                    why=f"{why} after {self.patience_s:.0f} s",
                    hint="run it again: it goes on from there",
                )
            self.sleep(POLL_S)

    def _known(self) -> RealtimeState:
        """The table now."""
        return self._until(lambda _: True, "it was not read")

    def _remember(self, memory: RestartMemory) -> None:
        self.lease.remember(SUBJECT, memory.to_text())


def recalled(text: str, table: str) -> RestartMemory:
    """What an interrupted restart of that table remembers.

    :raises SessionError: it cannot be read.
    """
    with reading(f"what the restart of {table} remembers", SessionError):
        return RestartMemory.from_text(text)
