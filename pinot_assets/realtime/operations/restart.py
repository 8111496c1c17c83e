"""Deleting a lost segment with all later ones of its partition, to read them again in order.

The last resort for dedup and partial upsert tables, of which Pinot reads nothing again by itself
(docs/design/realtime.md#reingest): rows that are read in order give the same result. It deletes what is
whole, too, so it is never part of a repair; somebody asks for it by name. `restart_from` decides from a
state, `Restart` does it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pinot_assets.core.stored_format import Open, plain, structured
from pinot_assets.core.text import plural
from pinot_assets.core.untrusted import fields_of_json, reading
from pinot_assets.errors import PinotError, SessionError, SwitchStateUnknown
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState
from pinot_assets.realtime.operations.pauseless import may_pause
from pinot_assets.realtime.operations.table_operation import TableChange
from pinot_assets.realtime.repair.facts import deletes_from_sequence, lost_from_stream, not_known

SUBJECT: Final = "restart"
"""Under which its memory is kept (`realtime.lease`)."""
_WHAT: Final = "what a restart remembers"


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """What would be deleted, and whether it may.

    :ivar going: all that go, by partition and sequence.
    :ivar refusals: why it must not be done.
    :ivar warnings: what is lost all the same.
    """

    going: tuple[LlcSegment, ...]
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark(Open):
    """What goes of one partition.

    The segments that take its place have the same sequences, so it is also told by when it was made.

    :ivar first: sequence of the first segment that goes.
    :ivar newest_ms: when the last one was made.
    """

    partition: int
    first: int
    newest_ms: int


@dataclass(frozen=True, slots=True)
class RestartMemory(Open):
    """What outlives an interruption.

    :ivar marks: what Pinot was asked to delete; empty as long as it was asked for nothing.
    :ivar paused: whether this paused the table.
    :ivar deleted: everything is gone; from here on only consumption has to go on.
    """

    marks: tuple[Mark, ...] = ()
    paused: bool = False
    deleted: bool = False

    def to_text(self) -> str:
        """As JSON."""
        return json.dumps(plain(self))

    @classmethod
    def from_text(cls, text: str) -> RestartMemory:
        """Inverse of `to_text`; the empty one where nothing was begun.

        :raises ValueError: it is something else.
        """
        if not text:
            return cls()
        try:
            fields = fields_of_json(text)
            if lacking := {"marks", "paused", "deleted"} - fields.keys():
                raise ValueError(f"it lacks {min(lacking)}")
            return structured(cls, fields, _WHAT)
        except ValueError as error:
            raise ValueError(f"not {_WHAT}: {error}") from error


def restart_from(state: RealtimeState, named: Sequence[str]) -> RestartPlan:
    """What goes when these segments and all later ones of their partitions go.

    :param named: one or more segments; of each partition the oldest counts.
    """
    missing = [n for n in named if n not in state.by_name or not state.by_name[n].in_ideal_state]
    refusals, warnings = list(_refusals(state, missing)), []
    there = [state.by_name[name] for name in named if name not in missing]
    oldest = {s.partition: s for s in sorted(there, key=lambda s: s.sequence, reverse=True)}
    going = tuple(
        s for s in state.segments if s.partition in oldest and s.sequence >= oldest[s.partition].sequence
    )
    for partition, first in sorted(oldest.items()):
        # Rows that some server or the deep store has must be in the stream; what is lost already is told.
        whole = [s for s in going if s.copy is Copy.DEEP_STORE or state.live_copies(s)]
        held = next((s for s in whole if s.partition == partition), None)
        if held is not None and (gone := lost_from_stream(state, held, held.start_offset)) is not None:
            refusals.append(f"{held.name} is whole and could not be read again: {gone}")
        elif (gone := lost_from_stream(state, first, first.start_offset)) is not None:
            warnings.append(f"{first.name}: {gone}")
    return RestartPlan(going, tuple(refusals), tuple(warnings))


def _refusals(state: RealtimeState, missing: Sequence[str]) -> Iterator[str]:
    if (unknown := not_known(state)) is not None:
        yield f"the table could not be read as a whole: {unknown}"
    if missing:
        yield f"the table has no segment {', '.join(missing)}"
    if not deletes_from_sequence(state.cluster.version):
        yield f"Pinot {state.cluster.version} has no deleteSegmentsFromSequenceNum"
    if not state.settings.pauseless:
        yield "the table is not pauseless, so nothing of it is lost in this way"
    if not may_pause(state) and not state.pause.whole:
        yield (
            "the table may not be paused while pinot.server.consuming.segment.consistency.mode is "
            "RESTRICTED; set it to PROTECTED first"
        )


def marks_of(going: Sequence[LlcSegment]) -> tuple[Mark, ...]:
    """By what the segments that go are told from those that come after them."""
    marks: dict[int, Mark] = {}
    for one in going:
        mark = marks.get(one.partition, Mark(one.partition, one.sequence, one.created_ms))
        marks[one.partition] = Mark(
            one.partition, min(mark.first, one.sequence), max(mark.newest_ms, one.created_ms)
        )
    return tuple(mark for _, mark in sorted(marks.items()))


def left_of(state: RealtimeState, marks: Sequence[Mark]) -> tuple[LlcSegment, ...]:
    """What is still there of what goes; never a segment that was made since."""
    by_partition = {mark.partition: mark for mark in marks}
    return tuple(
        one
        for one in state.segments
        if (mark := by_partition.get(one.partition)) is not None
        and one.sequence >= mark.first
        and one.created_ms <= mark.newest_ms
    )


def goes_on(state: RealtimeState, partition: int) -> bool:
    """Whether the partition is consumed again."""
    newest = state.latest().get(partition)
    return newest is not None and any(replica.ideal == "CONSUMING" for replica in newest.replicas)


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
            self.lease.remember(SUBJECT, memory.to_text())
        self._go_on(memory)
        self.lease.remember(SUBJECT, "")
        return deleted

    def _judge(self, named: Sequence[str], memory: RestartMemory) -> tuple[Mark, ...]:
        """What goes, as the table stands now."""
        planned = restart_from(self._known(), named)
        if planned.refusals or not planned.going:
            raise PinotError(
                f"nothing of {self.lease.table} is deleted",
                why="; ".join(planned.refusals) or "nothing is named",
                hint="it is paused: run it again, or resume the table" if memory.paused else None,
            )
        return marks_of(planned.going)

    def _pause(self, memory: RestartMemory) -> RestartMemory:
        if not self._known().pause.whole:
            memory = replace(memory, paused=True)
            self.lease.remember(SUBJECT, memory.to_text())
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
        if names := {segment.name for segment in left}:
            firsts = {segment.partition: segment.name for segment in reversed(left)}
            answer = self.pinot.preview_delete_from(self.lease.table, tuple(firsts.values()))
            partitions = (answer.get("partitions") or {}).values()
            meant = {name for one in partitions for name in one.get("segmentsToDelete") or ()}
            if meant != names:
                raise PinotError(
                    f"nothing of {self.lease.table} is deleted",
                    why=f"Pinot would delete other segments: {', '.join(sorted(meant ^ names)[:5])}",
                    hint="look at the table, then try again; it is paused",
                )
            self.tell(f"deleting {plural(len(names), 'segment')}")
            self.lease.remember(SUBJECT, memory.to_text())
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
            self._until(partial(goes_on, partition=partition), f"partition {partition} is not consumed yet")

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


def recalled(text: str, table: str) -> RestartMemory:
    """What an interrupted restart of that table remembers.

    :raises SessionError: it cannot be read.
    """
    with reading(f"what the restart of {table} remembers", SessionError):
        return RestartMemory.from_text(text)
